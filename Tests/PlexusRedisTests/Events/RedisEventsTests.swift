import Foundation
import Plexus
import PlexusRedis
import PlexusSharedTesting
import PlexusTesting
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Events over a Redis server` {
  @Test(.guarantee(.linksAreCheckedByOneSuite), arguments: EventLinkConformance.Rule.allCases)
  func `events over a Redis server pass the conformance suite of links`(
    rule: EventLinkConformance.Rule
  ) async throws {
    let server = try RedisServer()
    let suite = EventLinkConformance { count in
      var options = RedisOptions()
      options.eventTimeout = .seconds(60)
      return try (0..<count).map { _ in
        try RedisEngine(server.address, options: options).events
      }
    }
    try await suite.check(rule)
  }

  @Test(.guarantee(.eventsDoNotReturn), arguments: [LinkMode.ephemeral, .everyNode()])
  func `what one node publishes, all post once, in order`(mode: LinkMode) async throws {
    let server = try RedisServer()
    let nodes = [try EventNode(server), try EventNode(server), try EventNode(server)]
    for node in nodes {
      await node.receive(mode)
    }
    let texts = (0..<200).map { "\($0)" }
    for text in texts { try await nodes[0].publish(text) }
    for node in nodes { #expect(await node.notes.first(200) == texts) }
    try await nodes[1].publish("end")
    for node in nodes { #expect(await node.notes.first(201).last == "end") }
    // D16: no node sends out again what came in.
    #expect(try RedisShell.run("XLEN {notes}:stream", on: server) == ":201\r\n")
  }

  @Test(.guarantee(.eventsDoNotReturn))
  func `no event is lost or appended twice while connections are killed`() async throws {
    let server = try RedisServer()
    let (sender, receiver) = (try EventNode(server), try EventNode(server))
    await sender.connect(.publishOnly)
    await receiver.receive(.everyNode())
    let isDone = Guarded(false)
    let killing = Task.detached {
      while !isDone.withLock(\.self) {
        _ = try RedisShell.run("CLIENT KILL TYPE normal SKIPME yes", on: server)
        // As long as some events take.
        await receiver.notes.first(receiver.notes.count + 20)
      }
    }
    let count = 1_000
    await withTaskGroup { group in
      for part in 0..<10 {
        group.addTask {
          for number in 0..<count / 10 { try? await sender.publish("\(part * 1_000 + number)") }
        }
      }
    }
    isDone.withLock { $0 = true }
    killing.cancel()
    _ = await killing.result
    let received = await receiver.notes.first(count)
    #expect(Set(received).count == count)
    #expect(received.count == receiver.notes.count)
    #expect(try RedisShell.run("XLEN {notes}:stream", on: server) == ":\(count)\r\n")
    for part in 0..<10 {
      let own = received.compactMap { Int($0) }.filter { $0 / 1_000 == part }
      #expect(own == own.sorted())
    }
  }

  @Test(.guarantee(.everyNodeFollowsBrokenConnections))
  func `what was published while a connection was broken is posted afterwards`()
    async throws
  {
    let server = try RedisServer()
    let (sender, receiver) = (try EventNode(server), try EventNode(server))
    await sender.connect(.publishOnly)
    await receiver.receive(.everyNode())
    for round in 0..<20 {
      _ = try RedisShell.run("CLIENT KILL TYPE normal SKIPME yes", on: server)
      try await sender.publish("\(round)")
    }
    #expect(await receiver.notes.first(20) == (0..<20).map { "\($0)" })
    #expect(!receiver.reports.entries.contains { $0.hasSuffix("gap") })
  }

  @Test(.guarantee(.everyNodeFollowsBrokenConnections))
  func `a stream that was trimmed, or lost, is reported as a gap`() async throws {
    let server = try RedisServer()
    let (sender, receiver) = (try EventNode(server), try EventNode(server))
    await sender.connect(.publishOnly)
    await receiver.connect(.everyNode())
    // The first handler keeps the connection from reading on.
    receiver.observe()
    try await sender.publish("0")
    await receiver.notes.first(1)
    server.suspend()
    let publishing = Task { try await sender.publish("1", "2", "3") }
    server.resume()
    try await publishing.value
    await receiver.notes.first(4)
    // A reader that begins behind what was trimmed.
    let positions = try #require(await Self.positions(of: receiver.engine.events))
    _ = try RedisShell.run("XTRIM {notes}:stream MAXLEN = 1", on: server)
    var deliveries = receiver.engine.events
      .deliveries(of: "notes", .everyNode(from: positions[0])).makeAsyncIterator()
    #expect(try await deliveries.next() == .connected(at: positions[0]))
    #expect(try await deliveries.next() == .gap(lost: positions[1]...positions[2]))
    guard case .message(_, positions[3], 1) = try await deliveries.next() else {
      Issue.record("The message that stays follows the gap.")
      return
    }
    // An engine that restarts empty.
    server.kill()
    try server.start()
    // Reported although nothing is published afterwards.
    await receiver.reports.contains("gap")
    try await sender.publish("4")
    #expect(await receiver.notes.first(5).last == "4")
  }

  /// Returns the positions of the first four messages.
  private static func positions(of link: any EventLink) async throws -> [LinkPosition]? {
    var positions: [LinkPosition] = []
    for try await delivery in link.deliveries(of: "notes", .everyNode(from: .start)) {
      guard case .message(_, let position, _) = delivery else { continue }
      positions.append(position)
      if positions.count == 4 { return positions }
    }
    return nil
  }

  @Test(.guarantee(.ephemeralConnectionsReportMissedEvents))
  func `an ephemeral connection that was broken says what it has missed`() async throws {
    let server = try RedisServer()
    let (sender, receiver) = (try EventNode(server), try EventNode(server))
    await sender.connect(.publishOnly)
    await receiver.receive(.ephemeral)
    try await sender.publish("0")
    await receiver.notes.first(1)
    for round in 1..<10 {
      _ = try RedisShell.run("CLIENT KILL TYPE pubsub", on: server)
      _ = try RedisShell.run("CLIENT KILL TYPE normal SKIPME yes", on: server)
      try await sender.publish("\(round)")
      await receiver.reports.wait { $0.filter { $0 == "connected" }.count > round }
    }
    try await sender.publish("end")
    await receiver.notes.contains("end")
    // What is missing was reported, and nothing was posted twice.
    let received = receiver.notes.entries
    #expect(Set(received).count == received.count)
    if received.count < 11 { #expect(receiver.reports.entries.contains("named gap")) }
  }

  @Test(.guarantee(.groupsHandleEachEvent))
  func `a group handles everything once while nodes come and go`() async throws {
    let server = try RedisServer()
    let sender = try EventNode(server)
    await sender.connect(.publishOnly)
    let all = Log<String>()
    var nodes: [EventNode] = []
    for round in 0..<5 {
      let node = try EventNode(server)
      node.observe(all)
      nodes.append(node)
      await node.connect(EventNode.group)
      for number in 0..<40 { try await sender.publish("\(round).\(number)") }
      if round > 1 { try await nodes[round - 2].engine.close() }
    }
    await all.wait { Set($0).count == 200 }
    #expect(Set(all.entries).count == 200)
  }

  @Test(.guarantee(.undecodableMessagesAreReported))
  func `messages of other programs are reported, and harm no later ones`() async throws {
    let server = try RedisServer()
    let (sender, receiver, worker) = (
      try EventNode(server), try EventNode(server), try EventNode(server)
    )
    for node in [receiver, worker] { node.observe() }
    await sender.connect(.publishOnly)
    await receiver.connect(.everyNode())
    await worker.connect(EventNode.group)
    _ = try RedisShell.run("XADD {notes}:stream * hello world", on: server)
    _ = try RedisShell.run("XADD {notes}:stream * h nonsense d {}", on: server)
    let bytes = #""id9\n1\norigin\nnotes""#
    _ = try RedisShell.run("XADD {notes}:stream * h \(bytes) d \"no JSON\"", on: server)
    _ = try RedisShell.run("XADD {notes}:stream * h \(bytes) d '{\"text\":7}'", on: server)
    try await sender.publish("good")
    for node in [receiver, worker] { #expect(await node.notes.first(1) == ["good"]) }
    await worker.reports.wait { $0.filter { $0.hasPrefix("rejected") }.count == 4 }
    // The third and the fourth one have the same id, and are one message for every node.
    await receiver.reports.wait { $0.filter { $0.hasPrefix("skipped") }.count >= 3 }
    #expect(try RedisShell.run("XLEN {notes}.dead.group:stream", on: server) == ":4\r\n")
    #expect(try RedisShell.run("XLEN {notes}:stream", on: server) == ":5\r\n")
  }

  @Test(.guarantee(.undecodableMessagesAreReported))
  func `messages of other programs on a channel are reported, and harm no later ones`()
    async throws
  {
    let server = try RedisServer()
    let (sender, receiver) = (try EventNode(server), try EventNode(server))
    await sender.connect(.publishOnly)
    await receiver.receive(.ephemeral)
    try await sender.publish("0")
    for _ in 0..<2 { _ = try RedisShell.run("PUBLISH {notes}:channel garbage", on: server) }
    // A position behind which all later messages would be.
    for position in ["9999999999999999-0", "9999999999999999-7"] {
      let text = #"\n13\nidX\n1\no\nnotes{\"text\":\"\#(position)\"}""#
      _ = try RedisShell.run("PUBLISH {notes}:channel \"\(position)\(text)", on: server)
    }
    try await sender.publish("1", "2")
    await receiver.notes.contains("2")
    #expect(receiver.notes.entries.filter { $0.count == 1 } == ["0", "1", "2"])
    // Another handler receives the reports.
    await receiver.reports.wait { $0.count { $0.hasPrefix("skipped") } == 2 }
    #expect(!receiver.reports.entries.contains { $0.hasSuffix("gap") })
  }

  @Test(.guarantee(.undecodableMessagesAreReported))
  func `a handler that never returns stops its node only, until it leaves`() async throws {
    let server = try RedisServer()
    let (sender, stuck, other) = (
      try EventNode(server), try EventNode(server), try EventNode(server)
    )
    await sender.connect(.publishOnly)
    stuck.observe { _ in
      await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
    }
    await stuck.connect(EventNode.group)
    try await sender.publish("0")
    await stuck.notes.first(1)
    await other.receive(EventNode.group)
    try await sender.publish("1", "2")
    #expect(await other.notes.first(2) == ["1", "2"])
    stuck.disconnect()
    #expect(await other.notes.first(3).last == "0")
    #expect(stuck.notes.count == 1)
  }

  @Test(.guarantee(.undecodableMessagesAreReported))
  func `a new engine continues where a closed one has ended`() async throws {
    let server = try RedisServer()
    let (sender, worker) = (try EventNode(server), try EventNode(server))
    await sender.connect(.publishOnly)
    await worker.receive(EventNode.group)
    try await sender.publish("0", "1")
    await worker.notes.first(2)
    try await worker.engine.close()
    try await sender.publish("2", "3")
    var options = RedisOptions()
    options.eventTimeout = .seconds(60)
    let engine = try RedisEngine(server.address, options: options)
    let token = worker.bus.connect(Note.self, as: "notes", over: engine.events, EventNode.group)
    await worker.notes.wait { Set($0) == ["0", "1", "2", "3"] }
    #expect(worker.notes.entries.suffix(2) == ["2", "3"])
    token.cancel()
    try await engine.close()
  }

  @Test(.guarantee(.undecodableMessagesAreReported))
  func `a message of 64 MB that no node can read harms no later one`() async throws {
    let server = try RedisServer()
    let (sender, worker) = (try EventNode(server), try EventNode(server))
    await sender.connect(.publishOnly)
    await worker.receive(EventNode.group)
    let script = """
      EVAL "redis.call('XADD', '{notes}:stream', '*', 'd', string.rep('x', 67108864))" 0
      """
    _ = try RedisShell.run(script, on: server)
    try await sender.publish("good")
    #expect(await worker.notes.first(1) == ["good"])
    await worker.reports.wait { $0.contains { $0.hasPrefix("rejected") } }
  }

  @Test(.guarantee(.outgoingBytesAreBounded))
  func `an event that the outbox has no room for is refused`() async throws {
    let server = try RedisServer()
    let sender = try EventNode(server) { $0.outboxBytes = 10_000 }
    await sender.connect(.publishOnly)
    try await sender.publish("first")
    await #expect(throws: LinkPublishError.self) {
      try await sender.publish(String(repeating: "x", count: 20_000))
    }
    try await sender.publish("last")
    #expect(try RedisShell.run("XLEN {notes}:stream", on: server) == ":2\r\n")
  }

  @Test(.guarantee(.outgoingBytesAreBounded))
  func `a topic keeps what a group needs, and refuses more than twice its limit`()
    async throws
  {
    let server = try RedisServer()
    let sender = try EventNode(server) { $0.eventLimit = 1_000 }
    await sender.connect(.publishOnly)
    for _ in 0..<3 {
      await withTaskGroup { group in
        for number in 0..<1_000 { group.addTask { try? await sender.publish("\(number)") } }
      }
    }
    let length = try RedisShell.run("XLEN {notes}:stream", on: server)
    let count = try #require(Int(length.dropFirst().dropLast()))
    #expect(count >= 1_000 && count < 1_300)
    _ = try RedisShell.run("XGROUP CREATE {notes}:stream idle 0", on: server)
    var error: LinkPublishError?
    for number in 0..<2_000 where error == nil {
      do {
        try await sender.publish("\(number)")
      } catch let failure as LinkPublishError {
        error = failure
      }
    }
    #expect(error?.description.contains("idle") == true)
    _ = try RedisShell.run("XGROUP DESTROY {notes}:stream idle", on: server)
    try await sender.publish("later")
  }

  @Test(.guarantee(.undecodableMessagesAreReported))
  func `a key of another type is reported, and publishing fails`() async throws {
    let server = try RedisServer()
    let node = try EventNode(server)
    await node.engine.becomesConnected()
    _ = try RedisShell.run("SET {notes}:stream text", on: server)
    node.observe()
    let token = node.bus.connect(Note.self, as: "notes", over: node.engine.events, .everyNode())
    await node.reports.contains("interrupted")
    await #expect(throws: LinkPublishError.self) { try await node.publish("1") }
    _ = try RedisShell.run("DEL {notes}:stream", on: server)
    await node.reports.contains("connected")
    token.cancel()
  }

  @Test func `an engine that is closed ends its connections`() async throws {
    let server = try RedisServer()
    let node = try EventNode(server)
    await node.connect(.everyNode())
    try await node.engine.close()
    await node.reports.wait { $0.contains { $0.contains("ended") } }
    await #expect(throws: LinkPublishError.self) { try await node.publish("1") }
  }
}
