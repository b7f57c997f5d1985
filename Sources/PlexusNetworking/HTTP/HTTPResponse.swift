public import Foundation

/// A complete answer.
///
/// It can be cached as it is: see ``HTTPFetcher/init(_:transport:rules:clock:now:invalidate:)``.
///
/// ## Topics
///
/// ### Reading
/// - ``url``
/// - ``status``
/// - ``headers``
/// - ``body``
///
/// ### Creating a response
/// - ``init(url:status:headers:body:)``
/// - ``init(from:)``
public struct HTTPResponse: Sendable, Hashable, Codable {
  /// The URL that has answered, after all redirects.
  public var url: URL

  /// The status code.
  public var status: Int

  /// The header fields, in a value of an ``HTTPFetcher`` or ``HTTPCache`` without the fields of the connection.
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

  /// The answer without the header fields of the connection.
  var withoutConnection: HTTPResponse {
    var result = self
    result.headers = headers.withoutConnection
    return result
  }

  /// Returns the answer as a cache reuses it, with its age (RFC 9111, 4.2.3 and 5.1).
  ///
  /// - Parameters:
  ///   - time: The time since it arrived.
  ///   - now: The present time.
  /// - Returns: The answer with an `Age` field.
  func reused(after time: Duration, now: Date) -> HTTPResponse {
    let (stored, present) = (time.components.seconds, Int64(now.timeIntervalSince1970))
    let sent = headers["Date"].flatMap { HTTPDate.seconds($0, now: present) }
    let age = max(
      sent.map { present - stored - $0 } ?? 0,
      headers["Age"].flatMap(HTTPFreshness.firstSeconds) ?? 0
    )
    var result = self
    result.headers["Age"] = String(age + stored)
    return result
  }

  /// Returns the answer with the header fields of a 304 that confirms it.
  func updated(by confirmation: HTTPResponse) -> HTTPResponse {
    var result = self
    result.headers = headers.updated(by: confirmation.headers)
    return result
  }
}
