internal import PlexusSupport

/// The owner of a route, which it does not keep alive.
protocol RouteOwner: AnyObject, Sendable {
  /// Prepares a server for the first command of the route.
  func prepare(_ passage: Passage) async throws
  /// Another master has the slot: everything that the former one was to announce is lost.
  func routeMoved(_ route: Route, from former: Router.Master)
  /// Another server than the master has executed a command.
  func routeWasLeft()
}

extension RouteOwner {
  func prepare(_ passage: Passage) async throws {}

  func routeMoved(_ route: Route, from former: Router.Master) {}

  func routeWasLeft() {}
}

/// The server to which a command goes: the master of its slot, or for a while the one to which the slot is being moved.
struct Passage: Sendable {
  let master: Router.Master
  /// Whether the server is asked to execute the commands although it does not have the slot.
  var isAsked = false
  /// The time at which commands end, if a part of it is over.
  var deadline: Nanoseconds?

  /// Sends commands together, and waits for all replies.
  ///
  /// - Returns: The reply to each command, in the same order, or what it has failed with.
  func send(_ commands: [RedisCommand]) async -> [Result<RESPValue, any Error>] {
    guard isAsked else { return await master.connection.send(commands, until: deadline) }
    let replies = await master.connection.send(
      commands.flatMap { [RedisCommand("ASKING"), $0] },
      until: deadline
    )
    return commands.indices.map { replies[$0 * 2 + 1] }
  }
}

/// The way of the commands of a space or topic: to the one server, or to the master of their slot in a cluster.
///
/// A command that a server sends elsewhere is sent there, and one that a cluster cannot execute at present is tried again,
/// both within the time of one command. No other command is sent twice. For a second after a command that was tried again
/// without success, others do not wait for the move of the slot either.
final class Route: Sendable {
  private struct State: Sendable {
    var master: Router.Master?
    /// A number above those of the connections to former masters.
    var generation = 0
    /// The time until which a command that cannot be executed at present is not tried again.
    var busyUntil: Nanoseconds = 0
    weak var owner: (any RouteOwner)?
  }

  /// The number of times that a command is sent to another server.
  private static let longestWay = 16
  private static let shortestPause: Nanoseconds = 2_000_000
  private static let longestPause: Nanoseconds = 50_000_000
  /// The time for which the slot counts as being moved after a command that could not be executed.
  private static let busyTime: Nanoseconds = 1_000_000_000

  /// The one server; `nil` in a cluster.
  let only: Router.Master?
  private let router: Router?
  /// The slot, which is zero for one server.
  let slot: Int
  private let state = Locked(State())

  /// - Parameters:
  ///   - router: The connections.
  ///   - key: A key of the slot.
  init(_ router: Router, for key: String) {
    self.router = router
    let isCluster = router.cluster != nil
    only = isCluster ? nil : try? router.master()
    slot = isCluster ? SlotsState.slot(of: key) : 0
  }

  /// Creates a route to one server.
  init(_ connection: RedisConnection) {
    router = nil
    only = Router.Master(connection: connection, address: connection.address, number: 0)
    slot = 0
  }

  /// Sets the owner.
  func begin(_ owner: any RouteOwner) { state.withLock { $0.owner = owner } }

  private var owner: (any RouteOwner)? { state.withLock { $0.owner } }

  /// The server that has the slot, if it is known.
  var master: Router.Master? { only ?? state.withLock { $0.master } }

  /// The number of the database; a cluster has only one.
  var database: Int { only?.connection.database ?? 0 }

  /// Whether the server answers.
  var isConnected: Bool {
    guard let router, let master else { return false }
    return router.isConnected(master.number)
  }

  /// The number of connections so far: replies that come before it changes are those of one server.
  var generation: Int {
    guard let router, let master else { return 0 }
    return max(router.generation(of: master.number), state.withLock { $0.generation })
  }

  // MARK: - Commands

  /// Sends a command and waits for its reply, as ``RedisConnection/send(_:)-(RedisCommand)`` does.
  func send(_ command: RedisCommand) async throws -> RESPValue {
    try await send([command])[0].get()
  }

