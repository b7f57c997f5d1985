import Foundation
import PlexusRedis
import TestSupport

/// The masters of a Redis Cluster on ports of 127.0.0.1, and their replicas.
///
/// A server has a number, which it keeps whatever its role is: first come the masters, then the replicas of the first
/// master, and so on, then the masters that are added. The servers end with the last reference.
final class RedisCluster: Sendable {
  /// A server of a cluster.
  struct Node: Sendable {
    let server: RedisServer
    let port: UInt16
    /// The port by which the servers exchange the state of the cluster.
    let bus: UInt16
    let id: String
  }

  /// A slot that moves from a master to another one.
  struct Move: Sendable {
    let slot: Int
    let source: Int
    let target: Int
  }

  /// A command of an operator that a server has refused.
  struct Refused: Error, CustomStringConvertible {
    let description: String
  }

  private struct State {
    var nodes: [Node] = []
    /// The servers that were killed, or removed from the cluster.
    var gone: Set<Int> = []
  }

  /// The number of slots of a cluster.
  static let slotCount = 16_384
  /// The number of keys that move at the same time.
  private static let batch = 10

  private let state = Guarded(State())
  private let options: [String]
  private let encryption: TLSServer?

  /// Starts a cluster, and waits until all of its servers serve all slots, which are divided among the masters in order.
  ///
  /// With replicas, a master that answers none of the others for two seconds is replaced: a shorter time would replace
  /// masters that only wait for a busy machine. Without replicas, nothing is gained by a short time, and it is 15 seconds.
  ///
  /// - Parameters:
  ///   - masters: The number of masters. A crash of a master is noticed only if at least two others are left.
  ///   - replicas: The number of replicas of each master.
  ///   - encryption: The server whose certificate the servers have, if they are reached with TLS only.
  ///   - options: Options of their command lines in addition to those for the cluster.
  init(
    masters: Int = 3,
    replicas: Int = 0,
    encryption: TLSServer? = nil,
    options: [String] = []
  ) async throws {
    self.encryption = encryption
    let timeout = replicas > 0 ? 2_000 : 15_000
    self.options =
      [
        "--bind", "127.0.0.1", "--cluster-enabled", "yes", "--cluster-node-timeout", "\(timeout)",
        // A replica is promoted although the machine was busy.
        "--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0",
        // A master whose last slot has moved stays one.
        "--cluster-allow-replica-migration", "no",
        "--repl-ping-replica-period", "1",
      ] + options
    for _ in 0..<masters * (1 + replicas) { try await startNode() }
    for master in 0..<masters {
      let first = Self.slotCount * master / masters
      let last = Self.slotCount * (master + 1) / masters - 1
      try perform("CLUSTER ADDSLOTSRANGE \(first) \(last)", at: master)
    }
    // Servers of the same epoch would need some rounds to agree.
    for index in nodes.indices { try perform("CLUSTER SET-CONFIG-EPOCH \(index + 1)", at: index) }
    for index in nodes.indices.dropFirst() { try meet(index) }
    await settle()
    for replica in nodes.indices.dropFirst(masters) {
      await follow(nodes[(replica - masters) / replicas].id, by: replica)
    }
    await settle()
  }

  // MARK: - Servers

  /// The servers.
  var nodes: [Node] { state.withLock { $0.nodes } }

  /// The numbers of the servers that were neither killed nor removed.
  private var living: [Int] {
    state.withLock { state in state.nodes.indices.filter { !state.gone.contains($0) } }
  }

  /// The addresses of all servers.
  var addresses: [RedisAddress] { nodes.indices.map { address(of: $0) } }

  /// The address of the cluster.
  var address: RedisAddress { .cluster(addresses) }

  /// The ports of all servers.
  var ports: [UInt16] { nodes.map(\.port) }

  /// Returns the address of a server.
  func address(of index: Int) -> RedisAddress {
    let port = nodes[index].port
    guard let encryption else { return .tcp(host: "127.0.0.1", port: port) }
    return .tls(host: "127.0.0.1", port: port, ca: encryption.authority)
  }

  /// Returns a server.
  func server(_ index: Int) -> RedisServer { nodes[index].server }

  /// Starts a server, which knows no other one.
  ///
  /// Another program can take a free port before the server does: then the server gets other ones.
  private func startNode() async throws {
    while true {
      let (port, bus) = try Self.freePorts()
      let ports =
        encryption.map { encryption in
          encryption.options(port: port) + ["--tls-cluster", "yes", "--tls-replication", "yes"]
        } ?? ["--port", "\(port)"]
      let server = try RedisServer(options: ports + ["--cluster-port", "\(bus)"] + options)
      guard await Self.isReady(server, afterFailures: 0) else { continue }
      guard let id = try RedisShell.fullReply(to: "CLUSTER MYID", on: server).text else { continue }
      let node = Node(server: server, port: port, bus: bus, id: id)
      state.withLock { $0.nodes.append(node) }
      return
    }
  }

