import Foundation
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A transport without network that calls a closure and records the requests.
final class ClosureTransport: HTTPTransport {
  typealias Body =
    @concurrent @Sendable (_ count: Int, URLRequest, any HTTPReceiver) async throws -> Void

  let requests = Guarded<[URLRequest]>([])
  private let body: Body

  /// Creates a transport.
  ///
  /// - Parameter body: What to do; its first argument counts the requests from 1 on.
  init(_ body: @escaping Body) {
    self.body = body
  }

  @concurrent
  func send(_ request: URLRequest, to receiver: any HTTPReceiver) async throws {
    let count = requests.withLock { requests in
      requests.append(request)
      return requests.count
    }
    try await body(count, request, receiver)
  }

  /// The last components of the requested paths, in order.
  var names: [String] {
    requests.withLock { $0.compactMap { $0.url?.lastPathComponent } }
  }
}

extension MediaLoader {
  /// Begins two reloads, of which the second one is requested while the first one waits at a gate of the transport.
  @MainActor
  func beginTwoReloads(
    of url: URL,
    firstAt gate: Gate
  ) async throws -> (first: Task<URL, any Error>, second: Task<URL, any Error>) {
    let first = Task { try await reload(url) }
    await gate.arrivals(1)
    let arrived = Gate()
    // It belongs to this actor, so that it waits for the other one when this task continues.
    let second = Task {
      arrived.open()
      return try await reload(url)
    }
    try await arrived.wait()
    return (first, second)
  }
}

extension HTTPReceiver {
  /// Begins an answer.
  func begin(
    _ request: URLRequest,
    status: Int = 200,
    headers: [String: String] = [:]
  ) throws {
    let url = try #require(request.url)
    let response = try #require(
      HTTPURLResponse(url: url, statusCode: status, httpVersion: nil, headerFields: headers)
    )
    try begin(response)
  }

  /// Takes a whole answer.
  func take(
    _ request: URLRequest,
    status: Int = 200,
    headers: [String: String] = [:],
    _ text: String
  ) throws {
    try begin(request, status: status, headers: headers)
    try receive(Data(text.utf8))
  }
}
