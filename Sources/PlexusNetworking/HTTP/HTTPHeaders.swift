internal import Foundation

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// The header fields of an answer, found by name whatever its case.
public struct HTTPHeaders: Sendable, Hashable, Codable, ExpressibleByDictionaryLiteral {
  /// The fields by their names in lower case; several of one name are joined by commas.
  public private(set) var fields: [String: String] = [:]

  /// Creates fields from a literal such as `["Content-Type": "text/plain"]`.
  ///
  /// - Parameter elements: Names and values.
  public init(dictionaryLiteral elements: (String, String)...) {
    for (name, value) in elements { add(value, to: name) }
  }

  /// Creates fields.
  ///
  /// - Parameter fields: Names and values.
  public init(_ fields: [String: String]) {
    for (name, value) in fields { add(value, to: name) }
  }

  init(_ response: HTTPURLResponse) {
    for (name, value) in response.allHeaderFields {
      if let name = name as? String, let value = value as? String { add(value, to: name) }
    }
  }

  /// Creates fields from their encoded form, a dictionary.
  ///
  /// - Parameter decoder: The decoder.
  /// - Throws: The decoder's error.
  public init(from decoder: any Decoder) throws {
    self.init(try decoder.singleValueContainer().decode([String: String].self))
  }

  /// Encodes the fields as a dictionary.
  ///
  /// - Parameter encoder: The encoder.
  /// - Throws: The encoder's error.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(fields)
  }

  /// The value of a field; `nil` removes it.
  ///
  /// - Parameter name: The name in any case.
  public subscript(name: String) -> String? {
    get { fields[name.lowercased()] }
    set { fields[name.lowercased()] = newValue }
  }

  private mutating func add(_ value: String, to name: String) {
    let name = name.lowercased()
    fields[name] = fields[name].map { $0 + ", " + value } ?? value
  }

  /// Returns the fields that hold after a 304 (RFC 9111, 3.2): its own replace those of the same name.
  ///
  /// Fields of the connection stay as they were, and so do those of the body, which has been decoded. Age and date are
  /// those of the 304, or its arrival.
  func updated(by newer: HTTPHeaders) -> HTTPHeaders {
    var result = self
    for (name, value) in newer.withoutConnection.fields where !Self.ofBody.contains(name) {
      result.fields[name] = value
    }
    for name in ["Age", "Date"] { result[name] = newer[name] }
    return result
  }

  /// The fields without those of the connection, which are not stored (RFC 9111, 3.1).
  var withoutConnection: HTTPHeaders {
    let named = self["Connection"].map(HTTPFreshness.commaSeparated) ?? []
    let removed = Self.ofConnection.union(named.map { $0.lowercased() })
    var result = self
    for name in removed { result.fields[name] = nil }
    return result
  }

  private static let ofConnection: Set<String> = [
    "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info",
    "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
  ]

  private static let ofBody: Set<String> = ["content-length", "content-encoding", "content-range"]
}
