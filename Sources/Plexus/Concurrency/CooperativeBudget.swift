/// A budget that determines when a loop that never suspends must yield its actor to other tasks.
///
/// A loop can continue until the next tick of the system's coarse clock, which is typically 1 to 4 milliseconds
/// long. It counts elements and reads the clock rarely: after 16 elements at first, after up to 64 if many
/// elements fit into a tick, and after each element if few do. The first 16 elements are never interrupted.
@usableFromInline
struct CooperativeBudget: Sendable {
  @usableFromInline static var initialStride: UInt8 { 16 }
  @usableFromInline static var longestStride: UInt8 { 64 }

  /// The clock reading near the beginning of the loop, or 0 before a second element.
  @usableFromInline var start: UInt32 = 0
  /// The number of elements until the next clock reading.
  @usableFromInline var remaining = Int16(initialStride)
  /// The number of elements between two clock readings.
  @usableFromInline var stride = initialStride
  /// The number of consecutive readings without a tick, which resets when the stride changes.
  @usableFromInline var readings: UInt8 = 0

  @inlinable
  init() {}

  /// Whether the clock must be read before the next element.
  @inlinable var isDue: Bool { remaining <= 0 }

  /// Resets the budget after the loop has suspended.
  @inlinable
  mutating func restart() {
    start = 0
    remaining = Int16(truncatingIfNeeded: stride)
  }

  /// Counts elements that are processed without suspending.
  ///
  /// - Parameters:
  ///   - count: The number of elements.
  ///   - now: The reading of the coarse clock, which is evaluated only if needed.
  @inlinable
  mutating func spend(_ count: Int, now: @autoclosure () -> Nanoseconds) {
    if start == 0, count > 1 || remaining < Int16(truncatingIfNeeded: stride) {
      start = Self.tick(now())
    }
    remaining &-= Int16(truncatingIfNeeded: count)
  }

  /// Reads the clock and returns whether the budget is used up; called when ``isDue``.
  ///
  /// - Parameter now: The reading of the coarse clock.
  /// - Returns: Whether the loop must yield before the next element.
  @inlinable
  mutating func isSpent(at now: Nanoseconds) -> Bool {
    let tick = Self.tick(now)
    if start == 0 { start = tick }
    let isSpent = tick != start
    if isSpent {
      // Few elements took a whole tick, so each of them may be slow.
      stride = stride > Self.initialStride ? Self.initialStride : 1
      readings = 0
      start = 0
    } else {
      readings &+= 1
      // After slow elements, many fast ones must follow before the stride grows.
      if stride >= Self.initialStride || readings >= 16 {
        stride = Swift.min(stride &* 2, Self.longestStride)
        readings = 0
      }
    }
    remaining = Int16(truncatingIfNeeded: stride)
    return isSpent
  }

  /// Converts a clock reading to units of about a microsecond; 0 is reserved for no reading.
  @inlinable
  static func tick(_ now: Nanoseconds) -> UInt32 {
    Swift.max(UInt32(truncatingIfNeeded: now >> 10), 1)
  }
}
