// @unchecked Sendable: an identity holds a `Sendable` value in an `AnyHashable`, which does not show that.

/// The identity of a cacher, or of a part of its entries: equal cachers have the same entries.
struct CacherID: Hashable, @unchecked Sendable {
  private let cacher: AnyHashable
  private let part: String?

  /// - Parameter cacher: The cacher; a value that cannot be compared has no identity.
  init?(_ cacher: any Cacher) {
    guard let identity = Self.identity(of: cacher) else { return nil }
    self.cacher = identity
    part = nil
  }

  /// Creates the identity of the entries of one cache.
  ///
  /// - Parameters:
  ///   - cacher: The cacher. One that cannot be compared counts as a separate cacher of the owner.
  ///   - part: The namespace or the only name of the entries; `nil` for all entries.
  ///   - owner: The object that has the cacher.
  init(_ cacher: any Cacher, part: String?, owner: AnyObject) {
    self.cacher = Self.identity(of: cacher) ?? AnyHashable(ObjectIdentifier(owner))
    self.part = part
  }

  private static func identity(of cacher: any Cacher) -> AnyHashable? {
    if let cacher = cacher as? any Hashable { return AnyHashable(cacher) }
    return type(of: cacher) is AnyClass ? AnyHashable(ObjectIdentifier(cacher as AnyObject)) : nil
  }
}
