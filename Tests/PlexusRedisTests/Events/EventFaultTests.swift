import Foundation
import Plexus
import PlexusRedis
import PlexusTesting
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Events over a server that refuses commands` {
  private static let mode = LinkMode.oneNode(
    group: "group",
    retryAfter: .milliseconds(300),
    attempts: 3
  )

  /// The errors of a node's interruptions, and of answers that were not confirmed.
  private static func errors(of node: EventNode) -> (Log<String>, ObservationToken) {
    let errors = Log<String>()
    let token = node.bus.observe(LinkReport.self) { report in
      switch report.content {
      case .interrupted(let error): errors.append("interrupted: \(error)")
      case .unconfirmed(_, _, let error): errors.append("unconfirmed: \(error)")
      default: break
      }
    }
    return (errors, token)
  }

  /// Expects that a node cannot publish.
  private static func expectFailure(of node: EventNode, naming code: String) async {
    do {
      try await node.publish("refused")
      Issue.record("The event was published.")
    } catch {
      #expect("\(error)".contains(code))
    }
  }

  /// Waits until a node has received an event.
  ///
  /// An ephemeral connection can break once more, when the subscription of the one before it ends, and reports it.
  private static func arrival(of text: String, at node: EventNode, _ mode: LinkMode) async {
    await node.log.wait { log in
      log.contains(text) || mode == .ephemeral && log.contains { $0.hasSuffix("gap") }
    }
  }

  @Test(.guarantee(.removedGroupsAreReported))
  func `a group that an operator removes is reported, and begins again`() async throws {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    let (sender, worker) = (try EventNode(server), try EventNode(server))
    await sender.connect(.publishOnly)
    await worker.receive(Self.mode)
    for round in 0..<5 {
      try await sender.publish("\(round)")
      await worker.notes.contains("\(round)")
      await worker.acknowledgedAll()
      try RedisShell.perform(["XGROUP DESTROY {notes}:stream group"], on: server)
    }
    try await sender.publish("end")
    await worker.notes.contains("end")
    #expect(worker.notes.entries == ["0", "1", "2", "3", "4", "end"])
    #expect(worker.reports.entries.count { $0 == "gap" } == 5)
  }

  @Test(.guarantee(.removedGroupsAreReported))
  func `a stream that an operator removes is reported, and begins again`() async throws {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    let (sender, worker, receiver) = (
      try EventNode(server), try EventNode(server), try EventNode(server)
    )
    await sender.connect(.publishOnly)
    await worker.receive(Self.mode)
    await receiver.receive(.everyNode())
    for round in 0..<5 {
      try await sender.publish("\(round)")
      for node in [worker, receiver] { await node.notes.contains("\(round)") }
      await worker.acknowledgedAll()
      try RedisShell.perform(["DEL {notes}:stream"], on: server)
      for node in [worker, receiver] {
        await node.reports.wait { $0.count { $0 == "gap" } > round }
      }
    }
    try await sender.publish("end")
    for node in [worker, receiver] {
      #expect(await node.notes.first(6) == ["0", "1", "2", "3", "4", "end"])
    }
    #expect(worker.reports.entries.count { $0 == "gap" } == 5)
  }

  @Test(.guarantee(.removedGroupsAreReported))
  func `events at the end that an operator removes are a gap, and later ones follow`()
    async throws
  {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    let (sender, receiver) = (try EventNode(server), try EventNode(server))
    await sender.connect(.publishOnly)
    try await sender.publish("1", "2", "3")
    try RedisShell.perform(["XTRIM {notes}:stream MAXLEN 0"], on: server)
    await receiver.receive(.everyNode(from: .start))
    await receiver.reports.contains("gap")
    try await sender.publish("4")
    #expect(await receiver.notes.first(1) == ["4"])
  }

  @Test(.guarantee(.removedGroupsAreReported), arguments: [LinkMode.everyNode(), .ephemeral, mode])
  func `a key that gets another type is reported, and events follow once it is removed`(
    mode: LinkMode
  ) async throws {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    let (sender, node) = (try EventNode(server), try EventNode(server))
    let (errors, token) = Self.errors(of: node)
    defer { token.cancel() }
    await sender.connect(.publishOnly)
    try RedisShell.perform(["SET {notes}:stream text"], on: server)
    node.observe()
    let connection = node.bus.connect(Note.self, as: "notes", over: node.engine.events, mode)
    defer { connection.cancel() }
    await errors.wait { $0.contains { $0.contains("WRONGTYPE") } }
    await Self.expectFailure(of: sender, naming: "WRONGTYPE")
    try RedisShell.perform(["DEL {notes}:stream"], on: server)
    await node.reports.contains("connected")
    try await sender.publish("1")
    await Self.arrival(of: "1", at: node, mode)
    // Under a reader that waits.
    try RedisShell.perform(["DEL {notes}:stream", "SET {notes}:stream text"], on: server)
    guard mode != .ephemeral else { return }
    await errors.wait { $0.count { $0.contains("WRONGTYPE") } >= 2 }
    try RedisShell.perform(["DEL {notes}:stream"], on: server)
    await node.reports.wait { $0.count { $0 == "connected" } >= 2 }
    try await sender.publish("2")
    await node.notes.contains("2")
    // Another handler than that of the notes.
    await node.reports.contains("gap")
  }

  @Test(.guarantee(.removedGroupsAreReported))
  func `a server that becomes a replica refuses events, and nothing is lost`() async throws {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    // A server that is no master is tried again until the time is over.
    func node() throws -> EventNode { try EventNode(server) { $0.eventTimeout = .seconds(2) } }
    let (sender, worker) = (try node(), try node())
    let (errors, token) = Self.errors(of: worker)
    defer { token.cancel() }
    let gate = Gate()
    worker.observe { note in if note.text == "0" { try await gate.wait() } }
    await sender.connect(.publishOnly)
    await worker.connect(Self.mode)
    try await sender.publish("0", "1")
    await worker.notes.first(1)
    try RedisShell.perform(["REPLICAOF 127.0.0.1 1"], on: server)
    await Self.expectFailure(of: sender, naming: "not a master")
    gate.open()
    await errors.wait { $0.contains { $0.hasPrefix("unconfirmed") && $0.contains("master") } }
    await errors.wait { $0.contains { $0.hasPrefix("interrupted") } }
    try RedisShell.perform(["REPLICAOF NO ONE"], on: server)
    try await sender.publish("2")
    await worker.notes.wait { Set($0) == ["0", "1", "2"] }
    await worker.acknowledgedAll()
    #expect(try RedisShell.run("XLEN {notes}.dead.group:stream", on: server) == ":0\r\n")
  }

  @Test(.guarantee(.removedGroupsAreReported))
  func `a server without memory refuses events and dead letters, and nothing is lost`()
    async throws
  {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    let (sender, worker) = (try EventNode(server), try EventNode(server))
    let (errors, token) = Self.errors(of: worker)
    defer { token.cancel() }
    let gate = Gate()
    worker.observe { note in
      try await gate.wait()
      if note.text == "bad" { throw Broken() }
    }
    await sender.connect(.publishOnly)
    let mode = LinkMode.oneNode(group: "group", retryAfter: .milliseconds(300), attempts: 1)
    await worker.connect(mode)
    try await sender.publish("bad", "good")
    await worker.notes.first(1)
    try RedisShell.perform(["CONFIG SET maxmemory 1"], on: server)
    await Self.expectFailure(of: sender, naming: "OOM")
    gate.open()
    await errors.wait { $0.contains { $0.hasPrefix("unconfirmed") && $0.contains("OOM") } }
    await worker.notes.contains("good")
    // Without a group, a reader cannot begin.
    let late = try EventNode(server)
    let (reasons, observation) = Self.errors(of: late)
    defer { observation.cancel() }
    let other = LinkMode.oneNode(group: "other", retryAfter: .seconds(60), attempts: 1)
    let connection = late.bus.connect(Note.self, as: "notes", over: late.engine.events, other)
    defer { connection.cancel() }
    await reasons.wait { $0.contains { $0.contains("OOM") } }
    try RedisShell.perform(["CONFIG SET maxmemory 0"], on: server)
    await late.reports.contains("connected")
    await worker.reports.wait { $0.contains { $0.hasPrefix("rejected") } }
    #expect(try RedisShell.run("XLEN {notes}.dead.group:stream", on: server) == ":1\r\n")
  }

  @Test(.guarantee(.removedGroupsAreReported), arguments: [LinkMode.everyNode(), .ephemeral, mode])
  func `a missing permission is named, and events follow once it is granted`(
    mode: LinkMode
  ) async throws {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    try RedisShell.perform(["ACL SETUSER app on >secret ~* &* +@all -@stream"], on: server)
    let sender = try EventNode(server)
    let node = try EventNode(server) {
      $0.credentials = { RedisCredentials(user: "app", password: "secret") }
    }
    let (errors, token) = Self.errors(of: node)
    defer { token.cancel() }
    await sender.connect(.publishOnly)
    try await sender.publish("0")
    node.observe()
    let connection = node.bus.connect(Note.self, as: "notes", over: node.engine.events, mode)
    defer { connection.cancel() }
    // The server's words for a command, and for a command of a script.
    await errors.wait { $0.contains { $0.contains("permission") || $0.contains("can't run") } }
    await Self.expectFailure(of: node, naming: "can't run")
    try RedisShell.perform(["ACL SETUSER app +@stream"], on: server)
    await node.reports.contains("connected")
    try await sender.publish("1")
    await Self.arrival(of: "1", at: node, mode)
  }

  @Test(.guarantee(.eventsNeedNoAnnouncement))
  func `events are stored without the permission to announce them, and the status counts them`()
    async throws
  {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    try RedisShell.perform(["ACL SETUSER app on >secret ~* +@all resetchannels"], on: server)
    func limited() throws -> EventNode {
      try EventNode(server) {
        $0.credentials = { RedisCredentials(user: "app", password: "secret") }
      }
    }
    let (sender, worker) = (try limited(), try limited())
    let (receiver, listener) = (try EventNode(server), try EventNode(server))
    await sender.connect(.publishOnly)
    await receiver.receive(.everyNode())
    await listener.receive(.ephemeral)
    worker.observe { note in if note.text == "bad" { throw Broken() } }
    await worker.connect(.oneNode(group: "group", retryAfter: .seconds(60), attempts: 1))
    try await sender.publish("good", "bad")
    for node in [receiver, worker] { #expect(await node.notes.first(2) == ["good", "bad"]) }
    #expect(sender.engine.status.unannouncedEvents == 2)
    // A dead letter is not announced either.
    await worker.reports.wait { $0.contains { $0.hasPrefix("rejected") } }
    #expect(try RedisShell.run("XLEN {notes}.dead.group:stream", on: server) == ":1\r\n")
    // The next one shows what the listener has missed.
    try RedisShell.perform(["ACL SETUSER app allchannels"], on: server)
    try await sender.publish("end")
    #expect(await listener.notes.first(1) == ["end"])
    await listener.reports.contains("gap")
    #expect(sender.engine.status.unannouncedEvents == 2)
  }

  @Test(.guarantee(.removedGroupsAreReported))
  func `a server without connections is reported, and loses no event`() async throws {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    let (sender, receiver) = (try EventNode(server), try EventNode(server))
    await sender.connect(.publishOnly)
    await receiver.receive(.everyNode())
    try await sender.publish("0")
    await receiver.notes.first(1)
    let operatorConnection = try RedisShell.connect(to: server)
    defer { close(operatorConnection) }
    try RedisShell.send("CONFIG SET maxclients 1", to: operatorConnection)
    try RedisShell.send("CLIENT KILL TYPE normal SKIPME yes", to: operatorConnection)
    for await health in receiver.engine.eventHealth() {
      guard case .isolated(let reason) = health else { continue }
      if reason.contains("max number of clients") { break }
    }
    try RedisShell.send("CONFIG SET maxclients 1000", to: operatorConnection)
    for await health in sender.engine.eventHealth() where health == .connected { break }
    try await sender.publish("1")
    #expect(await receiver.notes.first(2) == ["0", "1"])
    #expect(!receiver.reports.entries.contains { $0.hasSuffix("gap") })
  }

  @Test(.guarantee(.removedGroupsAreReported))
  func `a server that loads its data is waited for, and nothing is lost`() async throws {
    let server = try RedisServer(
      "--key-load-delay",
      "1000",
      "--loading-process-events-interval-bytes",
      "1024"
    )
    let (sender, receiver, worker) = (
      try EventNode(server), try EventNode(server), try EventNode(server)
    )
    let (errors, token) = Self.errors(of: worker)
    defer { token.cancel() }
    await sender.connect(.publishOnly)
    await receiver.receive(.everyNode())
    await worker.receive(EventNode.group)
    try await sender.publish("0")
    for node in [receiver, worker] { await node.notes.first(1) }
    await worker.acknowledgedAll()
    try RedisShell.perform(
      [
        #"EVAL "for i = 1, 2000 do redis.call('SET', 'key' .. i, redis.sha1hex(i)) end" 0"#,
        "SAVE",
      ],
      on: server
    )
    server.kill()
    try server.start()
    await errors.wait { $0.contains { $0.contains("LOADING") } }
    try await sender.publish("1")
    for node in [receiver, worker] {
      #expect(await node.notes.first(2) == ["0", "1"])
      #expect(!node.reports.entries.contains { $0.hasSuffix("gap") })
    }
  }

  @Test(.guarantee(.removedGroupsAreReported))
  func `two connections of one node to a group share its events`() async throws {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    let (sender, worker) = (try EventNode(server), try EventNode(server))
    worker.observe()
    await sender.connect(.publishOnly)
    for _ in 0..<2 { await worker.connect(EventNode.group) }
    for number in 0..<100 { try await sender.publish("\(number)") }
    await worker.notes.first(100)
    await worker.acknowledgedAll()
    #expect(Set(worker.notes.entries).count == 100)
    #expect(worker.notes.count == 100)
  }
}
