internal import PlexusSupport

/// The cluster of an engine: which master has which slot, as one of its servers says.
///
/// The map of the slots is read once the first server is connected, and again when it is wrong: a server sends a command
/// elsewhere, or a master in use is out of reach. Its connection is to any server of the cluster, and to the next one if that
/// is lost.
final class Cluster: Sendable {
  private struct State: Sendable {
    var slots: SlotsState
    var connection: RedisConnection?
    /// The reading of the map that is in progress.
    var reading: Task<Result<Void, any Error>, Never>?
    /// The time until which no search begins.
    var searchedUntil: Nanoseconds = 0
    /// Whether it tells the health.
    var reports = false
    /// Called after each change of the map.
    var observers: [@Sendable () -> Void] = []
    var onEvent: @Sendable (RedisConnection.Event) -> Void = { _ in }
    /// Returns whether a master answers.
    var isAnswering: @Sendable (RedisAddress) -> Bool = { _ in false }
    /// The masters that are searched for.
    var missing: Set<RedisAddress> = []
    /// The slots whose commands their masters do not execute, with these masters.
    var doubted: [Int: RedisAddress] = [:]
    /// The reason why the last reading has failed.
    var failure: (any Error)?
  }

  /// The shortest time between two searches, of which each space and topic begins some.
  private static let searchPace: Nanoseconds = 100_000_000

  private let state: Locked<State>

  init(_ seeds: [RedisAddress]) throws(RedisConnectionError) {
    state = Locked(State(slots: try SlotsState(seeds)))
  }

  /// The servers in the order in which they are tried.
  var servers: [RedisAddress] { state.withLock { $0.slots.servers } }

  /// Begins to connect.
  ///
  /// - Parameters:
  ///   - settings: The settings of the engine's connections.
  ///   - isAnswering: Returns whether a master answers.
  ///   - onEvent: Called with the events of the connection, which counts as one once the map was read over it.
  /// - Throws: An error if the process has no thread or file descriptor left.
  func begin(
    _ settings: RedisConnection.Settings,
    isAnswering: @escaping @Sendable (RedisAddress) -> Bool = { _ in false },
    onEvent: @escaping @Sendable (RedisConnection.Event) -> Void
  ) throws {
    var settings = settings
    settings.name += "-cluster"
    settings.peer = .clusterNode
    // The connection does not keep the cluster alive.
    settings.cluster = nil
    settings.candidates = { [weak self] in self?.servers ?? [] }
    state.withLock { ($0.onEvent, $0.isAnswering) = (onEvent, isAnswering) }
    let connection = try RedisConnection(settings) { [weak self] event in
      if case .connected = event { self?.read() } else { onEvent(event) }
    }
    state.withLock { $0.connection = connection }
    // The connection can have been made before it was stored.
    read()
  }

  /// Calls a closure after each change of the map.
  func observe(_ observer: @escaping @Sendable () -> Void) {
    state.withLock { $0.observers.append(observer) }
  }

  /// Whether a server has said which masters there are.
  var isKnown: Bool { state.withLock { !$0.slots.isEmpty } }

  /// Whether the server that was asked last has said it.
  var isCurrent: Bool { state.withLock { !$0.slots.isEmpty && $0.failure == nil } }

  /// Returns the master of a slot, if it is known.
  func knownMaster(of slot: Int) -> RedisAddress? { state.withLock { $0.slots.master(of: slot) } }

  /// Returns the only server with a port, if there is one besides another server.
  func server(atPort port: UInt16, besides other: RedisAddress) -> RedisAddress? {
    let found = servers.filter {
      $0 == $0.sibling(host: $0.host, port: port) && $0 != other
    }
    return found.count == 1 ? found[0] : nil
  }

  /// Returns the master of a slot.
  ///
  /// - Parameters:
  ///   - slot: The slot.
  ///   - limit: The time for which the map is waited for.
  /// - Returns: The address of the master.
  /// - Throws: The reason why it is not known, or a `CancellationError` if the task is cancelled before it is.
  func master(of slot: Int, within limit: Duration) async throws -> RedisAddress {
    if let known = knownMaster(of: slot) { return known }
    if let reading = state.withLock({ $0.reading }) {
      try await wait(for: reading, within: limit)
    } else if let search = search(slots: [slot]) {
      try await wait(for: search, within: limit)
    }
    if let known = knownMaster(of: slot) { return known }
    throw state.withLock { $0.failure } ?? noMaster(of: slot)
  }

  private func wait<Value: Sendable>(
    for reading: Task<Value, Never>,
    within limit: Duration
  ) async throws {
    guard await reading.value(within: limit) == nil else { return }
    try Task.checkCancellation()
    throw RedisConnectionError.timedOut(command: "CLUSTER", after: limit)
  }

  /// The error of a slot without a master.
  func noMaster(of slot: Int) -> RedisConnectionError {
    .unreachable(address: .cluster(servers), reason: "no master has the slot \(slot)")
  }

