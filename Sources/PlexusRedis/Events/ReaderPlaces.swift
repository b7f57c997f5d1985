internal import Plexus

extension RedisEvents {
  /// The latest message of a reader.
  struct Place: Hashable, Sendable {
    /// The kind of a reader.
    enum Reading: Hashable, Sendable {
      case ephemeral, everyNode
      case group(String)
    }

    let reading: Reading
    let stream: String
    var position: LinkPosition
    /// The id of the message, if it is known.
    var id: String?

    init(_ reading: Reading, of stream: String, position: LinkPosition, id: String? = nil) {
      self.reading = reading
      self.stream = stream
      self.position = position
      self.id = id
    }

    /// Returns whether a server has lost the message, or given its position again.
    ///
    /// - Parameters:
    ///   - latest: The last position that the stream has had.
    ///   - id: The id of the message at the position; `nil` if it was trimmed.
    /// - Returns: Whether the message is lost.
    func isLost(latest: LinkPosition, id: String?) -> Bool {
      if latest < position { return true }
      guard let id, let known = self.id else { return false }
      return known != id
    }
  }
}

/// The latest messages of readers that have ended, by which their successors recognize a server with old data.
struct ReaderPlaces: Sendable {
  private var places: [(place: RedisEvents.Place, time: Nanoseconds)] = []

  /// Records the latest message of a reader that ends.
  mutating func remember(_ place: RedisEvents.Place, at now: Nanoseconds) {
    // Some readers have no successor.
    let old = places.firstIndex { now - $0.time < TopicNames.memory }
    places.removeFirst(old ?? places.count)
    places.append((place, now))
  }

  /// Returns the latest message of an earlier reader, which is then forgotten.
  ///
  /// - Parameters:
  ///   - reading: The kind of the reader.
  ///   - stream: The stream.
  ///   - position: The position up to which the reader has read; `nil` for any.
  /// - Returns: The message, if it is known.
  mutating func recall(
    _ reading: RedisEvents.Place.Reading,
    of stream: String,
    at position: LinkPosition? = nil
  ) -> RedisEvents.Place? {
    let index = places.lastIndex { place, _ in
      place.stream == stream && place.reading == reading
        && (position == nil || place.position == position)
    }
    return index.map { places.remove(at: $0).place }
  }
}
