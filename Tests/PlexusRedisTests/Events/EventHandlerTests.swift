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
struct `Handlers of events over a Redis server` {
  private let server: RedisServer
  private let sender: EventNode

  init() throws {
    server = try RedisServer()
    sender = try EventNode(server)
  }

  @Test(.guarantee(.fullOutboxesReportErrors), arguments: [LinkMode.everyNode(), EventNode.group])
  func `a handler that publishes while the outbox is full gets an error, and continues`(
    mode: LinkMode
  ) async throws {
    let node = try EventNode(server) { $0.outboxBytes = 10_000 }
    let failures = Log<String>()
    node.observe { [bus = node.bus] note in
      guard note.text == "0" else { return }
      do {
        try await bus.publish(Note(text: String(repeating: "x", count: 20_000)))
      } catch {
        failures.append("\(error)")
      }
      try await bus.publish(Note(text: "answer"))
    }
    await sender.connect(.publishOnly)
    await node.connect(mode)
    try await sender.publish("0", "1")
    await node.notes.wait { Set($0).isSuperset(of: ["0", "1", "answer"]) }
    await node.acknowledgedAll()
    #expect(failures.count == 1)
  }

  @Test(.guarantee(.leavingNodesHandOverWithoutRetryTime))
  func `an event whose handler ends its own connection goes to another node`()
    async throws
  {
    let (worker, other) = (try EventNode(server), try EventNode(server))
    let token = Log<ObservationToken>()
    worker.observe { note in if note.text == "1" { token.entries.first?.cancel() } }
    await sender.connect(.publishOnly)
    token.append(
      worker.bus.connect(Note.self, as: "notes", over: worker.engine.events, EventNode.group)
    )
    await worker.reports.contains("connected")
    try await sender.publish("0", "1", "2")
    await worker.notes.contains("1")
    await other.receive(EventNode.group)
    #expect(await other.notes.first(2) == ["1", "2"])
    await other.acknowledgedAll()
    #expect(worker.notes.entries == ["0", "1"])
  }

  @Test(.guarantee(.overtakenFailuresCostNoAttempt))
  func `a handler that fails after its event was taken over repeats nothing`()
    async throws
  {
    let (worker, heir) = (try EventNode(server), try EventNode(server))
    let gate = Gate()
    worker.observe { _ in
      try await gate.wait()
      throw Broken()
    }
    await sender.connect(.publishOnly)
    await worker.connect(.oneNode(group: "group", retryAfter: .seconds(60), attempts: 2))
    try await sender.publish("0")
    await worker.notes.first(1)
    let script = """
      EVAL "local pending = redis.call('XPENDING', '{notes}:stream', 'group', '-', '+', 1)[1] \
      return redis.call('XCLAIM', '{notes}:stream', 'group', 'released', 0, pending[1], \
      'IDLE', 60000, 'RETRYCOUNT', 1, 'JUSTID')" 0
      """
    try RedisShell.perform([script], on: server)
    await heir.receive(.oneNode(group: "group", retryAfter: .seconds(60), attempts: 2))
    await heir.notes.first(1)
    await heir.acknowledgedAll()
    gate.open()
    await worker.reports.wait { $0.contains { $0.contains("postponed") } }
    // Nothing waits for another attempt either.
    for node in [worker, heir] { await node.acknowledgedAll() }
    #expect(try RedisShell.run("XLEN {notes}.dead.group:stream", on: server) == ":0\r\n")
    #expect(heir.notes.entries.count { $0 == "0" } == 1)
    let count = "return redis.call('XPENDING', '{notes}:stream', 'group')[1]"
    #expect(try RedisShell.run("EVAL \"\(count)\" 0", on: server) == ":0\r\n")
  }

  // MARK: - Cancelled publishers

  @Test(.guarantee(.cancelledPublishersEnd))
  func `a publisher that is cancelled at any time ends, and its event is stored at most once`()
    async throws
  {
    await sender.connect(.publishOnly)
    try await sender.publish("first")
    let tasks = (0..<300).map { number in
      Task { [sender] in
        if number.isMultiple(of: 3) { withUnsafeCurrentTask { $0?.cancel() } }
        try await sender.publish("\(number)")
      }
    }
    for (number, task) in tasks.enumerated() where number % 3 == 1 { task.cancel() }
    var stored = 1
    for (number, task) in tasks.enumerated() {
      switch await task.result {
      case .success: stored += 1
      case .failure(let error):
        #expect(error is CancellationError)
        #expect(number % 3 != 2)
      }
    }
    try await sender.publish("last")
    let length = try RedisShell.run("XLEN {notes}:stream", on: server)
    let count = try #require(Int(length.dropFirst().dropLast()))
    #expect(count > stored && count <= 302)
    await sender.status { $0.unconfirmedEvents == 0 }
    #expect(sender.engine.status.events.outboxBytes == 0)
    #expect(sender.engine.status.unconfirmedEvents == 0)
  }

  // MARK: - Closing

  @Test(.guarantee(.leavingNodesHandOverWithoutRetryTime))
  func `an engine that is closed after its tokens gives back their events`()
    async throws
  {
    let mode = LinkMode.oneNode(group: "group", retryAfter: .seconds(60), attempts: 100)
    let gate = Gate()
    await sender.connect(.publishOnly)
    let script = """
      EVAL "local count = 0 \
      for _, entry in ipairs(redis.call('XPENDING', '{notes}:stream', 'group', '-', '+', 100)) do \
      if entry[2] ~= 'released' then count = count + 1 end end return count" 0
      """
    for round in 0..<20 {
      let worker = try EventNode(server)
      worker.observe { _ in try await gate.wait() }
      let token = worker.bus.connect(Note.self, as: "notes", over: worker.engine.events, mode)
      try await sender.publish("\(round)")
      await worker.notes.first(1)
      token.cancel()
      try await worker.engine.close()
      #expect(try RedisShell.run(script, on: server) == ":0\r\n")
    }
    gate.open()
    let heir = try EventNode(server)
    await heir.receive(mode)
    await heir.notes.wait { Set($0).count == 20 }
  }

  @Test(.guarantee(.closedLinksEndAllCalls), arguments: [false, true])
  func `a link that is closed ends all that runs`(isSuspended: Bool) async throws {
    let node = try EventNode(server) {
      $0.eventTimeout = .seconds(2)
      $0.commandTimeout = .seconds(2)
    }
    node.observe()
    for mode in [LinkMode.everyNode(), .ephemeral, EventNode.group] { await node.connect(mode) }
    try await node.publish("first")
    let failures = Log<Int>()
    let publishers = (0..<20).map { number in
      Task {
        do {
          while true { try await node.publish("\(number)") }
        } catch {
          failures.append(number)
        }
      }
    }
    await node.notes.first(500)
    if isSuspended { server.suspend() }
    try await node.engine.close()
    for publisher in publishers { await publisher.value }
    await node.reports.wait { $0.count { $0.contains("ended") } == 3 }
    if isSuspended { server.resume() }
    #expect(failures.count == 20)
    await node.status { $0.unconfirmedEvents == 0 }
  }
}
