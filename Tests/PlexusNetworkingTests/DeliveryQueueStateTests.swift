import Foundation
import TestSupport
import Testing

@testable import PlexusNetworking

#if canImport(FoundationNetworking)
@Suite(.fewAtOnce)
struct `A queue of callbacks` {
  @Test(.guarantee(.sessionsWaitForReceivers))
  func `a queue of callbacks runs them in order, and no more than a limited number wait`() async {
    let queue = DeliveryQueue()
    let (added, ran) = (Guarded(0), Guarded<[Int]>([]))
    let most = Guarded(0)
    let isFull = DispatchSemaphore(value: 0)
    let count = 10_000
    await withCheckedContinuation { continuation in
      // A thread of its own: it waits, as that of a session does.
      Thread.detachNewThread {
        for number in 0..<count {
          queue.addOperation {
            if number == 0 { isFull.wait() }
            let ahead = added.withLock { $0 } - number
            most.withLock { $0 = max($0, ahead) }
            ran.withLock { $0.append(number) }
            if number == count - 1 { continuation.resume() }
          }
          let all = added.withLock { added in
            added += 1
            return added
          }
          if all == 64 { isFull.signal() }
        }
      }
    }
    #expect(ran.withLock { $0 } == Array(0..<count))
    #expect(most.withLock { $0 } <= 65)
  }
}
#endif
