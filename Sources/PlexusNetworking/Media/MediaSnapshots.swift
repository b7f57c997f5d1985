public import Plexus

/// A value in the memory of an ``ImageLoader`` at one moment.
///
/// ## Topics
///
/// ### Details
/// - ``key``
/// - ``state``
/// - ``age``
/// - ``cost``
public struct MediaEntrySnapshot: Sendable {
  /// The cache key of the file, usually its URL, followed by the variant if there is one.
  public let key: String
  /// The state of the value.
  public let state: CacheEntryState
  /// The time since the value was decoded; zero without a value.
  public let age: Duration
  /// The cost of the value, as the capacity of the loader measures it.
  public let cost: Int
}

/// A download, or the decoding of one, at one moment.
///
/// ## Topics
///
/// ### Details
/// - ``key``
/// - ``age``
/// - ``callerCount``
/// - ``isWaiting``
public struct MediaFlightSnapshot: Sendable {
  /// The cache key of the file, usually its URL, followed by the variant if there is one.
  public let key: String
  /// The time since it was requested, or for one from before the first snapshot, since it began.
  public let age: Duration
  /// The number of callers that wait for it.
  public let callerCount: Int
  /// Whether it has not begun.
  public let isWaiting: Bool

  init<Key, Value>(_ flight: MultiplexerMap<Key, Value>.FlightSnapshot, _ item: MediaItem) {
    key = item.text
    age = flight.age
    callerCount = flight.callerCount
    isWaiting = flight.isWaiting
  }
}

extension ImageLoader {
  /// Returns values in memory as they are at one moment, which counts as no use of them.
  ///
  /// The costs are those of a `MultiplexerMap`: see its method of the same name.
  ///
  /// - Parameters:
  ///   - limit: The maximum number of values.
  ///   - isIncluded: The condition on the keys.
  /// - Returns: The values, in no particular order.
  /// - Precondition: The limit is not negative.
  public nonisolated func entries(
    limit: Int,
    where isIncluded: (String) -> Bool = { _ in true }
  ) -> [MediaEntrySnapshot] {
    images.entries(limit: limit) { isIncluded($0.text) }.map { entry in
      MediaEntrySnapshot(
        key: entry.key.text,
        state: entry.state,
        age: entry.age,
        cost: entry.cost
      )
    }
  }

  /// Returns the values that are being downloaded or decoded, the longest first.
  ///
  /// - Parameter limit: The maximum number of values.
  /// - Returns: The values.
  /// - Precondition: The limit is not negative.
  public nonisolated func flights(limit: Int) -> [MediaFlightSnapshot] {
    images.flights(limit: limit).map { MediaFlightSnapshot($0, $0.key) }
  }
}

extension MediaLoader {
  /// Returns the downloads in progress, the longest first.
  ///
  /// - Parameter limit: The maximum number of downloads.
  /// - Returns: The downloads.
  /// - Precondition: The limit is not negative.
  public nonisolated func flights(limit: Int) -> [MediaFlightSnapshot] {
    flights.flights(limit: limit).map { MediaFlightSnapshot($0, $0.key.entry.item) }
  }
}

extension MediaItem {
  /// The key and the variant for readers.
  fileprivate var text: String { variant.map { "\(key) \($0)" } ?? key }
}
