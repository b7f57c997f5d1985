internal import Synchronization

/// A queue of elements for handlers that are called one after another: the synchronous handlers of a source that
/// share an actor, a single one that can suspend, or a single one that the sending threads call.
///
/// For the first two kinds one task calls the handlers, element by element, in subscription order. The task is
/// parked while the queue is empty, and yields its actor after about a millisecond of calls.
///
/// The queue does not depend on the type of the elements.
@usableFromInline
final class HandlerQueue: Sendable {
  /// An element in the queue.
  @usableFromInline
  struct Item: Sendable {
    let box: AnyBox
    /// The number of the element; replayed elements have the numbers before the first sent one.
    let sequence: Int
    /// The last subscriber that was registered when the element was sent.
    var last = Int.max
    /// The sender, or 0.
    var sender: UInt64 = 0
    /// The report on the results of the calls; `nil` if the element is for all handlers and no caller waits for them.
    var report: HandlerQueue.Report?

    /// Whether the element is offered to one handler, whose result is awaited.
    var isOffer: Bool { report?.isOffer ?? false }
  }

  /// A handler and its closure.
  struct Entry: Sendable {
    let handler: Handler
    /// `nil` once the handler has been removed.
    var call: Handler.Call?
  }

  private struct State {
    var items = Ring<Item>()
    /// In subscription order; handlers that were removed leave gaps for a while.
    var entries: ContiguousArray<Entry> = []
    /// The number of entries that are not gaps.
    var count = 0
    /// The number of handlers without a limit.
    var unlimited = 0
    /// The limits of the handlers that keep the newest elements.
    var limits = BoundedBuffersBase.WindowLimits()
    /// The sum of the limits of the handlers whose accepted elements are counted.
    var accepted = 0
    var parked: SuspendedTask?
    /// Whether handlers are being called.
    var isCalling = false
    var stage = Stage.isBeingAdded
    /// The actor of the task, until the task is started.
    var isolation: (any Actor)?
    /// The priority with which the task is started.
    var startPriority = TaskPriority.medium
    /// Whether the task ends after the queued elements.
    var isClosed = false
    /// The task, from its start to its end.
    var task: Task<Void, Never>?
    var hasEnded = false
    /// The highest priority of the callers that have waited.
    var priority = TaskPriority.background

    /// The number of newest elements that are kept for the handlers.
    var newest: Int { unlimited > 0 ? .max : limits.largest }

    /// Adds the limits of a handler.
    mutating func note(_ handler: Handler) {
      count += 1
      if let accepted = handler.accepted {
        self.accepted += bounded(accepted.limit)
      } else if handler.newest == .max {
        unlimited += 1
      } else {
        limits.insert(handler.newest)
      }
    }

    /// Subtracts the limits of a handler.
    mutating func forget(_ handler: Handler) {
      count -= 1
      if let accepted = handler.accepted {
        self.accepted -= bounded(accepted.limit)
      } else if handler.newest == .max {
        unlimited -= 1
      } else {
        limits.remove(handler.newest)
      }
    }

    /// Removes all handlers.
    mutating func takeEntries() -> ContiguousArray<Entry> {
      defer {
        (entries, count, unlimited, limits, accepted) = (
          [], 0, 0, BoundedBuffersBase.WindowLimits(), 0
        )
      }
      return entries
    }

    func index(of handler: Handler) -> Int? {
      let index = entries.firstSortedIndex { $0.handler.id >= handler.id }
      return index < entries.count && entries[index].handler === handler ? index : nil
    }
  }

  /// The stage of the task that calls the handlers.
  private enum Stage: Sendable {
    /// The first handler has not been started yet.
    case isBeingAdded
    /// The first element starts the task.
    case isIdle
    /// The task was started, or will never be needed.
    case isStarted
  }

  /// The place in subscription order of the first handler.
  let id: Int
  /// The actor of the handlers; `nil` if they belong to none.
  let key: ObjectIdentifier?
  /// Whether the queue is for a single handler, which can suspend.
  var suspends: Bool { calls != nil }
  /// The calls of the handler, if it can suspend.
  let calls: HandlerQueue.Calls?
  /// The closure of the handler, if sending threads call it.
  let direct: (any Handler.DirectCalls)?
  /// Whether the queue is for all handlers of one actor.
  var isShared: Bool { calls == nil && direct == nil }
  private let state = Locked(State())
  /// The number of the element after the last one that was sent.
  private let latest = Atomic<Int>(0)
  /// The number of the first element that is still to be handled.
  private let floor = Atomic<Int>(.min)

  init(id: Int, recipe: Handler.Recipe) {
    self.id = id
    key = recipe.isolation.map { ObjectIdentifier($0) }
    calls = recipe.suspends ? HandlerQueue.Calls() : nil
    direct = recipe.direct
  }

