internal import Synchronization

extension BroadcastHub {
  /// Returns the present state of the subscribers, at most as many as given, in subscription order.
  ///
  /// The first call begins a list of the readers of the log and of the window; it knows the ones that are parked, and the
  /// others as soon as they park.
  func snapshots(limit: Int) -> [SubscriberSnapshot] {
    removeOrphans()
    guard limit > 0 else { return [] }
    var result: [SubscriberSnapshot] = []
    var readers: [Reader] = []
    state.withLock { state in
      guard !state.isFinished else { return }
      result.reserveCapacity(min(limit, state.subscriberCount))
      let known = knownReaders(&state)
      for buffer in (state.others?.buffers ?? []).prefix(limit) {
        let elements = PrivateBuffer<Element>.of(buffer).elements
        result.append(.stream(buffer.id, elements.count, dropped: buffer.droppedCount))
      }
      readers = known.first(limit - result.count)
      for reader in readers { result.append(snapshot(of: subscriber(reader), state)) }
      for queue in state.handlers?.queues ?? [] where result.count < limit {
        result += queue.snapshots.prefix(limit - result.count)
      }
      let unknown = state.logReaders + state.windowReaders - known.count
      for number in 0..<max(0, min(unknown, limit - result.count)) {
        result.append(.unknown(number))
      }
    }
    withExtendedLifetime(readers) {}
    return result.sorted { $0.id < $1.id }
  }

  private func knownReaders(_ state: inout State) -> KnownReaders {
    if let known = state.known { return known }
    let known = KnownReaders()
    for waiter in state.parked.waiters {
      if let reader = waiter as? Reader { known.insert(reader) }
    }
    state.known = known
    return known
  }

  private func snapshot(
    of subscriber: Subscriber<Element>,
    _ state: State
  ) -> SubscriberSnapshot {
    let position = max(
      subscriber.position.load(ordering: .relaxed),
      cutoff.load(ordering: .relaxed)
    )
    let unread = max(0, state.sequence - position)
    guard case .window(let limit) = subscriber.source else {
      let own = subscriber.ownBuffer?.elements.count ?? 0
      return .stream(subscriber.id, unread + own, dropped: 0)
    }
    let overwritten = overwritten(of: subscriber, at: state.sequence, limit: limit)
    let replayed = min(subscriber.replay.count, max(limit - unread, 0))
    return .stream(
      subscriber.id,
      min(unread, limit) + replayed,
      dropped: subscriber.droppedFromWindow + overwritten
    )
  }
}

extension HandlerQueue {
  /// The present state of the handlers.
  var snapshots: [SubscriberSnapshot] {
    state.withLock { state in
      state.entries.lazy.filter { $0.call != nil }.map { entry in
        SubscriberSnapshot(
          id: entry.handler.id,
          kind: .handler,
          bufferedCount: state.items.count,
          droppedCount: nil
        )
      }
    }
  }
}
