internal import Plexus
internal import PlexusSupport

/// The connection of an engine, its spaces, and its heartbeat.
final class EngineCore: Sendable {
  /// Passes the events of the connection to the engine, which it does not keep alive.
  private final class Router: Sendable {
    private struct Target: Sendable {
      weak var core: EngineCore?
      /// The events from before there was an engine; `nil` from then on.
      var early: [(event: RedisConnection.Event, connection: Int)]? = []
    }

    private let target = Locked(Target())

    /// Passes on the events so far, and later ones as they arrive.
    func connect(to core: EngineCore) {
      target.withLock { $0.core = core }
      while true {
        let events = target.withLock { target in
          let events = target.early ?? []
          target.early = events.isEmpty ? nil : []
          return events
        }
        guard !events.isEmpty else { return }
        for (event, connection) in events { core.receive(event, on: connection) }
      }
    }

    /// The checks of the spaces for a new connection.
    var checks: [RestartCheckState] { target.withLock { $0.core }?.checks ?? [] }

    func receive(_ event: RedisConnection.Event, on connection: Int) {
      let core = target.withLock { target in
        target.early?.append((event, connection))
        return target.early == nil ? target.core : nil
      }
      core?.receive(event, on: connection)
    }
  }

  private struct State: Sendable {
    /// The spaces by their names: one for each schema.
    var spaces: [String: [RedisSpace]] = [:]
    var heart: Task<Void, Never>?
    var isClosed = false
    /// The end, which all calls that close the engine wait for.
    var closing: Task<Void, any Error>?
    /// Whether the server has answered before.
    var hasConnected = false
    var health = HealthState()
    /// The time of the last question for the roles of the servers of the other connections.
    var probeTime: Nanoseconds = 0

    var all: [RedisSpace] { spaces.values.flatMap(\.self) }
  }

  /// The time between two questions for the roles of the servers of the other connections.
  private static let probePace: Nanoseconds = 1_000_000_000

