import Plexus
import TestSupport
import Testing

@testable import PlexusRedis

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `The scripts of groups` {
  private let server: RedisServer
  private let names = TopicNames("notes")

  init() throws {
    server = try RedisServer()
  }

  /// Sends a command whose parts have no spaces.
  @discardableResult
  private func send(
    _ command: String,
    over connection: RedisConnection
  ) async throws -> RESPValue {
    let parts = command.split(separator: " ").map { $0 == "KEY" ? names.stream : String($0) }
    return try await connection.send(RedisCommand(parts[0], parts.dropFirst().map { .text($0) }))
  }

  /// Returns a connection to a stream with events `1-0`, `1-1` and so on, all of which node "a" has read.
  private func connect(reading count: Int) async throws -> RedisConnection {
    let connection = try await RedisConnection.connected(to: server)
    for number in 0..<count { try await send("XADD KEY 1-\(number) d \(number)", over: connection) }
    try await send("XGROUP CREATE KEY group 0", over: connection)
    try await send("XREADGROUP GROUP group a COUNT \(count) STREAMS KEY >", over: connection)
    return connection
  }

  /// Returns the events of a node, with their attempts.
  private func pending(_ node: String, over connection: RedisConnection) async throws -> [String] {
    let reply = try await send("XPENDING KEY group - + 100 \(node)", over: connection)
    return (reply.elements ?? []).map { entry in
      let parts = entry.elements ?? []
      return "\(parts[0].text ?? "") \(parts[3].integer ?? 0)"
    }
  }

  /// Takes over what was not answered for a minute.
  private func claim(by node: String, over connection: RedisConnection) async throws -> [String] {
    let reply = try await TopicScripts.claim.run(
      on: Route(connection),
      keys: [names.stream],
      [.text("group"), .text(node), 60_000, 16, 1_000_000, 1_000_000]
    )
    return (reply.elements ?? []).map { entry in
      let parts = entry.elements ?? []
      return "\(parts[0].text ?? "") \(parts[2].integer ?? 0)"
    }
  }

  @Test(.guarantee(.renewedEventsStayWithTheirNode))
  func `a node that lives keeps the events that it renews`() async throws {
    let connection = try await connect(reading: 4)
    // The first one was not renewed, nor the third one.
    for id in ["1-0", "1-2"] {
      try await send("XCLAIM KEY group a 0 \(id) IDLE 100000 RETRYCOUNT 1 JUSTID", over: connection)
    }
    #expect(try await claim(by: "b", over: connection) == ["1-0 2", "1-2 1"])
    #expect(try await pending("a", over: connection) == ["1-1 1", "1-3 1"])
  }

  @Test(.guarantee(.renewedEventsStayWithTheirNode))
  func `the events of a node that is gone go to the others together`() async throws {
    let connection = try await connect(reading: 20)
    for number in 0..<20 {
      let claim = "XCLAIM KEY group a 0 1-\(number) IDLE 100000 RETRYCOUNT 1 JUSTID"
      try await send(claim, over: connection)
    }
    let first = try await claim(by: "b", over: connection)
    #expect(first == ["1-0 2"] + (1..<16).map { "1-\($0) 1" })
    #expect(try await pending("a", over: connection) == [])
    #expect(try await pending("released", over: connection) == (16..<20).map { "1-\($0) 1" })
  }

  @Test(.guarantee(.renewedEventsStayWithTheirNode))
  func `a node that leaves gives back all its events`() async throws {
    let connection = try await connect(reading: 3)
    _ = try await TopicScripts.leave.run(
      on: Route(connection),
      keys: [names.stream, names.released(by: "group")],
      [.text("group"), .text("a"), 60_000, .text("1-0")]
    )
    #expect(try await pending("released", over: connection) == ["1-0 2", "1-1 1", "1-2 1"])
    #expect(try await claim(by: "b", over: connection) == ["1-0 2", "1-1 1", "1-2 1"])
  }

  @Test(.guarantee(.foreignGroupChangesLoseNoEvent), arguments: [true, false])
  func `an event that is no longer pending stays with its node while no other can have handled it`(
    isInTime: Bool
  ) async throws {
    let connection = try await connect(reading: 4)
    try await send("XACK KEY group 1-1", over: connection)
    // Another node has this one.
    try await send("XCLAIM KEY group b 0 1-2 JUSTID", over: connection)
    let reply = try await TopicScripts.renew.run(
      on: Route(connection),
      keys: [names.stream],
      [.text("group"), .text("a"), isInTime ? 1 : 0, .text("1-0"), .text("1-1"), .text("1-2")]
    )
    #expect(reply.elements?.map(\.text) == (isInTime ? ["1-0", "1-1"] : ["1-0"]))
  }

  @Test(.guarantee(.removedEventsAreDeliveredOrReported))
  func `an event that was removed after it was read stays with its node`() async throws {
    let connection = try await connect(reading: 3)
    try await send("XDEL KEY 1-1", over: connection)
    for _ in 0..<3 {
      let reply = try await TopicScripts.renew.run(
        on: Route(connection),
        keys: [names.stream],
        [.text("group"), .text("a"), 0, .text("1-0"), .text("1-1"), .text("1-2")]
      )
      #expect(reply.elements?.map(\.text) == ["1-0", "1-1", "1-2"])
    }
    #expect(try await pending("a", over: connection) == ["1-0 1", "1-1 1", "1-2 1"])
  }

  @Test(.guarantee(.attemptsCountForHandledEvents))
  func `the next event of a node that dies has had its attempt, the others have not`()
    async throws
  {
    let connection = try await connect(reading: 3)
    // It has handled the first one, and dies before it begins the next one.
    try await send("XACK KEY group 1-0", over: connection)
    for number in 1..<3 {
      let claim = "XCLAIM KEY group a 0 1-\(number) IDLE 100000 RETRYCOUNT 1 JUSTID"
      try await send(claim, over: connection)
    }
    #expect(try await claim(by: "b", over: connection) == ["1-1 2", "1-2 1"])
  }
}
