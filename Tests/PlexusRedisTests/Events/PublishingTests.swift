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
struct `Events that are published at once` {
  /// Returns a node that has published once, on a server that stands still.
  private func node(
    on server: RedisServer,
    _ change: (inout RedisOptions) -> Void = { _ in }
  ) async throws -> EventNode {
    let node = try EventNode(server, change)
    await node.connect(.publishOnly)
    await node.engine.becomesConnected()
    // The time for an event can be short.
    while (try? await node.publish("first")) == nil { await Task.detached {}.value }
    server.suspend()
    return node
  }

  /// Begins to publish, one event after another, on an actor if there is one.
  private func publish(
    _ texts: [String],
    by node: EventNode,
    on occupied: Occupied? = nil
  ) async -> [Task<Void, any Error>] {
    var tasks: [Task<Void, any Error>] = []
    for text in texts {
      let before = node.engine.status.unconfirmedEvents
      let hasEnded = Guarded(false)
      tasks.append(
        Task {
          defer { hasEnded.withLock { $0 = true } }
          guard let occupied else { return try await node.publish(text) }
          try await occupied.publish(text, by: node)
        }
      )
      // Meanwhile its time, or that of an earlier one, can be over.
      await node.status { status in
        status.unconfirmedEvents == before + 1 || hasEnded.withLock { $0 }
      }
    }
    return tasks
  }

  /// The texts of the topic, in the order of the server.
  private func texts(on server: RedisServer) async throws -> [String] {
    let length = try RedisShell.run("XLEN {notes}:stream", on: server)
    let count = try #require(Int(length.dropFirst().dropLast()))
    let engine = try RedisEngine(server.address)
    var texts: [String] = []
    for try await delivery in engine.events.deliveries(of: "notes", .everyNode(from: .start)) {
      guard case .message(let message, _, _) = delivery else { continue }
      texts.append(try JSONDecoder().decode(Note.self, from: Data(message.body)).text)
      if texts.count == count { break }
    }
    try await engine.close()
    return texts
  }

  /// An actor that is busy until ``end()`` is called.
  private actor Occupied {
    private let isOver = DispatchSemaphore(value: 0)

    nonisolated func end() { isOver.signal() }

    func publish(_ text: String, by node: EventNode) async throws {
      try await node.publish(text)
    }

    func work(_ hasBegun: Gate) {
      hasBegun.open()
      isOver.wait()
    }
  }

  @Test(.guarantee(.waitingEventsArePublishedTogether))
  func `a publisher whose actor is busy delays no others`() async throws {
    let server = try RedisServer()
    let node = try await node(on: server)
    let occupied = Occupied()
    var tasks = await publish(["1", "2"], by: node, on: occupied)
    tasks += await publish(["3"], by: node)
    let hasBegun = Gate()
    tasks.append(Task { await occupied.work(hasBegun) })
    try await hasBegun.wait()
    server.resume()
    try await tasks[2].value
    occupied.end()
    for task in tasks { try await task.value }
    #expect(try await texts(on: server) == ["first", "1", "2", "3"])
  }

  @Test(.guarantee(.waitingEventsArePublishedTogether))
  func `events that wait go together, each batch in order`() async throws {
    let server = try RedisServer()
    let node = try EventNode(server)
    await node.connect(.publishOnly)
    try await node.publish("first")
    let monitor = try await RedisMonitor(server)
    server.suspend()
    let expected = (0..<100).map { "\($0)" }
    let tasks = await publish(expected, by: node)
    // A full batch does not wait.
    #expect(node.engine.status.events.unansweredCommands == 3)
    server.resume()
    for task in tasks { try await task.value }
    // Two at once, then 64, then the other ones.
    #expect(try await monitor.count(with: "\"EVALSHA\"", "{notes}:stream", on: server) == 2 + 2)
    let published = try await texts(on: server)
    #expect(published.count == 101)
    // Two batches in flight can overtake each other.
    for batch in [2..<66, 66..<100] {
      let own = published.filter { text in Int(text).map { batch.contains($0) } ?? false }
      #expect(own == Array(expected[batch]))
    }
    #expect(node.engine.status.unconfirmedEvents == 0)
    #expect(node.engine.status.events.outboxBytes == 0)
  }

