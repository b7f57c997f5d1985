internal import Plexus
internal import PlexusSupport

/// The connection of an engine, its spaces, and its heartbeat.
final class EngineCore: Sendable {
  /// The kinds of connections, whose numbers the health has apart.
  enum Kind: Int, CaseIterable, Sendable {
    /// That of the announcements, which counts while it is not there.
    case caches
    case clears, values

    /// Returns a number that no connection of another kind has.
    func number(_ number: Int) -> Int { number * Self.allCases.count + rawValue }
  }

  /// The engine for a closure that exists before it, and does not keep it alive.
  private struct Target: Sendable {
    weak var core: EngineCore?
  }

  struct State: Sendable {
    /// The spaces by their names: one for each schema.
    var spaces: [String: [RedisSpace]] = [:]
    /// The heartbeats, one of all spaces, and in a cluster another one of each slot.
    var hearts: [Task<Void, Never>] = []
    /// The signals for the heartbeats of the slots.
    var bells: [Int: Bell] = [:]
    var isClosed = false
    /// The end, which all calls that close the engine wait for.
    var closing: Task<Void, any Error>?
    /// The connections whose server has answered before.
    var connected: Set<Int> = []
    var health = HealthState()
    /// The time of the last question for the roles of the servers of the other connections.
    var probeTime: Nanoseconds = 0

    var all: [RedisSpace] { spaces.values.flatMap(\.self) }
  }

  /// The time between two questions for the roles of the servers of the other connections.
  private static let probePace: Nanoseconds = 1_000_000_000

  /// The number of the connection to any server of a cluster.
  static let clusterNumber = -1
  /// The number under which the health has a slot without a master.
  static let slotsNumber = -2

  /// The connections of the caches.
  let caches: Router
  /// The connections on which clears wait for replicas.
  let clears: Router
  /// The replicas that have to acknowledge clears, if any.
  private let replicas: Replicas?
  /// The connections of large values, which delay no other command, once there were some.
  let values: Router
  let cluster: Cluster?
  /// The connection to a sentinel, if the address is one of sentinels.
  private let watch = Locked<SentinelWatch?>(nil)
  /// The bytes of the values that are sent at the same time.
  let gate: ByteGate
  /// The large values are sent one after another, and the waiting ones are bounded like an outbox.
  let largeGate: ByteGate
  let events: RedisEvents
  let health = CurrentValue(EngineHealth.connecting)
  private let options: RedisOptions
  private let node = String(UInt64.random(in: .min ... .max), radix: 36)
  private let bell = Bell()
  let state = Locked(State())

  init(_ address: RedisAddress, _ options: RedisOptions) throws {
    precondition(
      options.nearLease >= .milliseconds(200) && options.fetchLease >= .milliseconds(200),
      "The leases of a Redis engine must be at least 200 milliseconds"
    )
    precondition(
      options.clearReplicas >= 0,
      "The number of replicas that acknowledge a clear must not be negative"
    )
    #if !TLS
    if address.isEncrypted { throw RedisConnectionError.noEncryption(address: address) }
    #endif
    self.options = options
    var settings = try RedisConnection.Settings(address, options)
    cluster = settings.cluster
    events = RedisEvents(settings.tracking, options)
    let target = Locked(Target())
    settings.checks = { target.withLock { $0.core }?.checks ?? [] }
    caches = Router(settings.tracking)
    var otherSettings = settings
    otherSettings.name = settings.name + "-clears"
    clears = Router(otherSettings)
    replicas =
      options.clearReplicas > 0
      ? Replicas(options.clearReplicas, over: clears, within: options.commandTimeout) : nil
    otherSettings.name = settings.name + "-values"
    values = Router(otherSettings)
    gate = ByteGate(capacity: options.outboxBytes / 4)
    largeGate = ByteGate(capacity: 1, waitingLimit: options.outboxBytes)
    target.withLock { $0.core = self }
    try begin(settings)
    let heart = makeHeart(bell) { [weak self] in await self?.beat() }
    state.withLock { $0.hearts.append(heart) }
  }

  /// The time between two heartbeats.
  private var pause: Duration { min(options.nearLease, options.fetchLease) / 4 }

  /// Begins a heartbeat, which ends with the engine.
  ///
  /// - Parameters:
  ///   - bell: A signal for a heartbeat before its time.
  ///   - beat: A heartbeat; it returns `nil` without the engine.
  /// - Returns: The heartbeat.
  func makeHeart(
    _ bell: Bell,
    _ beat: @escaping @Sendable () async -> Void?
  ) -> Task<Void, Never> {
    Task.detached { [pause] in
      while !Task.isCancelled {
        guard await beat() != nil else { return }
        await bell.wait(atMost: pause)
      }
    }
  }

