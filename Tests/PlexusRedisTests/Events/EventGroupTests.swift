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
struct `Groups over a Redis server` {
  private let server: RedisServer
  private let sender: EventNode

  init() throws {
    server = try RedisServer()
    sender = try EventNode(server)
  }

  private static func mode(attempts: Int) -> LinkMode {
    .oneNode(group: "group", retryAfter: .milliseconds(300), attempts: attempts)
  }

  /// Returns the number of dead letters.
  private func deadLetterCount() throws -> Int? {
    let reply = try RedisShell.run("XLEN {notes}.dead.group:stream", on: server)
    return Int(reply.dropFirst().dropLast())
  }

  /// Returns the number of events that nodes have received and not acknowledged.
  private func pendingCount() throws -> Int? {
    let script = #"EVAL "return redis.call('XPENDING', '{notes}:stream', 'group')[1]" 0"#
    return Int(try RedisShell.run(script, on: server).dropFirst().dropLast())
  }

  // MARK: - Attempts

  /// A node that stands still while it handles an event, and never gives it back.
  private struct DeadNode {
    let proxy: RedisProxy
    let node: EventNode
    let attempt: Int
    /// The events that it has handled before.
    let handled: [String]
  }

  /// Handles events as a process that dies while it handles one of them.
  private func die(at text: String) async throws -> DeadNode {
    let proxy = try RedisProxy(server)
    let node = try EventNode(at: proxy.address)
    let link = node.engine.events
    var iterator = link.deliveries(of: "notes", Self.mode(attempts: 1)).makeAsyncIterator()
    var handled: [String] = []
    while true {
      let delivery = try #require(try await iterator.next())
      guard case .message(let message, let position, let attempt) = delivery else { continue }
      let next = try link.codec.decode(Note.self, from: message.body).text
      if next == text {
        proxy.stall(later: true)
        return DeadNode(proxy: proxy, node: node, attempt: attempt, handled: handled)
      }
      handled.append(next)
      try await link.acknowledge(position, of: "notes", group: "group")
    }
  }

  @Test(.guarantee(.attemptsCountForHandledEvents), arguments: [1, 3])
  func `an event that kills its nodes takes no other event to the dead letters`(
    attempts: Int
  ) async throws {
    await sender.connect(.publishOnly)
    let texts = (0..<100).map { "\($0)" }
    for text in texts { try await sender.publish(text) }
    // A node reads one event first, then two, four and so on: this one is read with 31 others, and another node takes over
    // 16 at once.
    var dead: [DeadNode] = []
    for attempt in 1...attempts {
      dead.append(try await die(at: "31"))
      #expect(dead.last?.attempt == attempt)
    }
    let worker = try EventNode(server)
    await worker.receive(Self.mode(attempts: attempts))
    let handled = dead.flatMap(\.handled)
    await worker.notes.wait { Set($0 + handled) == Set(texts).subtracting(["31"]) }
    await worker.reports.contains("rejected: \(LinkRejection.tooManyAttempts)")
    #expect(try deadLetterCount() == 1)
    withExtendedLifetime(dead) {}
  }

  @Test(.guarantee(.attemptsCountForHandledEvents))
  func `an event whose reading was not confirmed keeps its attempts`() async throws {
    let first = try EventNode(server)
    let gate = Gate()
    first.observe { _ in try await gate.wait() }
    await sender.connect(.publishOnly)
    await first.connect(EventNode.group)
    try await sender.publish("0")
    await first.notes.first(1)
    try await sender.publish("1", "2", "3")
    // As if the node had read them, and the reply were lost.
    let script = """
      EVAL "local key, group = '{notes}:stream', 'group' \
      local consumer = redis.call('XPENDING', key, group, '-', '+', 1)[1][2] \
      return #redis.call('XREADGROUP', 'GROUP', group, consumer, 'STREAMS', key, '>')[1][2]" 0
      """
    #expect(try RedisShell.run(script, on: server) == ":3\r\n")
    gate.open()
    await first.acknowledgedAll()
    first.disconnect()
    let heir = try EventNode(server)
    await heir.receive(Self.mode(attempts: 1))
    #expect(await heir.notes.first(3) == ["1", "2", "3"])
    #expect(try deadLetterCount() == 0)
  }

  @Test(.guarantee(.attemptsCountForHandledEvents))
  func `events that a node gives back keep their attempts`() async throws {
    await sender.connect(.publishOnly)
    for number in 0..<20 { try await sender.publish("\(number)") }
    let first = try EventNode(server)
    first.observe { note in
      guard note.text == "7" else { return }
      await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
    }
    await first.connect(EventNode.group)
    await first.notes.first(8)
    first.disconnect()
    let heir = try EventNode(server)
    await heir.receive(Self.mode(attempts: 1))
    await heir.notes.wait { Set($0) == Set((8..<20).map { "\($0)" }) }
    // The one that was in progress has had its only attempt.
    await heir.reports.contains("rejected: \(LinkRejection.tooManyAttempts)")
    #expect(try deadLetterCount() == 1)
  }

