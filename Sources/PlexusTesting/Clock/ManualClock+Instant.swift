extension ManualClock {
  /// A point in time of a manual clock.
  ///
  /// Every manual clock starts at `Instant()`. Instants are offsets from that start, so comparing instants of
  /// different clocks is possible but not meaningful.
  public struct Instant: InstantProtocol, Hashable, Sendable {
    /// The time since the start of the clock.
    public let offset: Duration

    /// Creates the instant at an offset from the start of the clock.
    ///
    /// - Parameter offset: The time since the start of the clock.
    public init(offset: Duration = .zero) {
      self.offset = offset
    }

    /// Returns the instant at a distance from this one.
    ///
    /// - Parameter duration: The distance, which can be negative.
    /// - Returns: The instant.
    public func advanced(by duration: Duration) -> Instant {
      Instant(offset: offset + duration)
    }

    /// Returns the duration from this instant to another.
    ///
    /// - Parameter other: The instant to measure to.
    /// - Returns: The duration, negative if `other` is earlier.
    public func duration(to other: Instant) -> Duration {
      other.offset - offset
    }

    /// Returns whether one instant is earlier than another.
    ///
    /// - Parameters:
    ///   - lhs: One instant.
    ///   - rhs: Another instant.
    /// - Returns: Whether the first is earlier than the second.
    public static func < (lhs: Instant, rhs: Instant) -> Bool {
      lhs.offset < rhs.offset
    }
  }
}

extension ManualClock.Instant: CustomStringConvertible {
  /// The time since the start of the clock, such as `1.5 seconds`.
  public var description: String { offset.description }
}
