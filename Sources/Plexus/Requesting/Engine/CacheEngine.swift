// @unchecked Sendable: what changes is atomic or behind locks; subclasses add constants and locked shards.

public import Synchronization

/// The part of a cache that does not depend on the types of its keys and values: launching fetches, attempts,
/// timeouts, waiting, leaving, cycle detection, how long values are fresh, and the events for observers.
///
/// ``KeyedCache`` adds the table of keys and values, and the cacher. The engine accesses them through ``Operations`` and
/// through overrides.
@usableFromInline
class CacheEngine: @unchecked Sendable {
  /// The steps of every miss that depend on the types of keys and values: closures, which are specialized where both
  /// types are known, as overrides are not.
  ///
  /// Each of them is given the cache, so that none keeps it alive.
  @usableFromInline
  struct Operations: Sendable {
    @usableFromInline typealias Fetch =
      @concurrent @Sendable (_ flight: Flight, _ attempt: Int) async throws -> Outcome

    /// Calls the user's fetch for the key of a flight.
    @usableFromInline let fetch: Fetch
    /// Ends a flight, and returns the flights to launch.
    let finish: @Sendable (CacheEngine, Flight, Outcome) -> [Flight]
    /// Launches several flights as one fetch, if there is a fetch for several keys.
    let launchTogether: (@Sendable (CacheEngine, [Flight]) -> Void)?
    /// Whether there is a cacher.
    let hasCacher: Bool
    /// Does the work of a flight, and ends it, if a fetch does more than return the value of its key.
    let work: (@concurrent @Sendable (CacheEngine, Flight) async -> Void)?

    @usableFromInline
    init(
      fetch: @escaping Fetch,
      finish: @escaping @Sendable (CacheEngine, Flight, Outcome) -> [Flight],
      launchTogether: (@Sendable (CacheEngine, [Flight]) -> Void)?,
      hasCacher: Bool,
      work: (@concurrent @Sendable (CacheEngine, Flight) async -> Void)?
    ) {
      self.fetch = fetch
      self.finish = finish
      self.launchTogether = launchTogether
      self.hasCacher = hasCacher
      self.work = work
    }
  }

  @usableFromInline final let source: Flight.Source
  @usableFromInline final let policy: CachePolicy
  @usableFromInline final let staleTime: Nanoseconds
  /// The time before its deadline at which a value is renewed.
  @usableFromInline final let refreshAhead: Nanoseconds
  /// The time after its time to live for which a value is kept, if there is a limit.
  @usableFromInline final let staleTimeToLive: Nanoseconds?
  final let timeToLive: Nanoseconds
  @usableFromInline final let time: TimeSource
  final let clock: any Clock<Duration>
  @usableFromInline final let operations: Operations
  private final let batching: BatchWindow.Rules?
  private final let batchWindow: BatchWindow?
  /// The hub of the events, once there has been a listener, and the flights, while they are watched.
  final let watchers = Locked(Watchers())
  private final let hasListeners = Atomic<Bool>(false)
  /// Whether flights are entered when they are launched, and taken out when they end.
  @usableFromInline final let watchesFlights = Atomic<Bool>(false)
  /// Whether any key has ever had a subscriber.
  final let hasHadSubscribers = Atomic<Bool>(false)
  private final let lastTicket = Atomic<UInt64>(0)
  private final let confirmations = Atomic<UInt64>(0)
  /// The number of attempts that continue after their time limit.
  final let abandoned = AbandonedAttempts()

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

  /// The number of the last refresh.
  final var lastRefresh: UInt64 { lastTicket.load(ordering: .relaxed) }

  /// The number of optimistic updates that have succeeded so far.
  final var confirmationCount: UInt64 { confirmations.load(ordering: .acquiring) }

  /// Counts an optimistic update that has succeeded.
  ///
  /// - Returns: The number of them so far.
  final func countConfirmation() -> UInt64 {
    confirmations.add(1, ordering: .acquiringAndReleasing).newValue
  }

  /// Records that a key has a subscriber.
  @usableFromInline
  final func recordSubscriber() {
    hasHadSubscribers.store(true, ordering: .relaxed)
  }

  // MARK: - Events