  /// The number of the element after the last one that was sent.
  var end: Int { latest.load(ordering: .acquiring) }

  /// Returns whether an element is still to be handled, and was not taken back since it was sent.
  func isCurrent(_ sequence: Int) -> Bool {
    sequence >= floor.load(ordering: .acquiring)
  }

  // MARK: - Handlers

  /// Adds a handler behind the others.
  ///
  /// - Parameters:
  ///   - handler: The handler.
  ///   - call: The closure to call.
  ///   - replay: The elements that the handler gets first, oldest first.
  /// - Returns: The task to be resumed with no lock held.
  func add(_ handler: Handler, _ call: Handler.Call, replaying replay: [AnyBox]) -> SuspendedTask? {
    state.withLock { state in
      latest.store(handler.start, ordering: .relaxed)
      state.entries.append(Entry(handler: handler, call: call))
      state.note(handler)
      guard !replay.isEmpty else { return nil }
      for (offset, box) in replay.enumerated().suffix(handler.newest) {
        let sequence = handler.start - replay.count + offset
        guard handler.accepted?.offer(sequence, isAwaited: true) ?? true else { continue }
        state.items.append(Item(box: box, sequence: sequence, report: Report(receiver: handler)))
      }
      return state.parked.take()
    }
  }

  /// The handlers that end with an owner.
  var owned: [Handler] {
    state.withLock { state in
      state.entries.lazy.filter { $0.call != nil }.map(\.handler).filter { $0.isOrphaned != nil }
    }
  }

  /// The remains of a removed handler, to be processed and released with no lock held.
  struct Removal: Sendable {
    /// Whether this call has removed the handler.
    var isFirst = false
    /// Whether the queue has no handlers anymore and has ended.
    var isLast = false
    fileprivate var call: Handler.Call?
    fileprivate var items: ContiguousArray<Item> = []
    fileprivate var entries: ContiguousArray<Entry> = []
    fileprivate var parked: SuspendedTask?
    fileprivate var task: Task<Void, Never>?
    fileprivate var isolation: (any Actor)?

    /// Cancels the task of a handler that can suspend, and ends the reports of the queued elements.
    func perform() {
      task?.cancel()
      parked?.resume()
      for item in items { item.report?.end(notified: 0, handled: 0) }
    }
  }

  /// Removes a handler; with the last one the queue ends.
  func remove(_ handler: Handler) -> Removal {
    state.withLock { state in
      var removal = Removal()
      guard let index = state.index(of: handler), let call = state.entries[index].call else {
        return removal
      }
      removal.isFirst = true
      removal.call = call
      state.entries[index].call = nil
      state.forget(handler)
      // Gaps are removed together, so that removing many handlers takes time proportional to their number.
      if state.count < state.entries.count / 2 { state.entries.removeAll { $0.call == nil } }
      guard state.count == 0 else { return removal }
      removal.isLast = true
      removal.items = state.items.popFirst(atMost: state.items.count)
      removal.parked = state.parked.take()
      if suspends { removal.task = state.task }
      // Without a task, only this call releases the handler.
      if state.stage != .isStarted {
        removal.entries = state.takeEntries()
        removal.isolation = state.isolation.take()
        state.stage = .isStarted
      }
      state.isClosed = true
      return removal
    }
  }

  /// Ends the task after the queued elements; called with no lock held.
  func close() {
    let (parked, entries, isolation) = state.withLock { state in
      state.isClosed = true
      // An idle queue releases its closures at once.
      let isIdle = state.items.isEmpty && !state.isCalling
      let isolation = isIdle ? state.isolation.take() : nil
      return (state.parked.take(), isIdle ? state.takeEntries() : [], isolation)
    }
    parked?.resume()
    end(entries)
    withExtendedLifetime(isolation) {}
  }

  /// Marks handlers that were taken out as ended.
  private func end(_ entries: ContiguousArray<Entry>) {
    for entry in entries { entry.handler.end() }
    if entries.contains(where: { $0.call != nil }) { direct?.end() }
  }

  // MARK: - Elements