  /// Begins to connect.
  private func begin(_ settings: RedisConnection.Settings) throws {
    caches.observe { [weak self] in self?.receive($0, on: $1) }
    for (router, kind) in [(clears, Kind.clears), (values, .values)] {
      router.observe { [weak self, unowned router] event, number in
        guard case .refusal(let refusal) = event else { return }
        self?.update { $0.refuse(refusal, on: kind.number(number)) }
        if !router.isActive(number) { self?.update { $0.remove(kind.number(number)) } }
      }
    }
    if let cluster {
      cluster.observe { [weak self] in self?.followSlots() }
      try cluster.begin(settings) { [weak self] in
        self?.caches.isAnswering(at: $0) == true || self?.events.router.isAnswering(at: $0) == true
      } onEvent: { [weak self] in
        self?.receiveOfCluster($0)
      }
    }
    if replicas != nil { try clears.begin() }
    try caches.begin()
    if let sentinels = settings.sentinels {
      let new = try SentinelWatch(sentinels, settings) { [weak self] in self?.follow($0) }
      watch.withLock { $0 = new }
    }
  }

  deinit {
    for heart in state.withLock({ $0.hearts }) { heart.cancel() }
  }

  /// Returns the space with a name and a schema.
  ///
  /// - Parameters:
  ///   - name: The name.
  ///   - schema: The schema.
  ///   - retention: The longest time for which entries are kept, if it is not that of the engine.
  /// - Returns: The space, which is the same for the same name and schema.
  func space(_ name: String, schema: String, retention: Duration? = nil) -> RedisSpace {
    var times = Tier.Times()
    times.lease = options.fetchLease
    times.retention = retention ?? options.retention
    return state.withLock { state in
      let known = state.spaces[name] ?? []
      let names = TierNames(space: name, schema: schema)
      if let space = known.first(where: { $0.tier.names == names }) { return space }
      let route = Route(caches, for: names.epoch)
      let bell = cluster == nil ? bell : self.bell(of: route.slot, &state)
      let tier = Tier(
        space: name,
        schema: schema,
        node: "\(node).\(known.count)",
        route: route,
        times: times
      )
      let debts =
        known.first?.debts
        ?? RemovalDebts(tier, replicas) { [weak self] in self?.tell($0, to: name, except: nil) }
      let space = RedisSpace(
        tier,
        debts,
        nearLease: options.nearLease,
        tell: { [weak self] in self?.tell($0, to: name, except: names) },
        keeping: options.timeToKeep,
        hurry: { [bell] in bell.ring() }
      )
      if state.isClosed { space.refuse() }
      state.spaces[name] = known + [space]
      bell.ring()
      return space
    }
  }

  /// The state, the load and the numbers of the connections.
  var status: EngineStatus {
    let events = events.status
    let spaces = state.withLock { $0.all }
    let hearings = spaces.map(\.hearing)
    var traffic = TrafficState()
    var reconnections = 0
    for other in [watch.withLock { $0 }?.traffic, cluster?.traffic].compactMap(\.self) {
      reconnections += max(0, other.connections - 1)
      traffic.add(other)
    }
    for other in [caches.traffic, clears.traffic, values.traffic, events.traffic] {
      reconnections += other.reconnections
      traffic.add(other.all)
    }
    let beats = hearings.map(\.beat)
    // One that was never answered has no age.
    let oldest = beats.contains(nil) ? nil : beats.compactMap(\.self).min()
    return EngineStatus(
      caches: EngineStatus.Connection(caches.load, health.value),
      events: events.connection,
      reconnections: reconnections,
      lastAnsweredBeat: beats.compactMap(\.self).max(),
      trustAge: oldest.map { $0.duration(to: .now) },
      registeredNodes: hearings.compactMap(\.nodeCount).max(),
      owedRemovals: owedRemovals,
      timedOutLooks: hearings.reduce(0) { $0 + $1.timedOutLooks },
      timedOutFills: hearings.reduce(0) { $0 + $1.timedOutFills },
      unconfirmedEvents: events.unconfirmed,
      unacknowledgedEvents: events.unacknowledged,
      unannouncedEvents: events.unannounced,
      bytesIn: traffic.bytesIn,
      bytesOut: traffic.bytesOut,
      roundTrips: EngineStatus.RoundTrips(traffic),
      errors: traffic.errors
    )
  }

