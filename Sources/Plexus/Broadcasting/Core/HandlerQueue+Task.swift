internal import Synchronization

/// The task that calls the handlers.
extension HandlerQueue {
  /// Makes the queue ready for elements; called once, with no lock held.
  ///
  /// The task is started with the first element.
  func start() {
    let priority = Task.currentPriority
    let hasItems = state.withLock { state in
      // Without handlers, because the last one was removed or the source has ended, no element follows.
      guard state.stage == .isBeingAdded, state.count > 0 else { return false }
      state.stage = .isIdle
      state.startPriority = priority
      return !state.items.isEmpty
    }
    // A handler that is only notified may have missed a change before its registration.
    if hasItems || direct?.isOrdered == false { attend() }
  }

  /// Starts the task if elements are queued, or calls the handler if sending threads do; called with no lock held.
  func attend() {
    if direct != nil { return callDirectly() }
    let (priority, isolation) = state.withLock { state -> (TaskPriority?, (any Actor)?) in
      guard state.stage == .isIdle, !state.items.isEmpty else { return (nil, nil) }
      state.stage = .isStarted
      return (state.startPriority, state.isolation.take())
    }
    if let priority { startTask(priority: priority, isolation: isolation) }
  }

  private func startTask(priority: TaskPriority, isolation: (any Actor)?) {
    let task = Task.detached(priority: priority) { await self.drain(isolation: isolation) }
    let (isRemoved, highest) = state.withLock { state in
      if !state.hasEnded { state.task = task }
      let highest = state.priority
      state.priority = max(priority, highest)
      return (suspends && state.isClosed && state.count == 0, highest)
    }
    if isRemoved { task.cancel() }
    if highest > priority { Self.escalate(task, to: highest) }
  }

  /// Raises the priority of the handlers to that of a caller that waits for them.
  func raise(to priority: TaskPriority) {
    let task = state.withLock { state -> Task<Void, Never>? in
      guard priority > state.priority else { return nil }
      state.priority = priority
      return state.task
    }
    if let task { Self.escalate(task, to: priority) }
  }

