/// A complete request.
public struct OriginRequest: Hashable, Sendable {
  /// A request method.
  public enum Method: String, Hashable, Sendable, CaseIterable {
    /// Retrieves the resource.
    case get = "GET"
    /// Retrieves the header fields of the `GET` response.
    case head = "HEAD"
    /// Sends data to the resource.
    case post = "POST"
    /// Replaces the resource.
    case put = "PUT"
    /// Modifies the resource.
    case patch = "PATCH"
    /// Removes the resource.
    case delete = "DELETE"
    /// Retrieves the supported methods.
    case options = "OPTIONS"
  }

  /// A name and a value in the query.
  public struct QueryItem: Hashable, Sendable {
    /// The decoded part before the equals sign.
    public let name: String

    /// The decoded part after the equals sign, or `nil` if there is no equals sign.
    public let value: String?
  }

  /// The method.
  public let method: Method

  /// The path and the query as sent.
  public let target: String

  /// The decoded path.
  public let path: String

  /// The components of the path, decoded separately, so that `a%2Fb` is one component.
  public let pathComponents: [String]

  /// The decoded query items.
  ///
  /// A plus sign is not decoded as a space.
  public let queryItems: [QueryItem]

  /// The header fields.
  public let headers: OriginHeaders

  /// The body.
  public let body: [UInt8]

  /// Whether the client's HTTP version supports chunked bodies.
  let understandsChunks: Bool

  /// Returns the value of the first query item with a name.
  ///
  /// - Parameter name: The decoded name.
  /// - Returns: The decoded value, or `nil` if there is no such item or it has no value.
  public func query(_ name: String) -> String? {
    queryItems.first { $0.name == name }?.value
  }
}
