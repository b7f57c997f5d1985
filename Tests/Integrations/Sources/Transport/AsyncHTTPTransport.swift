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
    // HTTPRules limits what is received. The client decodes what it reads at once before that.
    configuration.decompression = .enabled(limit: .ratio(100))
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
    if let body = request.httpBody { message.body = .bytes(body) }
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
    var isEmpty = true
    do {
      for try await part in answer.body {
        if isEmpty { try Self.checkCoding(of: answer) }
        isEmpty = false
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
    } catch let error as NIOHTTPDecompression.ExtraDecompressionError
      where error == .truncatedData && isEmpty && Self.hasNoBody(answer, to: message)
    {
      // The client decodes also what is not there.
      try Task.checkCancellation()
    } catch {
      throw Self.cause(of: error)
    }
  }

  /// Returns the URL of a request, unless the client would end the process or request another URL.
  private static func url(of request: URLRequest) throws -> URL {
    // A stream cannot be sent twice.
    guard request.httpBodyStream == nil else { throw URLError(.requestBodyStreamExhausted) }
    guard let url = request.url, (0...65_535).contains(url.port ?? 0) else {
      throw URLError(.badURL)
    }
    // A path with escapes that are not UTF-8 is read as an empty one.
    let path = URLComponents(url: url, resolvingAgainstBaseURL: true)?.percentEncodedPath
    guard !url.path.isEmpty || path?.isEmpty != false else { throw URLError(.badURL) }
    return url
  }

  private func execute(_ message: HTTPClientRequest) async throws -> HTTPClientResponse {
    do {
      return try await client.execute(message, timeout: .hours(24))
    } catch
      where [.GET, .HEAD].contains(message.method) && message.body == nil
      && (Self.cause(of: error) as? URLError)?.code == .networkConnectionLost
    {
      // A server can close a connection while a request is sent over it (RFC 9112, 9.3.1).
      return try await client.execute(message, timeout: .hours(24))
    }
  }

  /// Throws an error if the client does not decode a body.
  private static func checkCoding(of answer: HTTPClientResponse) throws {
    let coding = answer.headers["Content-Encoding"].joined(separator: ", ").lowercased()
    guard ["", "identity", "gzip", "deflate"].contains(coding) else {
      throw URLError(.cannotDecodeContentData)
    }
  }

  /// Whether an answer has no body, although its fields can describe one (RFC 9110, 6.4.1).
  private static func hasNoBody(
    _ answer: HTTPClientResponse,
    to message: HTTPClientRequest
  ) -> Bool {
    message.method == .HEAD || [.noContent, .notModified].contains(answer.status)
      || answer.headers.first(name: "Content-Length") == "0"
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
    case NIOHTTPDecompression.DecompressionError.limit:
      return URLError(.dataLengthExceedsMaximum)
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
