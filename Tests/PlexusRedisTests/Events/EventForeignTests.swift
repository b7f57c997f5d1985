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
struct `Topics that other programs change` {
  private let server: RedisServer
  private let sender: EventNode

  init() throws {
    server = try RedisServer()
    sender = try EventNode(server)
  }

  private static let group = EventNode.group

  /// Connects the sender, and a node that is held at its first event while ten more are published.
  private func hold(_ mode: LinkMode) async throws -> (node: EventNode, gate: Gate) {
    let (node, gate) = (try EventNode(server), Gate())
    node.observe { note in if note.text == "0" { try await gate.wait() } }
    await sender.connect(.publishOnly)
    await node.connect(mode)
    try await sender.publish("0")
    await node.notes.first(1)
    for number in 1...10 { try await sender.publish("\(number)") }
    return (node, gate)
  }

  /// Returns the epoch of the topic, whose first event has the number 0.
  private func epoch() throws -> Substring {
    let script = "return redis.status_reply(redis.call('XRANGE', '{notes}:stream', '-', '+')[1][1])"
    let reply = try RedisShell.run("EVAL \"\(script)\" 0", on: server)
    return reply.dropFirst().prefix { $0 != "-" }
  }

  /// Does something to events of the topic, given by their numbers.
  private func perform(_ command: String, on numbers: [Int]) throws {
    let epoch = try epoch()
    let ids = numbers.map { "\(epoch)-\($0)" }.joined(separator: " ")
    try RedisShell.perform(["\(command) \(ids)"], on: server)
  }

  // MARK: - Removed events

  @Test(.guarantee(.removedEventsBetweenAreAGap))
  func `events that are removed from between others are a gap for a group`() async throws {
    let (worker, gate) = try await hold(Self.group)
    // The node reads one event, then two, then four at a time: these are within the last ones.
    try perform("XDEL {notes}:stream", on: [5, 6, 9])
    gate.open()
    await worker.notes.contains("10")
    await worker.acknowledgedAll()
    #expect(worker.notes.entries == ["0", "1", "2", "3", "4", "7", "8", "10"])
    await worker.reports.wait { $0.count { $0 == "named gap" } == 2 }
  }

  @Test(.guarantee(.removedEventsBetweenAreAGap))
  func `events that are removed from between others are a gap for every node`()
    async throws
  {
    await sender.connect(.publishOnly)
    for number in 0...10 { try await sender.publish("\(number)") }
    try perform("XDEL {notes}:stream", on: [5, 6, 9])
    let receiver = try EventNode(server)
    receiver.observe()
    await receiver.connect(.everyNode(from: .start))
    await receiver.notes.contains("10")
    #expect(receiver.notes.entries == ["0", "1", "2", "3", "4", "7", "8", "10"])
    await receiver.reports.wait { $0.count { $0 == "named gap" } == 2 }
  }

  // MARK: - Groups

  @Test(.guarantee(.foreignGroupChangesLoseNoEvent))
  func `a group whose consumers are removed handles its events`()
    async throws
  {
    let (worker, gate) = try await hold(Self.group)
    let script = """
      EVAL "for _, info in ipairs(redis.call('XINFO', 'CONSUMERS', '{notes}:stream', 'group')) do \
      redis.call('XGROUP', 'DELCONSUMER', '{notes}:stream', 'group', info[2]) end return 1" 0
      """
    try RedisShell.perform([script], on: server)
    gate.open()
    await worker.notes.contains("10")
    await worker.acknowledgedAll()
    #expect(Set(worker.notes.entries) == Set((0...10).map { "\($0)" }))
  }

  @Test(.guarantee(.renamedStreamsAreReported), arguments: [LinkMode.everyNode(), group])
  func `a stream that is renamed is reported, and events follow`(mode: LinkMode) async throws {
    let (node, gate) = try await hold(mode)
    gate.open()
    await node.notes.contains("10")
    await node.acknowledgedAll()
    try RedisShell.perform(["RENAME {notes}:stream {notes}:old"], on: server)
    await node.reports.contains("gap")
    try await sender.publish("later")
    await node.notes.contains("later")
    #expect(node.notes.count == 12)
  }

  @Test(.guarantee(.renamedStreamsAreReported), arguments: [LinkMode.everyNode(), group])
  func `a stream that expires is reported, and events follow`(mode: LinkMode) async throws {
    let (node, gate) = try await hold(mode)
    gate.open()
    await node.notes.contains("10")
    await node.acknowledgedAll()
    try RedisShell.perform(["PEXPIRE {notes}:stream 50"], on: server)
    await node.reports.contains("gap")
    try await sender.publish("later")
    await node.notes.contains("later")
    #expect(node.notes.count == 12)
  }

