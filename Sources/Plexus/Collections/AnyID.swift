// @unchecked Sendable: the weak reference is to an object that was passed as a Sendable value. A cast to
// Sendable is not possible after the type has been erased.

/// A type-erased identifier.
///
/// Values of different types are never equal. Comparing and hashing call user code and must not happen
/// under a lock.
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

  /// The description of the value; user code.
  var description: String { "\(value)" }

  fileprivate func has<Value: Hashable>(_ other: Value) -> Bool {
    // The dynamic types are compared, because an object can be held as an instance of a superclass.
    type(of: value) == type(of: other) && value as? Value == other
  }
}

extension AnyID {
  /// An identifier that is held weakly if it is an object that equals only itself.
  struct Weak: @unchecked Sendable {
    private weak let object: (any AnyObject & Hashable)?
    /// The identifier, unless it is held weakly.
    private let value: AnyID?

    /// Creates the identifier; called with no lock held.
    init(_ id: AnyID) {
      // The type check is needed because some platforms can cast any value to `AnyObject`. An object that equals
      // other objects is held strongly: it may have been created for the call only.
      let isObject = type(of: id.value) is AnyObject.Type
      let known = isObject ? id.value as? any AnyObject & Hashable : nil
      let isUnique = known.map { ObjectIdentifier($0).hashValue == id.hashValue } ?? false
      object = isUnique ? known : nil
      value = isUnique ? nil : id
    }

    /// Returns whether it equals the given identifier; `false` if its object has been released.
    func matches(_ id: AnyID) -> Bool {
      if let value { return value == id }
      guard let object else { return false }
      return id.has(object)
    }
  }
}