  /// Returns a stream of the events of the cache.
  ///
  /// - Parameters:
  ///   - bufferingPolicy: The policy of the stream.
  ///   - hasJoins: Whether it has the events about joins.
  /// - Returns: The stream.
  final func subscribe(
    bufferingPolicy: BufferingPolicy<CacheEvent>,
    hasJoins: Bool = false
  ) -> AsyncStream<CacheEvent> {
    let new = BroadcastHub<CacheEvent>()
    let hub = watchers.withLock { watchers in
      let hub = (hasJoins ? watchers.details : watchers.events) ?? new
      if hasJoins { watchers.details = hub } else { watchers.events = hub }
      return hub
    }
    let subscription = hub.subscription(bufferingPolicy: bufferingPolicy)
    hasListeners.store(true, ordering: .relaxed)
    return AsyncStream(subscription)
  }

  /// Sends an event to the listeners.
  @usableFromInline
  final func tell(_ event: CacheEvent) {
    guard hasListeners.load(ordering: .relaxed) else { return }
    let hubs = watchers.withLock { ($0.events, $0.details) }
    if case .joined = event {} else { hubs.0?.send(event) }
    hubs.1?.send(event)
  }

  /// Ends the streams of events.
  final func finishEvents() {
    guard hasListeners.load(ordering: .relaxed) else { return }
    let hubs = watchers.withLock { ($0.events, $0.details) }
    hubs.0?.finish()
    hubs.1?.finish()
  }

  /// Returns the effects of a change, empty so far.
  @usableFromInline
  final func makeEffects() -> CacheEffects {
    CacheEffects(
      tellsEvents: hasListeners.load(ordering: .relaxed) && watchers.withLock(\.hasListeners)
    )
  }

  // MARK: - Steps of the subclass

  /// Cancels a flight that no caller waits for, unless it continues for another reason.
  func abandon(_ flight: Flight) {}

  /// Adds to the number of fetches.
  @usableFromInline
  func countFetch(_ flight: Flight, _ count: Int) {}

  /// Returns a stale value for the callers of a flight after the soft timeout; the flight continues.
  func softAnswer(to flight: Flight) -> Outcome? { nil }

  /// The start of a fetch that begins now, as the cacher counts.
  var fetchStart: FetchStart { FetchStart() }

  /// Writes the values that have left memory, and removes copies.
  @usableFromInline func scheduleWriting() {}

  /// Writes the changes after the delay of the policy, if there is one.
  @usableFromInline func scheduleChanges() {}
}

// MARK: - Fetching

extension CacheEngine {
  /// Launches flights, each of which ends exactly once.
  @usableFromInline
  final func launch(_ flights: CacheEffects.FlightList) {
    if case .one(let flight) = flights, batchWindow == nil {
      if watchesFlights.load(ordering: .relaxed) { watch([flight]) }
      launch(flight)
    } else {
      launch(flights.array)
    }
  }

  /// Launches flights, each of which ends exactly once.
  @usableFromInline
  final func launch(_ flights: [Flight]) {
    if flights.isEmpty { return }
    if watchesFlights.load(ordering: .relaxed) { watch(flights) }
    if let launchTogether = operations.launchTogether {
      if let batchWindow { return batchWindow.add(flights) { launchTogether(self, $0) } }
      if flights.count > 1 {
        for batch in batching?.batches(of: flights) ?? [flights] { launchTogether(self, batch) }
        return
      }
    }
    for flight in flights { launch(flight) }
  }

  private final func launch(_ flight: Flight) {
    flight.begin()
    if let limit = source.limit, takesPlaceFirst(flight) { limit.enter(flight) }
    if flight.plan.inheritsTaskLocals {
      flight.start { [self] in await run(flight) }
    } else {
      flight.addTask { priority in
        Task.detached(priority: priority) { [self] in await run(flight) }
      }
    }
  }

  /// Returns whether a flight takes its place before anything else, and not after its stored copy was read.
  @usableFromInline
  final func takesPlaceFirst(_ flight: Flight) -> Bool {
    source.limit?.isBeforeLeases == true || !flight.plan.readsFirst
  }

  /// Does the work of a flight, and ends it.
  @inline(__always)
  private final func run(_ flight: Flight) async {
    if let work = operations.work { return await work(self, flight) }
    let outcome = await outcome(of: flight)
    launch(operations.finish(self, flight, outcome))
  }

  /// Fetches the value of a flight.
  @inline(__always)
  private final func outcome(of flight: Flight) async -> Outcome {
    do {
      let outcome = try await attempts(of: flight, operations.fetch)
      guard outcome.kind == .failure, let error = outcome.error else { return outcome }
      return failure(error, of: flight)
    } catch {
      return failure(error, of: flight)
    }
  }
}