  private static func escalate(_ task: Task<Void, Never>, to priority: TaskPriority) {
    if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
      task.escalatePriority(to: priority)
    }
  }

  private func drain(isolation: isolated (any Actor)?) async {
    var budget = TurnBudget()
    // The memory of a batch serves the next one.
    var items: ContiguousArray<Item> = []
    // The number of elements since the task was resumed.
    var streak = 0
    while true {
      // Offers come one by one, each after the result of the one before.
      streak = items.last?.isOffer == true ? 0 : streak &+ items.count
      let (entries, end, isClosed) = takeBatch(&items)
      guard items.isEmpty else {
        if suspends {
          await call(entries.first, with: items[0])
          if isolation != nil, budget.isSpent() {
            await TurnBudget.leaveActor()
            budget = TurnBudget()
          }
          continue
        }
        var progress = Progress()
        while perform(items, entries, &progress, &budget, isBounded: isolation != nil) {
          await TurnBudget.leaveActor()
          budget = TurnBudget()
        }
        continue
      }
      if isClosed { break }
      let isBusy = streak > Self.busyStreak
      streak = 0
      if isBusy, awaitsElement(after: end) { continue }
      // A parked task keeps no more memory than for a few elements.
      if items.capacity > 4 { items = [] }
      await SuspendedTask.suspend(isolation: isolation) { task in
        let isParked = state.withLock { state in
          guard state.items.isEmpty, !state.isClosed else { return false }
          state.parked = task
          return true
        }
        if !isParked { task.resume() }
      }
      budget = TurnBudget()
    }
    let (entries, task) = state.withLock { state in
      state.hasEnded = true
      return (state.takeEntries(), state.task.take())
    }
    withExtendedLifetime(task) {}
    end(entries)
  }

  /// Takes the next elements.
  ///
  /// A handler that can suspend takes one element at a time: it can be removed before the next one.
  ///
  /// - Parameter items: Receives the elements, in place of those before.
  /// - Returns: The handlers to call, the number of the element after the last one that was sent, and whether no further
  ///   one is sent.
  @inline(__always)
  private func takeBatch(
    _ items: inout ContiguousArray<Item>
  ) -> (entries: ContiguousArray<Entry>, end: Int, isClosed: Bool) {
    items.removeAll(keepingCapacity: true)
    return state.withLock { state in
      if !suspends {
        state.items.popChunk(into: &items)
      } else if let item = state.items.popFirst() {
        items.append(item)
      }
      state.isCalling = !items.isEmpty
      return (items.isEmpty ? [] : state.entries, self.end, state.isClosed)
    }
  }

  /// The number of elements without a pause after which the next one is probably about to come.
  private static var busyStreak: Int { 8 }

  /// Waits for the next element for less than a microsecond, without suspending.
  ///
  /// Resuming a task costs the sender about as much. Elements of a queue without a source have no numbers to wait for.
  ///
  /// - Parameter end: The number of the element after the last one that was sent when the queue was found empty.
  /// - Returns: Whether an element was sent.
  private func awaitsElement(after end: Int) -> Bool {
    guard id > 0 else { return false }
    for _ in 0..<1_000 where latest.load(ordering: .relaxed) != end { return true }
    return false
  }

  /// The progress within a batch.
  private struct Progress {
    var item = 0
    var entry = 0
    var notified = 0
    var handled = 0

    mutating func count(_ ending: Handler.Ending) {
      if ending != .unreached { notified &+= 1 }
      if ending == .succeeded { handled &+= 1 }
    }
  }

  /// Calls synchronous handlers, on their actor.
  ///
  /// - Returns: Whether to yield the actor before the rest is handled.
  private func perform(
    _ items: ContiguousArray<Item>,
    _ entries: ContiguousArray<Entry>,
    _ progress: inout Progress,
    _ budget: inout TurnBudget,
    isBounded: Bool
  ) -> Bool {
    while progress.item < items.count {
      let item = items[progress.item]
      guard let report = item.report else {
        let isDue =
          entries.count == 1
          ? performRun(of: items, entries[0], &progress, &budget, isBounded)
          : perform(plain: item, entries, &progress, &budget, isBounded)
        if isDue { return true }
        continue
      }
      if progress.entry == 0, !report.begin() {
        progress.item += 1
        continue
      }
      if let receiver = report.receiver {
        // Entries are in subscription order.
        let index = entries.firstSortedIndex { $0.handler.id >= receiver.id }
        if progress.entry == 0, index < entries.count, entries[index].handler === receiver {
          progress.count(call(entries[index], with: item))
          progress.entry = entries.count
          if isBounded, budget.isSpent() { return true }
        }
      } else {
        while progress.entry < entries.count {
          progress.count(call(entries[progress.entry], with: item))
          progress.entry += 1
          if isBounded, budget.isSpent() { return true }
        }
      }
      report.end(notified: progress.notified, handled: progress.handled)
      progress = Progress(item: progress.item + 1)
    }
    return false
  }

  /// Calls the only handler with the next elements that have no report.
  ///
  /// - Returns: Whether to yield the actor before the rest is handled.
  private func performRun(
    of items: ContiguousArray<Item>,
    _ entry: Entry,
    _ progress: inout Progress,
    _ budget: inout TurnBudget,
    _ isBounded: Bool
  ) -> Bool {
    let handler = entry.handler
    guard case .synchronous(let call) = entry.call else {
      progress.item &+= 1
      return false
    }
    while progress.item < items.count, items[progress.item].report == nil {
      let item = items[progress.item]
      progress.item &+= 1
      guard wants(item, entry) else { continue }
      if call(item.box) == .unreached { handler.cancel() }
      if isBounded, budget.isSpent() { return true }
    }
    return false
  }

  /// Calls synchronous handlers with an element that is for all of them and has no report.
  ///
  /// - Returns: Whether to yield the actor before the rest is handled.
  private func perform(
    plain item: Item,
    _ entries: ContiguousArray<Entry>,
    _ progress: inout Progress,
    _ budget: inout TurnBudget,
    _ isBounded: Bool
  ) -> Bool {
    while progress.entry < entries.count {
      let entry = entries[progress.entry]
      progress.entry &+= 1
      guard case .synchronous(let call) = entry.call, wants(item, entry) else { continue }
      if call(item.box) == .unreached { entry.handler.cancel() }
      if isBounded, budget.isSpent() { return true }
    }
    progress.item &+= 1
    progress.entry = 0
    return false
  }

  private func call(_ entry: Entry, with item: Item) -> Handler.Ending {
    guard case .synchronous(let call) = entry.call, wants(item, entry) else {
      return .unreached
    }
    let ending = call(item.box)
    if ending == .unreached { removeOrphan(entry.handler, item) }
    return ending
  }

  /// Removes a handler whose owner has been released; an element offered to it is reported as not delivered.
  private func removeOrphan(_ handler: Handler, _ item: Item) {
    if item.isOffer { item.report?.end(notified: 0, handled: 0) }
    handler.cancel()
  }

  /// Calls the handler that can suspend.
  nonisolated(nonsending) private func call(_ entry: Entry?, with item: Item) async {
    if let report = item.report, !report.begin() { return }
    var progress = Progress()
    if let entry, case .suspending(let call) = entry.call,
      wants(item, entry)
    {
      calls?.sequence.store(item.sequence, ordering: .relaxed)
      let ending = await call(item.box)
      if ending == .unreached { removeOrphan(entry.handler, item) }
      progress.count(ending)
    }
    item.report?.end(notified: progress.notified, handled: progress.handled)
  }
}
