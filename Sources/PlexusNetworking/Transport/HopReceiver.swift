internal import Foundation
internal import Plexus
internal import PlexusSupport

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// The receiver of the answer to one of several requests, which holds back a redirect.
final class HopReceiver: HTTPReceiver {
  private enum Phase {
    case waits
    case isRedirected(url: URL, status: Int, left: Int)
    case hasBegun
  }

  /// A redirect with too large a body, which is of no use.
  private struct Redirected: Error {}

  private let url: URL
  private let receiver: any HTTPReceiver
  private let phase = Locked(Phase.waits)

  /// Creates a receiver.
  ///
  /// - Parameters:
  ///   - url: The URL that is requested, which a redirect may be relative to.
  ///   - receiver: The receiver of any other answer.
  init(url: URL, receiver: any HTTPReceiver) {
    self.url = url
    self.receiver = receiver
  }

  /// Where the redirect leads to, if the answer is one.
  var target: (url: URL, status: Int)? {
    phase.withLock { phase in
      guard case .isRedirected(let url, let status, _) = phase else { return nil }
      return (url, status)
    }
  }

  /// Whether there was a final answer that is no redirect.
  var hasBegun: Bool {
    phase.withLock { phase in
      guard case .hasBegun = phase else { return false }
      return true
    }
  }

  func onPriorityChange(_ change: @escaping @Sendable (TaskPriority) -> Void) {
    receiver.onPriorityChange(change)
  }

  func begin(_ response: HTTPURLResponse) throws {
    guard response.isFinal else { return }
    let target = HTTPRoute.target(of: response, from: url)
    phase.withLock { phase in
      if let target {
        phase = .isRedirected(url: target, status: response.statusCode, left: Self.bodyLimit)
      } else {
        phase = .hasBegun
      }
    }
    if target == nil { try receiver.begin(response) }
  }

  func receive(_ bytes: Data) throws {
    let isWanted = try phase.withLock { phase in
      switch phase {
      case .waits: throw URLError(.badServerResponse)
      case .isRedirected(let url, let status, let left):
        guard bytes.count <= left else { throw Redirected() }
        phase = .isRedirected(url: url, status: status, left: left - bytes.count)
        return false
      case .hasBegun: return true
      }
    }
    if isWanted { try receiver.receive(bytes) }
  }

  /// How much of the body of a redirect is read, so that its connection can be used again.
  private static let bodyLimit = 65_536
}
