import Foundation
import Plexus
import PlexusRedis
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Caches over a server that restarts while other processes continue` {
  /// A process that is cut off, and another one, over one server.
  private struct World {
    let server: RedisServer
    let name: PointedSocket
    let origin = Guarded("1")
    let proxy: RedisProxy
    let node: CacheNode
    let other: CacheNode

    init(_ server: RedisServer? = nil) async throws {
      let server = try server ?? RedisServer()
      self.server = server
      await RedisShell.waitUntilReady(server)
      name = try PointedSocket(to: server)
      proxy = try RedisProxy(server)
      let fetch: @Sendable (String) -> String = { [origin] _ in origin.withLock { $0 } }
      node = try await CacheNode(proxy.address, fetch: fetch)
      other = try await CacheNode(name.address, fetch: fetch)
    }

    /// Starts another process.
    func newcomer() async throws -> CacheNode {
      try await CacheNode(name.address) { [origin] _ in origin.withLock { $0 } }
    }

    /// Restarts the server with what it has saved, while the first process is cut off.
    ///
    /// - Parameter others: The other processes, which reach it again; the second one by default.
    func restart(reaching others: [CacheNode]? = nil) async throws {
      let others = others ?? [other]
      proxy.refuse()
      server.kill()
      for node in [node] + others { await node.engine.becomesIsolated() }
      try server.start()
      await RedisShell.waitUntilReady(server)
      for other in others { await other.engine.becomesConnected() }
    }

    /// Lets the first process reach the server.
    func reconnect() async {
      proxy.endRefusal()
      await node.engine.becomesConnected()
    }

    /// Lets a process draw more tokens than were lost.
    static func draw(_ count: Int = 40, by node: CacheNode) async throws {
      for number in 0..<count { _ = try await node.map.request("new \(number)") }
    }

    var epoch: String {
      get throws { try RedisShell.reply("GET {values}:2:epoch", on: server) }
    }

    func end() async throws {
      for node in [node, other] { try await node.close() }
    }
  }

  /// A change that an old snapshot does not have.
  enum Change: CaseIterable, Sendable {
    case clear, clearOfTag, refresh, store

    fileprivate func make(by node: CacheNode) async throws {
      switch self {
      case .clear: try await node.map.clear("k")
      case .clearOfTag: try await node.map.clear(tags: ["k"])
      case .refresh: _ = try await node.map.refresh("k").request("k")
      case .store:
        try await node.map.clear("k")
        _ = try await node.map.request("k")
      }
    }
  }

  @Test(.guarantee(.knownRemovalsStay), arguments: Change.allCases, [false, true])
  func `a change is not undone by an old snapshot, however many tokens others draw after it`(
    change: Change,
    isNew: Bool
  ) async throws {
    let world = try await World()
    #expect(try await world.node.map.request("k") == "1")
    try RedisShell.perform(["SAVE"], on: world.server)
    world.origin.withLock { $0 = "2" }
    for _ in 0..<3 { try await change.make(by: world.node) }
    try await world.restart()
    let other = isNew ? try await world.newcomer() : world.other
    try await World.draw(by: other)
    await world.reconnect()
    for _ in 0..<3 { #expect(try await world.node.map.request("k") == "2") }
    // It can have used its copy: now it has asked the server.
    _ = try await world.node.map.request("unknown")
    #expect(try await other.map.request("k") == "2")
    if isNew { try await other.close() }
    try await world.end()
  }

  @Test(.guarantee(.knownRemovalsStay))
  func `a process that has heard of a clear keeps it from being undone`() async throws {
    let world = try await World()
    #expect(try await world.node.map.request("k") == "1")
    try RedisShell.perform(["SAVE"], on: world.server)
    world.origin.withLock { $0 = "2" }
    // The process that clears does not survive.
    for _ in 0..<3 { try await world.other.map.clear("k") }
    try await world.other.repository.clear(tags: ["x"], .everywhere)
    try await world.other.close()
    try await world.restart(reaching: [])
    try await World.draw(by: try await world.newcomer())
    await world.reconnect()
    #expect(try await world.node.map.request("k") == "2")
    try await world.node.close()
  }

  @Test(.guarantee(.knownRemovalsStay))
  func `a change is not undone although the history that was lost had a restart itself`()
    async throws
  {
    let world = try await World()
    #expect(try await world.node.map.request("k") == "1")
    try RedisShell.perform(["SAVE"], on: world.server)
    let dump = world.server.folder.appending(path: "dump.rdb")
    let snapshot = try Data(contentsOf: dump)
    try await World.draw(by: world.other)
    try RedisShell.perform(["SAVE"], on: world.server)
    try await world.restart()
    await world.reconnect()
    world.origin.withLock { $0 = "2" }
    for _ in 0..<3 { try await world.node.map.clear("k") }
    try await world.other.close()
    try snapshot.write(to: dump)
    try await world.restart(reaching: [])
    try await World.draw(100, by: try await world.newcomer())
    await world.reconnect()
    #expect(try await world.node.map.request("k") == "2")
    try await world.node.close()
  }

  @Test(.guarantee(.losslessRestartsEmptyNoCache))
  func `a restart that loses nothing empties no cache`() async throws {
    let world = try await World()
    for round in 1...3 {
      #expect(try await world.node.map.request("k") == "1")
      try await world.node.map.clear("\(round)")
      let epoch = try world.epoch
      try RedisShell.perform(["SAVE"], on: world.server)
      try await world.restart()
      try await World.draw(by: world.other)
      await world.reconnect()
      #expect(try await world.node.map.request("k") == "1")
      try await world.node.map.clear("a")
      #expect(try world.epoch == epoch)
    }
    #expect(world.node.fetchCount == 1)
    try await world.end()
  }

  @Test(.guarantee(.losslessRestartsEmptyNoCache))
  func `a server that forgets its scripts empties no cache`() async throws {
    let world = try await World()
    #expect(try await world.node.map.request("k") == "1")
    let epoch = try world.epoch
    for _ in 0..<10 {
      try RedisShell.perform(["SCRIPT FLUSH"], on: world.server)
      let newcomer = try await world.newcomer()
      #expect(try await newcomer.map.request("k") == "1")
      try await newcomer.map.clear("other")
      try await newcomer.close()
    }
    #expect(try await world.node.map.request("k") == "1")
    try await world.node.map.clear("other")
    #expect(try world.epoch == epoch)
    try await world.end()
  }

  /// Expects that clears stay although another server becomes the master that they have not reached, and another process
  /// uses that one first.
  ///
  /// - Parameters:
  ///   - node: The process that clears the key, whose value was "1".
  ///   - name: The name of the master for this process.
  ///   - former: The master until then.
  ///   - master: The other server.
  ///   - origin: The value at the origin.
  private func expectClears(
    by node: CacheNode,
    at name: PointedSocket,
    toOutlast former: RedisServer,
    on master: RedisServer,
    _ origin: Guarded<String>
  ) async throws {
    try RedisShell.perform(["REPLICAOF NO ONE"], on: master)
    origin.withLock { $0 = "2" }
    for _ in 0..<3 { try await node.map.clear("k") }
    former.kill()
    await node.engine.becomesIsolated()
    let newcomer = try await CacheNode(master.address) { _ in origin.withLock { $0 } }
    try await World.draw(by: newcomer)
    try name.point(to: master)
    await node.engine.becomesConnected()
    #expect(try await node.map.request("k") == "2")
    try await newcomer.close()
  }

  @Test(.guarantee(.knownRemovalsStay))
  func `a clear is not undone by a server that was the master before`() async throws {
    let pair = try await Failover()
    let origin = Guarded("1")
    let early = try await CacheNode(pair.first.address) { _ in origin.withLock { $0 } }
    #expect(try await early.map.request("k") == "1")
    // The second server becomes the master, and the first one has its data.
    await pair.replicate()
    try pair.exchangeRoles()
    let name = try PointedSocket(to: pair.second)
    let survivor = try await CacheNode(name.address) { _ in origin.withLock { $0 } }
    #expect(try await survivor.map.request("k") == "1")
    try await survivor.map.clear("other")
    await Failover.poll { [pair] in
      func tokens(_ server: RedisServer) -> String? {
        try? RedisShell.reply("GET {values}:2:tokens", on: server)
      }
      return tokens(pair.first) == tokens(pair.second)
    }
    // What follows does not reach the first server, which becomes the master again.
    try await expectClears(by: survivor, at: name, toOutlast: pair.second, on: pair.first, origin)
    for node in [early, survivor] { try await node.close() }
  }

  @Test func `a change is not undone by a snapshot from between a restart and the next change`()
    async throws
  {
    let world = try await World()
    #expect(try await world.node.map.request("k") == "1")
    try RedisShell.perform(["SAVE"], on: world.server)
    try await world.restart()
    await world.reconnect()
    try RedisShell.perform(["SAVE"], on: world.server)
    world.origin.withLock { $0 = "2" }
    for _ in 0..<3 { try await world.node.map.clear("k") }
    try await world.restart()
    try await World.draw(by: world.other)
    await world.reconnect()
    #expect(try await world.node.map.request("k") == "2")
    _ = try await world.node.map.request("unknown")
    #expect(try await world.other.map.request("k") == "2")
    try await world.end()
  }

  @Test func `a clear is not undone by a replica from between a restart and the next change`()
    async throws
  {
    let pair = try await Failover()
    let origin = Guarded("1")
    let name = try PointedSocket(to: pair.first)
    let survivor = try await CacheNode(name.address) { _ in origin.withLock { $0 } }
    #expect(try await survivor.map.request("k") == "1")
    await pair.save()
    pair.first.kill()
    await survivor.engine.becomesIsolated()
    try pair.first.start()
    await RedisShell.waitUntilReady(pair.first)
    await survivor.engine.becomesConnected()
    await pair.replicate()
    // What follows does not reach the second server.
    try await expectClears(by: survivor, at: name, toOutlast: pair.first, on: pair.second, origin)
    try await survivor.close()
  }

  @Test func `a clear is not undone by a master that has followed a server without it`()
    async throws
  {
    let pair = try await Failover()
    let origin = Guarded("1")
    let proxy = try RedisProxy(pair.first)
    let survivor = try await CacheNode(proxy.address) { _ in origin.withLock { $0 } }
    #expect(try await survivor.map.request("k") == "1")
    await pair.replicate()
    try RedisShell.perform(["REPLICAOF NO ONE"], on: pair.second)
    origin.withLock { $0 = "2" }
    for _ in 0..<3 { try await survivor.map.clear("k") }
    proxy.refuse()
    await survivor.engine.becomesIsolated()
    // No process uses the second server meanwhile.
    try RedisShell.perform(["SET mark second"], on: pair.second)
    try RedisShell.perform(["REPLICAOF 127.0.0.1 \(pair.secondPort)"], on: pair.first)
    await Failover.poll { [pair] in
      (try? RedisShell.reply("GET mark", on: pair.first))?.contains("second") == true
    }
    try RedisShell.perform(["REPLICAOF NO ONE"], on: pair.first)
    let newcomer = try await CacheNode(pair.first.address) { _ in origin.withLock { $0 } }
    try await World.draw(by: newcomer)
    proxy.endRefusal()
    await survivor.engine.becomesConnected()
    #expect(try await survivor.map.request("k") == "2")
    #expect(try await newcomer.map.request("k") == "2")
    for node in [survivor, newcomer] { try await node.close() }
  }

  /// A server with a process that is cut off after clears that its former replica does not have, and another process.
  private struct Split {
    let pair: Failover
    let origin = Guarded("1")
    let proxies: [RedisProxy]
    let node: CacheNode
    let other: CacheNode

    init() async throws {
      let pair = try await Failover()
      self.pair = pair
      proxies = [try RedisProxy(pair.first), try RedisProxy(pair.first)]
      let fetch: @Sendable (String) -> String = { [origin] _ in origin.withLock { $0 } }
      node = try await CacheNode(proxies[0].address, fetch: fetch)
      other = try await CacheNode(proxies[1].address, fetch: fetch)
      #expect(try await node.map.request("k") == "1")
      _ = try await other.map.request("o")
      await pair.replicate()
      try RedisShell.perform(["REPLICAOF NO ONE"], on: pair.second)
      origin.withLock { $0 = "2" }
      for _ in 0..<3 { try await node.map.clear("k") }
      proxies[0].refuse()
      await node.engine.becomesIsolated()
    }

    /// Lets the server load the data of its former replica, and promotes it again.
    func loadOlder() async throws {
      try RedisShell.perform(["SET mark second"], on: pair.second)
      try RedisShell.perform(["REPLICAOF 127.0.0.1 \(pair.secondPort)"], on: pair.first)
      await Failover.poll { [pair] in
        (try? RedisShell.reply("GET mark", on: pair.first))?.contains("second") == true
      }
      try RedisShell.perform(["REPLICAOF NO ONE"], on: pair.first)
    }

    /// Expects that no process is given the value from before the clears.
    func end() async throws {
      try await World.draw(by: other)
      proxies[0].endRefusal()
      await node.engine.becomesConnected()
      #expect(try await node.map.request("k") == "2")
      #expect(try await other.map.request("k") == "2")
      for node in [node, other] { try await node.close() }
    }
  }

  @Test(arguments: [false, true])
  func `a kept connection undoes no clear that its master has lost meanwhile`(
    isStalled: Bool
  ) async throws {
    let split = try await Split()
    if isStalled { split.proxies[1].stall() }
    let other = split.other
    // They reach the server once it is promoted, before the process hears that all keys have changed.
    let requests = (0..<(isStalled ? 20 : 0)).map { number in
      Task { try await other.map.request("stalled \(number)") }
    }
    if isStalled { await Failover.poll { other.engine.status.caches.unansweredCommands > 0 } }
    try await split.loadOlder()
    split.proxies[1].resume()
    for request in requests { _ = try await request.value }
    try await split.end()
  }

  @Test func `a clear is not undone by a master that follows a server without it during a check`()
    async throws
  {
    let split = try await Split()
    split.proxies[1].refuse()
    await split.other.engine.becomesIsolated()
    split.proxies[1].hold(before: "EVALSHA")
    split.proxies[1].endRefusal()
    await Failover.poll { split.proxies[1].isHeld }
    try await split.loadOlder()
    split.proxies[1].releaseHeld()
    await split.other.engine.becomesConnected()
    try await split.end()
  }

  @Test(arguments: ["get", "script", "eval|evalsha"])
  func `a clear is not undone although a right was missing after the restart`(
    rights: String
  ) async throws {
    let world = try await World()
    let proxy = try RedisProxy(world.server)
    let late = try await CacheNode(proxy.address) { [world] _ in world.origin.withLock { $0 } }
    try await world.other.close()
    #expect(try await world.node.map.request("k") == "1")
    _ = try await late.map.request("o")
    try RedisShell.perform(["SAVE"], on: world.server)
    world.origin.withLock { $0 = "2" }
    for _ in 0..<3 { try await world.node.map.clear("k") }
    proxy.refuse()
    try await world.restart(reaching: [])
    await late.engine.becomesIsolated()
    let refused = rights.split(separator: "|").map { "-\($0)" }.joined(separator: " ")
    try RedisShell.perform(["ACL SETUSER default \(refused)"], on: world.server)
    proxy.endRefusal()
    await Failover.poll {
      if case .isolated = late.engine.status.caches.health { false } else { true }
    }
    try RedisShell.perform(["ACL SETUSER default +@all"], on: world.server)
    try await World.draw(by: late)
    await world.reconnect()
    #expect(try await world.node.map.request("k") == "2")
    #expect(try await late.map.request("k") == "2")
    for node in [world.node, late] { try await node.close() }
  }

  @Test func `a server that is emptied keeps its connections`() async throws {
    let world = try await World()
    #expect(try await world.node.map.request("k") == "1")
    for round in 1...3 {
      try RedisShell.perform(["FLUSHALL"], on: world.server)
      world.origin.withLock { $0 = "\(round)" }
      for node in [world.node, world.other] {
        #expect(try await node.map.request("k \(round)") == "\(round)")
      }
    }
    #expect(world.node.engine.status.reconnections == 0)
    #expect(world.other.engine.status.reconnections == 0)
    try await world.end()
  }
}