  @Test(.guarantee(.renamedStreamsAreReported), arguments: [LinkMode.everyNode(), group])
  func `a stream that is replaced by an older one is reported`(
    mode: LinkMode
  ) async throws {
    let (node, gate) = try await hold(mode)
    gate.open()
    await node.notes.contains("10")
    await node.acknowledgedAll()
    try RedisShell.perform(["COPY {notes}:stream {notes}:old"], on: server)
    try await sender.publish("lost")
    await node.notes.contains("lost")
    await node.acknowledgedAll()
    try RedisShell.perform(["COPY {notes}:old {notes}:stream REPLACE"], on: server)
    // A group does not see the loss before the position is given again.
    if mode != Self.group { await node.reports.contains("gap") }
    let other = try EventNode(server)
    await other.connect(.publishOnly)
    try await other.publish("later")
    await node.notes.contains("later")
    await node.reports.contains("gap")
    #expect(node.notes.entries.count { $0 == "later" } == 1)
  }

  @Test(
    .guarantee(.renamedStreamsAreReported),
    arguments: [LinkMode.everyNode(), .ephemeral, group]
  )
  func `a stream whose last position is raised is used, and the hole is a gap`(
    mode: LinkMode
  )
    async throws
  {
    let node = try EventNode(server)
    await sender.connect(.publishOnly)
    await node.receive(mode)
    try await sender.publish("0")
    await node.notes.first(1)
    let epoch = try epoch()
    try RedisShell.perform(["XSETID {notes}:stream \(epoch)-9"], on: server)
    try await sender.publish("1")
    #expect(await node.notes.first(2) == ["0", "1"])
    await node.reports.contains("named gap")
    try RedisShell.perform(["XSETID {notes}:stream 9223372036854775809-7"], on: server)
    try await sender.publish("2")
    #expect(await node.notes.first(3).last == "2")
    // No position is left.
    let last = "18446744073709551615-18446744073709551615"
    try RedisShell.perform(["XSETID {notes}:stream \(last)"], on: server)
    await #expect(throws: LinkPublishError.self) { try await sender.publish("3") }
    try RedisShell.perform(["DEL {notes}:stream"], on: server)
    try await sender.publish("4")
    await node.notes.contains("4")
    await node.reports.contains("gap")
  }

  @Test(.guarantee(.foreignGroupChangesLoseNoEvent))
  func `a group that is set back handles its events again, and later ones follow`()
    async throws
  {
    let node = try EventNode(server)
    await sender.connect(.publishOnly)
    await node.receive(Self.group)
    try await sender.publish("0", "1", "2")
    await node.notes.first(3)
    await node.acknowledgedAll()
    let other = try EventNode(server)
    try RedisShell.perform(["XGROUP SETID {notes}:stream group 0"], on: server)
    // Events of the past are handled by a node that has not handled them.
    node.disconnect()
    await other.receive(Self.group)
    #expect(await other.notes.first(3) == ["0", "1", "2"])
    await other.acknowledgedAll()
    try await sender.publish("3")
    #expect(await other.notes.first(4).last == "3")
  }

  @Test(.guarantee(.foreignGroupChangesLoseNoEvent))
  func `an event that another program has acknowledged is handled by its node, once`()
    async throws
  {
    let (worker, gate) = try await hold(Self.group)
    // The event in progress, and two of them that were or will be read together.
    try perform("XACK {notes}:stream group", on: [0, 1, 2])
    gate.open()
    await worker.notes.contains("10")
    await worker.acknowledgedAll()
    #expect(worker.notes.entries == (0...10).map { "\($0)" })
  }

  // MARK: - Retries

  @Test(
    .guarantee(.leavingNodesHandOverWithoutRetryTime),
    arguments: [Duration.seconds(Int64.max), .seconds(4_000_000_000), .nanoseconds(1)]
  )
  func `a node that leaves gives its events back, whatever the time for retries is`(
    retryAfter: Duration
  ) async throws {
    let mode = LinkMode.oneNode(group: "group", retryAfter: retryAfter, attempts: 1_000)
    let worker = try EventNode(server)
    let gate = Gate()
    worker.observe { _ in try await gate.wait() }
    await sender.connect(.publishOnly)
    await worker.connect(mode)
    try await sender.publish("0", "1", "2")
    await worker.notes.first(1)
    worker.disconnect()
    let heir = try EventNode(server)
    await heir.receive(mode)
    await heir.notes.wait { Set($0) == ["0", "1", "2"] }
    gate.open()
    #expect(worker.notes.entries == ["0"])
  }
}
