public import Foundation

/// A complete answer.
///
/// It can be cached as it is: see ``HTTPFetcher/init(_:transport:rules:clock:now:invalidate:)``.
public struct HTTPResponse: Sendable, Hashable, Codable {
  /// The URL that has answered, after all redirects.
  public var url: URL

  /// The status code.
  public var status: Int

  /// The header fields.
  public var headers: HTTPHeaders

  /// The body, without its content coding.
  public var body: Data

  /// Creates an answer.
  ///
  /// - Parameters:
  ///   - url: The URL that has answered.
  ///   - status: The status code.
  ///   - headers: The header fields.
  ///   - body: The body.
  public init(url: URL, status: Int = 200, headers: HTTPHeaders = [:], body: Data = Data()) {
    self.url = url
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// Creates an answer from its encoded form.
  ///
  /// - Parameter decoder: The decoder.
  /// - Throws: The decoder's error.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    url = try container.decode(URL.self, forKey: .url)
    status = try container.decode(Int.self, forKey: .status)
    headers = try container.decode(HTTPHeaders.self, forKey: .headers)
    body = try container.decode(Data.self, forKey: .body)
  }

  /// Returns the answer with the header fields of a 304 that confirms it.
  func updated(by confirmation: HTTPResponse) -> HTTPResponse {
    var result = self
    result.headers = headers.updated(by: confirmation.headers)
    return result
  }
}
