/// A point in time or a span of it, in nanoseconds.
///
/// The largest value stands for "never".
@usableFromInline
typealias Nanoseconds = Int64

extension Nanoseconds {
  /// Creates a number of nanoseconds, the nearest representable one if the duration is too long.
  init(saturating duration: Duration) {
    let (seconds, attoseconds) = duration.components
    let (whole, overflows) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    guard !overflows else {
      self = seconds < 0 ? .min : .max
      return
    }
    self = whole.addingSaturating(attoseconds / 1_000_000_000)
  }

  /// Returns the sum, or the nearest representable number.
  @inlinable
  func addingSaturating(_ other: Nanoseconds) -> Nanoseconds {
    let (sum, overflows) = addingReportingOverflow(other)
    return overflows ? (other < 0 ? .min : .max) : sum
  }

  /// Returns the product with a factor that is not negative, or the nearest representable number.
  func scaled(by factor: Double) -> Nanoseconds {
    guard factor != 1 else { return self }
    let product = Double(self) * factor
    if product >= 0x1p63 { return .max }
    return product <= -0x1p63 ? .min : Nanoseconds(product)
  }
}
