import Foundation
import Plexus
import PlexusRedis
import TestSupport
import Testing

/// The cells of the table of failures in the article for operators.
@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `The table of failures` {
  private enum Failure: String, CaseIterable, Sendable {
    case away = "away"
    case awayWithOrigin = "away, and the origin fails"
    case slow = "slower than `commandTimeout`"
    case full = "full, without eviction"
    case readOnly = "read-only: a replica"
    case failover = "replaced by a replica"
    case restartedEmpty = "restarted empty"
    case restartedOld = "restarted with an old snapshot"
    case wrongPassword = "refusing the password"
    case missingRight = "refusing commands: rights for heartbeats and events are missing"

    /// Whether heartbeats are answered, or soon again.
    var isBrief: Bool {
      switch self {
      case .full, .failover, .restartedEmpty, .restartedOld: true
      default: false
      }
    }
  }

  /// The result of a request.
  private enum Answer: Sendable {
    /// The value from before the failure.
    case copy
    case fetched, failed
  }

  /// The cells of a row. An error of `nil` is a success.
  private struct Row: Equatable, Sendable {
    /// A request of a key without a value.
    var new = Answer.fetched
    /// A request of a key with a value from before the failure.
    var old = Answer.fetched
    /// The same with `.keep(time)`.
    var kept = Answer.copy
    var clear: RedisEngineError.Kind?
    var clearEverywhere: RedisEngineError.Kind?
    var publish: RedisEngineError.Kind?
    var health = Health.isolated
  }

  private enum Health: Sendable {
    case connected, degraded, isolated
  }

  private static func row(_ failure: Failure) -> Row {
    func isolated(_ kind: RedisEngineError.Kind) -> Row {
      Row(clear: kind, clearEverywhere: kind, publish: kind)
    }
    switch failure {
    case .away: return isolated(.unreachable)
    case .awayWithOrigin:
      var row = isolated(.unreachable)
      (row.new, row.old) = (.failed, .failed)
      return row
    case .slow: return isolated(.timedOut)
    case .full: return Row(old: .copy, publish: .outOfMemory, health: .degraded)
    case .readOnly: return isolated(.notMaster)
    case .failover: return Row(old: .copy, health: .connected)
    case .restartedEmpty, .restartedOld: return Row(kept: .fetched, health: .connected)
    case .wrongPassword: return isolated(.authentication)
    case .missingRight:
      return Row(clearEverywhere: .permission, publish: .permission, health: .degraded)
    }
  }

  private struct Down: ConnectivityFailure {
    var isConnectivityFailure: Bool { true }
  }

  /// A process and its servers.
  private struct World {
    static let nearLease = Duration.milliseconds(1_600)

    let server: RedisServer
    var pair: Failover?
    let name: PointedSocket
    let origin = Guarded<Result<String, any Error>>(.success("1"))
    let node: CacheNode
    let events: EventNode

    init(_ failure: Failure, _ rule: RedisOptions.WhileIsolated) async throws {
      let isPair = failure == .failover || failure == .readOnly
      pair = isPair ? try await Failover() : nil
      server = try pair?.first ?? RedisServer("--maxmemory-policy", "noeviction")
      name = try PointedSocket(to: server)
      await RedisShell.waitUntilReady(server)
      try RedisShell.perform(["ACL SETUSER app on >secret ~* &* +@all"], on: server)
      let isUser = failure == .wrongPassword || failure == .missingRight
      let change: (inout RedisOptions) -> Void = { options in
        // A busy machine answers within these times.
        options.nearLease = World.nearLease
        options.commandTimeout = .seconds(1)
        options.eventTimeout = .seconds(2)
        options.whileIsolated = rule
        if isUser { options.credentials = { RedisCredentials(user: "app", password: "secret") } }
      }
      node = try await CacheNode(name.address, change) { [origin] _ in
        try origin.withLock { $0 }.get()
      }
      events = try EventNode(at: name.address, change)
      // The process has acknowledged the epoch, and trusts its copies.
      let monitor = try await RedisMonitor(server)
      await monitor.acknowledgements(1)
      #expect(try await node.map.request("old") == "1")
    }

    func begin(_ failure: Failure) async throws {
      let count = node.engine.status.reconnections
      let isDown = failure == .awayWithOrigin
      origin.withLock { $0 = isDown ? .failure(Down()) : .success("2") }
      switch failure {
      case .away, .awayWithOrigin: server.kill()
      case .slow: server.suspend()
      case .full: try RedisShell.perform(["CONFIG SET maxmemory 1"], on: server)
      case .readOnly:
        try pair.map { try RedisShell.perform(["REPLICAOF NO ONE"], on: $0.second) }
        // It cannot load the data of its master, which would announce that everything has changed.
        try RedisShell.perform(["REPLICAOF 127.0.0.1 1"], on: server)
      case .failover:
        await pair?.replicate()
        try pair?.exchangeRoles()
        if let pair { try name.point(to: pair.second) }
      case .restartedEmpty, .restartedOld:
        if failure == .restartedOld {
          try RedisShell.perform(["SAVE"], on: server)
          // The process knows of a later change.
          try await node.map.clear("other")
        }
        server.kill()
        try server.start()
      case .wrongPassword:
        try RedisShell.perform(
          ["ACL SETUSER app resetpass >other", "CLIENT KILL TYPE normal"],
          on: server
        )
      case .missingRight: try RedisShell.perform(["ACL SETUSER app -zadd -xadd"], on: server)
      }
      let engine = node.engine
      await Failover.poll {
        switch (failure, engine.status.caches.health) {
        case (.full, _): true
        case (_, .connected) where failure.isBrief: engine.status.reconnections > count
        // Copies are no longer used.
        case (_, .isolated), (.missingRight, .degraded):
          !failure.isBrief && (engine.status.trustAge ?? .zero) > Self.nearLease
        default: false
        }
      }
    }

    func end(_ failure: Failure) throws {
      switch failure {
      case .away, .awayWithOrigin: try server.start()
      case .slow: server.resume()
      case .full: try RedisShell.perform(["CONFIG SET maxmemory 0"], on: server)
      case .readOnly: if let pair { try name.point(to: pair.second) }
      case .failover, .restartedEmpty, .restartedOld: break
      case .wrongPassword: try RedisShell.perform(["ACL SETUSER app >secret"], on: server)
      case .missingRight: try RedisShell.perform(["ACL SETUSER app +zadd +xadd"], on: server)
      }
      origin.withLock { $0 = .success("3") }
    }

    func answer(_ key: String) async -> Answer {
      do {
        return try await node.map.request(key) == "1" ? .copy : .fetched
      } catch {
        return .failed
      }
    }

    func kind(
      of operation: () async throws -> Void,
      _ failure: Failure
    ) async throws -> RedisEngineError.Kind? {
      let kind = try await error(of: operation)
      // Of a slow server, it depends on the time.
      let isLate = failure == .slow && (kind == .broken || kind == .unreachable)
      return isLate ? .timedOut : kind
    }

    private func error(of operation: () async throws -> Void) async throws -> RedisEngineError.Kind?
    {
      do {
        try await operation()
        return nil
      } catch let error as RedisEngineError {
        return error.kind
      } catch let error as CacherError {
        return try #require(error.failures.values.first as? RedisEngineError).kind
      } catch let error as MuxRepositoryError {
        return try #require(error.errors.first as? RedisEngineError).kind
      }
    }

    var health: Health {
      switch node.engine.status.caches.health {
      case .isolated: .isolated
      case .degraded: .degraded
      default: .connected
      }
    }
  }

  @Test(arguments: Failure.allCases)
  private func `lists what requests, clears and events get`(failure: Failure) async throws {
    #expect(try article().contains("\n| \(failure.rawValue) |"))
    let world = try await World(failure, .fetch)
    let (node, events) = (world.node, world.events)
    await events.receive(EventNode.group)
    try await world.begin(failure)
    var row = Row()
    row.new = await world.answer("new")
    row.old = await world.answer("old")
    row.clear = try await world.kind(of: { try await node.map.clear("k") }, failure)
    row.clearEverywhere = try await world.kind(
      of: { try await node.repository.clearAll(.everywhere) },
      failure
    )
    let body = Array(#"{"text":"during"}"#.utf8)
    let message = LinkMessage(id: "1", type: "notes", version: 1, origin: "o", body: body)
    row.publish = try await world.kind(
      of: { _ = try await events.engine.events.publish(message, to: "notes") },
      failure
    )
    row.health = world.health
    try await check(world, after: failure)
    let keeping = try await World(failure, .keep(.seconds(3_600)))
    try await keeping.begin(failure)
    row.kept = await keeping.answer("old")
    // What it owes can fail.
    for engine in [keeping.node.engine, keeping.events.engine] { try? await engine.close() }
    #expect(row == Self.row(failure))
  }

  /// Expects that a process recovers, and pays what it owes, after the end of a failure.
  private func check(_ world: World, after failure: Failure) async throws {
    let (node, events) = (world.node, world.events)
    try world.end(failure)
    // A server is degraded until the commands that it has refused succeed.
    var number = 0
    while world.health != .connected || node.engine.status.owedRemovals > 0 {
      _ = await world.answer("after \(number)")
      number += 1
    }
    #expect(try await node.map.request("old") != "1")
    try await node.repository.clearAll(.everywhere)
    #expect(try await node.map.request("old") == "3")
    while (try? await events.publish("after")) == nil { await Task.detached {}.value }
    await events.notes.contains("after")
    for engine in [node.engine, events.engine] { try await engine.close() }
  }

  private func article() throws -> String {
    let file = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../../Sources/PlexusRedis/PlexusRedis.docc/operating-a-server.md")
    return try String(contentsOf: file.standardized, encoding: .utf8)
  }
}
