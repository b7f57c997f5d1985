internal import Synchronization

extension BroadcastHub {
  /// Adds a synchronous handler.
  ///
  /// - Parameters:
  ///   - body: What to call.
  ///   - isolation: Where the handler belongs.
  ///   - bufferingPolicy: Which messages it may miss while it is behind.
  ///   - replay: What it gets before everything sent from now on, oldest first.
  /// - Returns: The handler; the caller starts it once it holds no lock.
  func addHandler(
    _ body: HandlerEntry<Element>.Body,
    isolation: (any Actor)?,
    bufferingPolicy: BufferingPolicy<Element>,
    replaying replay: [Element]
  ) -> AddedHandler<Element> {
    let (newest, oldest) = bufferingPolicy.handlerLimits
    let cancellation = Cancellation()
    let key = isolation.map { ObjectIdentifier($0) }
    let (id, newGroup, parked) = state.withLock { state in
      let isOpen = state.register()
      // A finished hub has nothing to tell but what is replayed.
      guard isOpen || !replay.isEmpty else { return (0, HandlerGroup<Element>?.none, Waiter?.none) }
      let id = state.lastID
      let known = isOpen ? readers(&state).group(on: key) : nil
      let group = known ?? HandlerGroup(id: id, isolation: key)
      if isOpen, known == nil { readers(&state).insert(group) }
      let entry = HandlerEntry(
        id: id,
        start: state.sequence,
        newest: newest,
        oldest: oldest,
        cancellation: cancellation,
        body: body
      )
      group.insert(entry, replaying: replay)
      let isWoken = !replay.isEmpty && state.parked.remove(group)
      return (id, known == nil ? group : nil, isWoken ? group : nil)
    }
    let registration = HandlerRegistration(id: id, hub: self) { [weak self] in
      if cancellation.cancel() { self?.removeHandler(id: id, isolation: key) }
    }
    return AddedHandler(
      registration: registration,
      isolation: isolation,
      parked: parked,
      newGroup: newGroup
    )
  }

  /// Lets an added handler see its first messages; called with no lock held.
  func start(_ handler: AddedHandler<Element>) {
    handler.parked?.resume()
    announceCount()
    guard let group = handler.newGroup else { return }
    Task.detached(priority: Task.currentPriority) {
      await self.drain(group, isolation: handler.isolation)
    }
  }

  /// Calls the handlers of a group until there are none left.
  private func drain(_ group: HandlerGroup<Element>, isolation: isolated (any Actor)?) async {
    while let (items, entries) = await nextBatch(of: group, isolation: isolation) {
      for item in items {
        for entry in entries {
          guard entry.start <= item.sequence else { break }
          guard item.receiver == nil || item.receiver == entry.id else { continue }
          guard !entry.cancellation.isCancelled else { continue }
          // A replay is as old as the message before the first one that follows it.
          let age = group.latest.load(ordering: .relaxed) - item.sequence
          guard age + (item.receiver == nil ? 0 : 1) <= entry.newest else { continue }
          if let oldest = entry.oldest, !oldest.take(item.sequence) { continue }
          switch entry.body {
          case nil:
            continue
          case .plain(let handler):
            await handler(item.element)
          case .owned(let handler):
            guard await handler(item.element, isolation) else {
              if entry.cancellation.cancel() {
                removeHandler(id: entry.id, isolation: group.isolation)
              }
              continue
            }
          }
        }
      }
    }
  }

  /// Waits for messages.
  ///
  /// - Returns: Some of them with those who were handlers when the last was sent; `nil` at the end.
  private func nextBatch(
    of group: HandlerGroup<Element>,
    isolation: isolated (any Actor)?
  ) async -> (ContiguousArray<HandlerGroup<Element>.Item>, ContiguousArray<HandlerEntry<Element>>)?
  {
    while true {
      let (items, entries, isOver) = state.withLock { state in
        let items = group.queue.popFirst(atMost: 64)
        let isOver = items.isEmpty && (group.isEmpty || state.isFinished)
        return (items, isOver ? group.takeEntries() : group.entries, isOver)
      }
      if isOver { return nil }
      if !items.isEmpty { return (items, entries) }
      await SuspendedTask.suspend(isolation: isolation) { task in
        let isParked = state.withLock { state in
          guard group.queue.isEmpty, !group.isEmpty, !state.isFinished else { return false }
          state.parked.park(group, task: task)
          return true
        }
        if !isParked { task.resume() }
      }
    }
  }

