/// A source that an inspector shows.
///
/// It holds what it shows weakly, and calls its code with no lock held.
protocol InspectedSource: Sendable {
  /// The kind of the source, which chooses its part of the page.
  var kind: SourceKind { get }

  /// Begins to read logs.
  func start(_ pace: Pace)

  /// Stops reading logs, and releases closures.
  func stop()

  /// Prepares details for a page that shows the source.
  ///
  /// - Parameter time: The time since the inspector was created.
  func prepare(at time: Duration)

  /// The numbers for the overview, whose differences the page draws; `nil` once what the source shows was released.
  var numbers: JSON? { get }

  /// Returns what a page shows beside the numbers.
  ///
  /// - Parameter revision: The revision that the page has.
  /// - Returns: The details, and the new revision of the page.
  func details(since revision: Int) -> (JSON, revision: Int)

  /// Returns a window of entries, or `nil` if the source has none.
  func entries(_ query: EntryQuery) -> JSON?

  /// Returns one entry with its history.
  ///
  /// - Parameters:
  ///   - key: The text of its key, as it is shown.
  ///   - hash: The hash of its key, if the page has it.
  /// - Returns: The entry, or `nil` if the source has no entries.
  func entry(_ key: String, hash: Int?) -> JSON?

  /// Returns the changes of an action, or `nil` if the source has no such action.
  func difference(ofAction number: Int) -> JSON?
}

/// The kinds of sources.
enum SourceKind: String, Sendable {
  case cache
  case loader
  case bus
  case store
  case broadcaster
  case text
}

extension InspectedSource {
  /// Whether what it shows was released.
  var hasEnded: Bool { numbers == nil }

  func start(_ pace: Pace) {}

  func stop() {}

  func prepare(at time: Duration) {}

  func entries(_ query: EntryQuery) -> JSON? { nil }

  func entry(_ key: String, hash: Int?) -> JSON? { nil }

  func difference(ofAction number: Int) -> JSON? { nil }
}
