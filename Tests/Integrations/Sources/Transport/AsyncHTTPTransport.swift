import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOHTTPCompression
import NIOPosix
import PlexusNetworking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

struct AsyncHTTPTransport: HTTPTransport {
  let client: HTTPClient
  var headers: [String: String] = [:]

  /// A client that leaves redirects, limits and retries to the rules and policies, and decodes bodies.
  static func makeClient() -> HTTPClient {
    var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
    configuration.decompression = .enabled(limit: .none)  // HTTPRules has the limit
    // Otherwise a connection that is refused is tried again for ten seconds.
    configuration.connectionPool.retryConnectionEstablishment = false
    return HTTPClient(configuration: configuration)
  }

  @concurrent
  func send(_ request: URLRequest, to receiver: any HTTPReceiver) async throws {
    guard let url = request.url else { throw URLError(.badURL) }
    var message = HTTPClientRequest(url: url.absoluteString)
    message.method = HTTPMethod(rawValue: request.httpMethod ?? "GET")
    for (name, value) in request.allHTTPHeaderFields ?? [:] {
      message.headers.replaceOrAdd(name: name, value: value)
    }
    if let body = request.httpBody { message.body = .bytes(body) }
    let answer: HTTPClientResponse
    do {
      answer = try await client.execute(message, timeout: .hours(24))
    } catch {
      throw Self.cause(of: error)
    }
    var fields: [String: String] = [:]
    for (name, value) in answer.headers {
      let name = name.lowercased()
      fields[name] = fields[name].map { $0 + ", " + value } ?? value
    }
    guard
      let response = HTTPURLResponse(
        url: url,
        statusCode: Int(answer.status.code),
        httpVersion: "HTTP/1.1",
        headerFields: fields
      )
    else { throw URLError(.badServerResponse) }
    try receiver.begin(response)
    do {
      for try await part in answer.body {
        do {
          try receiver.receive(Data(part.readableBytesView))
        } catch {
          throw ReceiverError(error: error)
        }
      }
      // The body of a cancelled task can end as if it were complete.
      try Task.checkCancellation()
    } catch let failure as ReceiverError {
      throw failure.error
    } catch {
      throw Self.cause(of: error)
    }
  }

  /// An error that is thrown as it is.
  private struct ReceiverError: Error {
    let error: any Error
  }

  /// Connections that are refused or lost, and unknown hosts, are failures of connectivity.
  private static func cause(of error: any Error) -> any Error {
    switch error {
    case let error as HTTPClientError:
      switch error {
      case .remoteConnectionClosed: return URLError(.networkConnectionLost)
      case .connectTimeout, .readTimeout, .writeTimeout, .deadlineExceeded,
        .getConnectionFromPoolTimeout:
        return URLError(.timedOut)
      default: return error
      }
    case HTTPParserError.invalidEOFState:
      return URLError(.networkConnectionLost)
    case let error as NIOConnectionError:
      if error.connectionErrors.isEmpty { return URLError(.cannotFindHost) }
      return URLError(.cannotConnectToHost)
    case let error as IOError:
      switch error.errnoCode {
      case ECONNRESET, EPIPE, ECONNABORTED, ENOTCONN: return URLError(.networkConnectionLost)
      case ENETDOWN, ENETUNREACH: return URLError(.notConnectedToInternet)
      case ETIMEDOUT: return URLError(.timedOut)
      default: return URLError(.cannotConnectToHost)
      }
    case is ChannelError:
      return URLError(.networkConnectionLost)
    default:
      // TLS, content coding and framing
      return error
    }
  }
}
