/// A tag for clearing and refreshing values of maps together.
///
/// A map assigns tags to its keys: see ``MultiplexerMap/clear(tags:)``.
///
/// ```swift
/// let orders = MultiplexerMap<Int, String>(tagging: { id in ["orders", CacheTag("order:\(id)")] }) { id in
///   "order \(id)"
/// }
///
/// try await orders.clear(tags: ["orders"])
/// ```
///
/// A second closure, `valueTagging`, assigns further tags to values, such as the tenant of a row: see
/// <doc:requests-and-caching>.
public struct CacheTag: Hashable, Sendable {
  /// The name.
  public let name: String

  /// Creates a tag.
  ///
  /// - Parameter name: The name. Tags with equal names are equal.
  public init(_ name: String) {
    self.name = name
  }
}

extension CacheTag: ExpressibleByStringLiteral {
  /// Creates a tag from a literal.
  ///
  /// - Parameter value: The name.
  public init(stringLiteral value: String) {
    self.init(value)
  }
}

extension CacheTag: CustomStringConvertible {
  /// The name.
  public var description: String { name }
}
