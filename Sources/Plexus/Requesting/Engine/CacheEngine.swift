// @unchecked Sendable: what changes is atomic or behind locks; subclasses add constants and locked shards.

internal import Synchronization

/// The part of a cache that does not depend on the types of its keys and values: launching fetches, attempts,
/// timeouts, waiting, leaving, and cycle detection.
///
/// ``KeyedCache`` adds the table of keys and values. The engine accesses the table through ``Operations``, closures
/// that are created once, where both types are known.
@usableFromInline
class CacheEngine: @unchecked Sendable {
  /// The steps that depend on the types of keys and values.
  ///
  /// Each of them is given the cache, so that none keeps it alive.
  @usableFromInline
  final class Operations: Sendable {
    @usableFromInline typealias Fetch =
      @concurrent @Sendable (_ flight: Flight, _ attempt: Int) async throws -> Outcome

    /// Calls the user's fetch for the key of a flight.
    let fetch: Fetch
    /// Ends a flight, and returns the flights to launch.
    let finish: @Sendable (CacheEngine, Flight, Outcome) -> [Flight]
    /// Cancels a flight without callers, unless it continues for another reason.
    let abandon: @Sendable (CacheEngine, Flight) -> Void
    /// Adds to the number of fetches.
    let countFetch: @Sendable (CacheEngine, Flight, _ count: Int) -> Void
    /// Returns a stale value for the callers of a flight after the soft timeout; the flight continues.
    let softAnswer: @Sendable (CacheEngine, Flight) -> Outcome?
    /// Reads the stored copy for a flight, if there is a cacher.
    let readCopy: (@concurrent @Sendable (CacheEngine, Flight) async -> Outcome?)?
    /// Returns the start of a fetch that begins now, if there is a cacher.
    let fetchStart: (@Sendable () -> FetchStart)?
    /// Writes values that have left memory, if there is a cacher.
    let scheduleWriting: (@Sendable (CacheEngine) -> Void)?
    /// Writes changes after the delay of the policy, if there is one.
    let noteChange: (@Sendable (CacheEngine) -> Void)?
    /// Launches several flights as one fetch, if there is a fetch for several keys.
    let launchTogether: (@Sendable (CacheEngine, [Flight]) -> Void)?
    /// Does the work of a flight with the shared tier, if the cacher is one, and ends it.
    let fetchShared: (@concurrent @Sendable (CacheEngine, Flight) async -> Void)?

    @usableFromInline
    init(
      fetch: @escaping Fetch,
      finish: @escaping @Sendable (CacheEngine, Flight, Outcome) -> [Flight],
      abandon: @escaping @Sendable (CacheEngine, Flight) -> Void,
      countFetch: @escaping @Sendable (CacheEngine, Flight, _ count: Int) -> Void,
      softAnswer: @escaping @Sendable (CacheEngine, Flight) -> Outcome?,
      readCopy: (@concurrent @Sendable (CacheEngine, Flight) async -> Outcome?)?,
      fetchStart: (@Sendable () -> FetchStart)?,
      scheduleWriting: (@Sendable (CacheEngine) -> Void)?,
      noteChange: (@Sendable (CacheEngine) -> Void)?,
      launchTogether: (@Sendable (CacheEngine, [Flight]) -> Void)?,
      fetchShared: (@concurrent @Sendable (CacheEngine, Flight) async -> Void)? = nil
    ) {
      self.fetch = fetch
      self.finish = finish
      self.abandon = abandon
      self.countFetch = countFetch
      self.softAnswer = softAnswer
      self.readCopy = readCopy
      self.fetchStart = fetchStart
      self.scheduleWriting = scheduleWriting
      self.noteChange = noteChange
      self.launchTogether = launchTogether
      self.fetchShared = fetchShared
    }
  }

  @usableFromInline final let source: Flight.Source
  @usableFromInline final let policy: CachePolicy
  @usableFromInline final let staleTime: Nanoseconds
  /// The time before its deadline at which a value is renewed.
  @usableFromInline final let refreshAhead: Nanoseconds
  /// The time after its time to live for which a value is kept, if there is a limit.
  @usableFromInline final let staleTimeToLive: Nanoseconds?
  private final let timeToLive: Nanoseconds
  @usableFromInline final let time: TimeSource
  final let clock: any Clock<Duration>
  final let operations: Operations
  private final let batching: BatchWindow.Rules?
  private final let batchWindow: BatchWindow?
  /// The hub of the events, once there has been a listener.
  private final let events = Locked<BroadcastHub<CacheEvent>?>(nil)
  private final let hasListeners = Atomic<Bool>(false)
  /// Whether any key has ever had a subscriber.
  final let hasHadSubscribers = Atomic<Bool>(false)
  private final let lastTicket = Atomic<UInt64>(0)
  private final let confirmations = Atomic<UInt64>(0)
  /// The number of attempts that continue after their time limit.
  @usableFromInline final let abandoned = AbandonedAttempts()

