// @unchecked Sendable because `woken` is guarded by the lock of the hub whose subscribers are counted.

internal import Synchronization

/// Announces the number of subscribers of a hub.
@usableFromInline
final class SubscriberCountHub: @unchecked Sendable {
  /// Where the numbers are sent.
  let hub = BroadcastHub<Int>()
  /// Who has something to read now, and is to be resumed without the lock.
  private var woken: ContiguousArray<Waiter.ParkedTask> = []

  init() {}

  /// Notes a new number; called under the lock of the counted hub.
  @usableFromInline
  func record(_ count: Int) {
    if let delivery = hub.prepare(count) { woken += delivery.woken }
  }

  /// Takes out those who have to be resumed; called under the lock of the counted hub.
  func takeWoken() -> ContiguousArray<Waiter.ParkedTask> {
    defer { woken = [] }
    return woken
  }
}

extension HubCore {
  /// Resumes those who wait for the number of subscribers.
  @usableFromInline
  final func wakeCounters() {
    let woken = state.withLock { $0.counts?.takeWoken() ?? [] }
    for task in woken { task.resume() }
  }

  /// Registers somebody who wants to know the number of subscribers, without being one.
  ///
  /// - Parameter bufferingPolicy: What is kept while it is behind.
  /// - Returns: The number at this moment and, without a gap, those that follow.
  final func countSubscription(bufferingPolicy: BufferingPolicy<Int>) -> Subscription<Int> {
    state.withLock { state in
      let feed = state.counts ?? SubscriberCountHub()
      if state.counts == nil {
        // Nobody waits for a new one: there is nothing to resume.
        if state.isFinished { feed.hub.finish() }
        state.counts = feed
        isCounted.store(true, ordering: .relaxed)
      }
      let count = state.isFinished ? 0 : state.subscriberCount
      return feed.hub.subscription(bufferingPolicy: bufferingPolicy, replaying: [count])
    }
  }
}