  /// Sends commands together, before any reply to them, and waits for all replies.
  ///
  /// - Parameters:
  ///   - commands: The commands.
  ///   - repeatsAll: Whether all of them are sent again if one is sent elsewhere, so that one server has answered all.
  /// - Returns: The reply to each command, in the same order, or what it has failed with.
  func send(
    _ commands: [RedisCommand],
    repeatsAll: Bool = false
  ) async -> [Result<RESPValue, any Error>] {
    if let only { return await only.connection.send(commands) }
    var results: [Result<RESPValue, any Error>] = commands.map { _ in .failure(CancellationError())
    }
    var open = Array(commands.indices)
    await follow { passage in
      let replies = await passage.send(open.map { commands[$0] })
      for (index, reply) in zip(open, replies) { results[index] = reply }
      let error = open.lazy.compactMap { results[$0].redirection }.first
      guard error != nil else { return nil }
      if !repeatsAll { open.removeAll { results[$0].redirection == nil } }
      return error
    } failing: { error in
      for index in open { results[index] = .failure(error) }
    } noting: { error, server in
      for index in open { server.connection.note(error, of: commands[index]) }
    }
    return results
  }

  /// Sends a command without waiting for its reply, which is an error if the server does not have the slot.
  ///
  /// - Returns: The command; `nil` if no server is known to have the slot.
  func post(_ command: RedisCommand) -> ConnectionLoop.Posted? {
    master?.connection.post(command)
  }

  /// Returns the server that has the slot, prepared for commands.
  ///
  /// - Throws: The reason why there is none.
  func passage() async throws -> Passage {
    var found: Result<Passage, any Error> = .failure(CancellationError())
    await follow { passage in
      // What is sent later has its own time.
      found = .success(Passage(master: passage.master, isAsked: passage.isAsked))
      return nil
    } failing: { error in
      found = .failure(error)
    }
    return try found.get()
  }

  // MARK: - Redirections

  /// Sends something to the master of the slot, and to other servers as long as it is sent elsewhere.
  ///
  /// - Parameters:
  ///   - send: Sends to a server, and returns the error by which it is sent elsewhere.
  ///   - fail: Called with the reason why nothing was sent, or not again.
  ///   - note: Called with the reply that nothing but time can change, and with the server that has told it.
  private func follow(
    _ send: (Passage) async -> RedisError?,
    failing fail: (any Error) -> Void,
    noting note: (RedisError, Router.Master) -> Void = { _, _ in }
  ) async {
    let (owner, start) = (owner, Nanoseconds.now)
    let end = start + Nanoseconds(router?.settings.commandTimeout ?? .zero)
    var pause = Self.shortestPause
    var redirection: (error: RedisError, from: Passage?)?
    var count = 0
    while count < Self.longestWay {
      let begun = Nanoseconds.now
      var passage: Passage?
      do {
        var next = try await server(after: redirection, pause, until: end)
        passage = next
        try await prepare(&next, since: start, until: end, isFirst: redirection == nil)
        let error = await send(next)
        if next.isAsked { owner?.routeWasLeft() }
        guard let error else {
          // What the last attempt has ended with says less than the reply before it.
          if .now >= end { giveUp(after: redirection, note) }
          return
        }
        redirection = (error, next)
      } catch let error as RedisError where error.isRedirection {
        redirection = (error, passage)
      } catch {
        guard redirection != nil, .now >= end, !(error is CancellationError) else {
          return fail(error)
        }
        break
      }
      let isBusy = redirection.map { Redirection($0.error) == nil } ?? false
      // A master that is cut off from the others, or has left them, does not know by which one it was replaced.
      if redirection?.error.code == "CLUSTERDOWN", let master = passage?.master.address {
        router?.cluster?.search(doubting: slot, of: master)
      }
      if isBusy, state.withLock({ $0.busyUntil > .now }) { break }
      // An attempt that cannot be answered in time is not made.
      guard .now + pause + 2 * (.now - begun) < end else { break }
      if isBusy { pause = min(pause * 2, Self.longestPause) } else { count += 1 }
    }
    giveUp(after: redirection, note)
    if let redirection { fail(redirection.error) }
  }

  /// Notes that a cluster has not executed something within its time.
  private func giveUp(
    after redirection: (error: RedisError, from: Passage?)?,
    _ note: (RedisError, Router.Master) -> Void
  ) {
    guard let (error, passage) = redirection else { return }
    let now = Nanoseconds.now
    if Redirection(error) == nil {
      state.withLock { if $0.busyUntil <= now { $0.busyUntil = now + Self.busyTime } }
    }
    if let passage { note(error, passage.master) }
  }

