// @unchecked Sendable because two kinds of fields are shared, each with a rule of its own: `chunk`,
// `replay` and `budget` belong to whoever has claimed the subscriber, and what is inherited, with the number of lost
// elements, is guarded by the lock of the hub. The unsafe cast restores the type of a hub that was
// known when the subscriber was made.

public import Synchronization

/// The position of one subscriber, shared by all copies of its subscription and their iterators.
///
/// There are three ways to read, by buffering policy. Without a limit, a subscriber walks along the
/// shared log and touches no lock. With the newest elements only, it reads them from the hub's window
/// under the hub's lock. Everything else has a buffer of its own.
@usableFromInline
@safe
final class Subscriber<Element: Sendable>: Reader, @unchecked Sendable {
  /// Where a subscriber finds its elements.
  @usableFromInline
  enum Source: Sendable {
    /// The shared log.
    case log
    /// The newest elements, as many as given.
    case window(Int)
    /// Its own buffer.
    case buffer(SubscriberBuffer<Element>)
  }

  /// What reading came to.
  @usableFromInline
  enum Step: Sendable {
    /// The next element, already consumed.
    case element(Element)
    /// A run of elements up to the given sequence number, not consumed yet.
    case run(LogRun<Element>, end: Int)
    /// There is nothing at the moment.
    case empty
    /// There is nothing now, nor will there ever be.
    case ended
  }

  @usableFromInline let source: Source
  /// The sequence number of the next element.
  ///
  /// Readers of the log move it without a lock.
  @usableFromInline let position: Atomic<Int>
  /// Whether a task is in the middle of reading.
  @usableFromInline let claimed = Atomic<Bool>(false)
  /// The chunk of the log that holds the next element; `nil` when the end has been reached.
  @exclusivity(unchecked) @safe
  @usableFromInline var chunk: LogChunk<Element>?
  /// What comes before everything sent, newest first.
  @exclusivity(unchecked) @safe
  @usableFromInline var replay: [Element]
  /// When the loop that reads gives its actor to other tasks.
  @exclusivity(unchecked) @safe
  @usableFromInline var budget = CooperativeBudget()
  /// How many elements the buffering policy has cost.
  @exclusivity(unchecked) @safe
  @usableFromInline var droppedCount = 0
  /// Skips what equals the element that was read last, if the hub is one without duplicates.
  @usableFromInline let filter: DuplicateFilter<Element>?

  @inlinable
  init(
    id: Int,
    hub: BroadcastHub<Element>,
    source: Source,
    position: Int,
    chunk: LogChunk<Element>?,
    replay: [Element]
  ) {
    self.source = source
    self.position = Atomic(position)
    self.chunk = chunk
    self.replay = replay
    filter = hub.areEqual.map { DuplicateFilter($0) }
    let readsLog = if case .log = source { true } else { false }
    super.init(id: id, core: hub, readsLog: readsLog)
  }

  /// Where the elements come from.
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

  /// Whether the task has to give its actor to others before it reads on; called by the task that has
  /// claimed the position.
  @inlinable
  func hasSpentBudget() -> Bool {
    budget.isDue && budget.isSpent(at: core.coarseTime())
  }

  /// Gives the actor to other tasks; called by the task that has claimed the position.
  ///
  /// - Parameter isolation: Where the caller runs, and goes on.
  @usableFromInline
  @inline(never)
  func giveWay(isolation: isolated (any Actor)?) async {
    await Task.yield()
  }

  /// Looks for the next element; called by the task that has claimed the position.
  @inlinable
  func step() -> Step {
    let step = read()
    return filter == nil ? step : withoutDuplicates(step)
  }

  /// Looks further as long as there is only what equals the element that was read last.
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
    return switch source {
    case .log: readLog()
    case .window(let limit): hub.readWindow(self, limit: limit)
    case .buffer(let buffer): hub.read(buffer)
    }
  }

  @inlinable
  func readLog() -> Step {
    if core.isResettable { skipUnread() }
    if let element = replay.popLast() { return .element(element) }
    let sequence = position.load(ordering: .relaxed)
    // Taken out, and put back unless the end is reached: nobody else looks at it, and so nothing has to
    // be retained that many readers retain at the same time.
    guard var current = chunk.take() else { return .ended }
    if sequence == current.run.limit, let follower = current.follower { current = follower }
    var end = current.run.end
    // A second task that reads without a claim, from a run of its own, has moved the position back.
    if sequence < current.run.start || sequence > end { stopBecauseOfTwoReaders() }
    if sequence == end {
      guard core.isFinished.load(ordering: .acquiring) else {
        chunk = current
        return .empty
      }
      // The end was announced after the last element: this second look decides.
      end = current.run.end
      if sequence == end { return .ended }
    }
    let run = current.run
    chunk = current
    // Every element is looked for: those that follow may have to be skipped by then.
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

  /// Ends the subscription and gives up whatever was still to be read; called by the task that has
  /// claimed the position.
  @inlinable
  func end() {
    core.remove(self)
    filter?.forget()
    chunk = nil
    // The replay of a reader of the window belongs to the lock, under which it was given up.
    if readsLog { replay = [] }
  }

  /// Waits until there may be something to read; called by the task that has claimed the position.
  ///
  /// - Parameter isolation: Where the caller runs; the task does not leave it.
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

  /// Returns the next element, waiting for it if there is none.
  ///
  /// - Parameter isolation: Where the caller runs; the task does not leave it.
  /// - Returns: The element, or `nil` at the end and when the task is cancelled.
  @inlinable
  func next(isolation: isolated (any Actor)?) async -> Element? {
    claim()
    defer { unclaim() }
    while !Task.isCancelled {
      if hasSpentBudget() {
        await giveWay(isolation: isolation)
        continue
      }
      switch step() {
      case .element(let element):
        budget.spend(1, now: core.coarseTime())
        return element
      case .run(let run, _):
        budget.spend(1, now: core.coarseTime())
        let sequence = position.load(ordering: .relaxed)
        position.store(sequence &+ 1, ordering: .relaxed)
        return run[sequence]
      case .empty:
        await park(isolation: isolation)
      case .ended:
        end()
        return nil
      }
    }
    end()
    return nil
  }
}
