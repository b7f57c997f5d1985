import Plexus
import PlexusRedis
import PlexusTesting
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Events over a cluster` {
  /// The modes in which no event is lost.
  private static let modes = [LinkMode.everyNode(), EventNode.group]

  /// Publishes numbers, one after the other, until its end.
  private final class Publishing: Sendable {
    private let isEnding: Guarded<Bool>
    private let task: Task<Int, any Error>

    init(_ node: EventNode) {
      let isEnding = Guarded(false)
      self.isEnding = isEnding
      task = Task {
        var count = 0
        while !isEnding.withLock(\.self) {
          try await node.publish("\(count)")
          count += 1
        }
        return count
      }
    }

    /// Ends it.
    ///
    /// - Returns: The number of events that were published.
    func end() async throws -> Int {
      isEnding.withLock { $0 = true }
      return try await task.value
    }
  }

  /// Moves the slot of the topic several times, and lets it stand half moved for some events.
  private func moveSlot(
    of cluster: RedisCluster,
    from sender: EventNode,
    to receiver: EventNode
  ) async throws {
    for round in 0..<6 {
      let target = (try cluster.owner(of: "notes") + 1) % 3
      let move = try cluster.beginMove(of: "notes", to: target)
      try cluster.migrateKeys(move, limit: round % 3)
      // Events arrive, or one of them waits for its keys.
      let count = receiver.log.count
      let waiting = Guarded((count: count, looks: 0))
      await Failover.poll {
        let now = receiver.log.count
        let looks = waiting.withLock { waiting in
          let isUnconfirmed = sender.engine.status.unconfirmedEvents > 0
          waiting = (now, now == waiting.count && isUnconfirmed ? waiting.looks + 1 : 0)
          return waiting.looks
        }
        return now > count + 20 || looks > 50
      }
      try await cluster.finishMove(move)
      await receiver.log.first(receiver.log.count + 20)
    }
  }

  /// The number of events in the stream of the topic.
  private func streamLength(in cluster: RedisCluster) throws -> Int? {
    let server = cluster.server(try cluster.owner(of: "notes"))
    return Int(try RedisShell.run("XLEN {notes}:stream", on: server).dropFirst().dropLast())
  }

  @Test(.guarantee(.movedSlotsLoseNoEvent), arguments: modes)
  func `no event is lost or repeated while the slot of the topic moves under load`(
    mode: LinkMode
  ) async throws {
    let cluster = try await RedisCluster()
    let (sender, receiver) = (
      try EventNode(at: cluster.address), try EventNode(at: cluster.address)
    )
    await sender.connect(.publishOnly)
    await receiver.receive(mode)
    let publishing = Publishing(sender)
    try await moveSlot(of: cluster, from: sender, to: receiver)
    let count = try await publishing.end()
    let received = await receiver.notes.first(count)
    await receiver.acknowledgedAll()
    #expect(received == (0..<count).map { "\($0)" })
    #expect(receiver.notes.count == count)
    #expect(!receiver.reports.entries.contains { $0.hasSuffix("gap") })
    #expect(try streamLength(in: cluster) == count)
    for node in [sender, receiver] { try await node.engine.close() }
  }

  /// Publishes numbers until an ephemeral connection, which can have to subscribe again, receives one of them.
  ///
  /// Expects that it has received each number at most once, in order, or has reported what is missing.
  ///
  /// - Returns: The number after the last one.
  @discardableResult
  private func publish(
    from start: Int,
    by sender: EventNode,
    untilReceivedBy receiver: EventNode
  ) async throws -> Int {
    func received() -> [Int] { receiver.notes.entries.compactMap { Int($0) } }
    var end = start
    while received().last ?? 0 < start {
      try await sender.publish("\(end)")
      end += 1
    }
    let numbers = received()
    #expect(numbers == numbers.sorted() && Set(numbers).count == numbers.count)
    if numbers != Array(0...(numbers.last ?? 0)) {
      #expect(receiver.reports.entries.contains { $0.hasSuffix("gap") })
    }
    return end
  }

  @Test(.guarantee(.ephemeralConnectionsReportMovedSlots))
  func `an ephemeral connection reports what it has missed while a slot moves under load`()
    async throws
  {
    let cluster = try await RedisCluster()
    let (sender, receiver) = (
      try EventNode(at: cluster.address), try EventNode(at: cluster.address)
    )
    await sender.connect(.publishOnly)
    await receiver.receive(.ephemeral)
    let publishing = Publishing(sender)
    try await moveSlot(of: cluster, from: sender, to: receiver)
    let count = try await publishing.end()
    try await publish(from: count, by: sender, untilReceivedBy: receiver)
    for node in [sender, receiver] { try await node.engine.close() }
  }

  @Test(.guarantee(.ephemeralConnectionsReportMovedSlots))
  func `an ephemeral connection receives events after its master has left the cluster`()
    async throws
  {
    let cluster = try await RedisCluster()
    let owner = try cluster.owner(of: "notes")
    let master = try await cluster.addMaster()
    try await cluster.moveSlot(of: "notes", to: master)
    let (sender, receiver) = (
      try EventNode(at: cluster.address), try EventNode(at: cluster.address)
    )
    await sender.connect(.publishOnly)
    await receiver.receive(.ephemeral)
    try await sender.publish("0")
    let count = try await publish(from: 1, by: sender, untilReceivedBy: receiver)
    try await cluster.moveSlot(of: "notes", to: owner)
    // It still runs, and answers its connections.
    try cluster.removeMaster(master)
    try await publish(from: count, by: sender, untilReceivedBy: receiver)
    for node in [sender, receiver] { try await node.engine.close() }
  }

  @Test(.guarantee(.movedSlotsLoseNoEvent))
  func `the nodes of a group handle everything while the slot of the topic moves`()
    async throws
  {
    let cluster = try await RedisCluster()
    let sender = try EventNode(at: cluster.address)
    await sender.connect(.publishOnly)
    let all = Log<String>()
    let workers = [try EventNode(at: cluster.address), try EventNode(at: cluster.address)]
    for worker in workers {
      worker.observe(all)
      await worker.connect(EventNode.group)
    }
    let publishing = Publishing(sender)
    for _ in 0..<4 {
      let target = (try cluster.owner(of: "notes") + 1) % 3
      try await cluster.moveSlot(of: "notes", to: target)
      await all.first(all.count + 40)
    }
    let count = try await publishing.end()
    let texts = Set((0..<count).map { "\($0)" })
    await all.wait { Set($0) == texts }
    for worker in workers { await worker.acknowledgedAll() }
    // No node has handled an event twice, and no event is left for others.
    for worker in workers { #expect(Set(worker.notes.entries).count == worker.notes.count) }
    let server = cluster.server(try cluster.owner(of: "notes"))
    let pending = try RedisShell.reply("XPENDING {notes}:stream group", on: server)
    #expect(pending.hasPrefix("*4\r\n:0\r\n"), "\(pending)")
    for node in workers + [sender] { try await node.engine.close() }
  }

  @Test(.guarantee(.movedSlotsLoseNoEvent), arguments: modes)
  func `an event that is in progress while the slot moves is acknowledged at the new master`(
    mode: LinkMode
  ) async throws {
    let cluster = try await RedisCluster()
    let (sender, receiver) = (
      try EventNode(at: cluster.address), try EventNode(at: cluster.address)
    )
    let gate = Gate()
    receiver.observe { _ in try await gate.wait() }
    await sender.connect(.publishOnly)
    await receiver.connect(mode)
    try await sender.publish("0", "1", "2")
    await receiver.notes.first(1)
    let target = (try cluster.owner(of: "notes") + 1) % 3
    try await cluster.moveSlot(of: "notes", to: target)
    gate.open()
    #expect(await receiver.notes.first(3) == ["0", "1", "2"])
    await receiver.acknowledgedAll()
    try await sender.publish("3")
    #expect(await receiver.notes.first(4).last == "3")
    await receiver.acknowledgedAll()
    // Another node of the group gets nothing again.
    try await receiver.engine.close()
    if mode == EventNode.group {
      let heir = try EventNode(at: cluster.address)
      await heir.receive(mode)
      try await sender.publish("4")
      #expect(await heir.notes.first(1) == ["4"])
      try await heir.engine.close()
    }
    try await sender.engine.close()
  }

  @Test(.guarantee(.movedSlotsLoseNoEvent), arguments: modes)
  func `no event is lost while a replica is promoted under load`(mode: LinkMode) async throws {
    let cluster = try await RedisCluster(replicas: 1)
    let (sender, receiver) = (
      try EventNode(at: cluster.address), try EventNode(at: cluster.address)
    )
    await sender.connect(.publishOnly)
    await receiver.receive(mode)
    let publishing = Publishing(sender)
    for _ in 0..<2 {
      await receiver.log.first(receiver.log.count + 40)
      try await cluster.promoteReplica(of: try cluster.owner(of: "notes"))
    }
    await receiver.log.first(receiver.log.count + 40)
    let count = try await publishing.end()
    let texts = Set((0..<count).map { "\($0)" })
    await receiver.notes.wait { Set($0) == texts }
    await receiver.acknowledgedAll()
    if mode != EventNode.group { #expect(receiver.notes.count == count) }
    #expect(!receiver.reports.entries.contains { $0.hasSuffix("gap") })
    for node in [sender, receiver] { try await node.engine.close() }
  }

  @Test(.guarantee(.movedSlotsLoseNoEvent), arguments: modes + [.ephemeral])
  func `events that a replica has survive the crash of the master, and later ones follow`(
    mode: LinkMode
  ) async throws {
    let cluster = try await RedisCluster(replicas: 1)
    let (sender, receiver) = (
      try EventNode(at: cluster.address), try EventNode(at: cluster.address)
    )
    await sender.connect(.publishOnly)
    await receiver.receive(mode)
    for number in 0..<20 { try await sender.publish("\(number)") }
    await receiver.notes.first(20)
    await receiver.acknowledgedAll()
    try await cluster.replicate("notes")
    let owner = try cluster.owner(of: "notes")
    let crash = Task { await cluster.crash(owner) }
    // It waits for the new master.
    try await sender.publish("20")
    await crash.value
    for number in 21..<40 { try await sender.publish("\(number)") }
    if mode == .ephemeral {
      try await publish(from: 40, by: sender, untilReceivedBy: receiver)
    } else {
      await receiver.notes.contains("39")
      let received = receiver.notes.entries.compactMap { Int($0) }
      // The first master can have stored and delivered one that its replica did not get.
      #expect(Set(received).isSuperset(of: Set(0..<20).union(21..<40)))
      #expect(received.filter { $0 != 20 } == Array(0..<20) + Array(21..<40))
    }
    for node in [sender, receiver] { try await node.engine.close() }
  }

  @Test(.guarantee(.clustersHaveOneConnectionPerMaster))
  func `topics of all masters keep their order over one connection to each of them`()
    async throws
  {
    let cluster = try await RedisCluster()
    let (sender, receiver) = (
      try EventNode(at: cluster.address), try EventNode(at: cluster.address)
    )
    let topics = try (0..<3).flatMap { try cluster.names(3, at: $0, prefix: "topic") }
    let (texts, reports) = (Log<String>(), receiver.reports)
    var tokens: [ObservationToken] = []
    tokens.append(receiver.bus.observe(Note.self) { texts.append($0.text) })
    for topic in topics {
      let link = receiver.engine.events
      tokens.append(receiver.bus.connect(Note.self, as: topic, over: link, .everyNode()))
    }
    await reports.wait { $0.count { $0 == "connected" } == topics.count }
    let buses = topics.map { _ in EventBus() }
    for (bus, topic) in zip(buses, topics) {
      tokens.append(bus.connect(Note.self, as: topic, over: sender.engine.events, .publishOnly))
    }
    for number in 0..<50 {
      for (index, bus) in buses.enumerated() {
        try await bus.publish(Note(text: "\(index * 100 + number)"))
      }
    }
    let received = await texts.first(50 * topics.count).compactMap { Int($0) }
    for index in topics.indices {
      #expect(received.filter { $0 / 100 == index } == (0..<50).map { index * 100 + $0 })
    }
    #expect(cluster.connectionCounts(named: "plexus-events") == [2, 2, 2])
    #expect(cluster.connectionCounts(named: "plexus-cluster").reduce(0, +) <= 2)
    for token in tokens { token.cancel() }
    for node in [sender, receiver] { try await node.engine.close() }
    await Failover.poll { cluster.connectionCounts(named: "plexus-events") == [0, 0, 0] }
  }

  @Test func `a master that is down is in the health of events until it answers again`()
    async throws
  {
    let cluster = try await RedisCluster()
    let (sender, receiver) = (
      try EventNode(at: cluster.address), try EventNode(at: cluster.address)
    )
    await sender.connect(.publishOnly)
    await receiver.receive(.everyNode())
    try await sender.publish("0")
    await receiver.notes.first(1)
    let owner = try cluster.owner(of: "notes")
    cluster.kill(owner)
    for await health in receiver.engine.eventHealth() {
      guard case .isolated(let reason) = health else { continue }
      #expect(!reason.isEmpty)
      break
    }
    try await cluster.restart(owner)
    for await health in receiver.engine.eventHealth() where health == .connected { break }
    try await sender.publish("1")
    await receiver.notes.contains("1")
    // The server has started without its data.
    await receiver.reports.wait { $0.contains { $0.hasSuffix("gap") } }
    for node in [sender, receiver] { try await node.engine.close() }
  }

  @Test func `closing in the middle of a move takes no longer than its events`() async throws {
    let cluster = try await RedisCluster()
    let sender = try EventNode(at: cluster.address)
    let worker = try EventNode(at: cluster.address) {
      $0.commandTimeout = .seconds(2)
      $0.eventTimeout = .seconds(2)
    }
    worker.observe { _ in
      await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
    }
    await sender.connect(.publishOnly)
    await worker.connect(EventNode.group)
    try await sender.publish("0", "1")
    await worker.notes.first(1)
    let target = (try cluster.owner(of: "notes") + 1) % 3
    let move = try cluster.beginMove(of: "notes", to: target)
    try cluster.migrateKeys(move, limit: 1)
    let stopwatch = Stopwatch()
    try? await worker.engine.close()
    #expect(stopwatch.elapsed < .seconds(30))
    try await cluster.finishMove(move)
    try await sender.publish("2")
    try await sender.engine.close()
  }

  @Test(.guarantee(.deadLettersAreMadeInOneStep))
  func `the dead letters of a group are in the slot of its topic`()
    async throws
  {
    let cluster = try await RedisCluster()
    let sender = try EventNode(at: cluster.address)
    await sender.connect(.publishOnly)
    let groups = (0..<4).map { "group\($0)" }
    var workers: [EventNode] = []
    for group in groups {
      let worker = try EventNode(at: cluster.address)
      worker.observe { note in if note.text == "bad" { throw Broken() } }
      await worker.connect(.oneNode(group: group, retryAfter: .milliseconds(300), attempts: 1))
      workers.append(worker)
    }
    try await sender.publish("bad", "good")
    for worker in workers {
      await worker.notes.contains("good")
      await worker.reports.wait { $0.contains { $0.hasPrefix("rejected") } }
      await worker.acknowledgedAll()
    }
    let link = sender.engine.events
    for group in groups {
      let topic = "notes.dead.\(group)"
      for try await delivery in link.deliveries(of: topic, .everyNode(from: .start)) {
        guard case .message(let message, _, _) = delivery else { continue }
        #expect(try link.codec.decode(Note.self, from: message.body).text == "bad")
        break
      }
    }
    for node in workers + [sender] { try await node.engine.close() }
  }

  @Test func `a master that hangs delays no event that is given back at another one`() async throws
  {
    let cluster = try await RedisCluster(options: ["--cluster-require-full-coverage", "no"])
    // No other node takes the events over meanwhile.
    let group = LinkMode.oneNode(group: "group", retryAfter: .seconds(3_600), attempts: 3)
    let hanging = try cluster.names(1, at: 0, prefix: "topic")[0]
    let topic = try cluster.names(1, at: 1, prefix: "topic")[0]
    func message(_ id: String) -> LinkMessage {
      LinkMessage(id: id, type: "t", version: 1, origin: "o", body: [])
    }
    let nodes = try (0..<2).map { _ in
      try EventNode(at: cluster.address) { $0.eventTimeout = .seconds(3_600) }
    }
    let (link, other) = (nodes[0].engine.events, nodes[1].engine.events)
    let (received, end) = (Log<LinkPosition>(), Log<Void>())
    let reader = Task {
      for try await delivery in link.deliveries(of: hanging, group) {
        guard case .message(_, let position, _) = delivery else { continue }
        received.append(position)
        await end.first(1)
        return
      }
    }
    _ = try await link.publish(message("0"), to: hanging)
    for number in 1...5 { _ = try await link.publish(message("\(number)"), to: topic) }
    let started = Log<Void>()
    let leaving = Log<Void>()
    let leaver = Task {
      for try await delivery in link.deliveries(of: topic, group) {
        guard case .message = delivery else { continue }
        started.append(())
        await leaving.first(1)
        return
      }
    }
    let position = await received.first(1)[0]
    await started.first(1)
    let handled = Log<String>()
    let successor = Task {
      for try await delivery in other.deliveries(of: topic, group) {
        guard case .message(let message, let position, _) = delivery else {
          handled.append("connected")
          continue
        }
        handled.append(message.id)
        await other.acknowledge(position, of: topic, group: "group") { _ in }
        if handled.count == 6 { return }
      }
    }
    await handled.contains("connected")
    cluster.server(0).suspend()
    let isOver = Guarded(false)
    let acknowledging = Task {
      defer { isOver.withLock { $0 = true } }
      try await link.acknowledge(position, of: hanging, group: "group")
    }
    // Some heartbeats are among them.
    await nodes[0].status { $0.events.unansweredCommands >= 3 }
    leaving.append(())
    try await successor.value
    #expect(!isOver.withLock { $0 })
    #expect(Set(handled.entries.dropFirst()) == Set((1...5).map(String.init)))
    cluster.server(0).resume()
    try await acknowledging.value
    end.append(())
    _ = try await (reader.value, leaver.value)
    for node in nodes { try await node.engine.close() }
  }
}