  /// Enqueues an element for all handlers whose limits allow it.
  ///
  /// - Parameters:
  ///   - box: The element.
  ///   - sequence: Its number.
  ///   - last: The last subscriber that gets it.
  ///   - sender: The sender, or 0.
  ///   - report: The report on the results of the calls, if a caller waits for them.
  ///   - effects: Receives the other work to be done with no lock held.
  /// - Returns: The task to be resumed with no lock held.
  func enqueue(
    _ box: AnyBox,
    sequence: Int,
    last: Int = .max,
    from sender: UInt64 = 0,
    report: Report? = nil,
    _ effects: inout Effects?
  ) -> SuspendedTask? {
    state.withLock { state in
      latest.store(sequence &+ 1, ordering: .releasing)
      guard state.count > 0 else { return nil }
      // A handler that is only notified needs no queue.
      guard direct?.isOrdered != false else {
        Effects.of(&effects).queues.append(self)
        return nil
      }
      var isWanted = state.newest > 0
      if state.accepted > 0 {
        // A task that has found the queue empty can be about to be parked.
        let isAwaited =
          state.items.isEmpty
          && (state.parked != nil || state.stage == .isIdle
            || state.stage == .isStarted && !state.isCalling)
        for entry in state.entries
        where sender == 0 || sender != entry.handler.ignoredSender {
          guard let accepted = entry.handler.accepted else { continue }
          if accepted.offer(sequence, isAwaited: isAwaited) { isWanted = true }
        }
      }
      let item = Item(box: box, sequence: sequence, last: last, sender: sender, report: report)
      guard isWanted else {
        Effects.of(&effects).discarded.append(item)
        return nil
      }
      state.items.append(item)
      if state.newest < .max { discardUnwanted(&state, &effects) }
      return wake(&state, &effects)
    }
  }

  /// Enqueues an element for one handler, regardless of its limits.
  ///
  /// - Parameters:
  ///   - item: The element.
  ///   - effects: Receives the other work to be done with no lock held.
  /// - Returns: The task to be resumed with no lock held.
  func enqueue(offer item: Item, _ effects: inout Effects?) -> SuspendedTask? {
    state.withLock { state in
      state.items.append(item)
      return wake(&state, &effects)
    }
  }

  /// Takes out the parked task, to be resumed with no lock held; without a task, leaves the work to the effects.
  private func wake(_ state: inout State, _ effects: inout Effects?) -> SuspendedTask? {
    if let task = state.parked.take() { return task }
    if state.stage == .isIdle { Effects.of(&effects).queues.append(self) }
    return nil
  }

  /// Discards the elements that are neither among the newest nor accepted for a handler.
  private func discardUnwanted(_ state: inout State, _ effects: inout Effects?) {
    let first = latest.load(ordering: .relaxed) - state.newest
    guard state.accepted > 0 else {
      while state.items.count > 0, let oldest = state.items[0], oldest.sequence < first,
        !oldest.isOffer, let item = state.items.popFirst()
      {
        Effects.of(&effects).discarded.append(item)
      }
      return
    }
    let most = bounded(state.newest) + state.accepted
    guard state.items.count / 2 > most else { return }
    for item in state.items.popFirst(atMost: state.items.count) {
      let isWanted =
        item.sequence >= first || item.isOffer
        || state.entries.contains { $0.handler.accepted?.contains(item.sequence) == true }
      if isWanted { state.items.append(item) } else { Effects.of(&effects).discarded.append(item) }
    }
  }

  /// Discards the elements before a number.
  ///
  /// - Parameters:
  ///   - sequence: The number of the first element that is still to be handled.
  ///   - last: The element of that number, for handlers that have refused it for want of room; `nil` if there is none.
  ///   - discarded: Receives the discarded elements, to be released with no lock held.
  func discard(
    before sequence: Int,
    keeping last: AnyBox?,
    into discarded: inout ContiguousArray<Item>
  ) {
    state.withLock { state in
      floor.store(sequence, ordering: .releasing)
      while state.items.count > 0, let oldest = state.items[0], oldest.sequence < sequence,
        let item = state.items.popFirst()
      {
        discarded.append(item)
      }
      guard state.accepted > 0 else { return }
      for entry in state.entries {
        guard let accepted = entry.handler.accepted, accepted.discard(before: sequence), let last,
          accepted.offer(sequence, isAwaited: true)
        else { continue }
        let report = Report(receiver: entry.handler)
        state.items.append(Item(box: last, sequence: sequence, report: report))
      }
    }
  }

  // MARK: - The task

