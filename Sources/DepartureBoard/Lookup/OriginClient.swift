import Foundation
import Plexus
import PlexusNetworking
import Synchronization

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Fetches values from the origin over HTTP.
///
/// The connections are kept open and shared; nothing is cached here.
final class OriginClient: Sendable {
  /// The address of the origin, without a path.
  let address: String
  /// How many seconds a request waits for its answer.
  let timeout: Double
  private let session: URLSession
  private let transport: URLSessionTransport

  /// Creates a client of an origin on this machine.
  ///
  /// - Parameters:
  ///   - port: The port of the origin.
  ///   - latency: How long the origin takes to answer, as far as that is known.
  ///   - timeout: How many seconds to wait for an answer beyond that. An origin on the same machine that
  ///     does not answer is busy, as the machine is: one that is away refuses connections at once.
  init(port: UInt16, latency: Duration = .zero, timeout: Double = 300) {
    address = "http://127.0.0.1:\(port)"
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
    configuration.httpMaximumConnectionsPerHost = 8
    // A request that has to wait for a connection is being waited for as well.
    self.timeout = timeout + Self.queue * (latency / .seconds(1))
    configuration.timeoutIntervalForRequest = self.timeout
    session = URLSession(configuration: configuration)
    transport = URLSessionTransport(configuration: configuration)
  }

  /// How many requests may wait for one connection: on the whole day there are fewer.
  private static let queue = 200.0

  deinit {
    session.invalidateAndCancel()
  }

  /// Fetches the value at a path.
  ///
  /// - Parameter path: The path; what is not allowed there is escaped.
  /// - Returns: The value; `nil` if the origin says that there is none.
  /// - Throws: An ``AnswerError`` for an answer that makes no sense, a `URLError` for none.
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

  /// Fetches the value at a path unless the one that there is has not changed.
  ///
  /// - Parameters:
  ///   - path: The path; what is not allowed there is escaped.
  ///   - context: What there is.
  ///   - clock: What the origin's word about freshness is measured with.
  /// - Returns: The value, or `nil` if the origin says that there is none, with what a later fetch needs.
  /// - Throws: An ``AnswerError`` for an answer that makes no sense, a `URLError` for none.
  func renewal<Value: Decodable & Sendable>(
    at path: String,
    _ context: FetchContext<Value?>,
    by clock: DayClock
  ) async throws -> Renewal<Value?> {
    let arrivals = Arrivals()
    let fetcher = HTTPFetcher<Value?>(
      URLRequest(url: try url(of: path)),
      transport: transport,
      now: { clock.date },
      decode: { data in
        arrivals.count.add(1, ordering: .relaxed)
        return try Self.decode(data, from: path) as Value
      }
    )
    do {
      let result = try await fetcher.fetch(context)
      // Where nothing has changed there is nothing to decode.
      return Renewal(result: result, isUnchanged: arrivals.count.load(ordering: .relaxed) == 0)
    } catch let error as HTTPStatusError where error.status == 404 {
      return Renewal(result: .value(nil), isUnchanged: false)
    } catch let error as HTTPStatusError {
      throw AnswerError.status(error.status, path: path)
    }
  }

  /// What asking again has come to.
  struct Renewal<Value: Sendable>: Sendable {
    let result: FetchResult<Value>
    /// Whether the origin says that the value that there is still holds.
    let isUnchanged: Bool
  }

  private final class Arrivals: Sendable {
    let count = Atomic(0)
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
      // What an answer that breaks off is called on Linux; elsewhere it has this name.
      throw URLError(.networkConnectionLost, userInfo: error.userInfo)
    }
  }
}

/// Why an answer of the origin is of no use.
enum AnswerError: Error, Hashable {
  case malformedPath(String)
  case malformedAnswer(path: String)
  case status(Int, path: String)
}

extension AnswerError: CustomStringConvertible {
  /// A sentence that names what was asked for.
  var description: String {
    switch self {
    case .malformedPath(let path): "\(path) cannot be part of an address"
    case .malformedAnswer(let path): "the answer to \(path) is not what was asked for"
    case .status(let status, let path): "the origin answers \(path) with \(status)"
    }
  }
}
