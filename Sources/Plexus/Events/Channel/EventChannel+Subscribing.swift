// The unsafe cast restores the type of the hub: a channel is created for the type of its events.

internal import Synchronization

extension EventChannel {
  /// Registers a stream for the retained events and those posted from now on.
  ///
  /// - Parameter bufferingPolicy: The policy for events that have not been read.
  /// - Returns: The subscription, or `nil` if the bus has dropped the channel.
  @inlinable
  func subscription<E: Event>(bufferingPolicy: BufferingPolicy<E>) -> Subscription<E>? {
    let hub = unsafe unsafeDowncast(hub, to: BroadcastHub<E>.self)
    var subscription: Subscription<E>?
    insert {
      let new = hub.hostedSubscription(bufferingPolicy: bufferingPolicy)
      new.subscriber.host = self
      subscription = new
      return new.subscriber.buffer
    }
    return subscription
  }

  /// Registers a stream, unless the bus has dropped the channel.
  ///
  /// - Parameter register: A closure that registers it with the hub, under the lock, and returns its buffer.
  @usableFromInline
  func insert(_ register: () -> HubBase.Buffer?) {
    change { state, _ in
      guard !state.isRetired, let buffer = registered(&state, register) else { return }
      assert(buffer.id == state.offers.nextID)
      state.offers.add(.stream(buffer))
    }
  }

  /// Registers a handler for the retained events and those posted from now on.
  ///
  /// - Parameters:
  ///   - recipe: The parts of the handler.
  ///   - now: The time, read with no lock held.
  ///   - replaced: The handlers to remove atomically.
  /// - Returns: The handler to start with no lock held, or `nil` if the bus has dropped the channel.
  func add(
    _ recipe: Handler.Recipe,
    at now: Nanoseconds,
    replacing replaced: [Handler] = []
  ) -> EventChannel.Addition? {
    state.withLock { state in
      guard !state.isRetired else { return nil }
      var effects = HubEffects()
      for handler in replaced {
        _ = handler.mark()
        let removal = take(handler, &state, &effects)
        effects.then { removal.perform() }
      }
      let added = registered(&state) { hub.add(recipe, of: self) }
      assert(added.handler.id == state.offers.nextID)
      // A new task has the priority of its first event.
      if added.isFirst { raisedPriority.store(0, ordering: .relaxed) }
      state.offers.add(.handler(added.handler))
      advance(&state, at: now, &effects)
      if state.offers.memberCount > state.sweepThreshold { effects.then { [self] in prune() } }
      return Addition(added: added, effects: effects)
    }
  }

  /// Calls a closure that registers a subscriber with the hub, which ignores the events that still wait.
  private func registered<Result>(_ state: inout State, _ register: () -> Result) -> Result {
    // Nothing goes to the subscriber before the retained events.
    if state.offers.isRetaining { hub.isHeld.store(true, ordering: .relaxed) }
    hub.passedNumber = UInt64(state.offers.passed)
    defer { hub.passedNumber = 0 }
    return register()
  }

  /// A handler that has been added, and the work that remains to be done with no lock held.
  struct Addition: Sendable {
    fileprivate let added: Handler.Added
    fileprivate let effects: HubEffects

    var handler: Handler { added.handler }
  }

  /// Starts a handler that has been added, and performs the effects of the addition.
  @discardableResult
  func start(_ addition: Addition) -> Handler {
    hub.start(addition.added)
    addition.effects.perform()
    return addition.handler
  }

  /// Takes out a handler.
  ///
  /// - Returns: The remains of the handler.
  private func take(
    _ handler: Handler,
    _ state: inout State,
    _ effects: inout HubEffects
  ) -> HandlerQueue.Removal {
    let removal = hub.take(handler)
    // A handler that removes itself still returns a result; another one may hang.
    let answers =
      handler.queue.suspends
      ? HandlerRun.isCurrent(channel: id, handler: handler.id) : state.offerThread == .current
    _ = state.offers.remove(handler.id, answers: answers)
    if answers, let offer = state.offers.startedOffer(of: handler.id) {
      effects.then { [self] in limitAnswer(to: offer) }
    }
    return removal
  }

  /// Removes handlers with a released owner, and expired events.
  func prune() {
    hub.removeOrphans()
    let now = time.now()
    change { state, _ in
      state.offers.dropExpired(at: now)
      state.sweepThreshold = max(64, 2 * state.offers.memberCount)
    }
  }

  /// The number of subscribers, excluding handlers with a released owner.
  @usableFromInline var subscriberCount: Int {
    prune()
    return hub.count
  }
}

extension EventChannel: Handler.Source {
  /// Removes a handler; called with no lock held.
  func remove(_ handler: Handler) {
    change { state, effects in take(handler, &state, &effects) }.perform()
  }

  /// Wraps an asynchronous call so that its tasks carry the run, which detects waits for the handler itself.
  func call(_ recipe: Handler.Recipe, of handler: Handler) -> Handler.Call {
    guard case .suspending(let body) = recipe.call, let calls = handler.queue.calls else {
      return recipe.call
    }
    return .suspending { [id, isolation = recipe.isolation] box in
      let sequence = calls.sequence.load(ordering: .relaxed)
      let run = HandlerRun(channel: id, handler: handler.id, sequence: sequence)
      calls.begin(run)
      defer { run.end() }
      return await run.call(body, with: box, of: handler, isolation: isolation)
    }
  }
}

extension EventChannel: Handler.Host {
  /// Registers a handler in place of a stream that has not been read, as if it had been registered with the bus.
  ///
  /// Retained events that the stream has accepted are retained again and offered to the handler, unless the stream has
  /// received other events since. A view takes its events on the posting thread, as the stream does.
  @usableFromInline
  func replace(_ reader: HubBase.Reader, with recipe: Handler.Recipe) -> Handler? {
    let now = time.now()
    var effects = HubEffects()
    let added = state.withLock { state -> Handler.Added? in
      // The bus has been released.
      guard state.offers.contains(reader.id) else { return nil }
      hub.isHeld.store(true, ordering: .relaxed)
      let added = hub.replace(reader, with: recipe, of: self, &effects) { unread, sequence in
        let isRevoked = recipe.direct == nil && state.offers.revoke(reader.id, unread, at: sequence)
        return isRevoked ? [] : unread
      }
      if added.isFirst { raisedPriority.store(0, ordering: .relaxed) }
      if let stream = state.offers.replace(reader.id, with: .handler(added.handler)) {
        effects.release(value: stream)
      }
      advance(&state, at: now, &effects)
      return added
    }
    guard let added else { return nil }
    hub.start(added)
    effects.perform()
    // The queue can be idle although the handler has events to handle.
    added.handler.queue.attend()
    return added.handler
  }

  /// Forgets a stream that has left the hub; called with no lock held.
  @usableFromInline
  func leave(_ id: Int) {
    change { state, effects in
      if let stream = state.offers.remove(id) { effects.release(value: stream) }
    }
  }
}