  /// Waits until the caches' connection is made: in a cluster, those to the masters of all spaces so far.
  ///
  /// - Throws: The reason why it is not, at once if nothing but a change of the settings helps.
  func connect(within limit: Duration) async throws {
    do {
      try await withThrowingTaskGroup { group in
        group.addTask { [self] in
          for await health in health.subscription(bufferingPolicy: .unbounded) {
            switch health {
            case .connected, .degraded: if try await reachMasters() { return }
            case .closed: throw RedisConnectionError.closed
            case .connecting: continue
            case .isolated: if let failure, !failure.isTemporary { throw failure }
            }
          }
          throw CancellationError()
        }
        group.addTask { [self] in
          try await Task.sleep(for: min(limit, .seconds(Int32.max)))
          switch health.value {
          case .connected, .degraded: if hasReachedMasters { return }
          case .connecting, .isolated, .closed: break
          }
          if let failure { throw failure }
          let reason = "No connection to the Redis server was made within \(limit)."
          throw RedisEngineError(.timedOut, reason)
        }
        defer { group.cancelAll() }
        try await group.next()
      }
    } catch {
      throw RedisEngineError.publicError(error)
    }
  }

  /// The checks of the spaces for a new connection.
  private var checks: [RestartCheckState] {
    state.withLock { $0.spaces.values.compactMap(\.first) }.map(\.tier.restartCheck)
  }

  private var failure: RedisConnectionError? { state.withLock { $0.health.failure } }

  // MARK: - Heartbeat

  /// Sends the heartbeat of all spaces; in a cluster, each slot has its own.
  private func beat() async {
    let spaces = state.withLock { $0.isClosed ? [] : $0.all }
    if cluster == nil {
      await beat(of: spaces) { askForRole(confirming: spaces) }
    } else {
      dismissUnused()
      for router in [caches, clears, values] { router.forgetNotes(after: pause) }
    }
    probe()
  }

  /// Confirms the copies of some spaces that are in order; the others send more.
  ///
  /// - Parameters:
  ///   - spaces: The spaces.
  ///   - confirm: Sends a command whose answer confirms them.
  func beat(of spaces: [RedisSpace], by confirm: () -> Void) async {
    for space in spaces {
      // The server does not announce to this process what another schema of the space has changed.
      for other in state.withLock({ $0.spaces[space.tier.names.space] ?? [] }) {
        space.tier.note(knowledgeOf: other.tier)
      }
    }
    confirm()
    await withTaskGroup { group in
      for space in spaces {
        // Without an answer, the trust expires.
        group.addTask { try? await space.beat() }
      }
    }
  }

  /// Asks the one server for its role, which confirms spaces.
  private func askForRole(confirming spaces: [RedisSpace]) {
    let time = ContinuousClock.now
    try? caches.master().connection.probe { [moments = spaces.map(\.trust.now)] in
      for (space, sent) in zip(spaces, moments) { space.confirm(sent, at: time) }
    }
  }

  /// Asks the servers of the other connections for their role.
  private func probe() {
    let now = Nanoseconds.now
    let isDue = state.withLock { state in
      guard !state.isClosed, now - state.probeTime >= Self.probePace else { return false }
      state.probeTime = now
      return true
    }
    guard isDue else { return }
    clears.probe()
    values.probe()
    watch.withLock { $0 }?.probe()
    cluster?.probe()
  }

  /// Connects to another master.
  private func follow(_ master: RedisAddress) {
    for router in [caches, clears, values, events.router] { router.follow(master) }
  }

  /// Returns the way of the large values of a space.
  ///
  /// - Throws: An error if the process has no thread or file descriptor left, or if the engine was closed.
  func largeValueRoute(of space: RedisSpace) throws -> Route {
    // The end of the engine closes the connections that it finds afterwards.
    guard !state.withLock({ $0.isClosed }) else { throw RedisConnectionError.closed }
    try values.begin()
    let route = Route(values, for: space.tier.names.epoch)
    route.begin(space)
    return route
  }

  /// The changes that have failed, of each space.
  private var debts: [RemovalDebts] {
    state.withLock { $0.spaces.values.compactMap(\.first) }.map(\.debts)
  }

  /// The number of removals that have failed, and that are repeated.
  var owedRemovals: Int {
    debts.reduce(0) { $0 + $1.removalCount }
  }

