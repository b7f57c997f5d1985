public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A client that sends one HTTP request and delivers its answer in pieces.
///
/// ``HTTPFetcher`` and ``MediaLoader`` send every request through a transport: ``URLSessionTransport`` by
/// default, another HTTP client in a server, or none in a test. A transport only exchanges messages. It does
/// not follow redirects, has no cookies and no cache, and does not retry; ``HTTPRules`` are enforced above it.
/// See <doc:transports> for an adapter.
public protocol HTTPTransport: Sendable {
  /// Header fields that are added to requests, for instance credentials.
  ///
  /// They are sent to the origin that the caller has requested, and not to another origin after a redirect. A
  /// field of the request takes precedence. There is a default implementation, which returns none.
  var headers: [String: String] { get }

  /// The accounts that requests are sent for, if the transport or the one that it wraps is a ``TokenTransport``.
  ///
  /// A transport that wraps another one returns the accounts of that one, and calls it in the task in which it is
  /// called itself. There is a default implementation, which returns `nil`.
  var accounts: HTTPAccounts? { get }

  /// Sends a request and delivers the answer while it arrives.
  ///
  /// It calls `begin` and then `receive` in order, one call after another, and returns when the answer is
  /// complete. A redirect and an error status are answers, too. A receiver that is slow is waited for: no
  /// more than a bounded number of bytes is read from the network before `receive` has returned. An error that
  /// the receiver throws ends the transfer and is thrown. Cancelling the calling task ends the transfer with a
  /// `CancellationError`.
  ///
  /// - Parameters:
  ///   - request: The request; everything in it is sent as it stands.
  ///   - receiver: The receiver of the answer, whatever its status.
  /// - Throws: An error if there was no answer or not all of it. Only an error that is a
  ///   `ConnectivityFailure` counts as being offline; it must not be used for a certificate that is not
  ///   trusted, or for an answer that is malformed.
  @concurrent
  func send(_ request: URLRequest, to receiver: any HTTPReceiver) async throws
}

extension HTTPTransport {
  /// No header fields.
  public var headers: [String: String] { [:] }

  /// No accounts.
  public var accounts: HTTPAccounts? { nil }
}

/// The receiver of an answer, piece by piece.
public protocol HTTPReceiver: Sendable {
  /// Takes a closure that changes the priority of the transfer.
  ///
  /// A transport whose transfers have priorities calls it once before `begin`; others need not. There is a
  /// default implementation, which never calls the closure.
  ///
  /// - Parameter change: The closure to call with the priority of the most urgent caller: at once, and whenever
  ///   that changes. It is called on any thread, and released with the transfer.
  func onPriorityChange(_ change: @escaping @Sendable (TaskPriority) -> Void)

  /// Takes status and header fields of the answer.
  ///
  /// Interim answers (1xx) may be passed before the final one; they are ignored.
  ///
  /// - Parameter response: The answer.
  /// - Throws: An error if the body is not wanted.
  func begin(_ response: HTTPURLResponse) throws

  /// Takes the next bytes of the body, without the content coding that they were sent in.
  ///
  /// - Parameter bytes: The bytes.
  /// - Throws: An error if no more are wanted.
  func receive(_ bytes: Data) throws
}

extension HTTPReceiver {
  /// Never calls the closure: the transfer keeps the priority that it has.
  ///
  /// - Parameter change: The closure that changes the priority of the transfer.
  public func onPriorityChange(_ change: @escaping @Sendable (TaskPriority) -> Void) {}
}
