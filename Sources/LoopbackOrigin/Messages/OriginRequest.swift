/// A request that an origin has received completely.
public struct OriginRequest: Hashable, Sendable {
  /// What the client wants to do.
  public enum Method: String, Hashable, Sendable, CaseIterable {
    /// To get the resource.
    case get = "GET"
    /// To get what `GET` would get, without the body.
    case head = "HEAD"
    /// To send something to the resource.
    case post = "POST"
    /// To replace the resource.
    case put = "PUT"
    /// To change the resource.
    case patch = "PATCH"
    /// To remove the resource.
    case delete = "DELETE"
    /// To learn what it may do.
    case options = "OPTIONS"
  }

  /// A name and a value after the question mark.
  public struct QueryItem: Hashable, Sendable {
    /// The part before the equals sign, decoded.
    public let name: String

    /// The part after the equals sign, decoded; `nil` without one.
    public let value: String?
  }

  /// What the client wants to do.
  public let method: Method

  /// The path and the query as they were sent.
  public let target: String

  /// The path, decoded.
  public let path: String

  /// What stands between the slashes of the path, each decoded by itself, so that `a%2Fb` is one
  /// component.
  public let pathComponents: [String]

  /// The names and values after the question mark, decoded.
  ///
  /// A plus is a plus.
  public let queryItems: [QueryItem]

  /// The header fields.
  public let headers: OriginHeaders

  /// The body.
  public let body: [UInt8]

  /// Whether the client speaks a version of HTTP that has bodies in chunks.
  let understandsChunks: Bool

  /// Returns the value of the first query item with the given name.
  ///
  /// - Parameter name: The name, decoded.
  /// - Returns: The decoded value; `nil` if there is no such item or it has no value.
  public func query(_ name: String) -> String? {
    queryItems.first { $0.name == name }?.value
  }
}