  @Test(.guarantee(.lateRejectionsFail))
  func `a rejection by a node that was overtaken is no dead letter`() async throws {
    await sender.connect(.publishOnly)
    try await sender.publish("0")
    let node = try EventNode(server)
    let link = node.engine.events
    let mode = LinkMode.oneNode(group: "group", retryAfter: .seconds(60), attempts: 1)
    var iterator = link.deliveries(of: "notes", mode).makeAsyncIterator()
    var delivery = try await iterator.next()
    while case .connected = delivery { delivery = try await iterator.next() }
    guard case .message(_, let position, _) = delivery else {
      Issue.record("The node gets the event.")
      return
    }
    let claim = "XCLAIM {notes}:stream group other 0 \(position) RETRYCOUNT 2"
    #expect(try RedisShell.run(claim, on: server) == "*1\r\n")
    let error = await #expect(throws: (any Error).self) {
      try await link.reject(position, of: "notes", group: "group", because: "reason")
    }
    #expect(error.map { "\($0)".contains("OVERTAKEN") } == true)
    #expect(try deadLetterCount() == 0)
    #expect(try pendingCount() == 1)
  }

  // MARK: - Positions that were given again

  @Test(.guarantee(.lostEventsGetNoForeignAnswer), arguments: [false, true])
  func `an answer for a lost event is no answer for the one in its place`(
    isRejection: Bool
  ) async throws {
    let worker = try EventNode(server)
    let gate = Gate()
    worker.observe { note in
      guard note.text == "3" else { return }
      try await gate.wait()
      if isRejection { throw Broken() }
    }
    await sender.connect(.publishOnly)
    let mode = LinkMode.oneNode(group: "group", retryAfter: .seconds(60), attempts: 1)
    await worker.connect(mode)
    for number in 0..<3 { try await sender.publish("\(number)") }
    await worker.notes.first(3)
    await worker.acknowledgedAll()
    #expect(try RedisShell.run("SAVE", on: server).hasPrefix("+OK"))
    try await sender.publish("3")
    await worker.notes.first(4)
    // The only node that knows what is lost ends with the server.
    try await sender.engine.close()
    server.kill()
    try server.start()
    let (other, heir) = (try EventNode(server), try EventNode(server))
    let hold = Gate()
    heir.observe { _ in try await hold.wait() }
    await heir.connect(mode)
    await other.connect(.publishOnly)
    try await other.publish("100")
    await heir.notes.first(1)
    gate.open()
    await worker.acknowledgedAll()
    #expect(try pendingCount() == 1)
    #expect(try deadLetterCount() == 0)
    #expect(worker.reports.entries.contains { $0.contains("SUPERSEDED") })
    hold.open()
  }

  // MARK: - Events of other programs

  @Test(.guarantee(.undecodableMessagesAreReported))
  func `an event with thousands of fields is a dead letter with all of them`() async throws {
    let worker = try EventNode(server)
    await sender.connect(.publishOnly)
    await worker.receive(Self.mode(attempts: 3))
    let fields = String(repeating: "a 1 ", count: 6_000)
    _ = try RedisShell.run("XADD {notes}:stream * \(fields)", on: server)
    await worker.reports.wait { $0.contains { $0.hasPrefix("rejected") } }
    try await sender.publish("good")
    #expect(await worker.notes.first(1) == ["good"])
    let script = """
      EVAL "local entry = redis.call('XRANGE', '{notes}.dead.group:stream', '-', '+')[1] \
      return #cmsgpack.unpack(entry[2][2])" 0
      """
    #expect(try RedisShell.run(script, on: server) == ":12000\r\n")
  }

  @Test(.guarantee(.removedUnreadEventsAreAGap))
  func `events that were trimmed before a group has read them are a gap`() async throws {
    let worker = try EventNode(server)
    let gate = Gate()
    worker.observe { note in if note.text == "0" { try await gate.wait() } }
    await sender.connect(.publishOnly)
    await worker.connect(Self.mode(attempts: 3))
    try await sender.publish("0")
    await worker.notes.first(1)
    for number in 1..<10 { try await sender.publish("\(number)") }
    _ = try RedisShell.run("XTRIM {notes}:stream MAXLEN = 3", on: server)
    gate.open()
    #expect(await worker.notes.first(4) == ["0", "7", "8", "9"])
    await worker.reports.contains("named gap")
    #expect(worker.reports.entries.count { $0.hasSuffix("gap") } == 1)
  }
}