  /// Returns two ports that were free, and that the system gives to no other caller at the same time.
  private static func freePorts() throws -> (UInt16, UInt16) {
    let (first, second) = (try LoopbackSocket(), try LoopbackSocket())
    return (first.port, second.port)
  }

  /// Waits until a server that was started answers, or has ended because it cannot listen.
  private static func isReady(_ server: RedisServer, afterFailures count: Int) async -> Bool {
    let isReady = Guarded(false)
    await Failover.poll {
      let reply = (try? RedisShell.run("PING", on: server)) ?? ""
      isReady.withLock { $0 = reply.hasPrefix("+PONG") }
      return reply.hasPrefix("+PONG") || failureCount(of: server) > count
    }
    return isReady.withLock { $0 }
  }

  /// The number of times that a server has ended because it could not listen.
  private static func failureCount(of server: RedisServer) -> Int {
    let log = try? String(contentsOf: server.folder.appending(path: "log.txt"), encoding: .utf8)
    return log?.ranges(of: "aborting.").count ?? 0
  }

  /// Lets a server know the others, by the first one that lives.
  private func meet(_ index: Int) throws {
    let node = nodes[index]
    let other = living.first { $0 != index } ?? 0
    try perform("CLUSTER MEET 127.0.0.1 \(node.port) \(node.bus)", at: other)
  }

  /// Adds a master without slots, and waits until all others know it.
  ///
  /// - Returns: Its number.
  func addMaster() async throws -> Int {
    try await startNode()
    let index = nodes.count - 1
    try meet(index)
    await settle()
    return index
  }

  /// Removes a master without slots from the cluster, as an operator does; its server continues.
  func removeMaster(_ index: Int) throws {
    let id = nodes[index].id
    state.withLock { _ = $0.gone.insert(index) }
    try perform("CLUSTER RESET", at: index)
    try performEverywhere("CLUSTER FORGET \(id)")
  }

  /// Ends a server as a crash does.
  func kill(_ index: Int) {
    state.withLock { _ = $0.gone.insert(index) }
    server(index).kill()
  }

  /// Starts a server again, with no data, and waits until all servers agree on its role.
  func restart(_ index: Int) async throws {
    let server = server(index)
    while true {
      let count = Self.failureCount(of: server)
      try server.start()
      if await Self.isReady(server, afterFailures: count) { break }
      // Another program has its port for now.
      server.kill()
    }
    state.withLock { _ = $0.gone.remove(index) }
    await settle()
  }

  /// Lets a master crash, and waits until one of its replicas has replaced it.
  func crash(_ index: Int) async {
    let replicas = replicas(of: index)
    kill(index)
    await Failover.poll { [self] in replicas.contains { role(of: $0) == "master" } }
    await settle()
  }

  /// Lets a replica of a master become the master, as an operator does, and waits until all servers agree.
  ///
  /// - Returns: The number of the new master.
  @discardableResult
  func promoteReplica(of index: Int) async throws -> Int {
    guard let replica = replicas(of: index).first else {
      throw Refused(description: "The server \(index) has no replica.")
    }
    let last = Guarded<ContinuousClock.Instant?>(nil)
    await Failover.poll { [self] in
      if role(of: replica) == "master" { return true }
      // The servers give up after five seconds.
      let isDue = last.withLock { last in
        if let time = last, time.duration(to: .now) < .seconds(6) { return false }
        last = .now
        return true
      }
      if isDue { _ = text("CLUSTER FAILOVER", at: replica) }
      return false
    }
    await settle()
    return replica
  }

  // MARK: - Slots

  /// Returns the slot of the keys of a space or a topic.
  func slot(of name: String) throws -> Int {
    guard let slot = text("CLUSTER KEYSLOT \(name)", at: living[0]).flatMap({ Int($0) }) else {
      throw Refused(description: "There is no slot of \(name).")
    }
    return slot
  }

  /// Returns the number of the master of a space or a topic.
  func owner(of name: String) throws -> Int {
    let slot = try slot(of: name)
    for index in living {
      if let owner = owner(of: slot, accordingTo: index), living.contains(owner) { return owner }
    }
    throw Refused(description: "No server has the slot of \(name).")
  }

