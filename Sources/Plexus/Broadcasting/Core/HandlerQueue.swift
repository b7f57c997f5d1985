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
    @usableFromInline let box: AnyBox
    /// The number of the element; replayed elements have the numbers before the first sent one.
    var sequence = 0
    /// The sender, or 0; `.max` if the element is part of the end of the source.
    @usableFromInline var sender: UInt64 = 0
    /// The report on the results of the calls; `nil` if the element is for all handlers and no caller waits for them.
    var report: HandlerQueue.Report?

    @usableFromInline
    init(box: AnyBox, sequence: Int = 0, sender: UInt64 = 0, report: HandlerQueue.Report? = nil) {
      self.box = box
      self.sequence = sequence
      self.sender = sender
      self.report = report
    }

    /// Whether the element is part of the end of the source, to which no limit applies.
    var isEnd: Bool { sender == .max }

    /// Whether the element is offered to one handler, whose result is awaited.
    var isOffer: Bool { report?.isOffer ?? false }
  }

  /// A handler and its closure.
  struct Entry: Sendable {
    let handler: Handler
    /// The number of the first of the elements for all handlers that this one gets; `.min` for the first handler of a
    /// queue, which gets all.
    let start: Int
    /// `nil` once the handler has been removed.
    var call: Handler.Call?
  }

  struct State {
    var items = ChunkedQueue<Item>()
    /// In subscription order; handlers that were removed leave gaps for a while.
    var entries: ContiguousArray<Entry> = []
    /// The number of entries that are not gaps.
    var count = 0
    /// The number of handlers without a limit.
    var unlimited = 0
    /// The limits of the handlers that keep the newest elements.
    var limits = HubBase.WindowLimits()
    /// The sum of the limits of the handlers whose accepted elements are counted.
    var accepted: Int64 = 0
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

    /// The number of queued elements, at most, that newer ones have replaced for their only receiver.
    var superseded = 0

    /// Whether the handlers wait for the next element.
    ///
    /// A task that has found the queue empty can be about to be parked.
    var isAwaited: Bool {
      items.isEmpty && (parked != nil || stage == .isIdle || stage == .isStarted && !isCalling)
    }

    /// The number of newest elements that are kept for the handlers.
    var newest: Int { unlimited > 0 ? .max : limits.largest }

    /// Adds the limits of a handler.
    mutating func count(_ handler: Handler) {
      count += 1
      if let accepted = handler.accepted {
        self.accepted += bounded(accepted.limit.count)
      } else if handler.newest == .max {
        unlimited += 1
      } else {
        limits.insert(handler.newest)
      }
    }

    /// Subtracts the limits of a handler.
    mutating func uncount(_ handler: Handler) {
      count -= 1
      if let accepted = handler.accepted {
        self.accepted -= bounded(accepted.limit.count)
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
          [], 0, 0, HubBase.WindowLimits(), 0
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
  enum Stage: Sendable {
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
  let direct: (any Handler.SenderCalls)?
  /// Whether the queue is for all handlers of one actor.
  var isShared: Bool { calls == nil && direct == nil }
  let state: Locked<State>
  /// The number of the element after the last one that was sent.
  let latest = Atomic<Int>(0)
  /// The number of the first element that is still to be handled.
  let floor = Atomic<Int>(.min)

  @inline(__always)
  init(id: Int, recipe: Handler.Recipe) {
    state = Locked(State(isolation: recipe.isolation))
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
  ///   - start: The number of the first element that the handler gets.
  ///   - replay: The elements that the handler gets before it, oldest first.
  /// - Returns: The task to be resumed with no lock held.
  func add(
    _ handler: Handler,
    _ call: Handler.Call,
    after start: Int,
    replaying replay: [AnyBox]
  ) -> SuspendedTask? {
    state.withLock { state in
      latest.store(start, ordering: .relaxed)
      let first = state.entries.isEmpty ? .min : start
      let entry = Entry(handler: handler, start: first, call: call)
      // A handler that takes the place of an earlier subscriber is called before later ones.
      if let last = state.entries.last, last.handler.id > handler.id {
        let index = state.entries.firstSortedIndex { $0.handler.id > handler.id }
        state.entries.insert(entry, at: index)
      } else {
        state.entries.append(entry)
      }
      state.count(handler)
      guard !replay.isEmpty else { return nil }
      for (offset, box) in replay.enumerated().suffix(handler.newest) {
        let sequence = start - replay.count + offset
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
    /// Whether the hub has no subscribers anymore.
    var isLastOfHub = false
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
      state.uncount(handler)
      // Gaps are removed together, so that removing many handlers takes time proportional to their number.
      if state.count < state.entries.count / 2 { state.entries.removeAll { $0.call == nil } }
      guard state.count == 0 else { return removal }
      removal.isLast = true
      removal.items = state.items.popAll()
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

  /// Ends the task after the queued elements and a last one, if there is one; called with no lock held.
  func close(with last: AnyBox? = nil) {
    let (parked, entries, isolation) = state.withLock { state in
      if let last, !state.isClosed, state.count > 0 {
        // It is not counted, so that it takes the room of no element.
        state.items.append(Item(box: last, sequence: end, sender: .max))
      }
      state.isClosed = true
      // An idle queue releases its closures at once.
      let isIdle = state.items.isEmpty && !state.isCalling
      let isolation = isIdle ? state.isolation.take() : nil
      return (state.parked.take(), isIdle ? state.takeEntries() : [], isolation)
    }
    parked?.resume()
    end(entries)
    if last != nil { attend() }
    withExtendedLifetime(isolation) {}
  }

  /// Marks handlers that were taken out as ended.
  func end(_ entries: ContiguousArray<Entry>) {
    for entry in entries { entry.handler.finish() }
    if entries.contains(where: { $0.call != nil }) { direct?.end() }
  }

  // MARK: - Elements

  /// Enqueues an element for the handlers that it is for, if their limits allow it.
  ///
  /// - Parameters:
  ///   - item: The element.
  ///   - effects: Receives the work to be done with no lock held.
  func enqueue(_ item: HandlerQueue.Item, _ effects: inout HubEffects) {
    state.withLock { state in
      // An offer has no number of its own.
      if !item.isOffer { latest.store(item.sequence &+ 1, ordering: .releasing) }
      guard state.count > 0 else { return }
      guard direct == nil else { return enqueueDirectCall(item, &state, &effects) }
      append(item, &state, &effects)
    }
  }

  /// Appends an element, unless its limits refuse it.
  @inline(__always)
  func append(_ item: HandlerQueue.Item, _ state: inout State, _ effects: inout HubEffects) {
    guard isAccepted(item, &state) else {
      effects.add { $0.discarded.append(item) }
      return
    }
    state.items.append(item)
    if item.report?.receiver != nil {
      if state.superseded > max(4, state.items.count / 2) { discardSuperseded(&state, &effects) }
    } else if state.newest < .max {
      discardUnwanted(&state, &effects)
    }
    wake(&state, &effects)
  }

  /// Returns whether the limits of at least one handler allow an element.
  @inline(__always)
  private func isAccepted(_ item: Item, _ state: inout State) -> Bool {
    if let receiver = item.report?.receiver {
      guard !item.isOffer, let accepted = receiver.accepted else { return true }
      if accepted.isFull { state.superseded += 1 }
      return accepted.offer(item.sequence, isAwaited: state.isAwaited)
    }
    var isWanted = state.newest > 0
    guard state.accepted > 0 else { return isWanted }
    let isAwaited = state.isAwaited
    for entry in state.entries where entry.handler.limits.admits(item.sender) {
      guard let accepted = entry.handler.accepted else { continue }
      if accepted.offer(item.sequence, isAwaited: isAwaited) { isWanted = true }
    }
    return isWanted
  }

  /// Resumes the parked task; without a task, leaves the work to the effects.
  @inline(__always)
  func wake(_ state: inout State, _ effects: inout HubEffects) {
    if let task = state.parked.take() {
      effects.wake(Waiter.ParkedTask(id: id, task: task))
    } else if state.stage == .isIdle {
      effects.add { $0.queues.append(self) }
    }
  }

  /// Discards the elements that are neither among the newest nor accepted for a handler.
  private func discardUnwanted(_ state: inout State, _ effects: inout HubEffects) {
    let first = latest.load(ordering: .relaxed) - state.newest
    guard state.accepted > 0 else {
      while let oldest = state.items.oldest, oldest.sequence < first, !oldest.isOffer,
        let item = state.items.popFirst()
      {
        effects.add { $0.discarded.append(item) }
      }
      return
    }
    let most = bounded(state.newest) + state.accepted
    guard Int64(state.items.count / 2) > most else { return }
    for item in state.items.popAll() {
      let isWanted =
        item.sequence >= first || item.isOffer
        || state.entries.contains { $0.handler.accepted?.contains(item.sequence) == true }
      if isWanted {
        state.items.append(item)
      } else {
        effects.add { $0.discarded.append(item) }
      }
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
      while let oldest = state.items.oldest, oldest.sequence < sequence,
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
}

/// Returns a limit that can be summed up without overflow: no queue ever gets that long.
private func bounded(_ limit: Int) -> Int64 {
  min(max(Int64(limit), 1), 1 << 32)
}

// MARK: - Queues without a source

extension HandlerQueue {
  /// Creates a handler with a queue of its own, to which elements are sent one by one; the caller starts it.
  static func handler(_ recipe: Handler.Recipe) -> Handler {
    let queue = HandlerQueue(id: 0, recipe: recipe)
    let handler = Handler(id: 0, queue: queue, recipe: recipe, host: nil, hub: nil)
    _ = queue.add(handler, recipe.call, after: 0, replaying: [])
    return handler
  }

  /// Sends an element to the handler; called with no lock held.
  func send(_ box: AnyBox) {
    var effects = HubEffects()
    enqueue(Item(box: box), &effects)
    effects.perform()
  }
}
