/// The place of a refresh in the order of all refreshes of a multiplexer.
@usableFromInline
struct RefreshTicket: Hashable, Comparable, Sendable {
  @usableFromInline let rawValue: UInt64

  @inlinable
  init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  /// No refresh at all; it comes before every other one.
  @inlinable static var none: Self { Self(rawValue: 0) }

  @inlinable var isNone: Bool { rawValue == 0 }

  @inlinable
  static func < (left: Self, right: Self) -> Bool {
    left.rawValue < right.rawValue
  }

  /// Returns the earlier one of two tickets, ignoring ``none``.
  static func earlier(_ left: Self, _ right: Self) -> Self {
    if left.isNone { return right }
    return right.isNone ? left : min(left, right)
  }

  /// Returns whether this is a refresh that the holder of a ticket requires.
  func isDemanded(by ticket: Self) -> Bool {
    !isNone && self <= ticket
  }
}
