extension ManualClock {
  /// A point in time of a manual clock.
  ///
  /// Every manual clock starts at `Instant()` and counts from there. Instants are plain numbers:
  /// those of two clocks can be compared, which says nothing about the clocks.
  public struct Instant: InstantProtocol, Hashable, Sendable {
    /// The time since the start of the clock.
    public let offset: Duration

    /// Creates the instant that is this long after the start of the clock.
    ///
    /// - Parameter offset: The time since the start of the clock.
    public init(offset: Duration = .zero) {
      self.offset = offset
    }

    /// Returns the instant that is this much later, or earlier if the duration is negative.
    ///
    /// - Parameter duration: How much later.
    /// - Returns: The later instant.
    public func advanced(by duration: Duration) -> Instant {
      Instant(offset: offset + duration)
    }

    /// Returns the time from this instant to another, negative if the other one is earlier.
    ///
    /// - Parameter other: The instant to measure to.
    /// - Returns: The time between the two.
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
  /// The time since the start of the clock, as `1.5 seconds`.
  public var description: String { offset.description }
}
