// @unchecked Sendable because it inherits from NSObject; its only mutable state is behind a lock.

internal import Foundation
internal import PlexusSupport

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// A request whose answer is awaited.
struct Transfer: Sendable {
  let receiver: any HTTPReceiver
  let continuation: CheckedContinuation<Void, any Error>
  /// Whether the receiver has been given status and header fields of the final answer.
  var hasBegun = false
}

/// Passes callbacks of a session on to the receivers of its transfers.
final class TransferDelegate: NSObject, URLSessionDataDelegate, @unchecked Sendable {
  private let transfers = Locked<[Int: Transfer]>([:])

  func add(_ transfer: Transfer, for id: Int) {
    transfers.withLock { $0[id] = transfer }
  }

  /// Ends a transfer with an error, unless it has ended.
  func end(_ task: URLSessionTask, _ error: any Error) {
    end(task.taskIdentifier, .failure(error))
    // On Linux it waits for the session, which may be waiting for the queue that this is called on.
    DispatchQueue.global().async { task.cancel() }
  }

  private func end(_ id: Int, _ result: Result<Void, any Error>) {
    transfers.withLock { $0.removeValue(forKey: id) }?.continuation.resume(with: result)
  }

  private func begin(_ response: URLResponse?, of task: URLSessionTask) -> Bool {
    let transfer = transfers.withLock { transfers in
      if (response as? HTTPURLResponse)?.isFinal == true {
        transfers[task.taskIdentifier]?.hasBegun = true
      }
      return transfers[task.taskIdentifier]
    }
    guard let transfer else { return false }
    do {
      guard let response = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
      try transfer.receiver.begin(response)
      return true
    } catch {
      end(task, error)
      return false
    }
  }

  func urlSession(
    _ session: URLSession,
    dataTask: URLSessionDataTask,
    didReceive response: URLResponse,
    completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
  ) {
    completionHandler(begin(response, of: dataTask) ? .allow : .cancel)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    guard let transfer = transfers.withLock({ $0[dataTask.taskIdentifier] }) else { return }
    do {
      try transfer.receiver.receive(data)
    } catch {
      end(dataTask, error)
    }
  }

  /// Redirects are answers like any other: they are followed, or not, by the rules above the transport.
  func urlSession(
    _ session: URLSession,
    task: URLSessionTask,
    willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest,
    completionHandler: @escaping (URLRequest?) -> Void
  ) {
    completionHandler(nil)
  }

  /// A challenge of the server is an answer; trust is evaluated as the system does.
  func urlSession(
    _ session: URLSession,
    task: URLSessionTask,
    didReceive challenge: URLAuthenticationChallenge,
    completionHandler:
      @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) ->
      Void
  ) {
    #if canImport(FoundationNetworking)
    // The answer has been delivered completely; no disposition makes the session end such a task with it.
    end(task.taskIdentifier, .success(()))
    DispatchQueue.global().async { completionHandler(.cancelAuthenticationChallenge, nil) }
    #else
    let isOfServer = [
      NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTTPDigest,
      NSURLAuthenticationMethodNTLM, NSURLAuthenticationMethodNegotiate,
      NSURLAuthenticationMethodDefault,
    ].contains(challenge.protectionSpace.authenticationMethod)
    completionHandler(isOfServer ? .rejectProtectionSpace : .performDefaultHandling, nil)
    #endif
  }

  func urlSession(
    _ session: URLSession,
    task: URLSessionTask,
    didCompleteWithError error: (any Error)?
  ) {
    if let error {
      let named = (error as? URLError)?.namingItsCause ?? error
      return end(task.taskIdentifier, .failure(named))
    }
    // On Linux a redirect without a place to go to is never announced.
    if transfers.withLock({ $0[task.taskIdentifier]?.hasBegun }) == false {
      guard begin(task.response, of: task) else { return }
    }
    end(task.taskIdentifier, .success(()))
  }
}

extension HTTPURLResponse {
  /// Whether it is not an interim answer, after which another one follows.
  var isFinal: Bool { statusCode >= 200 }

  /// Whether it is neither a value nor the confirmation of one.
  var isError: Bool { !(200..<300).contains(statusCode) && statusCode != 304 }
}
