internal import Foundation
internal import PlexusSupport

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// The receiver of the answer to one of several requests, which holds back a redirect and keeps to the limit of
/// bytes.
final class HopReceiver: HTTPReceiver {
  private enum Phase {
    case waits
    case isRedirected(url: URL, HTTPRedirect, count: Int)
    case hasBegun(count: Int64, isError: Bool)
    /// The receiver has thrown an error.
    case isRefused
  }

  /// A redirect with too large a body, which is of no use.
  private struct Redirected: Error {}

  private let url: URL
  private let hasBody: Bool
  private let rules: HTTPRules
  private let receiver: any HTTPReceiver
  private let watch: TransferWatch
  private let storeCookies: @Sendable (String, URL) -> Void
  private let phase = Locked(Phase.waits)

  /// Creates a receiver.
  ///
  /// - Parameters:
  ///   - route: The request, which a redirect may be relative to.
  ///   - rules: The rules for bytes.
  ///   - receiver: The receiver of any other answer.
  ///   - watch: The counter of bytes.
  ///   - storeCookies: A closure that takes `Set-Cookie` fields and the URL that has answered with them.
  init(
    _ route: HTTPRoute,
    rules: HTTPRules,
    receiver: any HTTPReceiver,
    watch: TransferWatch,
    storeCookies: @escaping @Sendable (String, URL) -> Void
  ) {
    url = route.url
    hasBody = route.request.httpMethod != "HEAD"
    self.rules = rules
    self.receiver = receiver
    self.watch = watch
    self.storeCookies = storeCookies
  }

  /// Where the redirect leads to, if the answer is one.
  var target: (url: URL, redirect: HTTPRedirect)? {
    phase.withLock { phase in
      guard case .isRedirected(let url, let redirect, _) = phase else { return nil }
      return (url, redirect)
    }
  }

  /// Whether there was a final answer that is no redirect.
  var hasBegun: Bool {
    phase.withLock { phase in
      switch phase {
      case .waits, .isRedirected: false
      case .hasBegun, .isRefused: true
      }
    }
  }

  /// Whether the answer has an error status and has reached the receiver, at least its head.
  var isError: Bool {
    phase.withLock { phase in
      guard case .hasBegun(_, let isError) = phase else { return false }
      return isError
    }
  }

  func onPriorityChange(_ change: @escaping @Sendable (TaskPriority) -> Void) {
    receiver.onPriorityChange(change)
  }

  func begin(_ response: HTTPURLResponse) throws {
    guard response.isFinal else { return }
    if let field = response.value(forHTTPHeaderField: "Set-Cookie") {
      storeCookies(field, url)
    }
    let target = HTTPRoute.target(of: response, from: url)
    phase.withLock { phase in
      if let target {
        let redirect = HTTPRedirect(status: response.statusCode, headers: HTTPHeaders(response))
        phase = .isRedirected(url: target, redirect, count: 0)
      } else {
        phase = .hasBegun(count: 0, isError: response.isError)
      }
    }
    guard target == nil else { return }
    if let limit = rules.maximumBodyBytes, announces(response, moreThan: limit) {
      throw URLError(.dataLengthExceedsMaximum)
    }
    try passingOn { try receiver.begin(response) }
  }

  func receive(_ bytes: Data) throws {
    watch.receive(bytes.count)
    let wanted = try phase.withLock { phase -> Data? in
      switch phase {
      case .waits, .isRefused: throw URLError(.badServerResponse)
      case .isRedirected(let url, let redirect, let count):
        guard count + bytes.count <= Self.redirectBytes else { throw Redirected() }
        phase = .isRedirected(url: url, redirect, count: count + bytes.count)
        return nil
      case .hasBegun(let count, let isError):
        let room = (rules.maximumBodyBytes ?? .max) - count
        let wanted = bytes.prefix(Int(clamping: room))
        phase = .hasBegun(count: count + Int64(wanted.count), isError: isError)
        return wanted
      }
    }
    guard let wanted else { return }
    // A receiver that needs the beginning only ends the transfer itself.
    if !wanted.isEmpty { try passingOn { try receiver.receive(wanted) } }
    if wanted.count < bytes.count { throw URLError(.dataLengthExceedsMaximum) }
  }

  /// Calls the receiver, whose errors count whatever the status.
  private func passingOn(_ call: () throws -> Void) throws {
    do {
      try call()
    } catch let error where !(error is EnoughReceived) {
      phase.withLock { $0 = .isRefused }
      throw error
    }
  }

  /// Whether a body will be larger than a limit by what the answer says.
  ///
  /// The length of a coded body is another one, and of an error only the beginning is read.
  private func announces(_ response: HTTPURLResponse, moreThan limit: Int64) -> Bool {
    guard hasBody, (200..<300).contains(response.statusCode),
      response.value(forHTTPHeaderField: "Content-Encoding") == nil,
      let length = response.value(forHTTPHeaderField: "Content-Length").flatMap({ Int64($0) })
    else { return false }
    return length > limit
  }

  /// The bytes of the body of a redirect that are read, so that its connection can be used again.
  private static let redirectBytes = 65_536
}
