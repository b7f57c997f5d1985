// @unchecked Sendable because `woken` is guarded by the lock of the hub whose subscribers are counted.

internal import Synchronization

extension HubBase {
  /// Announces the number of subscribers of a hub.
  @usableFromInline
  final class CountHub: @unchecked Sendable {
    /// The hub that publishes the numbers.
    let hub = BroadcastHub<Int>()
    /// The work that remains without the lock: the tasks that can read now.
    private var effects = HubEffects()

    init() {}

    /// Publishes a new number; called under the lock of the counted hub.
    @usableFromInline
    func record(_ count: Int) {
      var delivery = Delivery<Int>()
      hub.prepare(count, &delivery)
      effects.add(delivery.effects)
    }

    /// Removes and returns the work that remains; called under the lock of the counted hub.
    func takeEffects() -> HubEffects {
      defer { effects = HubEffects() }
      return effects
    }
  }
}

extension HubBase {
  /// Resumes the tasks that wait for the number of subscribers.
  @usableFromInline
  final func wakeCounters() {
    state.withLock { $0.counts?.takeEffects() }?.perform()
  }

  /// Subscribes to the number of subscribers, without counting as one.
  ///
  /// - Parameter bufferingPolicy: The policy for numbers that have not been read.
  /// - Returns: A subscription that begins with the current number and misses no later one.
  final func countSubscription(bufferingPolicy: BufferingPolicy<Int>) -> Subscription<Int> {
    state.withLock { state in
      let feed = state.counts ?? HubBase.CountHub()
      if state.counts == nil {
        // A new hub has no parked readers: there is nothing to resume.
        if state.isFinished { feed.hub.finish() }
        state.counts = feed
        isCounted.store(true, ordering: .relaxed)
      }
      let count = state.isFinished ? 0 : state.subscriberCount
      return feed.hub.subscription(bufferingPolicy: bufferingPolicy, replaying: [count])
    }
  }
}