  /// Repeats the changes that have failed, releases leases and registrations, and ends the connection.
  ///
  /// - Throws: The error of a change that has failed again.
  func close() async throws {
    let task = state.withLock { state in
      if let known = state.closing { return known }
      state.isClosed = true
      let (spaces, hearts) = (state.all, state.hearts)
      // It is not ended by the cancellation of a caller.
      let new = Task.detached { [self] in try await end(spaces, hearts) }
      state.closing = new
      return new
    }
    try await task.value
  }

  private func end(_ spaces: [RedisSpace], _ hearts: [Task<Void, Never>]) async throws {
    for heart in hearts { heart.cancel() }
    for heart in hearts { await heart.value }
    async let repetition = repeatChanges()
    async let giving: Void = events.close()
    await leave(spaces)
    let failure = await repetition
    await giving
    // Their numbers stay in the status.
    await watch.withLock { $0 }?.close()
    for router in [values, clears, caches] { await router.close() }
    await cluster?.close()
    // Requests that wait for other processes continue on their own.
    for space in spaces { space.loseConnection() }
    update { $0.close() }
    if let failure { throw RedisEngineError.publicError(failure) }
  }

  /// Releases the leases and the registrations of spaces.
  private func leave(_ spaces: [RedisSpace]) async {
    await withTaskGroup { group in
      for space in spaces { group.addTask { await space.leave() } }
    }
  }

  /// Repeats the changes that have failed.
  ///
  /// - Returns: The error of one that has failed again.
  private func repeatChanges() async -> (any Error)? {
    await withTaskGroup { group in
      for debts in debts {
        group.addTask { [options] () async -> (any Error)? in
          do {
            try await debts.repeatAll(within: options.commandTimeout)
            return nil
          } catch {
            return error
          }
        }
      }
      return await group.reduce(nil) { $0 ?? $1 }
    }
  }

  // MARK: - Events

  /// Changes the health, and publishes it.
  func update(_ change: (inout HealthState) -> Void) {
    state.withLock { change(&$0.health) }
    health.follow { state.withLock { $0.health.health } }
  }

  /// Handles an event of a connection of the caches.
  private func receive(_ event: RedisConnection.Event, on number: Int) {
    // The connection can end meanwhile, by which it has no health.
    defer { if !caches.isActive(number) { update { $0.remove(Kind.caches.number(number)) } } }
    switch event {
    case .connected:
      update { health in
        health.remove(Self.clusterNumber)
        health.connect(on: Kind.caches.number(number))
      }
      let isFirst = state.withLock { $0.connected.insert(number).inserted }
      // Loaded data was not announced meanwhile.
      for router in [clears, values] { router.doubt() }
      // Announcements since the last connection were lost, and so can be the data of the server.
      for space in spaces(on: number) {
        if !isFirst { space.loseRegistrations() }
        space.connect()
      }
    case .disconnected(let error):
      update { $0.disconnect(error, on: Kind.caches.number(number)) }
      for space in spaces(on: number) { space.loseConnection() }
      // The server of the other connections can have been demoted as well.
      clears.probe()
      events.router.probe()
      caches.search(for: [number])
    case .refusal(let refusal):
      update { $0.refuse(refusal, on: Kind.caches.number(number)) }
    case .push(let elements):
      guard elements.first?.text == "invalidate", elements.count == 2 else { return }
      guard let names = elements[1].elements else {
        for router in [caches, clears, values] { router.doubt() }
        for space in spaces(on: number) {
          space.loseRegistrations()
          space.loseTrack()
        }
        return
      }
      for name in names { hear(name.text ?? "") }
    }
  }

  /// The spaces whose announcements come over a connection.
  private func spaces(on number: Int) -> [RedisSpace] {
    let all = state.withLock { $0.all }
    return cluster == nil ? all : all.filter { $0.tier.route.master?.number == number }
  }

  /// Tells the spaces with a name, except one, about a change that was made over the connection of all.
  private func tell(_ change: SharedCache.Change, to name: String, except names: TierNames?) {
    for space in state.withLock({ $0.spaces[name] ?? [] }) where space.tier.names != names {
      space.hear(change)
    }
  }

  private func hear(_ name: String) {
    guard let spaceName = TierNames.space(of: name) else { return }
    for space in state.withLock({ $0.spaces[String(spaceName)] ?? [] }) {
      if let subject = space.tier.names.subject(of: name) { space.hear(subject) }
    }
  }
}