  /// Makes the queue ready for elements; called once, with no lock held.
  ///
  /// The task is started with the first element.
  ///
  /// - Parameter isolation: The actor of the handlers.
  func start(isolation: (any Actor)?) {
    let priority = Task.currentPriority
    let hasItems = state.withLock { state in
      // Without handlers, because the last one was removed or the source has ended, no element follows.
      guard state.stage == .isBeingAdded, state.count > 0 else { return false }
      state.stage = .isIdle
      state.isolation = isolation
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
      items.removeAll(keepingCapacity: true)
      // A handler that can suspend takes one element at a time: it can be removed before the next one.
      let (entries, end, isClosed) = state.withLock { state in
        state.items.popFirst(atMost: suspends ? 1 : 64, into: &items)
        state.isCalling = !items.isEmpty
        return (items.isEmpty ? [] : state.entries, self.end, state.isClosed)
      }
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

    mutating func note(_ ending: Handler.Ending) {
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
          progress.note(call(entries[index], with: item))
          progress.entry = entries.count
          if isBounded, budget.isSpent() { return true }
        }
      } else {
        while progress.entry < entries.count {
          let entry = entries[progress.entry]
          guard entry.handler.id <= item.last else { break }
          progress.entry += 1
          progress.note(call(entry, with: item))
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
      guard handler.id <= item.last, wants(item, handler) else { continue }
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
      guard entry.handler.id <= item.last else { break }
      progress.entry &+= 1
      guard case .synchronous(let call) = entry.call, wants(item, entry.handler) else { continue }
      if call(item.box) == .unreached { entry.handler.cancel() }
      if isBounded, budget.isSpent() { return true }
    }
    progress.item &+= 1
    progress.entry = 0
    return false
  }

  private func call(_ entry: Entry, with item: Item) -> Handler.Ending {
    guard case .synchronous(let call) = entry.call, wants(item, entry.handler) else {
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
      item.report?.receiver != nil || entry.handler.id <= item.last, wants(item, entry.handler)
    {
      calls?.sequence.store(item.sequence, ordering: .relaxed)
      let ending = await call(item.box)
      if ending == .unreached { removeOrphan(entry.handler, item) }
      progress.note(ending)
    }
    item.report?.end(notified: progress.notified, handled: progress.handled)
  }

  /// Returns whether a handler is still to get an element.
  private func wants(_ item: Item, _ handler: Handler) -> Bool {
    guard !handler.isCancelled, item.sequence >= floor.load(ordering: .acquiring) else {
      return false
    }
    guard item.sender == 0 || item.sender != handler.ignoredSender else { return false }
    // The sender of an offer waits for its result.
    if item.isOffer { return true }
    guard latest.load(ordering: .relaxed) &- item.sequence <= handler.newest else { return false }
    return handler.accepted?.take(item.sequence) ?? true
  }
}

/// Returns a limit that can be summed up without overflow: no queue ever gets that long.
private func bounded(_ limit: Int) -> Int {
  min(max(limit, 1), 1 << 32)
}

// MARK: - Calls by the sending thread

extension HandlerQueue {
  /// Calls the handler with the queued elements, unless another thread does.
  ///
  /// A thread that has called it for about a millisecond leaves the rest to a task.
  private func callDirectly() {
    guard let direct else { return }
    guard direct.isOrdered else { return direct.note() }
    if callWithinBudget(direct) {
      Task.detached(priority: Task.currentPriority) { [self] in
        while callWithinBudget(direct) { await Task.yield() }
      }
    }
  }

  /// Calls the handler with the queued elements until the budget is spent.
  ///
  /// - Returns: Whether elements are left for a task.
  private func callWithinBudget(_ direct: any Handler.DirectCalls) -> Bool {
    var budget = TurnBudget()
    var isSpent = false
    var isFirst = true
    while true {
      let turn = state.withLock { state -> DirectTurn in
        guard !isFirst || !state.isCalling else { return .busy }
        isFirst = false
        state.isCalling = !isSpent && !state.items.isEmpty
        if state.isCalling, let item = state.items.popFirst() {
          return .call(item, state.entries.first)
        }
        if !state.items.isEmpty { return .rest }
        return .end(state.isClosed ? state.takeEntries() : [])
      }
      switch turn {
      case .busy:
        // The other thread delivers the elements; the note lets readers look for them without waiting for it.
        direct.note()
        return false
      case .rest:
        return true
      case .end(let entries):
        end(entries)
        return false
      case .call(let item, let entry):
        if let entry, entry.call != nil, wants(item, entry.handler) {
          direct.call(item.box, item.sequence, in: self)
        }
        isSpent = budget.isSpent()
      }
    }
  }

  /// The next step of a thread that calls a handler.
  private enum DirectTurn {
    case call(Item, Entry?)
    case end(ContiguousArray<Entry>)
    /// Elements are left for a task.
    case rest
    /// Another thread, or this one further up the stack, calls the handler.
    case busy
  }
}

// MARK: - Queues without a source

extension HandlerQueue {
  /// Creates a handler with a queue of its own, to which elements are sent one by one; the caller starts it.
  static func handler(_ recipe: Handler.Recipe) -> Handler {
    let queue = HandlerQueue(id: 0, recipe: recipe)
    let handler = Handler(id: 0, start: 0, queue: queue, recipe: recipe, source: nil)
    _ = queue.add(handler, recipe.call, replaying: [])
    return handler
  }

  /// Sends an element to the handler; called with no lock held.
  func send(_ box: AnyBox) {
    var effects: Effects?
    enqueue(box, sequence: 0, &effects)?.resume()
    effects?.perform()
  }
}
