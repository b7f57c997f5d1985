import Foundation

/// The thread that starts all processes, one after the other, and waits for their end.
///
/// A process that is started at the same time as another one can inherit the descriptor by which Foundation learns of the
/// end of that one, whose end is then noticed only when both have ended.
///
/// Foundation makes a run loop for a thread that starts a process, and releases it when the thread ends. The thread
/// sanitizer does not survive this, so this thread never ends.
public enum ProcessThread: Sendable {
  private static let pending = Pending()

  private final class Pending: Sendable {
    let works = Guarded<[@Sendable () -> Void]>([])
    let change = DispatchSemaphore(value: 0)

    init() {
      Thread.detachNewThread { [works, change] in
        while true {
          change.wait()
          works.withLock { $0.removeFirst() }()
        }
      }
    }
  }

  /// Runs a closure on the thread, and waits for its result.
  public static func run<Success: Sendable>(
    _ body: @escaping @Sendable () throws -> Success
  ) throws -> Success {
    let result = Guarded<Result<Success, any Error>?>(nil)
    let end = DispatchSemaphore(value: 0)
    pending.works.withLock { works in
      works.append {
        let outcome = Result { try body() }
        result.withLock { $0 = outcome }
        end.signal()
      }
    }
    pending.change.signal()
    end.wait()
    guard let outcome = result.withLock({ $0 }) else { throw CancellationError() }
    return try outcome.get()
  }
}