  @usableFromInline
  init(
    source: Flight.Source,
    policy: CachePolicy,
    batching: BatchWindow.Rules?,
    clock: any Clock<Duration>,
    operations: Operations
  ) {
    policy.validate()
    self.batching = batching
    batchWindow = batching.flatMap { $0.delaysFlights ? BatchWindow($0, clock: clock) : nil }
    self.source = source
    self.policy = policy
    self.clock = clock
    self.operations = operations
    staleTime = Nanoseconds(saturating: policy.staleWhileRevalidate)
    staleTimeToLive = policy.staleTimeToLive.map { Nanoseconds(saturating: $0) }
    timeToLive = Nanoseconds(saturating: policy.timeToLive)
    // A few ticks of the coarse clock would be a large part of so short a time.
    let times = [policy.timeToLive, policy.timeToIdle ?? .zero, policy.refreshAhead]
    let isShort = times.contains { $0 > .zero && $0 < .milliseconds(200) }
    time = TimeSource(clock, isExact: isShort)
    // The sum with a reading of the clock must not overflow.
    refreshAhead = min(max(Nanoseconds(saturating: policy.refreshAhead), 0), .max / 4)
  }

  /// Returns the ticket of the next refresh.
  @usableFromInline
  final func drawTicket() -> RefreshTicket {
    RefreshTicket(rawValue: lastTicket.add(1, ordering: .relaxed).newValue)
  }

  /// The number of optimistic updates that have succeeded so far.
  final var confirmationCount: UInt64 { confirmations.load(ordering: .acquiring) }

  /// Counts an optimistic update that has succeeded.
  ///
  /// - Returns: The number of them so far.
  @usableFromInline
  final func noteConfirmation() -> UInt64 {
    confirmations.add(1, ordering: .acquiringAndReleasing).newValue
  }

  /// Returns the time for which a value can be used, fresh or stale; `nil` for no limit.
  final func usableTime(_ terms: ValueTerms) -> Duration? {
    guard let staleTimeToLive else { return nil }
    let fresh = terms.timeToLive ?? timeToLive.scaled(by: 1 + policy.expiryJitter)
    let stale = max(staleTimeToLive, terms.staleTime(staleTime), terms.staleIfError ?? 0)
    return .nanoseconds(max(0, fresh).addingSaturating(stale))
  }

  /// Returns the time for which a value is fresh: its own time to live, or that of the policy with jitter.
  @usableFromInline
  final func lifetime(_ terms: ValueTerms = ValueTerms()) -> EntryState.Lifetime {
    if let own = terms.timeToLive { return .init(duration: own, terms: terms) }
    guard policy.expiryJitter > 0 else { return .init(duration: timeToLive, terms: terms) }
    let factor = 1 + policy.expiryJitter * .random(in: -1...1)
    return .init(duration: timeToLive.scaled(by: factor), terms: terms)
  }

  /// Returns the time between a moment and now, or the longest that can be expressed.
  @inlinable
  final func age(of moment: Nanoseconds, at now: Nanoseconds) -> Nanoseconds {
    max(0, now.subtractingSaturating(moment))
  }

  /// Records that a key has a subscriber.
  @usableFromInline
  final func noteSubscriber() {
    hasHadSubscribers.store(true, ordering: .relaxed)
  }

  // MARK: - Events

  /// Returns a stream of the events of the cache.
  final func subscribe(
    bufferingPolicy: BufferingPolicy<CacheEvent>
  ) -> AsyncStream<CacheEvent> {
    let new = BroadcastHub<CacheEvent>()
    let hub = events.withLock { hub in
      if let hub { return hub }
      hub = new
      return new
    }
    let subscription = hub.subscription(bufferingPolicy: bufferingPolicy)
    hasListeners.store(true, ordering: .relaxed)
    return AsyncStream(subscription)
  }

  /// Sends an event to the listeners.
  @usableFromInline
  final func tell(_ event: CacheEvent) {
    eventHub?.send(event)
  }

  /// Ends the streams of events.
  final func finishEvents() {
    eventHub?.finish()
  }

  /// The hub of the events, if there has been a listener.
  private final var eventHub: BroadcastHub<CacheEvent>? {
    hasListeners.load(ordering: .relaxed) ? events.withLock { $0 } : nil
  }

  /// Returns the effects of a change, empty so far.
  @usableFromInline
  final func makeEffects() -> Effects {
    Effects(
      tellsEvents: hasListeners.load(ordering: .relaxed) && (eventHub?.subscriberCount ?? 0) > 0
    )
  }

