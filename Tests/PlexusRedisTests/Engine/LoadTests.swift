import Foundation
import TestSupport
import Testing

/// Four processes under load, whose server, connections and processes fail meanwhile.
@Suite(
  .fewAtOnce,
  .serialized,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Processes under load` {
  private static let nearLease = 400

  private enum Fault: String, CaseIterable, Sendable {
    case none, killedConnections, flushedScripts, stoppedProcess, killedProcess, stoppedServer
    case emptiedServer, restartedEmpty, restartedOld, fullMemory, eviction
    case failover, crash, crashWithReplicatedClears
    case movedSlot, addedMaster, promotedReplica, crashedMaster

    /// The number of replicas that a clear waits for.
    var clearReplicas: Int {
      self == .crashWithReplicatedClears || self == .crashedMaster ? 1 : 0
    }
  }

  /// The servers of a fault: one, a master and its replica, or a cluster.
  private struct Servers {
    let server: RedisServer
    var pair: Failover?
    var name: PointedSocket?
    var sentinel: SentinelServer?
    var cluster: RedisCluster?

    init(_ fault: Fault) async throws {
      switch fault {
      case .failover, .crash, .crashWithReplicatedClears:
        let pair = try await Failover()
        (self.pair, server) = (pair, pair.first)
        name = try PointedSocket(to: pair.first)
        guard fault != .failover else { return }
        sentinel = try await SentinelServer(of: pair.firstPort)
        await sentinel?.knowsReplica()
      case .movedSlot, .addedMaster, .promotedReplica, .crashedMaster:
        let hasReplicas = fault == .promotedReplica || fault == .crashedMaster
        let cluster = try await RedisCluster(replicas: hasReplicas ? 1 : 0)
        (self.cluster, server) = (cluster, cluster.server(0))
      default:
        server = try RedisServer()
        await RedisShell.waitUntilReady(server)
      }
    }
  }

  private final class Nodes {
    private(set) var processes: [NodeProcess] = []
    private let servers: Servers
    private let fault: Fault
    private let seed: Int

    init(_ servers: Servers, _ fault: Fault, seed: Int) async throws {
      (self.servers, self.fault, self.seed) = (servers, fault, seed)
      for _ in 0..<4 { processes.append(try await start()) }
      for (number, process) in processes.enumerated() { try process.send("load \(seed + number)") }
    }

    private func start() async throws -> NodeProcess {
      try await NodeProcess(
        servers.server,
        at: servers.name?.path,
        of: servers.sentinel?.port,
        in: servers.cluster,
        nearLease: `Processes under load`.nearLease,
        fetchLease: 400,
        commandTimeout: 250,
        clearReplicas: fault.clearReplicas
      )
    }

    /// Waits until the first process, which is never stopped, has performed some hundreds of further operations.
    func perform(_ hundreds: Int) async {
      let count = processes[0].allAnswers.count { $0 == "operations" }
      await processes[0].answers(count + Effort.count(hundreds)) { $0 == "operations" }
    }

    /// Kills the last process, and starts another one.
    func replaceLast() async throws {
      processes[3].die()
      await perform(3)
      processes[3] = try await start()
      try processes[3].send("load \(seed + 10)")
    }

    func end() async throws {
      for process in processes { try process.send("rest") }
      for process in processes { await process.answers("loaded") }
    }
  }

  @Test(
    .guarantee(.faultsReturnNothingOlderThanAClear),
    .guarantee(.movedSlotsAreFollowed),
    arguments: Fault.allCases
  )
  private func `processes under load return nothing older than a clear, whatever fails`(
    fault: Fault
  ) async throws {
    let servers = try await Servers(fault)
    _ = try OriginFiles(servers.server)
    let nodes = try await Nodes(
      servers,
      fault,
      seed: 100 * (Fault.allCases.firstIndex(of: fault) ?? 0)
    )
    await nodes.perform(3)
    let lost = try await cause(fault, servers, nodes)
    await nodes.perform(3)
    // On a busy machine, the processes that wait perform little meanwhile.
    while try history(on: servers).clearCount <= 5 { await nodes.perform(1) }
    try await nodes.end()
    let history = try history(on: servers)
    let violations = history.violations(lease: UInt64(Self.nearLease) * 1_000_000, lost: lost)
    #expect(violations.isEmpty, "\(violations.count): \(violations.prefix(3).map { "\($0)" })")
    #expect(history.requestCount > Effort.count(1_000))
  }

  /// Returns the history that the processes have written so far.
  private func history(on servers: Servers) throws -> HistoryState {
    let file = servers.server.folder.appending(path: "history")
    return HistoryState(try String(contentsOf: file, encoding: .utf8))
  }

  /// Lets something fail, repeatedly if that is quick.
  ///
  /// - Returns: The time of the clears that are lost, if there can be any.
  private func cause(
    _ fault: Fault,
    _ servers: Servers,
    _ nodes: Nodes
  ) async throws -> ClosedRange<UInt64>? {
    let server = servers.server
    switch fault {
    case .none: await nodes.perform(5)
    case .killedConnections:
      try await repeated(nodes, "CLIENT KILL TYPE normal SKIPME yes", on: server)
    case .flushedScripts: try await repeated(nodes, "SCRIPT FLUSH", on: server)
    case .emptiedServer: try await repeated(nodes, "FLUSHALL", on: server)
    case .stoppedProcess:
      for process in nodes.processes[1...2] {
        process.stop()
        await nodes.perform(6)
        process.goOn()
        await nodes.perform(2)
      }
    case .killedProcess: for _ in 0..<2 { try await nodes.replaceLast() }
    case .stoppedServer:
      for _ in 0..<2 {
        server.suspend()
        await nodes.perform(6)
        server.resume()
        await nodes.perform(3)
      }
    case .restartedEmpty, .restartedOld:
      for _ in 0..<2 {
        if fault == .restartedOld { try RedisShell.perform(["SAVE"], on: server) }
        await nodes.perform(2)
        server.kill()
        await nodes.perform(2)
        try server.start()
        await RedisShell.waitUntilReady(server)
        await nodes.perform(3)
      }
    case .fullMemory:
      for memory in [1, 0, 1, 0] {
        try RedisShell.perform(["CONFIG SET maxmemory \(memory)"], on: server)
        await nodes.perform(4)
      }
    case .eviction:
      let used = try memory(of: server)
      try RedisShell.perform(["CONFIG SET maxmemory-policy allkeys-lru"], on: server)
      for less in [0, 4, 8, 0, 4, 8] {
        try RedisShell.perform(["CONFIG SET maxmemory \(used - less << 10)"], on: server)
        await nodes.perform(2)
      }
      try RedisShell.perform(["CONFIG SET maxmemory 0"], on: server)
    case .failover:
      let pair = try #require(servers.pair)
      try await pair.failOver()
      try servers.name?.point(to: pair.second)
      await nodes.perform(5)
    case .crash, .crashWithReplicatedClears: return try await crash(fault, servers, nodes)
    case .movedSlot, .addedMaster, .promotedReplica, .crashedMaster:
      try await causeInCluster(fault, try #require(servers.cluster), nodes)
    }
    return nil
  }

  /// The space of the load, whose keys are in one slot.
  private static let space = "load"

  /// Lets something fail in a cluster, of which no clear is lost.
  private func causeInCluster(
    _ fault: Fault,
    _ cluster: RedisCluster,
    _ nodes: Nodes
  ) async throws {
    switch fault {
    case .movedSlot:
      for _ in 0..<4 {
        let target = (try cluster.owner(of: Self.space) + 1) % 3
        let move = try cluster.beginMove(of: Self.space, to: target)
        try cluster.migrateKeys(move, limit: cluster.keyCounts(move)[0] / 2)
        // Servers refuse scripts of several keys meanwhile.
        await nodes.perform(1)
        try await cluster.finishMove(move)
        await nodes.perform(2)
      }
    case .addedMaster:
      let master = try await cluster.addMaster()
      let owner = try cluster.owner(of: Self.space)
      for target in [master, owner, master] {
        try await cluster.moveSlot(of: Self.space, to: target)
        await nodes.perform(3)
      }
    case .promotedReplica:
      for _ in 0..<2 {
        try await cluster.promoteReplica(of: try cluster.owner(of: Self.space))
        await nodes.perform(3)
      }
    default:
      let owner = try cluster.owner(of: Self.space)
      try await cluster.replicate(Self.space)
      await cluster.crash(owner)
      await nodes.perform(3)
      // Clears have a replica again.
      try await cluster.restart(owner)
      await nodes.perform(5)
    }
  }

  private func repeated(_ nodes: Nodes, _ command: String, on server: RedisServer) async throws {
    for _ in 0..<8 {
      try RedisShell.perform([command], on: server)
      await nodes.perform(1)
    }
  }

  /// Lets the master crash, which the sentinel replaces by its replica.
  ///
  /// - Returns: The time of the clears that the replica may not have.
  private func crash(
    _ fault: Fault,
    _ servers: Servers,
    _ nodes: Nodes
  ) async throws -> ClosedRange<UInt64>? {
    let pair = try #require(servers.pair)
    let begin = Self.now
    await pair.replicate()
    await nodes.perform(1)
    pair.first.kill()
    let end = Self.now
    await Failover.poll {
      (try? RedisShell.reply("ROLE", on: pair.second))?.contains("master") == true
    }
    await nodes.perform(3)
    // Clears have a replica again.
    try pair.first.start()
    await RedisShell.waitUntilReady(pair.first)
    try RedisShell.perform(["REPLICAOF 127.0.0.1 \(pair.secondPort)"], on: pair.first)
    await nodes.perform(5)
    return fault == .crash ? begin...end : nil
  }

  /// The time of the clock of the histories.
  private static var now: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  /// The number of bytes that a server uses.
  private func memory(of server: RedisServer) throws -> Int {
    let text = try RedisShell.reply("INFO memory", on: server)
    let match = try #require(text.firstMatch(of: /used_memory:(\d+)/))
    return try #require(Int(match.1))
  }
}
