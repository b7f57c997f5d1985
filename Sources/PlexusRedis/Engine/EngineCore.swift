internal import Plexus
internal import PlexusSupport

/// The connection of an engine, its spaces, and its heartbeat.
final class EngineCore: Sendable {
  /// Passes the events of the connection to the engine, which it does not keep alive.
  private final class Router: Sendable {
    private struct Target: Sendable {
      weak var core: EngineCore?
      /// The events from before there was an engine; `nil` from then on.
      var early: [RedisConnection.Event]? = []
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
        for event in events { core.receive(event) }
      }
    }

    func receive(_ event: RedisConnection.Event) {
      let core = target.withLock { target in
        target.early?.append(event)
        return target.early == nil ? target.core : nil
      }
      core?.receive(event)
    }
  }

  private struct State: Sendable {
    /// The spaces by their names: one for each schema.
    var spaces: [String: [RedisSpace]] = [:]
    var heart: Task<Void, Never>?
    var isClosed = false
    /// Whether the server has answered before.
    var hasConnected = false

    var all: [RedisSpace] { spaces.values.flatMap(\.self) }
  }

  let connection: RedisConnection
  /// The connection of the clears, if they wait for replicas.
  private let clears: RedisConnection?
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
    if case .tls = address { throw RedisConnectionError.noEncryption(address: address) }
    #endif
    self.options = options
    var settings = RedisConnection.Settings(address)
    settings.user = options.user
    settings.password = options.password
    settings.database = options.database
    settings.commandTimeout = options.commandTimeout
    settings.outboxBytes = options.outboxBytes
    var clearSettings = settings
    clearSettings.name = "plexus-clears"
    clears = options.clearReplicas > 0 ? try RedisConnection(clearSettings) { _ in } : nil
    settings.setup = [RedisCommand("CLIENT", ["TRACKING", "ON", "NOLOOP"])]
    events = RedisEvents(settings, options)
    let router = Router()
    connection = try RedisConnection(settings) { router.receive($0) }
    router.connect(to: self)
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
        times: times,
        replicas: clears.map { clears in
          Tier.Replicas(
            connection: clears,
            count: options.clearReplicas,
            timeout: options.commandTimeout
          )
        }
      )
      let space = RedisSpace(
        tier,
        nearLease: options.nearLease,
        tell: { [weak self] in self?.tell($0, to: name, except: names) },
        hurry: { [bell] in bell.ring() }
      )
      state.spaces[name] = known + [space]
      bell.ring()
      return space
    }
  }

  /// The state and the load of the connections.
  var status: EngineStatus {
    let events = events.status
    return EngineStatus(
      caches: EngineStatus.Connection(connection, health.value),
      events: events.connection,
      unconfirmedEvents: events.unconfirmed,
      unacknowledgedEvents: events.unacknowledged,
      unannouncedEvents: events.unannounced
    )
  }

  // MARK: - Heartbeat

  private func beat() async {
    await withTaskGroup { group in
      for space in state.withLock({ $0.isClosed ? [] : $0.all }) {
        // Without an answer, the trust expires.
        group.addTask { try? await space.beat() }
      }
    }
  }

  /// Releases leases and registrations, and ends the connection.
  func close() async {
    let (spaces, heart) = state.withLock { state in
      state.isClosed = true
      return (state.all, state.heart)
    }
    heart?.cancel()
    await heart?.value
    await withTaskGroup { group in
      for space in spaces { group.addTask { await space.leave() } }
    }
    await events.close()
    await clears?.close()
    await connection.close()
    health.value = .closed
  }

  // MARK: - Events

  private func receive(_ event: RedisConnection.Event) {
    switch event {
    case .connected:
      health.value = .connected
      let (spaces, isFirst) = state.withLock { state in
        defer { state.hasConnected = true }
        return (state.all, !state.hasConnected)
      }
      // Announcements since the last connection were lost, and so can be the data of the server.
      for space in spaces {
        if !isFirst { space.loseRegistrations() }
        space.loseTrack()
      }
    case .disconnected(let error):
      health.value = .isolated(reason: error.description)
      for space in state.withLock({ $0.all }) { space.loseConnection() }
    case .push(let elements):
      guard elements.first?.text == "invalidate", elements.count == 2 else { return }
      guard let names = elements[1].elements else {
        for space in state.withLock({ $0.all }) {
          space.loseRegistrations()
          space.loseTrack()
        }
        return
      }
      for name in names { hear(name.text ?? "") }
    }
  }

  /// Tells the spaces with a name about a change that one of them has made over the connection of all.
  private func tell(_ change: SharedCache.Change, to name: String, except names: TierNames) {
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