  let connection: RedisConnection
  /// The replicas that have to acknowledge clears, if any.
  private let replicas: Replicas?
  /// The connection to a sentinel, if the address is one of sentinels.
  private let watch = Locked<SentinelWatch?>(nil)
  /// The connection of large values, which delay no other command, once there was one.
  private let values = Locked<RedisConnection?>(nil)
  private let valueSettings: RedisConnection.Settings
  /// The bytes of the values that are sent at the same time.
  let gate: ByteGate
  /// The large values are sent one after another, and the waiting ones are bounded like an outbox.
  let largeGate: ByteGate
  let events: RedisEvents
  let health = CurrentValue(EngineHealth.connecting)
  private let options: RedisOptions
  private let node = String(UInt64.random(in: .min ... .max), radix: 36)
  private let bell = Bell()
  private let state = Locked(State())

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
    let router = Router()
    events = RedisEvents(settings.tracking, options)
    settings.checks = { router.checks }
    var clearSettings = settings
    clearSettings.name += "-clears"
    replicas =
      options.clearReplicas > 0
      ? Replicas(
        options.clearReplicas,
        over: try RedisConnection(clearSettings) { router.receive($0, on: 1) },
        within: options.commandTimeout
      ) : nil
    var valueSettings = settings
    valueSettings.name += "-values"
    self.valueSettings = valueSettings
    gate = ByteGate(capacity: options.outboxBytes / 4)
    largeGate = ByteGate(capacity: 1, waitingLimit: options.outboxBytes)
    connection = try RedisConnection(settings.tracking) { router.receive($0, on: 0) }
    router.connect(to: self)
    if let sentinels = settings.sentinels {
      let new = try SentinelWatch(sentinels, settings) { [weak self] in self?.follow($0) }
      watch.withLock { $0 = new }
    }
    let pause = min(options.nearLease, options.fetchLease) / 4
    let heart = Task.detached { [weak self, bell] in
      while !Task.isCancelled {
        guard await self?.beat() != nil else { return }
        await bell.wait(atMost: pause)
      }
    }
    state.withLock { $0.heart = heart }
  }

  deinit {
    state.withLock { $0.heart }?.cancel()
    bell.ring()
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
      let tier = Tier(
        space: name,
        schema: schema,
        node: "\(node).\(known.count)",
        connection: connection,
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

  /// The connection on which clears wait for replicas.
  private var clears: RedisConnection? { replicas?.connection }

  /// The state, the load and the numbers of the connections.
  var status: EngineStatus {
    let events = events.status
    let spaces = state.withLock { $0.all }
    let hearings = spaces.map(\.hearing)
    var traffic = connection.traffic
    var reconnections = max(0, traffic.connections - 1)
    let others = [
      clears?.traffic, values.withLock { $0 }?.traffic, watch.withLock { $0 }?.traffic,
      events.traffic,
    ]
    for other in others.compactMap(\.self) {
      reconnections += max(0, other.connections - 1)
      traffic.add(other)
    }
    let beats = hearings.map(\.beat)
    // One that was never answered has no age.
    let oldest = beats.contains(nil) ? nil : beats.compactMap(\.self).min()
    return EngineStatus(
      caches: EngineStatus.Connection(connection, health.value),
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

  /// Waits until the caches' connection is made.
  ///
  /// - Throws: The reason why it is not, at once if nothing but a change of the settings helps.
  func connect(within limit: Duration) async throws {
    try await withThrowingTaskGroup { group in
      group.addTask { [self] in
        for await health in health.subscription(bufferingPolicy: .unbounded) {
          switch health {
          case .connected, .degraded: return
          case .closed: throw RedisEngineError(RedisConnectionError.closed)
          case .connecting: continue
          case .isolated:
            if let failure, !failure.isTemporary { throw RedisEngineError(failure) }
          }
        }
        throw CancellationError()
      }
      group.addTask { [self] in
        try await Task.sleep(for: min(limit, .seconds(Int32.max)))
        switch health.value {
        case .connected, .degraded: return
        case .connecting, .isolated, .closed: break
        }
        throw failure.map { RedisEngineError($0) }
          ?? RedisEngineError(
            .timedOut,
            "No connection to the Redis server was made within \(limit)."
          )
      }
      defer { group.cancelAll() }
      try await group.next()
    }
  }

  /// The checks of the spaces for a new connection.
  private var checks: [RestartCheckState] {
    state.withLock { $0.spaces.values.compactMap(\.first) }.map(\.tier.restartCheck)
  }

  private var failure: RedisConnectionError? { state.withLock { $0.health.failure } }

  // MARK: - Heartbeat

  /// Asks the server for its role, which confirms the copies of all spaces that are in order; the others send more.
  private func beat() async {
    let groups = state.withLock { $0.isClosed ? [] : Array($0.spaces.values) }
    for spaces in groups where spaces.count > 1 {
      // The server does not announce to this process what one of them has changed.
      for space in spaces { spaces[0].tier.note(knowledgeOf: space.tier) }
      for space in spaces { space.tier.note(knowledgeOf: spaces[0].tier) }
    }
    let spaces = groups.flatMap(\.self)
    let time = ContinuousClock.now
    connection.probe { [moments = spaces.map(\.trust.now)] in
      for (space, sent) in zip(spaces, moments) { space.confirm(sent, at: time) }
    }
    probe()
    await withTaskGroup { group in
      for space in spaces {
        // Without an answer, the trust expires.
        group.addTask { try? await space.beat() }
      }
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
    clears?.probe()
    values.withLock { $0 }?.probe()
    watch.withLock { $0 }?.probe()
  }

  /// Connects to another master.
  private func follow(_ master: RedisAddress) {
    for connection in [connection, clears, values.withLock { $0 }].compactMap(\.self) {
      connection.follow(master)
    }
    events.follow(master)
  }

  /// The connection of large values.
  ///
  /// - Throws: An error if the process has no thread or file descriptor left, or if the engine was closed.
  func largeValueConnection() throws -> RedisConnection {
    let result = values.withLock { values in
      Result { () throws -> RedisConnection in
        if let values { return values }
        // The end of the engine closes the connection that it finds afterwards.
        guard !state.withLock({ $0.isClosed }) else { throw RedisConnectionError.closed }
        let new = try RedisConnection(valueSettings) { [weak self] in self?.receive($0, on: 2) }
        values = new
        return new
      }
    }
    return try result.get()
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
      let (spaces, heart) = (state.all, state.heart)
      // It is not ended by the cancellation of a caller.
      let new = Task.detached { [self] in try await end(spaces, heart) }
      state.closing = new
      return new
    }
    try await task.value
  }

  private func end(_ spaces: [RedisSpace], _ heart: Task<Void, Never>?) async throws {
    heart?.cancel()
    await heart?.value
    async let repetition = repeatChanges()
    async let giving: Void = events.close()
    await leave(spaces)
    let failure = await repetition
    await giving
    // Their numbers stay in the status.
    await watch.withLock { $0 }?.close()
    await values.withLock { $0 }?.close()
    await clears?.close()
    await connection.close()
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
  private func update(_ change: (inout HealthState) -> Void) {
    state.withLock { change(&$0.health) }
    health.follow { state.withLock { $0.health.health } }
  }

  private func receive(_ event: RedisConnection.Event, on connection: Int) {
    if case .refusal(let refusal) = event { return update { $0.refuse(refusal, on: connection) } }
    guard connection == 0 else { return }
    switch event {
    case .connected:
      update { $0.connect() }
      let (spaces, isFirst) = state.withLock { state in
        defer { state.hasConnected = true }
        return (state.all, !state.hasConnected)
      }
      // Loaded data was not announced meanwhile.
      doubt([clears, values.withLock { $0 }])
      // Announcements since the last connection were lost, and so can be the data of the server.
      for space in spaces {
        if !isFirst { space.loseRegistrations() }
        space.connect()
      }
    case .disconnected(let error):
      update { $0.disconnect(error) }
      for space in state.withLock({ $0.all }) { space.loseConnection() }
      // The server of the other connections can have been demoted as well.
      clears?.probe()
      events.probe()
    case .refusal: break
    case .push(let elements):
      guard elements.first?.text == "invalidate", elements.count == 2 else { return }
      guard let names = elements[1].elements else {
        doubt([self.connection, clears, values.withLock { $0 }])
        for space in state.withLock({ $0.all }) {
          space.loseRegistrations()
          space.loseTrack()
        }
        return
      }
      for name in names { hear(name.text ?? "") }
    }
  }

  /// Lets spaces be checked again on connections whose server can have loaded other data.
  private func doubt(_ connections: [RedisConnection?]) {
    for connection in connections { connection?.checked.withLock { $0.doubt() } }
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

extension RedisConnection.Settings {
  /// The settings of a connection that hears of changes.
  fileprivate var tracking: Self {
    var settings = self
    settings.setup = [RedisCommand("CLIENT", ["TRACKING", "ON", "NOLOOP"])]
    return settings
  }

  /// - Throws: An error if the address or the name of the client is not valid.
  init(_ address: RedisAddress, _ options: RedisOptions) throws(RedisConnectionError) {
    self.init(address)
    guard options.clientName.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw .misconfigured(
        reason: "RedisOptions.clientName must consist of printable ASCII characters without spaces."
      )
    }
    guard options.database >= 0 else {
      throw .misconfigured(reason: "RedisOptions.database must not be negative.")
    }
    if case .sentinel(let name, let addresses) = address {
      sentinels = try Sentinels(name: name, addresses)
    }
    credentials = options.credentials
    sentinelCredentials = options.sentinelCredentials
    database = options.database
    name = options.clientName
    commandTimeout = options.commandTimeout
    outboxBytes = options.outboxBytes
  }
}
