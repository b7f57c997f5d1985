/// The number of messages that are read at once: few at first, and more as long as they are small and handled quickly.
struct ReadAhead: Sendable {
  /// The number of bytes that are read at once, unless one message has more.
  static let targetBytes = 1 << 20

  private let limit: Int
  private(set) var count: Int

  /// - Parameters:
  ///   - count: The number at first.
  ///   - limit: The largest number.
  init(from count: Int = 1, limit: Int) {
    self.count = count
    self.limit = limit
  }

  /// Adjusts the number to the messages of the last reading.
  ///
  /// - Parameters:
  ///   - messages: Their number.
  ///   - bytes: The number of their bytes.
  mutating func note(messages: Int, bytes: Int) {
    if bytes > Self.targetBytes {
      count = max(1, min(count, messages * Self.targetBytes / bytes))
    } else if messages >= count {
      count = min(limit, 2 * count)
    }
  }

  /// Reads fewer messages, because those of the last reading took long to handle.
  mutating func shrink() {
    count = max(1, count / 4)
  }
}