  @usableFromInline
  final func scheduleWriting() {
    operations.scheduleWriting?(self)
  }

  @usableFromInline
  final func noteChange() {
    operations.noteChange?(self)
  }
}

// MARK: - Waiting

extension CacheEngine {
  /// Waits for a flight.
  ///
  /// - Parameters:
  ///   - flight: The flight.
  ///   - place: The place that the caller has taken.
  ///   - scope: The fetch or load that the caller works for, whose wait is recorded.
  ///   - isSoft: Whether a stale value is the answer once the soft timeout is over.
  /// - Returns: An outcome with a value.
  /// - Throws: The error of the fetch; a `CancellationError` if the caller is cancelled.
  @usableFromInline
  final func wait(
    for flight: Flight,
    in place: WaitPlace,
    scope: WaitNode?,
    isSoft: Bool = false
  ) async throws -> Outcome {
    let soft = isSoft ? softTimeout([PendingPlace(flight: flight, place: place)], scope) : nil
    let outcome = await flight.wait(in: place) { self.leave(flight, place, scope: scope) }
    soft?.timer.cancel()
    if outcome == nil, let answer = soft?.answers[0] { return answer }
    guard let outcome else { throw CancellationError() }
    if let scope { WaitGraph.stopWaiting(scope, for: flight) }
    return try outcome.get()
  }

  /// Records that a fetch or load waits for a flight.
  ///
  /// - Returns: ``MultiplexerError/recursiveRequest(chain:)`` if it would wait for itself, in which case the place
  ///   is released.
  @usableFromInline
  final func enter(
    _ scope: WaitNode,
    waitingFor flight: Flight,
    in place: WaitPlace
  ) -> MultiplexerError? {
    guard let chain = WaitGraph.wait(scope, for: flight) else { return nil }
    leave(flight, place, scope: nil)
    flight.withdraw(place)
    return .recursiveRequest(chain: chain)
  }

  /// Removes a caller that no longer waits.
  final func leave(_ flight: Flight, _ place: WaitPlace, scope: WaitNode?) {
    let departure = flight.leave(place)
    if departure.hasLeft, let scope { WaitGraph.stopWaiting(scope, for: flight) }
    if departure.isLast, policy.whenUnobserved == .cancel { operations.abandon(self, flight) }
    departure.resume()
  }

  /// The stale values that answer callers in place of their fetches.
  final class SoftAnswers: Sendable {
    private let outcomes = Locked<[Int: Outcome]>([:])

    subscript(index: Int) -> Outcome? {
      outcomes.withLock { $0[index] }
    }

    func set(_ outcome: Outcome, at index: Int) {
      outcomes.withLock { $0[index] = outcome }
    }
  }

  /// Answers callers with stale values after the soft timeout, unless their fetches have ended.
  final func softTimeout(
    _ places: [PendingPlace],
    _ scope: WaitNode?
  ) -> (timer: Task<Void, Never>, answers: SoftAnswers)? {
    guard let timeout = policy.softTimeout else { return nil }
    let answers = SoftAnswers()
    let timer = clock.timer(timeout) { [self] in
      for (index, place) in places.enumerated().reversed() {
        guard let answer = operations.softAnswer(self, place.flight) else { continue }
        // Set before the caller can observe that it has left.
        answers.set(answer, at: index)
        let departure = place.flight.leave(place.place)
        if departure.hasLeft, let scope { WaitGraph.stopWaiting(scope, for: place.flight) }
        departure.resume()
      }
    }
    return (timer, answers)
  }

  /// Returns the error of a request that must not wait.
  @usableFromInline
  final func refusal(isOwn: Bool, scope: WaitNode?) -> any Error {
    guard isOwn, let label = scope?.label else { return CancellationError() }
    return MultiplexerError.recursiveRequest(chain: [label, label])
  }
}

extension Outcome {
  /// Returns an outcome with a value, or throws the error.
  final func get() throws -> Outcome {
    switch kind {
    case .value, .transient, .restored: return self
    case .failure, .cancelled: throw error ?? CancellationError()
    }
  }
}

// MARK: - Fetching

extension CacheEngine {
  /// Launches flights, each of which ends exactly once.
  @usableFromInline
  final func launch(_ flights: Effects.FlightList) {
    if let flight = flights.only, batchWindow == nil {
      launch(flight)
    } else {
      launch(flights.array)
    }
  }

