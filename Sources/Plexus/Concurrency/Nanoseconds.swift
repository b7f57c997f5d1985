/// A point in time or a duration, in nanoseconds.
///
/// The largest value means "never".
@usableFromInline
typealias Nanoseconds = Int64

extension Nanoseconds {
  /// Creates the number of nanoseconds in a duration, clamped to the representable range.
  @usableFromInline
  init(saturating duration: Duration) {
    // The usual one, which needs no division.
    guard duration != .zero else {
      self = 0
      return
    }
    // Beyond this limit, even the seconds may overflow the components.
    guard duration < .seconds(9_223_372_036 as Int64) else {
      self = .max
      return
    }
    guard duration > .seconds(-9_223_372_036 as Int64) else {
      self = .min
      return
    }
    let (seconds, attoseconds) = duration.components
    self = seconds * 1_000_000_000 + attoseconds / 1_000_000_000
  }

  /// Returns the sum, clamped to the representable range.
  @inlinable
  func addingSaturating(_ other: Nanoseconds) -> Nanoseconds {
    let (sum, overflows) = addingReportingOverflow(other)
    return overflows ? (other < 0 ? .min : .max) : sum
  }

  /// Returns the difference, clamped to the representable range.
  @inlinable
  func subtractingSaturating(_ other: Nanoseconds) -> Nanoseconds {
    let (difference, overflows) = subtractingReportingOverflow(other)
    return overflows ? (other < 0 ? .max : .min) : difference
  }

  /// Returns the product with a nonnegative factor, clamped to the representable range.
  func scaled(by factor: Double) -> Nanoseconds {
    guard factor != 1 else { return self }
    let product = Double(self) * factor
    if product >= 0x1p63 { return .max }
    return product <= -0x1p63 ? .min : Nanoseconds(product)
  }
}

extension Duration {
  /// A practically infinite duration, 126 years, because some clocks do not support longer ones.
  static var longest: Duration { .seconds(4_000_000_000 as Int64) }

  /// The duration, clamped to the range from zero to 126 years.
  var limited: Duration {
    min(max(self, .zero), .longest)
  }
}

extension Clock<Duration> {
  /// Returns the deadline after a duration, which is limited to ``Duration/longest``.
  func deadline(after duration: Duration) -> Instant {
    now.advanced(by: min(duration, .longest))
  }
}
