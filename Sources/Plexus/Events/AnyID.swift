/// A value that something is known by, of whatever type.
///
/// Values of different types are never equal. Comparing and hashing run a user's code: never under a
/// lock.
struct AnyID: Hashable, Sendable {
  private let value: any Hashable & Sendable

  init(_ value: some Hashable & Sendable) {
    self.value = value
  }

  static func == (left: AnyID, right: AnyID) -> Bool {
    func isEqual<Value: Hashable & Sendable>(_ value: Value) -> Bool {
      // The types of the values, not of what holds them: an object may be known as one of a superclass.
      type(of: right.value) == type(of: value) && right.value as? Value == value
    }
    return isEqual(left.value)
  }

  func hash(into hasher: inout Hasher) {
    value.hash(into: &hasher)
  }
}
