public import Foundation

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A transport that uses a URLSession of its own, without cache and cookies.
///
/// Bytes are handed over as they arrive. Redirects are followed within a limit, to http and https only.
/// Releasing the last reference lets running transfers end and closes the connections. A transfer has the
/// priority of the caller to whom it is most urgent, also when that one comes later.
public final class URLSessionTransport: MediaTransport {
  /// Tests look at its tasks.
  let session: URLSession
  private let delegate: TransferDelegate

  /// Creates a transport.
  ///
  /// - Parameters:
  ///   - timeout: How many seconds to wait for the next bytes before the transfer fails with
  ///     `URLError.timedOut`.
  ///   - redirectLimit: How many redirects of one request are followed; one more fails with
  ///     `URLError.httpTooManyRedirects`.
  ///   - headers: Fields that are sent with every request.
  public init(timeout: TimeInterval = 60, redirectLimit: Int = 10, headers: [String: String] = [:])
  {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = nil
    configuration.httpCookieStorage = nil
    configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
    configuration.timeoutIntervalForRequest = timeout
    // The loader has a limit of its own.
    configuration.httpMaximumConnectionsPerHost = 64
    configuration.httpAdditionalHeaders = headers
    delegate = TransferDelegate(redirectLimit: redirectLimit)
    session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
  }

  deinit {
    session.finishTasksAndInvalidate()
  }

  /// Sends a request and hands over the answer while it arrives.
  ///
  /// - Parameters:
  ///   - request: What to send.
  ///   - receiver: What takes the answer, on a thread of the session.
  /// - Throws: `URLError` if there was no answer or not all of it; what the receiver throws; a
  ///   `CancellationError` if the calling task is cancelled.
  @concurrent
  public func send(_ request: URLRequest, to receiver: any MediaReceiver) async throws {
    let task = session.dataTask(with: request)
    task.priority = Self.priority(Task.currentPriority)
    receiver.onPriorityChange { [weak task] in task?.priority = Self.priority($0) }
    let id = task.taskIdentifier
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        delegate.add(Transfer(receiver: receiver, continuation: continuation), for: id)
        if Task.isCancelled {
          delegate.end(id, .failure(CancellationError()))
          task.cancel()
        } else {
          task.resume()
        }
      }
    } onCancel: {
      delegate.end(id, .failure(CancellationError()))
      task.cancel()
    }
  }

  private static func priority(_ priority: TaskPriority) -> Float {
    if priority > .medium { return URLSessionTask.highPriority }
    return priority < .medium ? URLSessionTask.lowPriority : URLSessionTask.defaultPriority
  }
}
