import Foundation
import Plexus
import PlexusRedis
import PlexusTesting
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

  /// A process and its servers.
  private struct World {
    static let nearLease = Duration.milliseconds(1_600)

    let server: RedisServer
    var pair: Failover?
    let name: PointedSocket
    let origin = Guarded<Result<String, any Error>>(.success("1"))
    let node: CacheNode
    /// Another process.
    let other: CacheNode
    let events: EventNode
    static let eventTimeout = Duration.seconds(4)

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
        options.eventTimeout = World.eventTimeout
        options.whileIsolated = rule
        if isUser { options.credentials = { RedisCredentials(user: "app", password: "secret") } }
      }
      // The processes have acknowledged the epoch, and trust their copies.
      let monitor = try await RedisMonitor(server)
      let fetch: @Sendable (String) throws -> String = { [origin] _ in
        try origin.withLock { $0 }.get()
      }
      node = try await CacheNode(name.address, change, fetch: fetch)
      other = try await CacheNode(name.address, change, fetch: fetch)
      events = try EventNode(at: name.address, change)
      await monitor.acknowledgements(2)
      for node in [node, other] { #expect(try await node.map.request("old") == "1") }
    }

    func begin(_ failure: Failure) async throws {
      let engines = [node.engine, other.engine]
      let counts = engines.map(\.status.reconnections)
      let isDown = failure == .awayWithOrigin
      origin.withLock { $0 = isDown ? .failure(Offline()) : .success("2") }
      switch failure {
      case .away, .awayWithOrigin: server.kill()
      case .slow:
        server.suspend()
        for node in [node, other] { #expect(try await node.map.request("first") == "2") }
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
          try await send("since")
        }
        server.kill()
        try server.start()
      case .wrongPassword:
        try RedisShell.perform(
          ["ACL SETUSER app resetpass >other", "CLIENT KILL TYPE normal"],
          on: server
        )
      case .missingRight:
        // A change of the fence needs a heartbeat.
        let commands = ["ACL SETUSER app -zadd -xadd", "SET {values}:2:fence 0"]
        try RedisShell.perform(commands, on: server)
      }
      await Failover.poll {
        zip(engines, counts).allSatisfy { engine, count in
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
    }

    /// The server that answers during the failure, if there is one.
    func answering(_ failure: Failure) -> RedisServer? {
      failure.isBrief || failure == .missingRight
        ? failure == .failover ? pair?.second : server : nil
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

    /// Returns the cell of a request, which both processes make, one after the other.
    func request(_ key: String, _ failure: Failure) async throws -> String {
      let server = answering(failure)
      var monitor: RedisMonitor?
      if let server { monitor = try await RedisMonitor(server) }
      var values: [String?] = []
      for node in [node, other] { values.append(try? await node.map.request(key)) }
      let count = [node, other].reduce(0) { $0 + $1.fetches.entries.count { $0 == key } }
      let before = key == "old" ? 1 : 0
      switch (values, count - before) {
      case ([nil, nil], _): return "error of the origin"
      case (["1", "1"], 0):
        var looks = 0
        if let monitor, let server {
          looks = try await monitor.count(with: "values/\(key)", on: server)
        }
        return looks > 0 ? "copy, after a look" : "copy"
      case (["2", "2"], 1): return "fetches, once for all processes"
      case (["2", "2"], 2):
        return server == nil ? "fetches" : "fetches, stores nothing"
      default: return "\(values) after \(count - before) fetches"
      }
    }

    /// Returns the cell of clears.
    func clear(_ failure: Failure) async throws -> String {
      let key = try await kind { try await node.map.clear("k") }
      let tag = try await kind { try await node.map.clear(tags: ["k"]) }
      let all = try await kind { try await node.repository.clearAll(.everywhere) }
      let isOwed = node.engine.status.owedRemovals > 0
      switch (key, tag, all) {
      case (nil, nil, nil): return isOwed ? "returns, is owed" : "returns"
      case (nil, nil, let kind?):
        return "returns for keys and tags; with `.everywhere` throws `\(kind)`"
      default:
        let kinds = [key, tag, all].map { $0.map { "\($0)" } ?? "returns" }
        return "throws \(list(kinds, failure, ["timedOut", "broken", "unreachable"]))"
          + (isOwed ? ", is owed" : "")
      }
    }

    /// Returns the cell of publishing.
    func publish(_ failure: Failure) async throws -> String {
      let begin = ContinuousClock.now
      let kind = try await kind { try await send("during") }
      // The last pause between two attempts is shorter.
      let isLate = begin.duration(to: .now) > Self.eventTimeout - .seconds(1)
      guard let kind else { return "is published" }
      let kinds = list(["\(kind)"], failure, ["timedOut", "unreachable"])
      return "throws \(kinds) \(isLate ? "after `eventTimeout`" : "at once")"
    }

    private func send(_ text: String) async throws {
      let body = Array("{\"text\":\"\(text)\"}".utf8)
      let message = LinkMessage(id: text, type: "notes", version: 1, origin: "o", body: body)
      _ = try await events.engine.events.publish(message, to: "notes")
    }

    /// Returns what the cell of publishing says about earlier events and groups, which continue in all cases.
    func groups(_ failure: Failure) async throws -> String {
      switch failure {
      case .away, .awayWithOrigin, .wrongPassword: return "; groups continue after the reconnection"
      case .readOnly: return "; groups continue with the new master"
      case .slow: return "; it can have been stored"
      case .full: return "; groups continue"
      case .missingRight: return ""
      case .failover, .restartedEmpty, .restartedOld:
        let server = try #require(answering(failure))
        // Two events were published before the failure, one after the snapshot, and the last one during the failure.
        let reply = try RedisShell.run("XLEN {notes}:stream", on: server)
        switch reply {
        case ":1\r\n": return "; earlier events are lost"
        case ":3\r\n" where failure == .restartedOld: return "; events since the snapshot are lost"
        case ":3\r\n": return "; groups continue"
        default: return "; \(reply)"
        }
      }
    }

    /// Returns some kinds of errors as the article has them.
    ///
    /// - Parameter late: The kinds of which a server that is slow causes one, depending on the time.
    private func list(_ kinds: [String], _ failure: Failure, _ late: [String]) -> String {
      let kinds = failure == .slow && kinds.allSatisfy(late.contains) ? late : Array(Set(kinds))
      let quoted = kinds.map { "`\($0)`" }
      return (quoted.dropLast(2) + [quoted.suffix(2).joined(separator: " or ")])
        .joined(separator: ", ")
    }

    private func kind(
      of operation: () async throws -> Void
    ) async throws -> RedisEngineError.Kind? {
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

    var health: String {
      switch node.engine.status.caches.health {
      case .isolated: "isolated"
      case .degraded: "degraded"
      default: "connected"
      }
    }
  }

  @Test(.guarantee(.operatorTableIsMeasured), arguments: Failure.allCases)
  private func `the table of failures lists what requests, clears and events get`(
    failure: Failure
  ) async throws {
    let world = try await World(failure, .fetch)
    let (node, events, gate) = (world.node, world.events, Gate())
    events.observe { if $0.text == "held" { try await gate.wait() } }
    await events.connect(EventNode.group)
    try await events.publish("held", "next")
    await events.notes.contains("held")
    if failure != .full { gate.open() }
    let isIsolated = Guarded(false)
    let healths = node.engine.health()
    let listening = Task {
      for await case .isolated in healths { isIsolated.withLock { $0 = true } }
    }
    try await world.begin(failure)
    var cells = [
      try await world.request("new", failure), try await world.request("old", failure), "",
      try await world.clear(failure), try await world.publish(failure), "`\(world.health)`",
    ]
    if failure.isBrief, isIsolated.withLock({ $0 }) { cells[5] = "`isolated`, then \(cells[5])" }
    if failure == .slow, node.engine.status.timedOutLooks > 0 {
      cells[0] += "; the first request waits for the timeout"
    }
    gate.open()
    if failure == .full {
      await events.notes.contains("next")
      await events.acknowledgedAll()
    }
    cells[4] += try await world.groups(failure)
    try await check(world, after: failure)
    listening.cancel()
    let keeping = try await World(failure, .keep(.seconds(3_600)))
    try await keeping.begin(failure)
    cells[2] = try await keeping.request("old", failure)
    // What it owes can fail.
    for engine in [keeping.node, keeping.other].map(\.engine) + [keeping.events.engine] {
      try? await engine.close()
    }
    let article = try Self.row(failure)
    #expect(cells.count == article.count)
    for (measured, cell) in zip(cells, article) { #expect(measured == cell) }
  }

  @Test func `the table of failures has a row for each failure that is measured, and no other`()
    throws
  {
    #expect(try Self.table().map(\.name) == Failure.allCases.map(\.rawValue))
  }

  /// Expects that a process recovers, and pays what it owes, after the end of a failure.
  private func check(_ world: World, after failure: Failure) async throws {
    let (node, events) = (world.node, world.events)
    try world.end(failure)
    // A server is degraded until the commands that it has refused succeed.
    var number = 0
    while world.health != "connected" || node.engine.status.owedRemovals > 0 {
      _ = try? await node.map.request("after \(number)")
      number += 1
    }
    #expect(try await node.map.request("old") != "1")
    try await node.repository.clearAll(.everywhere)
    #expect(try await node.map.request("old") == "3")
    while (try? await events.publish("after")) == nil { await Task.detached {}.value }
    await events.notes.contains("after")
    for engine in [node.engine, world.other.engine, events.engine] { try await engine.close() }
  }

  /// The cells of a row in the article.
  private static func row(_ failure: Failure) throws -> [String] {
    try #require(table().first { $0.name == failure.rawValue }).cells
  }

  /// The rows of the table in the article.
  private static func table() throws -> [(name: String, cells: [String])] {
    let file = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../../Sources/PlexusRedis/PlexusRedis.docc/operating-a-server.md")
    let article = try String(contentsOf: file.standardized, encoding: .utf8)
    let lines = article.split(separator: "\n").drop { !$0.hasPrefix("| The server is |") }
    var rows: [(name: String, cells: [String])] = []
    for line in lines.dropFirst(2).prefix(while: { $0.hasPrefix("|") }) {
      var cells = line.dropFirst().dropLast().split(separator: "|")
        .map { $0.trimmingCharacters(in: .whitespaces) }
      let name = cells.removeFirst()
      if let above = rows.last {
        cells = zip(cells, above.cells).map { $0 == "as above" ? $1 : $0 }
      }
      rows.append((name, cells))
    }
    return rows
  }
}