  /// Prepares a server.
  ///
  /// The time in which it is found and prepared is a part of that of the command.
  private func prepare(
    _ next: inout Passage,
    since start: Nanoseconds,
    until end: Nanoseconds,
    isFirst: Bool
  ) async throws {
    next.deadline = end
    try await owner?.prepare(next)
    // Most commands need no deadline but that of the connection.
    if isFirst, .now - start < Self.shortestPause { next.deadline = nil }
  }

  /// Returns the server that comes next.
  private func server(
    after redirection: (error: RedisError, from: Passage?)?,
    _ pause: Nanoseconds,
    until end: Nanoseconds
  ) async throws -> Passage {
    guard let (error, passage) = redirection, let router, let cluster = router.cluster else {
      return Passage(master: try await currentMaster(until: end))
    }
    let target = Redirection(error)
    if let target, let passage, !target.isOnce {
      let (server, connection) = (passage.master.address, passage.master.connection)
      if target.isKnown {
        try cluster.move(slot, to: target.address(from: server), accordingTo: connection)
      } else {
        try await cluster.learnMaster(of: slot, from: connection, within: Self.time(until: end))
      }
      update()
      return Passage(master: try await currentMaster(until: end))
    }
    if let target, let server = passage?.master.address,
      let address = target.isKnown
        ? target.address(from: server) : cluster.server(atPort: target.port, besides: server)
    {
      return Passage(master: try router.master(at: address), isAsked: true)
    }
    try await Task.sleep(for: .nanoseconds(pause))
    return Passage(master: try await currentMaster(until: end))
  }

  private static func time(until end: Nanoseconds) -> Duration {
    .nanoseconds(max(0, end - .now))
  }

  private func currentMaster(until end: Nanoseconds) async throws -> Router.Master {
    if let master { return master }
    guard let router, let cluster = router.cluster else { throw RedisConnectionError.closed }
    let address = try await cluster.master(of: slot, within: Self.time(until: end))
    update()
    return try master ?? router.master(at: address)
  }

  /// Follows the map of the cluster, and begins another connection if that to the master has ended.
  func update() {
    guard let router, let address = router.cluster?.knownMaster(of: slot),
      let new = try? router.master(at: address)
    else { return }
    guard master?.number != new.number else { return }
    let generation = router.nextGeneration()
    // From now on, no answer confirms what the former master has announced.
    if master != nil { owner?.routeWasLeft() }
    let former = state.withLock { state -> Router.Master? in
      guard let former = state.master else {
        state.master = new
        return nil
      }
      guard former.number != new.number else { return nil }
      (state.master, state.generation) = (new, generation)
      return former
    }
    guard let former else { return }
    // When its server gets the slot again, it can have lost data meanwhile.
    former.connection.checked.withLock { $0.doubt() }
    owner?.routeMoved(self, from: former)
  }

  /// Asks the master for a key.
  ///
  /// - Parameters:
  ///   - command: The command.
  ///   - onRedirection: Called if the master sends the command elsewhere.
  ///   - confirm: Called if the master has the slot, after the events of all messages that it has sent before its answer.
  ///     Neither must block.
  func probe(
    _ command: RedisCommand,
    onRedirection: @escaping @Sendable () -> Void = {},
    _ confirm: @escaping @Sendable () -> Void
  ) {
    guard let master else {
      Task.detached { [self] in _ = try? await passage() }
      return
    }
    master.connection.post(command).onResult { [weak self] result in
      guard let self, self.master?.number == master.number,
        router?.isActive(master.number) ?? true
      else { return }
      switch result {
      case .success: confirm()
      case .failure(let error as RedisError) where error.isRedirection:
        onRedirection()
        Task.detached { [self] in _ = try? await send(command) }
      case .failure: break
      }
    }
  }
}

extension Result<RESPValue, any Error> {
  /// The error by which a cluster sends the command elsewhere.
  fileprivate var redirection: RedisError? {
    if case .failure(let error as RedisError) = self, error.isRedirection { error } else { nil }
  }
}
