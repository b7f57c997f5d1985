internal import Foundation
internal import PlexusSupport

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// A receiver that keeps the whole answer in memory, or the beginning of one that is an error.
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
    try state.withLock { state in
      let isWhole = (200..<300).contains(state.response?.statusCode ?? 200)
      let room = isWhole ? .max : Self.errorBytes - state.body.count
      state.body.append(bytes.prefix(room))
      if bytes.count > room { throw EnoughReceived() }
    }
  }

  /// The number of bytes of an error's body to keep.
  static let errorBytes = 16_384

  /// Returns the answer from a URL.
  ///
  /// - Throws: `URLError.badServerResponse` if there is none.
  func answer(from url: URL) throws -> HTTPResponse {
    try state.withLock { state in
      guard let response = state.response else { throw URLError(.badServerResponse) }
      return HTTPResponse(
        url: url,
        status: response.statusCode,
        headers: HTTPHeaders(response),
        body: state.body
      )
    }
  }
}
