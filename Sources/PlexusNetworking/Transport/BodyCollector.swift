internal import Foundation
internal import PlexusSupport

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// A receiver that keeps the whole answer in memory.
final class BodyCollector: HTTPReceiver {
  private struct State: Sendable {
    var response: HTTPURLResponse?
    var body = Data()
  }

  private let state = Locked(State())

  func begin(_ response: HTTPURLResponse) throws {
    state.withLock { $0.response = response }
  }

  func receive(_ bytes: Data) throws {
    state.withLock { $0.body.append(bytes) }
  }

  /// The answer.
  ///
  /// - Throws: `URLError.badServerResponse` if there is none.
  func answer() throws -> (response: HTTPURLResponse, body: Data) {
    try state.withLock { state in
      guard let response = state.response else { throw URLError(.badServerResponse) }
      return (response, state.body)
    }
  }
}
