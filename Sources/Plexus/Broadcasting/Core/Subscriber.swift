// @unchecked Sendable because two kinds of fields are shared, each with a rule of its own: `chunk`,
// `budget`, `hasReadEnd` and the replay of a reader of the log belong to the task that has claimed the subscriber; inherited
// fields, the number of lost elements and the replay of a reader of the window are guarded by the lock of the
// hub. The unsafe cast restores the type of the hub, which is known when the subscriber is created.

public import Synchronization

/// The position of one subscriber, shared by all copies of its subscription and their iterators.
///
/// The source of its elements depends on the buffering policy. A subscriber without a limit reads the
/// shared log and takes no lock. One that buffers a few of the newest elements reads them from the hub's
/// window under the hub's lock. Every other subscriber has a buffer of its own, and so has one that ignores a sender
/// or events that were posted before.
@usableFromInline
@safe
final class Subscriber<Element: Sendable>: HubBase.Reader, @unchecked Sendable {
  /// The storage that a subscriber reads.
  @usableFromInline
  enum Source: Sendable {
    /// The shared log.
    case log
    /// The newest elements, as many as given.
    case window(Int)
    /// Its own buffer.
    case buffer
  }

  /// The result of an attempt to read.
  @usableFromInline
  enum Step: Sendable {
    /// The next element, already consumed.
    case element(Element)
    /// A run of elements up to the given sequence number, not consumed yet.
    case run(LogBase.Run<Element>, end: Int)
    /// No element is available yet.
    case empty
    /// The subscription has ended: no element follows.
    case ended
  }

  @usableFromInline let source: Source
  /// The sequence number of the next element.
  ///
  /// Readers of the log move it without a lock.
  @usableFromInline let position = Atomic<Int>(0)
  /// Whether a task is in the middle of reading.
  @usableFromInline let claimed = Atomic<Bool>(false)
  /// The chunk of the log that holds the next element; `nil` when the end has been reached.
  @exclusivity(unchecked) @safe
  @usableFromInline var chunk: LogBase.Chunk<Element>?
  /// The replayed elements, which are read before all sent ones, newest first.
  @exclusivity(unchecked) @safe
  @usableFromInline var replay: [Element] = []
  /// The budget after which the reading loop yields its actor to other tasks.
  @exclusivity(unchecked) @safe
  @usableFromInline var budget = CooperativeBudget()
  /// The number of elements that a reader of the window has lost; buffers count their own.
  @exclusivity(unchecked) @safe
  @usableFromInline var droppedFromWindow = 0
  /// Whether the element that is part of the end has been read.
  @exclusivity(unchecked) @safe
  @usableFromInline var hasReadEnd = false
  /// The filter for consecutive duplicates, if the hub removes them.
  @usableFromInline let filter: DuplicateFilter<Element>?

  @inlinable
  init(
    id: Int,
    hub: BroadcastHub<Element>,
    source: Source,
    buffer: HubBase.PrivateBuffer<Element>?
  ) {
    self.source = source
    filter = hub.areEqual.map { DuplicateFilter($0) }
    let readsLog = if case .log = source { true } else { false }
    super.init(id: id, core: hub, readsLog: readsLog, buffer: buffer)
  }

  /// The number of replayed elements of a subscriber that has not been read; with a buffer of its own, 1 for any number.
  var replayCount: Int {
    buffer.map { min($0.replayCount, 1) } ?? replay.count
  }

  /// The buffer that it reads, with its type of elements.
  @inlinable var ownBuffer: HubBase.PrivateBuffer<Element>? {
    buffer.map { HubBase.PrivateBuffer.of($0) }
  }

  /// The hub that sends the elements.
  @inlinable var hub: BroadcastHub<Element> {
    unsafe unsafeDowncast(core, to: BroadcastHub<Element>.self)
  }

  /// Claims the position for the current task.
  @inlinable
  func claim() {
    if claimed.exchange(true, ordering: .acquiring) { stopBecauseOfTwoReaders() }
  }

  /// Ends the claim.
  @inlinable
  func unclaim() {
    claimed.store(false, ordering: .releasing)
  }

  /// Returns whether the task has to yield its actor before it reads on; called by the task that has
  /// claimed the position.
  @inlinable
  func hasSpentBudget() -> Bool {
    budget.isDue && budget.isSpent(at: core.coarseTime())
  }

  /// Yields the actor to other tasks; called by the task that has claimed the position.
  ///
  /// - Parameter isolation: The isolation of the caller, where the task continues.
  @usableFromInline
  @inline(never)
  func giveWay(isolation: isolated (any Actor)?) async {
    await Task.yield()
  }