  /// Removes a synchronous handler; its closure is released now, or after the batch that is running.
  func removeHandler(id: Int, isolation: ObjectIdentifier?) {
    let (entry, owned, parked, isLast, queue) = state.withLock { state in
      let others = readers(&state)
      let owned = others.owned.removeValue(forKey: id)
      guard let group = others.group(on: isolation) else {
        return (
          HandlerEntry<Element>?.none, owned, Waiter?.none, false,
          Ring<HandlerGroup<Element>.Item>()
        )
      }
      guard let entry = group.takeEntry(id: id) else { return (nil, owned, nil, false, Ring()) }
      let isLast = state.unregister()
      guard group.isEmpty else { return (entry, owned, nil, isLast, Ring()) }
      // Nobody is left to hear what was on its way: the task of the group ends.
      others.remove(group)
      let queue = group.queue
      group.queue = Ring()
      return (entry, owned, state.parked.remove(group) ? group : nil, isLast, queue)
    }
    parked?.resume()
    announceCount()
    if isLast { onEmpty?() }
    withExtendedLifetime((entry, owned, queue)) {}
  }

  /// Remembers that a handler ends with its owner.
  ///
  /// - Parameters:
  ///   - id: The handler.
  ///   - handler: How to tell that the owner has gone, and what to do then.
  func adopt(id: Int, _ handler: OwnedHandler) {
    state.withLock { state in
      if !state.isFinished { readers(&state).owned[id] = handler }
    }
  }

  /// Forgets an owner whose handler was cancelled.
  func disown(id: Int) {
    let owned = state.withLock { $0.others.map(readers)?.owned.removeValue(forKey: id) }
    withExtendedLifetime(owned) {}
  }

  /// Removes the handlers whose owners have gone.
  @usableFromInline
  func removeOrphans() {
    // The owners are looked at without the lock: whoever loads a weak reference may become the last
    // to hold the object.
    guard let owned = state.withLock({ $0.others.map(readers)?.owned }) else { return }
    for handler in owned.values where handler.isOrphaned() { handler.cancel() }
  }
}

/// A handler that has been added, and what remains to be done about it without a lock.
struct AddedHandler<Element: Sendable>: Sendable {
  let registration: HandlerRegistration<Element>
  let isolation: (any Actor)?
  /// The group that it joined, if it has to be woken.
  let parked: Waiter?
  /// The group that it is the first in.
  let newGroup: HandlerGroup<Element>?
}

/// A handler as its token or its owner sees it.
struct HandlerRegistration<Element: Sendable>: Sendable {
  /// The place in subscription order.
  let id: Int
  let hub: BroadcastHub<Element>
  /// Removes the handler; none is started once it has returned.
  let cancel: @Sendable () -> Void

  /// Removes the handler once an object has gone.
  ///
  /// - Parameter owner: The object, held weakly.
  func end(with owner: some AnyObject & Sendable) {
    weak let weakOwner = owner
    hub.adopt(id: id, OwnedHandler(isOrphaned: { weakOwner == nil }, cancel: cancel))
  }
}

extension AsyncStream.Continuation.BufferingPolicy {
  /// The policy as a number of newest messages, or the record of the oldest ones.
  var handlerLimits: (newest: Int, oldest: OldestMessages?) {
    switch self {
    case .unbounded: (.max, nil)
    case .bufferingNewest(let limit) where limit > 0: (limit, nil)
    case .bufferingNewest(let limit), .bufferingOldest(let limit):
      (.max, OldestMessages(limit: limit))
    @unknown default: (.max, nil)
    }
  }
}
