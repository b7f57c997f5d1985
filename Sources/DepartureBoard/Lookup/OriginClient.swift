import Foundation
import Plexus
import PlexusNetworking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// An HTTP client for the values of the origin.
///
/// Connections are kept open and shared; the client does not cache.
final class OriginClient: Sendable {
  /// The address of the origin without a path.
  let address: String
  /// The timeout of a request in seconds.
  let timeout: Double
  private let session: URLSession
  private let transport: URLSessionTransport

  /// Creates a client of a local origin.
  ///
  /// - Parameters:
  ///   - port: The port of the origin.
  ///   - latency: The expected latency of the origin.
  ///   - timeout: The further time to wait for a response, in seconds. A local origin that does not respond is
  ///     busy; an unavailable one refuses connections immediately.
  init(port: UInt16, latency: Duration = .zero, timeout: Double = 300) {
    address = "http://127.0.0.1:\(port)"
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
    configuration.httpMaximumConnectionsPerHost = 8
    // The time for which a request waits for a connection counts, too.
    self.timeout = timeout + Self.queue * (latency / .seconds(1))
    configuration.timeoutIntervalForRequest = self.timeout
    session = URLSession(configuration: configuration)
    transport = URLSessionTransport(configuration: configuration)
  }

  /// An upper bound for the number of requests that wait for one connection.
  private static let queue = 200.0

  deinit {
    session.invalidateAndCancel()
  }

  /// Fetches the value at a path.
  ///
  /// - Parameter path: The path, in which invalid characters are escaped.
  /// - Returns: The value, or `nil` if the origin responds with 404.
  /// - Throws: An ``AnswerError`` for an invalid response, or a `URLError` for none.
  func value<Value: Decodable>(at path: String) async throws -> Value? {
    let (data, response) = try await answer(from: try url(of: path))
    guard let status = (response as? HTTPURLResponse)?.statusCode else {
      throw AnswerError.malformedAnswer(path: path)
    }
    switch status {
    case 200: return try Self.decode(data, from: path) as Value
    case 404: return nil
    default: throw AnswerError.status(status, path: path)
    }
  }

  /// Fetches the value at a path if it has changed.
  ///
  /// - Parameters:
  ///   - path: The path, in which invalid characters are escaped.
  ///   - context: The context with the current value.
  ///   - clock: The clock that measures the freshness declared by the origin.
  /// - Returns: The value, or `nil` if the origin responds with 404, with the data for a later revalidation.
  /// - Throws: An ``AnswerError`` for an invalid response, or a `URLError` for none.
  func renewal<Value: Decodable & Sendable>(
    at path: String,
    _ context: FetchContext<Value?>,
    by clock: DayClock
  ) async throws -> FetchResult<Value?> {
    let fetcher = HTTPFetcher<Value?>(
      URLRequest(url: try url(of: path)),
      transport: transport,
      now: { clock.date },
      decode: { data in try Self.decode(data, from: path) as Value }
    )
    do {
      return try await fetcher.fetch(context)
    } catch let error as HTTPStatusError where error.status == 404 {
      return .value(nil)
    } catch let error as HTTPStatusError {
      throw AnswerError.status(error.status, path: path)
    }
  }

  private func url(of path: String) throws -> URL {
    let escaped = path.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed)
    guard let url = URL(string: address + (escaped ?? path)) else {
      throw AnswerError.malformedPath(path)
    }
    return url
  }

  private static func decode<Value: Decodable>(
    _ data: Data,
    from path: String
  ) throws -> Value {
    do {
      return try JSONDecoder().decode(Value.self, from: data)
    } catch {
      throw AnswerError.malformedAnswer(path: path)
    }
  }

  private func answer(from url: URL) async throws -> (Data, URLResponse) {
    do {
      return try await session.data(from: url)
    } catch let error as URLError where error.code == .unknown {
      // The code for an interrupted response on Linux; other platforms use this one.
      throw URLError(.networkConnectionLost, userInfo: error.userInfo)
    }
  }
}

/// An error for an invalid response of the origin.
enum AnswerError: Error, Hashable {
  case malformedPath(String)
  case malformedAnswer(path: String)
  case status(Int, path: String)
}

extension AnswerError: CustomStringConvertible {
  /// A phrase with the path of the request.
  var description: String {
    switch self {
    case .malformedPath(let path): "\(path) is not a valid URL path"
    case .malformedAnswer(let path): "the response for \(path) is malformed"
    case .status(let status, let path): "the origin responds to \(path) with status \(status)"
    }
  }
}
