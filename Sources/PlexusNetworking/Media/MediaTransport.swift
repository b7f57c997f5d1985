public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// What sends the requests of a ``MediaLoader``; conform a type of your own to use another client than
/// URLSession, or none in a test.
///
/// A transport follows redirects, knows nothing of files and keeps nothing.
public protocol MediaTransport: Sendable {
  /// Sends a request and hands over the answer while it arrives.
  ///
  /// It calls `begin` once and then `receive` in order, one call after another, and none any more soon after
  /// it has returned. What the receiver throws ends the transfer and is thrown. Cancelling the calling task
  /// ends the transfer, too, with a `CancellationError`.
  ///
  /// - Parameters:
  ///   - request: What to send.
  ///   - receiver: What takes the answer, whatever its status.
  /// - Throws: An error if there was no answer or not all of it; a `ConnectivityFailure` lets the loader try
  ///   again.
  @concurrent
  func send(_ request: URLRequest, to receiver: any MediaReceiver) async throws
}

/// What takes an answer piece by piece.
public protocol MediaReceiver: Sendable {
  /// Takes what changes the priority of the transfer.
  ///
  /// A transport whose transfers have priorities calls it once before `begin`; others need not. There is a
  /// default implementation, which never calls the closure.
  ///
  /// - Parameter change: What to call with the priority of the caller to whom the transfer is most urgent: at
  ///   once, and whenever that has become another one. It is called on any thread, and released with the
  ///   transfer.
  func onPriorityChange(_ change: @escaping @Sendable (TaskPriority) -> Void)

  /// Takes status and header fields of the final answer.
  ///
  /// - Parameter response: The answer.
  /// - Throws: An error if the body is not wanted.
  func begin(_ response: HTTPURLResponse) throws

  /// Takes the next bytes of the body, without the coding that they were sent in.
  ///
  /// - Parameter bytes: The bytes.
  /// - Throws: An error if no more are wanted.
  func receive(_ bytes: Data) throws
}

extension MediaReceiver {
  /// Never calls the closure: the transfer keeps the priority that it has.
  ///
  /// - Parameter change: What changes the priority of the transfer.
  public func onPriorityChange(_ change: @escaping @Sendable (TaskPriority) -> Void) {}
}
