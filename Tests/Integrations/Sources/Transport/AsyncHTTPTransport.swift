import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import PlexusNetworking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

struct AsyncHTTPTransport: HTTPTransport {
  let client: HTTPClient
  var headers: [String: String] = [:]

  /// A client that leaves redirects, limits and retries to the rules and policies, and content codings to the transport.
  static func makeClient() -> HTTPClient {
    var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
    configuration.httpVersion = .http1Only
    // Otherwise a connection that is refused is tried again for ten seconds.
    configuration.connectionPool.retryConnectionEstablishment = false
    // Further requests of a host wait for a connection, and fail like one that cannot be made, after ten seconds.
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 64
    return HTTPClient(configuration: configuration)
  }

  @concurrent
  func send(_ request: URLRequest, to receiver: any HTTPReceiver) async throws {
    let url = try Self.url(of: request)
    var message = HTTPClientRequest(url: url.absoluteString)
    message.method = HTTPMethod(rawValue: request.httpMethod ?? "GET")
    for (name, value) in request.allHTTPHeaderFields ?? [:] {
      message.headers.replaceOrAdd(name: name, value: value)
    }
    if !message.headers.contains(name: "Accept-Encoding") {
      message.headers.add(name: "Accept-Encoding", value: "gzip, deflate")
    }
    if let body = request.httpBody, !body.isEmpty { message.body = .bytes(body) }
    let answer: HTTPClientResponse
    do {
      answer = try await execute(message)
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
      let decoder = try ContentDecoder(codings: answer.headers[canonicalForm: "Content-Encoding"])
      for try await part in answer.body {
        try decoder.decode(part) { bytes in
          do {
            try receiver.receive(bytes)
          } catch {
            throw ReceiverError(error: error)
          }
        }
      }
      // The body of a cancelled task can end as if it were complete.
      try Task.checkCancellation()
      try decoder.end()
    } catch let failure as ReceiverError {
      throw failure.error
    } catch {
      throw Self.cause(of: error)
    }
  }

  /// Returns the URL of a request, unless the client would end the process or send another request.
  private static func url(of request: URLRequest) throws -> URL {
    // A stream cannot be sent twice.
    guard request.httpBodyStream == nil else { throw URLError(.requestBodyStreamExhausted) }
    guard let url = request.url, ["http", "https"].contains(url.scheme?.lowercased()),
      let parts = URLComponents(url: url, resolvingAgainstBaseURL: true),
      // A port of too many digits is read as none, and a path with escapes that are not UTF-8 as an empty one.
      (0...65_535).contains(url.port ?? (parts.rangeOfPort?.isEmpty ?? true ? 0 : -1)),
      url.path.isEmpty == parts.percentEncodedPath.isEmpty
    else { throw URLError(.badURL) }
    return url
  }

  /// Sends a request, again if it is safe and its connection is lost before the answer.
  private func execute(_ message: HTTPClientRequest) async throws -> HTTPClientResponse {
    let isSafe = [.GET, .HEAD].contains(message.method) && message.body == nil
    var repetitions = isSafe ? 3 : 0
    while true {
      do {
        return try await client.execute(message, timeout: .hours(24))
      } catch
        where repetitions > 0
        && (Self.cause(of: error) as? URLError)?.code == .networkConnectionLost
      {
        // The server had closed a connection that was idle (RFC 9112, 9.3.1). Others can be closed, too.
        repetitions -= 1
      }
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
