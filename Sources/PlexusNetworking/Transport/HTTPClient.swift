internal import Foundation
internal import Plexus

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// Sends requests through a transport under rules: the same for every transport.
struct HTTPClient: Sendable {
  let transport: any HTTPTransport
  let rules: HTTPRules

  /// Sends a request, follows its redirects, and delivers the final answer.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - receiver: The receiver of the final answer.
  /// - Returns: The URL that has answered.
  /// - Throws: An error of the rules, of the transport or of the receiver.
  @concurrent
  func send(_ request: URLRequest, to receiver: any HTTPReceiver) async throws -> URL {
    var route = try HTTPRoute(request, headers: transport.headers, rules: rules.redirects)
    while true {
      let hop = HopReceiver(url: route.url, receiver: receiver)
      do {
        try await transport.send(route.request, to: hop)
      } catch {
        // What comes after the head of a redirect does not matter.
        guard hop.target != nil, !Task.isCancelled else { throw error }
      }
      guard let target = hop.target else {
        guard hop.hasBegun else { throw URLError(.badServerResponse) }
        return route.url
      }
      try route.follow(target.url, status: target.status)
    }
  }
}
