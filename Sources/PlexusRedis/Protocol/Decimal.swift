// Numbers of the protocol are converted without a text in between: each reply and each word of a command has one.

extension FixedWidthInteger {
  /// Reads decimal digits, after an optional sign.
  ///
  /// - Returns: `nil` if there is anything else, or if the number does not fit.
  init?(decimal digits: ArraySlice<UInt8>) {
    var rest = digits
    let isNegative = rest.first == UInt8(ascii: "-")
    if isNegative || rest.first == UInt8(ascii: "+") { rest.removeFirst() }
    guard !rest.isEmpty else { return nil }
    var value: Self = 0
    for byte in rest {
      let digit = byte &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      let (shifted, isTooLarge) = value.multipliedReportingOverflow(by: 10)
      let (next, overflows) =
        isNegative
        ? shifted.subtractingReportingOverflow(Self(digit))
        : shifted.addingReportingOverflow(Self(digit))
      guard !isTooLarge, !overflows else { return nil }
      value = next
    }
    self = value
  }
}

extension [UInt8] {
  /// Appends the decimal digits of a number.
  mutating func append<Number: FixedWidthInteger>(decimal number: Number) {
    if number < 0 { append(UInt8(ascii: "-")) }
    var rest = number.magnitude
    guard rest >= 10 else { return append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest)) }
    var unit = 1 as Number.Magnitude
    while rest / unit >= 10 { unit *= 10 }
    while unit > 0 {
      append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest / unit))
      rest %= unit
      unit /= 10
    }
  }
}
