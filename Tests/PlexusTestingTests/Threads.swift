import Foundation
import Synchronization
import TestSupport

/// Runs the body on several new threads at the same time, and waits for all of them.
func onThreads(_ count: Int, _ body: @escaping @Sendable (_ thread: Int) -> Void) async {
  let running = Atomic(count)
  await withCheckedContinuation { continuation in
    let end: @Sendable () -> Void = {
      if running.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 {
        continuation.resume()
      }
    }
    for thread in 0..<count {
      Thread {
        body(thread)
        end()
      }.start()
    }
  }
}

/// A list of entries that tasks append, in order of arrival.
final class Notes<Entry: Sendable>: Sendable {
  private let state = Guarded<[Entry]>([])

  var entries: [Entry] { state.withLock { $0 } }

  func append(_ entry: Entry) { state.withLock { $0.append(entry) } }
}