  /// Launches flights, each of which ends exactly once.
  @usableFromInline
  final func launch(_ flights: [Flight]) {
    if flights.isEmpty { return }
    if let launchTogether = operations.launchTogether {
      if let batchWindow { return batchWindow.add(flights) { launchTogether(self, $0) } }
      if flights.count > 1 {
        var rest = flights[...]
        while !rest.isEmpty {
          let batch = rest.prefix(batching?.maximumSize ?? .max)
          rest = rest.dropFirst(batch.count)
          launchTogether(self, Array(batch))
        }
        return
      }
    }
    for flight in flights { launch(flight) }
  }

  private final func launch(_ flight: Flight) {
    flight.begin()
    if flight.inheritsTaskLocals {
      flight.start { [self] in await run(flight) }
    } else {
      flight.addTask { priority in
        Task.detached(priority: priority) { [self] in await run(flight) }
      }
    }
  }

  /// Does the work of a flight, and ends it.
  @inline(__always)
  private final func run(_ flight: Flight) async {
    if let fetchShared = operations.fetchShared { return await fetchShared(self, flight) }
    let outcome = await outcome(of: flight)
    launch(operations.finish(self, flight, outcome))
  }

  /// Does the work of a flight: the stored copy, the fetch, its timeout and its retries.
  @inline(__always)
  private final func outcome(of flight: Flight) async -> Outcome {
    if flight.isCancelled { return Outcome(.cancelled, error: CancellationError()) }
    var copy: Outcome?
    if flight.readsFirst {
      if let fetchStart = operations.fetchStart { flight.fetchStart = fetchStart() }
      copy = await operations.readCopy?(self, flight)
      if let copy {
        if isAnswer(copy, for: flight) { return copy }
        flight.previous = copy
        flight.note(readCopy: copy)
      }
    }
    do {
      let outcome = try await attempts(of: flight, operations.fetch)
      guard outcome.kind == .failure, let error = outcome.error else { return outcome }
      return await failure(error, of: flight, copy: copy)
    } catch {
      return await failure(error, of: flight, copy: copy)
    }
  }

  /// Returns whether a stored copy answers a flight, and marks the copy if it does.
  @usableFromInline
  final func isAnswer(_ copy: Outcome, for flight: Flight) -> Bool {
    guard flight.takesStoredCopy, !copy.isOutdated else { return false }
    let now = time.now()
    if now >= copy.deadline {
      guard copy.allowsRenewal(within: staleTime, at: now) else { return false }
      copy.isStale = true
    }
    copy.kind = .restored
    return true
  }

  private final func failure(
    _ error: any Error,
    of flight: Flight,
    copy: Outcome?
  ) async -> Outcome {
    let grounds = grounds(of: error)
    var stored = copy
    if stored == nil, needsFallback(flight, grounds) {
      stored = await operations.readCopy?(self, flight)
    }
    return failure(error, grounds, of: flight, stored: stored, isRead: copy != nil)
  }

  /// Returns the grounds on which an older value can be the answer instead of an error.
  final func grounds(of error: any Error) -> ValueTerms.FallbackGrounds {
    var grounds = ValueTerms.FallbackGrounds()
    grounds.policyAllows = policy.usesCachedValue(error)
    grounds.isOriginFailure = (error as? any OriginFailure)?.isOriginFailure ?? true
    grounds.isDefinitive = !grounds.isOriginFailure && !grounds.policyAllows
    return grounds
  }

  /// Returns whether the stored copy has to be read as a fallback for an error.
  final func needsFallback(_ flight: Flight, _ grounds: ValueTerms.FallbackGrounds) -> Bool {
    !flight.isCancelled && flight.previous == nil && grounds.policyAllows
  }

  /// Returns the outcome of a flight whose attempts have failed.
  ///
  /// - Parameters:
  ///   - error: The error of the last attempt.
  ///   - grounds: The grounds on which an older value can be the answer.
  ///   - flight: The flight.
  ///   - stored: The stored copy, if there is one.
  ///   - isRead: Whether the copy was read before the fetch.
  /// - Returns: The outcome.
  final func failure(
    _ error: any Error,
    _ grounds: ValueTerms.FallbackGrounds,
    of flight: Flight,
    stored: Outcome?,
    isRead: Bool
  ) -> Outcome {
    guard !flight.isCancelled else { return Outcome(.cancelled, error: error) }
    let outcome = Outcome(.failure, error: error)
    outcome.failure = Outcome.Failure(
      grounds: grounds,
      memory: flight.remembersFailure ? memory(of: error) : 0,
      previous: isRead ? nil : flight.previous,
      stored: stored
    )
    return outcome
  }

  /// Returns the time for which a failure is remembered.
  private final func memory(of error: any Error) -> Nanoseconds {
    let own = (error as? any LastingFailure)?.lifetime ?? .zero
    return Nanoseconds(saturating: max(own, policy.failureTimeToLive))
  }
}
