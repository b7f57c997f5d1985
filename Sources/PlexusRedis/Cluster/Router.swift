internal import PlexusSupport

/// The connections of one kind, such as those of the events: one to the server at the address of the engine, or one to each
/// master of a cluster that is in use.
///
/// A connection begins with its first use. In a cluster, it ends some time after its last one.
final class Router: Sendable {
  /// A server that is connected, or being connected.
  struct Master: Sendable {
    let connection: RedisConnection
    let address: RedisAddress
    /// The number of the connection, which no other one of the router has.
    let number: Int
  }

  fileprivate struct State: Sendable {
    var masters: [RedisAddress: Master] = [:]
    /// The times at which connections were used last.
    var uses: [Int: Nanoseconds] = [:]
    /// The connections that have not ended.
    var active: Set<Int> = []
    /// The connections whose server answers.
    var connected: Set<Int> = []
    /// The connections whose server is out of reach.
    var failed: Set<Int> = []
    /// The numbers of the latest connections to servers: replies that come before one changes are those of one server.
    var generations: [Int: Int] = [:]
    var lastGeneration = 0
    var lastNumber = -1
    var isClosed = false
    /// The numbers of the connections that have ended.
    var traffic = TrafficState()
    var reconnections = 0
    var onEvent: @Sendable (RedisConnection.Event, Int) -> Void = { _, _ in }
  }

  /// The time for which a connection is kept that is not in use.
  private static let patience: Nanoseconds = 10_000_000_000
  /// The same for one whose server is out of reach.
  private static let shortPatience: Nanoseconds = 1_000_000_000

  /// The number of connections of one kind at the same time, each of which has a thread and two file descriptors.
  static let limit = 256

  let settings: RedisConnection.Settings
  /// Redirections can name any number of servers.
  private let limit: Int
  /// Held while a connection is made, whose events change the state meanwhile.
  private let making = Locked(())
  private let state = Locked(State())

  /// - Parameters:
  ///   - settings: The settings of the connections.
  ///   - limit: The number of connections at the same time.
  init(_ settings: RedisConnection.Settings, limit: Int = Router.limit) {
    self.limit = limit
    var settings = settings
    if settings.cluster != nil { settings.peer = .clusterMaster }
    self.settings = settings
  }

  /// The cluster; `nil` for one server.
  var cluster: Cluster? { settings.cluster }

  /// Sets the closure that is called with the events of the connections and their numbers, before the first connection.
  func observe(_ onEvent: @escaping @Sendable (RedisConnection.Event, Int) -> Void) {
    state.withLock { $0.onEvent = onEvent }
  }

  // MARK: - Connections

  /// Begins to connect to the one server.
  ///
  /// In a cluster, each connection begins with its first use.
  ///
  /// - Throws: An error if the router was closed, or the process has no thread or file descriptor left.
  func begin() throws {
    if cluster == nil { _ = try master() }
  }

  /// Returns the connection to a server, which begins with the first call.
  ///
  /// - Parameter address: The address of a master of the cluster; `nil` without one.
  /// - Returns: The connection.
  /// - Throws: An error if the router was closed, the process has no thread or file descriptor left, or there are as many
  ///   connections as it can have.
  func master(at address: RedisAddress? = nil) throws -> Master {
    let address = address ?? settings.address
    if let known = try use(address) { return known }
    return try making.withLock { _ in
      if let known = try use(address) { return known }
      let number = try state.withLock { state in
        guard state.masters.count < limit else {
          throw RedisConnectionError.unreachable(
            address: address,
            reason: "there are connections to \(limit) other masters"
          )
        }
        state.lastNumber += 1
        state.active.insert(state.lastNumber)
        return state.lastNumber
      }
      var settings = settings
      settings.address = address
      let connection: RedisConnection
      do {
        connection = try RedisConnection(settings) { [weak self] in self?.receive($0, on: number) }
      } catch {
        state.withLock { _ = $0.active.remove(number) }
        throw error
      }
      let master = Master(connection: connection, address: address, number: number)
      state.withLock { state in
        state.masters[address] = master
        state.uses[number] = .now
      }
      return master
    }
  }

  /// Returns a connection, and notes its use.
  private func use(_ address: RedisAddress) throws -> Master? {
    try state.withLock { state in
      guard let master = state.masters[address] else {
        guard !state.isClosed else { throw RedisConnectionError.closed }
        return nil
      }
      if cluster != nil { state.uses[master.number] = .now }
      return master
    }
  }

  /// The connections.
  var masters: [Master] { state.withLock { Array($0.masters.values) } }

