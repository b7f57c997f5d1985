import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Fetches values from the origin over HTTP.
///
/// The connections are kept open and shared; nothing is cached here.
final class OriginClient: Sendable {
  private let address: String
  private let session: URLSession

  /// Creates a client of an origin on this machine.
  ///
  /// - Parameters:
  ///   - port: The port of the origin.
  ///   - timeout: How many seconds to wait for an answer.
  init(port: UInt16, timeout: Double = 30) {
    address = "http://127.0.0.1:\(port)"
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
    configuration.httpMaximumConnectionsPerHost = 8
    configuration.timeoutIntervalForRequest = timeout
    session = URLSession(configuration: configuration)
  }

  deinit {
    session.invalidateAndCancel()
  }

  /// Fetches the value at a path.
  ///
  /// - Parameter path: The path; what is not allowed there is escaped.
  /// - Returns: The value; `nil` if the origin says that there is none.
  /// - Throws: An ``AnswerError`` for an answer that makes no sense, a `URLError` for none.
  func value<Value: Decodable>(at path: String) async throws -> Value? {
    let escaped = path.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed)
    guard let url = URL(string: address + (escaped ?? path)) else {
      throw AnswerError.malformedPath(path)
    }
    let (data, response) = try await answer(from: url)
    guard let status = (response as? HTTPURLResponse)?.statusCode else {
      throw AnswerError.malformedAnswer(path: path)
    }
    switch status {
    case 200:
      do {
        return try JSONDecoder().decode(Value.self, from: data)
      } catch {
        throw AnswerError.malformedAnswer(path: path)
      }
    case 404: return nil
    default: throw AnswerError.status(status, path: path)
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