  @Test(.guarantee(.waitingEventsArePublishedTogether))
  func `an event whose publisher is cancelled while it waits is not published`() async throws {
    let server = try RedisServer()
    let node = try await node(on: server)
    let tasks = await publish((0..<6).map { "\($0)" }, by: node)
    tasks[4].cancel()
    await #expect(throws: CancellationError.self) { try await tasks[4].value }
    // The first ones are in flight: the others do not fail with them.
    tasks[0].cancel()
    await #expect(throws: CancellationError.self) { try await tasks[0].value }
    server.resume()
    for task in [tasks[1], tasks[2], tasks[3], tasks[5]] { try await task.value }
    #expect(try await texts(on: server).sorted() == ["0", "1", "2", "3", "5", "first"])
  }

  @Test(.guarantee(.waitingEventsArePublishedTogether))
  func `an event that the topic has no room for fails alone`() async throws {
    let server = try RedisServer()
    let node = try EventNode(server) { $0.eventLimit = 1_000 }
    await node.connect(.publishOnly)
    try await node.publish("0")
    _ = try RedisShell.run("XGROUP CREATE {notes}:stream idle 0", on: server)
    for _ in 0..<31 {
      await withTaskGroup { group in
        for _ in 0..<64 { group.addTask { try? await node.publish("x") } }
      }
    }
    let length = try RedisShell.run("XLEN {notes}:stream", on: server)
    #expect(length == ":1985\r\n")
    server.suspend()
    let tasks = await publish((0..<20).map { "\($0)" }, by: node)
    server.resume()
    for task in tasks[..<15] { try await task.value }
    for task in tasks[15...] {
      let error = await #expect(throws: LinkPublishError.self) { try await task.value }
      #expect(error?.description.contains("idle") == true)
    }
    #expect(try RedisShell.run("XLEN {notes}:stream", on: server) == ":2000\r\n")
  }

  @Test(.guarantee(.outgoingBytesAreBounded))
  func `the bytes of events that wait are bounded`() async throws {
    let server = try RedisServer()
    let node = try await node(on: server) { $0.outboxBytes = 10_000 }
    let tasks = await publish(["1", "2", String(repeating: "x", count: 2_000)], by: node)
    #expect(node.engine.status.events.outboxBytes > 2_000)
    await #expect(throws: LinkPublishError.self) {
      try await node.publish(String(repeating: "y", count: 8_000))
    }
    server.resume()
    for task in tasks { try await task.value }
    #expect(try await texts(on: server).count == 4)
  }

  @Test(.guarantee(.waitingEventsArePublishedTogether))
  func `events that wait fail if the server does not answer`() async throws {
    let server = try RedisServer()
    let node = try await node(on: server) { $0.eventTimeout = .milliseconds(200) }
    let tasks = await publish((0..<5).map { "\($0)" }, by: node)
    for task in tasks {
      await #expect(throws: LinkPublishError.self) { try await task.value }
    }
    #expect(node.engine.status.unconfirmedEvents == 0)
    #expect(node.engine.status.events.outboxBytes == 0)
    server.resume()
    // Sent ones can have been published, once.
    let published = try await texts(on: server)
    #expect(published.first == "first")
    let others = published.filter { $0 != "first" }
    #expect(others.count == Set(others).count)
  }

  @Test(.guarantee(.waitingEventsArePublishedTogether))
  func `the time of an event that waits begins with its publish`() async throws {
    let server = try RedisServer()
    let node = try await node(on: server) { $0.eventTimeout = .seconds(3) }
    let stopwatch = Stopwatch()
    // The first two are sent, and the third one waits until they have failed.
    let tasks = await publish(["0", "1", "2"], by: node)
    for task in tasks {
      await #expect(throws: LinkPublishError.self) { try await task.value }
    }
    // With a time of its own, the third one would take six seconds.
    let time = stopwatch.elapsed
    #expect(time < .seconds(5))
    server.resume()
    #expect(node.engine.status.unconfirmedEvents == 0)
  }

  @Test(.guarantee(.waitingEventsArePublishedTogether))
  func `a closed engine ends the events that wait`() async throws {
    let server = try RedisServer()
    let node = try await node(on: server)
    let tasks = await publish((0..<5).map { "\($0)" }, by: node)
    async let closing: Void = node.engine.close()
    for task in tasks {
      await #expect(throws: LinkPublishError.self) { try await task.value }
    }
    server.resume()
    try await closing
  }
}