  private func receive(_ event: RedisConnection.Event, on number: Int) {
    let onEvent = state.withLock { state -> (@Sendable (RedisConnection.Event, Int) -> Void)? in
      guard state.active.contains(number) else { return nil }
      switch event {
      case .connected:
        state.connected.insert(number)
        state.failed.remove(number)
        state.lastGeneration += 1
        state.generations[number] = state.lastGeneration
      case .disconnected:
        state.connected.remove(number)
        state.failed.insert(number)
      case .push, .refusal: break
      }
      return state.onEvent
    }
    onEvent?(event, number)
  }

  /// Returns whether a connection has not ended.
  func isActive(_ number: Int) -> Bool { state.withLock { $0.active.contains(number) } }

  /// Returns whether the server of a connection answers.
  func isConnected(_ number: Int) -> Bool { state.withLock { $0.connected.contains(number) } }

  /// Returns the number of the latest connection to the server.
  func generation(of number: Int) -> Int { state.withLock { $0.generations[number] ?? 0 } }

  /// Returns a number above those of all connections so far.
  func nextGeneration() -> Int {
    state.withLock { state in
      state.lastGeneration += 1
      return state.lastGeneration
    }
  }

  /// Searches for the masters whose servers do not answer.
  ///
  /// - Parameter used: The numbers of connections in use.
  func search(for used: Set<Int>) {
    guard let cluster else { return }
    let silent = state.withLock { state in
      state.masters.values.filter {
        used.contains($0.number) && !state.connected.contains($0.number)
      }
    }
    if !silent.isEmpty || !cluster.isCurrent { cluster.search(for: silent.map(\.address)) }
  }

  /// Returns the reason why a route has no master, and searches for them.
  func slotWithoutMaster(of routes: [Route]) -> RedisConnectionError? {
    guard let cluster, cluster.isKnown else { return nil }
    let slots = routes.filter { $0.master == nil }.map(\.slot)
    if !slots.isEmpty { cluster.search(slots: slots) }
    return slots.first.map { cluster.noMaster(of: $0) }
  }

  /// Forgets the commands that a cluster has not executed, as soon as there was none for two heartbeats.
  ///
  /// - Parameter pause: The time between two heartbeats, each of which notes it as long as it lasts.
  func forgetNotes(after pause: Duration) {
    let time = Nanoseconds(pause) * 2 + Nanoseconds(settings.commandTimeout)
    for master in masters { master.connection.forgetNotes(before: .now - time) }
  }

  /// Returns whether the server at an address answers.
  func isAnswering(at address: RedisAddress) -> Bool {
    state.withLock { state in
      state.masters[address].map { state.connected.contains($0.number) } ?? false
    }
  }

  /// Ends the connections that are not in use: after a while, or as soon as their server has failed.
  ///
  /// - Parameter used: The numbers of connections in use.
  /// - Returns: The numbers of the connections that have ended.
  func dismiss(except used: Set<Int>) -> [Int] {
    let now = Nanoseconds.now
    let ended = state.withLock { state in
      let ended = state.masters.values.filter { master in
        let patience = state.failed.contains(master.number) ? Self.shortPatience : Self.patience
        let time = state.uses[master.number] ?? now
        return !used.contains(master.number) && now - time >= patience
      }
      for master in ended {
        state.masters[master.address] = nil
        state.end(master)
      }
      return ended
    }
    return ended.map(\.number)
  }

  // MARK: - All connections

  /// Asks the servers for their role.
  func probe() {
    for master in masters { master.connection.probe() }
  }

  /// Connects to another master.
  func follow(_ address: RedisAddress) {
    for master in masters { master.connection.follow(address) }
  }

  /// Lets spaces be checked again, because servers can have loaded other data.
  func doubt() {
    for master in masters { master.connection.checked.withLock { $0.doubt() } }
  }

  /// The commands without a reply, and the bytes that wait to be sent.
  var load: (commands: Int, bytes: Int) {
    masters.map(\.connection.load).reduce((0, 0)) { ($0.0 + $1.commands, $0.1 + $1.bytes) }
  }

  /// The numbers of all connections, and how many servers were connected again.
  var traffic: (all: TrafficState, reconnections: Int) {
    state.withLock { state in
      var copy = state
      for master in state.masters.values { copy.end(master) }
      return (copy.traffic, copy.reconnections)
    }
  }

  /// Ends the connections, and makes no other one.
  func close() async {
    // A connection that is being made is closed as well.
    let masters = making.withLock { _ in
      state.withLock { state in
        state.isClosed = true
        return Array(state.masters.values)
      }
    }
    for master in masters { await master.connection.close() }
  }
}

extension Router.State {
  /// Keeps the numbers of a connection that ends.
  fileprivate mutating func end(_ master: Router.Master) {
    let numbers = master.connection.traffic
    traffic.add(numbers)
    reconnections += max(0, numbers.connections - 1)
    (uses[master.number], generations[master.number]) = (nil, nil)
    connected.remove(master.number)
    failed.remove(master.number)
    active.remove(master.number)
  }
}
