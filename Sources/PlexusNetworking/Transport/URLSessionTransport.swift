public import Foundation
internal import PlexusSupport

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// A transport that uses a URLSession of its own, without cache, cookies and stored credentials.
///
/// Bytes are delivered as they arrive, and no faster than they are taken. Releasing the last reference lets
/// running transfers end and closes the connections. A transfer has the priority of its most urgent caller,
/// also when that one comes later.
///
/// ## Topics
///
/// ### Creating a transport
/// - ``shared``
/// - ``init(configuration:timeout:headers:)``
///
/// ### Sending
/// - ``send(_:to:)``
/// - ``headers``
public final class URLSessionTransport: HTTPTransport {
  /// The transport of all fetchers and loaders that are created without one.
  public static let shared = URLSessionTransport()

  /// Header fields that are added to requests to the origin that the caller has requested.
  public let headers: [String: String]

  /// Tests look at its tasks.
  let session: URLSession
  private let delegate = TransferDelegate()

  /// Creates a transport.
  ///
  /// - Parameters:
  ///   - configuration: The configuration of the session, for instance with a proxy or protocol classes; the
  ///     ephemeral one by default. It is copied. Cache, cookies and stored credentials in it are not used, and
  ///     its additional header fields become those of the transport.
  ///   - timeout: How many seconds to wait for the next bytes before the transfer fails with
  ///     `URLError.timedOut`; by default as long as the configuration says, a minute.
  ///   - headers: Header fields that are added to requests; they take precedence over those of the
  ///     configuration.
  public init(
    configuration: URLSessionConfiguration = .ephemeral,
    timeout: TimeInterval? = nil,
    headers: [String: String] = [:]
  ) {
    let own = configuration.copy() as? URLSessionConfiguration ?? .ephemeral
    var all: [String: String] = [:]
    for (name, value) in own.httpAdditionalHeaders ?? [:] {
      if let name = name as? String, let value = value as? String { all[name] = value }
    }
    for (name, value) in headers {
      for other in all.keys where other.lowercased() == name.lowercased() { all[other] = nil }
      all[name] = value
    }
    self.headers = all
    own.httpAdditionalHeaders = nil
    own.urlCache = nil
    own.requestCachePolicy = .reloadIgnoringLocalCacheData
    own.httpCookieStorage = nil
    own.httpCookieAcceptPolicy = .never
    own.httpShouldSetCookies = false
    own.urlCredentialStorage = nil
    if let timeout { own.timeoutIntervalForRequest = timeout }
    // A media loader has a limit of its own.
    own.httpMaximumConnectionsPerHost = max(64, own.httpMaximumConnectionsPerHost)
    #if canImport(FoundationNetworking)
    session = URLSession(configuration: own, delegate: delegate, delegateQueue: DeliveryQueue())
    #else
    session = URLSession(configuration: own, delegate: delegate, delegateQueue: nil)
    #endif
  }

  deinit {
    session.finishTasksAndInvalidate()
  }

  /// Sends a request and delivers the answer while it arrives.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - receiver: The receiver of the answer, called on a thread of the session.
  /// - Throws: `URLError` if there was no answer or not all of it; an error that the receiver throws; a
  ///   `CancellationError` if the calling task is cancelled.
  @concurrent
  public func send(_ request: URLRequest, to receiver: any HTTPReceiver) async throws {
    var request = request
    request.httpShouldHandleCookies = false
    let task = session.dataTask(with: request)
    // Setting the priority of a task waits for the session on Linux, which costs more than the comparison.
    let present = Locked(URLSessionTask.defaultPriority)
    let change: @Sendable (TaskPriority) -> Void = { [weak task] priority in
      let next = Self.priority(priority)
      present.withLock { present in
        guard present != next else { return }
        present = next
        task?.priority = next
      }
    }
    change(Task.currentPriority)
    receiver.onPriorityChange(change)
    let id = task.taskIdentifier
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        delegate.add(Transfer(receiver: receiver, continuation: continuation), for: id)
        if Task.isCancelled {
          delegate.end(task, CancellationError())
        } else {
          task.resume()
        }
      }
    } onCancel: {
      delegate.end(task, CancellationError())
    }
  }

  private static func priority(_ priority: TaskPriority) -> Float {
    if priority > .medium { return URLSessionTask.highPriority }
    return priority < .medium ? URLSessionTask.lowPriority : URLSessionTask.defaultPriority
  }
}
