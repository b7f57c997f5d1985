/// The name of a flight within its multiplexer.
@usableFromInline
struct FlightID: Hashable, Sendable {
  @usableFromInline let rawValue: UInt64

  @usableFromInline
  init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  @inlinable
  static func == (left: Self, right: Self) -> Bool {
    left.rawValue == right.rawValue
  }

  @inlinable
  func hash(into hasher: inout Hasher) {
    hasher.combine(rawValue)
  }
}