  /// Reads the next element, if there is one; called by the task that has claimed the position.
  @inlinable
  func step() -> Step {
    let step = read()
    return filter == nil ? step : withoutDuplicates(step)
  }

  /// Reads on while the next element equals the one that was read last.
  @usableFromInline
  @inline(never)
  func withoutDuplicates(_ step: Step) -> Step {
    var step = step
    while case .element(let element) = step, filter?.admits(element) == false { step = read() }
    return step
  }

  @inlinable
  func read() -> Step {
    guard !isCancelled.load(ordering: .acquiring) else { return .ended }
    let step =
      switch source {
      case .log: readLog()
      case .window(let limit): hub.readWindow(self, limit: limit)
      case .buffer: readBuffer()
      }
    if case .ended = step { return readEnd() }
    return step
  }

  /// Reads the element that is part of the end, if there is one.
  @usableFromInline
  @inline(never)
  func readEnd() -> Step {
    guard !hasReadEnd, let last = core.state.withLock({ $0.last }) else { return .ended }
    hasReadEnd = true
    return .element(Box<Element>.element(of: last))
  }

  /// Reads its own buffer, of which it has one.
  @inlinable
  func readBuffer() -> Step {
    ownBuffer.map(hub.read) ?? .ended
  }

  @inlinable
  func readLog() -> Step {
    if core.isResettable { skipUnread() }
    if let element = replay.popLast() { return .element(element) }
    let sequence = position.load(ordering: .relaxed)
    // Taken out, and put back unless the end is reached: only this task accesses it, which saves a retain
    // for which many readers would contend.
    guard var current = chunk.take() else { return .ended }
    if sequence == current.run.limit, let follower = current.follower { current = follower }
    var end = current.run.end
    // A second task that reads without a claim, from a run of its own, has moved the position back.
    if sequence < current.run.start || sequence > end { stopBecauseOfTwoReaders() }
    // Looked at after the log: where the log has an element already, its place in the buffer is known.
    var place = buffer?.place.load(ordering: .acquiring) ?? .max
    if sequence == end, place > sequence {
      guard core.isFinished.load(ordering: .acquiring) else {
        chunk = current
        return .empty
      }
      // The end was announced after the last element: this second look decides.
      end = current.run.end
      place = buffer?.place.load(ordering: .acquiring) ?? .max
      if sequence == end, place > sequence { return .ended }
    }
    let run = current.run
    chunk = current
    if place <= sequence { return readBuffer() }
    end = min(end, place)
    // Elements are read one at a time, because a reset can take the next ones back.
    if core.isResettable {
      position.store(sequence &+ 1, ordering: .relaxed)
      return .element(run[sequence])
    }
    return .run(run, end: end)
  }

  /// Skips the elements of the log before a reset; called by the task that has claimed the position.
  @usableFromInline
  func skipUnread() {
    let cutoff = core.cutoff.load(ordering: .acquiring)
    guard position.load(ordering: .relaxed) <= cutoff else { return }
    replay = []
    guard position.load(ordering: .relaxed) < cutoff, var current = chunk.take() else { return }
    while current.run.limit <= cutoff, let follower = current.follower { current = follower }
    chunk = current
    position.store(cutoff, ordering: .relaxed)
  }

  /// Ends the subscription and releases its unread elements; called by the task that has claimed the
  /// position.
  @inlinable
  func end() {
    core.remove(self)
    filter?.forget()
    chunk = nil
    // The replay of a reader of the window is guarded by the lock, under which it was removed.
    if readsLog { replay = [] }
  }

  /// Suspends the task until it should read again; called by the task that has claimed the position.
  ///
  /// - Parameter isolation: The isolation of the caller, which the task does not leave.
  @inlinable
  func park(isolation: isolated (any Actor)?) async {
    await withTaskCancellationHandler(
      operation: {
        await SuspendedTask.suspend(isolation: isolation) { hub.park(self, task: $0) }
      },
      onCancel: { core.remove(self) },
      isolation: isolation
    )
    budget.restart()
  }

  /// Returns the next element, and suspends the task until there is one.
  ///
  /// - Parameter isolation: The isolation of the caller, which the task does not leave.
  /// - Returns: The element, or `nil` at the end and when the task is cancelled.
  @inlinable
  func next(isolation: isolated (any Actor)?) async -> Element? {
    // It is not used again: a run of several elements would be lost with it.
    var iterator = Subscription.Iterator(subscriber: self)
    return await iterator.readOn(atMost: 1, isolation: isolation)
  }
}