  /// Notes that a master has a slot, and reads the map again.
  ///
  /// - Parameters:
  ///   - slot: The slot.
  ///   - master: The master.
  ///   - connection: The connection to the server that has said so.
  /// - Throws: An error if the cluster has more servers than one can have.
  func move(
    _ slot: Int,
    to master: RedisAddress,
    accordingTo connection: RedisConnection
  ) throws {
    let hasChanged = try state.withLock { state in try state.slots.move(slot, to: master) }
    guard hasChanged else { return }
    notify()
    read(over: connection)
  }

  /// Reads the map again over the connection to a server, which does not have a slot and does not say where it is.
  ///
  /// - Parameters:
  ///   - slot: The slot.
  ///   - connection: The connection.
  ///   - limit: The time for which the map is waited for.
  /// - Throws: An error if that is over, or a `CancellationError`.
  func learnMaster(
    of slot: Int,
    from connection: RedisConnection,
    within limit: Duration
  ) async throws {
    state.withLock { $0.slots.forget(slot) }
    try await wait(for: read(over: connection), within: limit)
  }

  /// Reads the map again, because masters in use are out of reach, slots have no master, or the last reading has failed.
  ///
  /// As long as that stays so, another server is asked after some times: one that is cut off from the others knows of no
  /// failover.
  ///
  /// - Parameters:
  ///   - masters: The masters, which keep no slot.
  ///   - slots: The slots.
  /// - Returns: The search; `nil` if the map is being read, or was read a moment ago.
  @discardableResult
  func search(for masters: [RedisAddress] = [], slots: [Int] = []) -> Task<Void, Never>? {
    let doubted = state.withLock { state -> [Int: RedisAddress]? in
      let now = Nanoseconds.now
      guard state.reading == nil, now >= state.searchedUntil else { return nil }
      state.searchedUntil = now + Self.searchPace
      state.missing = Set(masters)
      return state.doubted
    }
    guard let doubted else { return nil }
    return Task.detached { [self] in
      _ = await read().value
      let (next, connection) = state.withLock { state -> (RedisAddress?, RedisConnection?) in
        state.missing = []
        let isFound =
          !state.slots.isEmpty && state.failure == nil
          && !masters.contains { state.slots.isMaster($0) }
          && slots.allSatisfy { state.slots.master(of: $0) != nil }
          && doubted.allSatisfy { state.slots.master(of: $0) != $1 }
        guard !isFound else { return (nil, nil) }
        let first = state.slots.servers[0]
        state.slots.turn()
        let next = state.slots.servers[0]
        return (next == first ? nil : next, state.connection)
      }
      // An attempt to connect goes to another server by itself.
      if let next, connection?.peer != nil { connection?.follow(next) }
    }
  }

  /// Searches for another master of a slot, because its master does not execute commands although it answers.
  ///
  /// Other slots stay with that master: it can have lost only this one, and an old map does not know that.
  func search(doubting slot: Int, of master: RedisAddress) {
    state.withLock { $0.doubted[slot] = master }
    search()
  }

  /// Reads the map; calls at the same time read it together.
  ///
  /// - Parameter connection: The connection to the server that is asked, if it is another one.
  /// - Returns: The reading.
  @discardableResult
  private func read(
    over connection: RedisConnection? = nil
  ) -> Task<Result<Void, any Error>, Never> {
    state.withLock { state in
      if connection == nil { state.reports = true }
      if let reading = state.reading { return reading }
      guard let source = connection ?? state.connection else {
        return Task { .failure(RedisConnectionError.closed) }
      }
      let task = Task.detached { [self] in
        defer { self.state.withLock { ($0.reading, $0.reports) = (nil, false) } }
        return await readMap(over: source)
      }
      state.reading = task
      return task
    }
  }

  private func readMap(over source: RedisConnection) async -> Result<Void, any Error> {
    let server = source.peer ?? servers[0]
    let result: Result<Void, any Error>
    do {
      let reply = try await source.send(RedisCommand("CLUSTER", ["SLOTS"]))
      let (masters, isAnswering) = state.withLock { ($0.slots.masters, $0.isAnswering) }
      let answering = Set(masters.filter(isAnswering))
      let hasChanged = try state.withLock { state in
        defer { state.doubted = [:] }
        return try state.slots.learn(
          reply,
          from: server,
          keeping: answering.subtracting(state.missing),
          except: Set(state.doubted.keys)
        )
      }
      if hasChanged { notify() }
      result = .success(())
    } catch let error as RedisError {
      result = .failure(RedisConnectionError.refused(address: server, error))
    } catch {
      result = .failure(error)
    }
    let (reports, onEvent) = state.withLock { state in
      if case .failure(let error) = result { state.failure = error } else { state.failure = nil }
      return (state.reports, state.onEvent)
    }
    guard reports else { return result }
    switch result {
    case .success: onEvent(.connected)
    case .failure(let error as RedisConnectionError): onEvent(.disconnected(error))
    // The task was cancelled.
    case .failure: break
    }
    return result
  }

  private func notify() {
    for observer in state.withLock({ $0.observers }) { observer() }
  }

  /// Ends a connection whose server does not answer.
  func probe() { state.withLock { $0.connection }?.probe() }

  /// The numbers of the connection.
  var traffic: TrafficState? { state.withLock { $0.connection }?.traffic }

  func close() async {
    await state.withLock { $0.connection }?.close()
  }
}
