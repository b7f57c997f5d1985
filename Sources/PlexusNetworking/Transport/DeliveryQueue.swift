// @unchecked Sendable because it inherits from OperationQueue, which is; it adds an immutable semaphore only.

#if canImport(FoundationNetworking)
internal import Foundation

/// A serial queue for the callbacks of a session that makes the session wait while too many are queued.
///
/// Foundation's URLSession on Linux enqueues a callback for every piece of a body, however many are waiting.
/// Its thread waits here instead, so that no more is read from the network than a slow receiver takes. A
/// callback must not wait for the session in turn, as `URLSessionTask.cancel()` does.
final class DeliveryQueue: OperationQueue, @unchecked Sendable {
  /// Pieces have at most 16 KB: together they are one megabyte.
  private let room = DispatchSemaphore(value: 64)

  override init() {
    super.init()
    maxConcurrentOperationCount = 1
  }

  override func addOperation(_ block: @escaping @Sendable () -> Void) {
    room.wait()
    super.addOperation { [room] in
      block()
      room.signal()
    }
  }
}
#endif