  /// Returns names of spaces or topics whose slot a master has.
  func names(_ count: Int, at master: Int, prefix: String = "space") throws -> [String] {
    var names: [String] = []
    var number = 0
    while names.count < count {
      let name = "\(prefix)\(number)"
      if try owner(of: name) == master { names.append(name) }
      number += 1
    }
    return names
  }

  /// Moves the slot of a space or a topic to another master in the steps of a resharding.
  func moveSlot(of name: String, to target: Int) async throws {
    try await finishMove(try beginMove(of: name, to: target))
  }

  /// Opens the slot of a space or a topic for a move, of which no key has moved yet.
  func beginMove(of name: String, to target: Int) throws -> Move {
    let move = Move(slot: try slot(of: name), source: try owner(of: name), target: target)
    let (source, slot) = (nodes[move.source], move.slot)
    try perform("CLUSTER SETSLOT \(slot) IMPORTING \(source.id)", at: target)
    try perform("CLUSTER SETSLOT \(slot) MIGRATING \(nodes[target].id)", at: move.source)
    return move
  }

  /// Moves some keys of a slot that moves.
  ///
  /// A key that the target has as well is an error, as it is for an operator.
  ///
  /// - Parameters:
  ///   - move: The move.
  ///   - limit: The number of keys; all of them if there is none.
  /// - Returns: The number of keys that have moved.
  @discardableResult
  func migrateKeys(_ move: Move, limit: Int = .max) throws -> Int {
    var count = 0
    while count < limit {
      let keys = try keys(of: move.slot, at: move.source, limit: min(Self.batch, limit - count))
      guard !keys.isEmpty else { break }
      if let failure = try migrate(keys, from: move.source, to: move.target) {
        throw Refused(description: "MIGRATE: \(failure)")
      }
      count += keys.count
    }
    return count
  }

  private func keys(of slot: Int, at index: Int, limit: Int) throws -> [[UInt8]] {
    let command = "CLUSTER GETKEYSINSLOT \(slot) \(limit)"
    return try RedisShell.fullReply(to: command, on: server(index)).elements
      .compactMap { reply -> [UInt8]? in
        if case .bytes(let bytes) = reply { bytes } else { nil }
      }
  }

  /// Moves keys.
  ///
  /// - Returns: The error of the source, if there is one.
  private func migrate(_ keys: [[UInt8]], from source: Int, to target: Int) throws -> String? {
    let port = "\(nodes[target].port)"
    let words = ["MIGRATE", "127.0.0.1", port, "", "0", "60000", "KEYS"].map { Array($0.utf8) }
    let reply = try RedisShell.replies(to: [words + keys], on: server(source))[0]
    if case .failure(let text) = reply { return text }
    return nil
  }

  /// Moves the other keys of a slot, gives it to the target, and waits until all servers agree.
  func finishMove(_ move: Move) async throws {
    let command = "CLUSTER SETSLOT \(move.slot) NODE \(nodes[move.target].id)"
    while try migrateKeys(move) > 0 {}
    try perform(command, at: move.target)
    try perform(command, at: move.source)
    // After moves that follow each other at once, servers can disagree until they hear it again.
    await Failover.poll { [self] in
      for index in living where owner(of: move.slot, accordingTo: index) != move.target {
        // Replicas follow their masters.
        if role(of: index) == "master" { _ = text(command, at: index) }
      }
      return living.allSatisfy { owner(of: move.slot, accordingTo: $0) == move.target }
    }
  }

  /// Closes a slot, and moves its keys back.
  ///
  /// A source with an open slot does not accept them. A key that a client has made at the source meanwhile stays as it is.
  func cancelMove(_ move: Move) throws {
    try perform("CLUSTER SETSLOT \(move.slot) STABLE", at: move.source)
    while let key = try keys(of: move.slot, at: move.target, limit: 1).first {
      guard let failure = try migrate([key], from: move.target, to: move.source) else { continue }
      guard failure.contains("BUSYKEY") else { throw Refused(description: failure) }
      let commands = [[Array("ASKING".utf8)], [Array("DEL".utf8), key]]
      _ = try RedisShell.replies(to: commands, on: server(move.target))
    }
    try perform("CLUSTER SETSLOT \(move.slot) STABLE", at: move.target)
  }

  /// Returns the numbers of keys of a slot that moves, at its source and at its target.
  func keyCounts(_ move: Move) -> [Int] {
    [move.source, move.target].map { index in
      text("CLUSTER COUNTKEYSINSLOT \(move.slot)", at: index).flatMap { Int($0) } ?? 0
    }
  }

