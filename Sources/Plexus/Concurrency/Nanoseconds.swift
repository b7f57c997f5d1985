/// A point in time or a span of it, in nanoseconds.
///
/// The largest value stands for "never".
@usableFromInline
typealias Nanoseconds = Int64

extension Nanoseconds {
  /// Creates a number of nanoseconds, the nearest representable one if the duration is too long.
  @usableFromInline
  init(saturating duration: Duration) {
    // Beyond that even the number of seconds may have no room in the components.
    guard duration < .seconds(9_223_372_036) else {
      self = .max
      return
    }
    guard duration > .seconds(-9_223_372_036) else {
      self = .min
      return
    }
    let (seconds, attoseconds) = duration.components
    self = seconds * 1_000_000_000 + attoseconds / 1_000_000_000
  }

  /// Returns the sum, or the nearest representable number.
  @inlinable
  func addingSaturating(_ other: Nanoseconds) -> Nanoseconds {
    let (sum, overflows) = addingReportingOverflow(other)
    return overflows ? (other < 0 ? .min : .max) : sum
  }

  /// Returns the difference, or the nearest representable number.
  @inlinable
  func subtractingSaturating(_ other: Nanoseconds) -> Nanoseconds {
    let (difference, overflows) = subtractingReportingOverflow(other)
    return overflows ? (other < 0 ? .max : .min) : difference
  }

  /// Returns the product with a factor that is not negative, or the nearest representable number.
  func scaled(by factor: Double) -> Nanoseconds {
    guard factor != 1 else { return self }
    let product = Double(self) * factor
    if product >= 0x1p63 { return .max }
    return product <= -0x1p63 ? .min : Nanoseconds(product)
  }
}

extension Duration {
  /// As good as for ever: more than these 126 years not every clock can be relied on to bear.
  static var longest: Duration { .seconds(4_000_000_000) }

  /// The duration, but zero at least and 126 years at most.
  var limited: Duration {
    min(max(self, .zero), .longest)
  }
}

extension Clock<Duration> {
  /// The deadline after so much time, or after the longest that there is.
  func deadline(after duration: Duration) -> Instant {
    now.advanced(by: min(duration, .longest))
  }
}
