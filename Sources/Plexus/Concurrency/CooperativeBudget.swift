/// Decides when a loop that never has to wait gives its actor to other tasks.
///
/// A loop may go on until the tick of the system's coarse clock, which is 1 to 4 milliseconds long on most
/// systems. The loop counts elements and reads the clock rarely: after 16 elements at first, after 64 once
/// many of them have been processed within a tick, and after each of them if few have. A loop that has not
/// met a tick yet is never interrupted before its 16th element.
@usableFromInline
struct CooperativeBudget: Sendable {
  @usableFromInline static var initialStride: UInt8 { 16 }
  @usableFromInline static var longestStride: UInt8 { 64 }

  /// The reading of the clock near the beginning of the loop; 0 before a second element.
  @usableFromInline var start: UInt32 = 0
  /// The number of elements until the clock is read again.
  @usableFromInline var remaining = Int16(initialStride)
  /// The number of elements between two readings.
  @usableFromInline var stride = initialStride
  /// The number of readings in a row that have found no tick, as far as it matters.
  @usableFromInline var readings: UInt8 = 0

  @inlinable
  init() {}

  /// Whether the clock has to be read before the next element.
  @inlinable var isDue: Bool { remaining <= 0 }

  /// Notes that the loop has waited, and so has given its actor to other tasks.
  @inlinable
  mutating func restart() {
    start = 0
    remaining = Int16(truncatingIfNeeded: stride)
  }

  /// Counts elements that are taken without waiting.
  ///
  /// - Parameters:
  ///   - count: The number of elements, of which the first has been the next one.
  ///   - now: The reading of the coarse clock, if it is needed.
  @inlinable
  mutating func spend(_ count: Int, now: @autoclosure () -> Nanoseconds) {
    if start == 0, count > 1 || remaining < Int16(truncatingIfNeeded: stride) {
      start = Self.tick(now())
    }
    remaining &-= Int16(truncatingIfNeeded: count)
  }

  /// Reads the clock, and decides; called when ``isDue``.
  ///
  /// - Parameter now: The reading of the coarse clock.
  /// - Returns: Whether the loop has to give its actor to other tasks before it takes the next element.
  @inlinable
  mutating func isSpent(at now: Nanoseconds) -> Bool {
    let tick = Self.tick(now)
    if start == 0 { start = tick }
    let isSpent = tick != start
    if isSpent {
      // So few elements have lasted until the tick: each of them may last long.
      stride = stride > Self.initialStride ? Self.initialStride : 1
      readings = 0
      start = 0
    } else {
      readings &+= 1
      // After slow elements, many fast ones have to follow.
      if stride >= Self.initialStride || readings >= 16 {
        stride = Swift.min(stride &* 2, Self.longestStride)
        readings = 0
      }
    }
    remaining = Int16(truncatingIfNeeded: stride)
    return isSpent
  }

  /// Shortens a reading of the clock to microseconds, of which 0 is none.
  @inlinable
  static func tick(_ now: Nanoseconds) -> UInt32 {
    Swift.max(UInt32(truncatingIfNeeded: now >> 10), 1)
  }
}