  /// Waits until the replicas of the master of a space or a topic have its changes.
  func replicate(_ name: String) async throws {
    let owner = try owner(of: name)
    let commands = [
      ["SET", "{\(name)}:mark", "1"], ["WAIT", "\(replicas(of: owner).count)", "0"],
    ]
    let words = commands.map { $0.map { Array($0.utf8) } }
    await Failover.poll { [self] in
      (try? RedisShell.replies(to: words, on: server(owner)))?.last?.text != nil
    }
  }

  // MARK: - States

  /// The numbers of connections with a name at each of the servers.
  func connectionCounts(named name: String) -> [Int] {
    nodes.indices.map { index in
      let lines = text("CLIENT LIST", at: index)?.split(separator: "\n") ?? []
      return lines.count { $0.split(separator: " ").contains("name=\(name)") }
    }
  }

  /// Sends a command of an operator to all servers that live.
  func performEverywhere(_ command: String) throws {
    for index in living { try perform(command, at: index) }
  }

  /// Waits until all servers that live are connected, and serve all slots.
  func settle() async {
    await Failover.poll { [self] in
      let (living, nodes) = (living, nodes)
      return living.allSatisfy { index in
        guard let info = text("CLUSTER INFO", at: index),
          let list = text("CLUSTER NODES", at: index)
        else { return false }
        let isKnown = nodes.allSatisfy { list.contains($0.id) }
        let isFollowing = role(of: index) == "master" || hasMaster(index)
        return info.contains("cluster_state:ok") && isKnown && !list.contains("handshake")
          && isFollowing && living.allSatisfy { !isFailing($0, in: list) }
          && living.allSatisfy { isReplica($0, in: list) == (role(of: $0) == "slave") }
      }
    }
  }

  /// Makes a server the replica of a master, and waits until it has the data.
  private func follow(_ master: String, by replica: Int) async {
    await Failover.poll { [self] in
      if role(of: replica) != "slave" { _ = text("CLUSTER REPLICATE \(master)", at: replica) }
      return hasMaster(replica)
    }
  }

  private func role(of index: Int) -> String? {
    (try? RedisShell.fullReply(to: "ROLE", on: server(index)))?.elements.first?.text
  }

  /// Whether a server is a replica that is connected to its master.
  private func hasMaster(_ index: Int) -> Bool {
    let elements = (try? RedisShell.fullReply(to: "ROLE", on: server(index)))?.elements ?? []
    return elements.count > 3 && elements[3].text == "connected"
  }

  /// The words of a server's line in the list of another one: id, addresses, flags, master and more.
  private func words(_ index: Int, in list: String) -> [Substring] {
    let id = nodes[index].id
    return list.split(separator: "\n").first { $0.hasPrefix(id) }?.split(separator: " ") ?? []
  }

  private func isReplica(_ index: Int, in list: String) -> Bool {
    let words = words(index, in: list)
    return words.count > 3 && words[2].contains("slave")
  }

  private func isFailing(_ index: Int, in list: String) -> Bool {
    let words = words(index, in: list)
    return words.count > 3 && words[2].contains("fail")
  }

  /// The numbers of the living replicas of a server.
  private func replicas(of master: Int) -> [Int] {
    guard let list = text("CLUSTER NODES", at: master) else { return [] }
    return living.filter { index in
      let words = words(index, in: list)
      return words.count > 3 && words[3] == nodes[master].id
    }
  }

  private func owner(of slot: Int, accordingTo index: Int) -> Int? {
    guard let list = text("CLUSTER NODES", at: index) else { return nil }
    for line in list.split(separator: "\n") {
      let words = line.split(separator: " ")
      let isOwner = words.dropFirst(8).contains { word in
        // A slot that moves is in brackets.
        let ends = word.split(separator: "-").compactMap { Int($0) }
        guard let first = ends.first, let last = ends.last, !word.hasPrefix("[") else {
          return false
        }
        return (first...last).contains(slot)
      }
      if isOwner { return nodes.firstIndex { $0.id == words[0] } }
    }
    return nil
  }

  /// Returns the text of a reply; `nil` if the server is away or refuses the command.
  private func text(_ command: String, at index: Int) -> String? {
    (try? RedisShell.fullReply(to: command, on: server(index)))?.text
  }

  /// Sends a command of an operator.
  private func perform(_ command: String, at index: Int) throws {
    let reply = try RedisShell.fullReply(to: command, on: server(index))
    if case .failure(let text) = reply { throw Refused(description: "\(command): \(text)") }
  }
}
