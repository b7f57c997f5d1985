internal import Synchronization

/// Calls a closure on the main actor after something was sent.
///
/// If the call that sends is made on the main actor, the closure is called before it returns; otherwise at the next
/// turn of the main actor, once for all elements sent before.
final class ChangeNotice: Handler.SenderCalls {
  private let isScheduled = Atomic<Bool>(false)
  private let act: @MainActor @Sendable () -> Void

  init(_ act: @escaping @MainActor @Sendable () -> Void) {
    self.act = act
  }

  var isOrdered: Bool { false }

  func note() {
    if MainActorQueue.isCurrent { return MainActor.assumeIsolated(act) }
    guard !isScheduled.exchange(true, ordering: .acquiringAndReleasing) else { return }
    MainActorQueue.shared.append { [self] in
      isScheduled.store(false, ordering: .releasing)
      act()
    }
  }

  func takeBack(in queue: HandlerQueue) {
    note()
  }

  func call(_ item: HandlerQueue.Item, isWanted: Bool, in queue: HandlerQueue) {}

  func removeOrphans() {}

  func end() {}
}
