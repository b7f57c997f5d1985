// @unchecked Sendable because the weak reference is to an object that was handed in as a Sendable value; Swift
// cannot cast to that once the type is lost.

/// A value that something is known by, of whatever type.
///
/// Values of different types are never equal. Comparing and hashing run a user's code: never under a
/// lock.
@usableFromInline
struct AnyID: Hashable, Sendable {
  fileprivate let value: any Hashable & Sendable

  @usableFromInline
  init(_ value: some Hashable & Sendable) {
    self.value = value
  }

  @usableFromInline
  static func == (left: AnyID, right: AnyID) -> Bool {
    right.has(left.value)
  }

  @usableFromInline
  func hash(into hasher: inout Hasher) {
    value.hash(into: &hasher)
  }

  fileprivate func has<Value: Hashable>(_ other: Value) -> Bool {
    // The types of the values, not of what holds them: an object may be known as one of a superclass.
    type(of: value) == type(of: other) && value as? Value == other
  }
}

extension AnyID {
  /// A value that something is known by, which is held weakly if it is an object that equals only itself.
  struct Weak: @unchecked Sendable {
    private weak let object: (any AnyObject & Hashable)?
    /// The value, unless it is such an object.
    private let value: AnyID?

    /// Creates the id; called with no lock held.
    init(_ id: AnyID) {
      // What is no object can be cast to one on some platforms. An object that is equal to others serves as a
      // value: it can have been made for the call only.
      let isObject = type(of: id.value) is AnyObject.Type
      let known = isObject ? id.value as? any AnyObject & Hashable : nil
      let isUnique = known.map { ObjectIdentifier($0).hashValue == id.hashValue } ?? false
      object = isUnique ? known : nil
      value = isUnique ? nil : id
    }

    /// Returns whether it is the id given, which an object that was released is not.
    func matches(_ id: AnyID) -> Bool {
      if let value { return value == id }
      guard let object else { return false }
      return id.has(object)
    }
  }
}
