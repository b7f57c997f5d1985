import Plexus
import TestSupport
import Testing

@testable import PlexusRedis

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `The script that publishes events` {
  typealias Outbox = EventOutboxState<Void>

  private let names = TopicNames("notes")

  private func batch(
    _ number: UInt64,
    _ bodies: [String],
    after latest: PublishedState.Confirmed? = nil
  ) -> Outbox.Batch {
    let messages = bodies.enumerated().map { index, body in
      Outbox.Message(id: UInt64(index), header: "h\n1\no\nt", body: Array(body.utf8), deadline: 0)
    }
    return Outbox.Batch(topic: "notes", number: number, messages: messages, latest: latest)
  }

  private func run(
    _ batch: Outbox.Batch,
    on connection: RedisConnection,
    limit: Int = 1_000
  ) async throws -> [Result<LinkPosition, any Error>] {
    let call = TopicScripts.publish(batch, names, node: "a", limit: limit, at: 0)
    let reply = try await TopicScripts.publish.run(
      on: Route(connection),
      keys: call.keys,
      call.arguments
    )
    return try TopicScripts.results(of: batch, in: reply).0
  }

  private func bodies(on connection: RedisConnection) async throws -> [String] {
    let reply = try await connection.send(
      RedisCommand("XRANGE", [.text(names.stream), "-", "+"])
    )
    return (reply.elements ?? []).compactMap { MessageFormat.Entry($0) }
      .map { String(decoding: $0.message.body, as: UTF8.self) }
  }

  @Test(.guarantee(.waitingEventsArePublishedTogether))
  func `the script that publishes events appends a batch once, however often it is sent`()
    async throws
  {
    let server = try RedisServer()
    let connection = try await RedisConnection.connected(to: server)
    let first = try await run(batch(1, ["a", "b", "c"]), on: connection).map { try $0.get() }
    #expect(first.map(\.number) == [0, 1, 2])
    #expect(Set(first.map(\.epoch)).count == 1)
    let latest = PublishedState.Confirmed(number: 1, position: first[0], time: 0)
    let second = try await run(batch(2, ["d"], after: latest), on: connection)
    #expect(try second[0].get() == LinkPosition(epoch: first[0].epoch, number: 3))
    let again = try await run(batch(1, ["a", "b", "c"]), on: connection).map { try $0.get() }
    #expect(again == first)
    #expect(try await bodies(on: connection) == ["a", "b", "c", "d"])
  }

  @Test(.guarantee(.waitingEventsArePublishedTogether))
  func `the script that publishes events refuses a batch that the engine no longer knows`()
    async throws
  {
    let server = try RedisServer()
    let connection = try await RedisConnection.connected(to: server)
    _ = try await run(batch(1 + TopicNames.remembered, ["new"]), on: connection)
    let error = await #expect(throws: RedisError.self) {
      _ = try await run(batch(1, ["old"]), on: connection)
    }
    #expect(error?.code == "FORGOTTEN")
    #expect(try await bodies(on: connection) == ["new"])
  }

  @Test(.guarantee(.waitingEventsArePublishedTogether))
  func `a message that was refused is refused again, and the others are not repeated`()
    async throws
  {
    let server = try RedisServer()
    let connection = try await RedisConnection.connected(to: server)
    var latest: PublishedState.Confirmed?
    func fill(_ number: UInt64, _ count: Int) async throws {
      let results = try await run(
        batch(number, Array(repeating: "x", count: count), after: latest),
        on: connection
      )
      latest = PublishedState.Confirmed(number: number, position: try results[0].get(), time: 0)
    }
    try await fill(1, 1)
    _ = try await connection.send(
      RedisCommand("XGROUP", ["CREATE", .text(names.stream), "idle", "0"])
    )
    for number in 2..<20 { try await fill(UInt64(number), 111) }
    // There is room for one more.
    let sent = batch(20, ["fits", "full", "full"], after: latest)
    for code in ["FULL", "REFUSED"] {
      let results = try await run(sent, on: connection)
      let last = latest.map { LinkPosition(epoch: $0.position.epoch, number: 1_999) }
      #expect(try results[0].get() == last)
      for result in results[1...] {
        let error = #expect(throws: RedisError.self) { try result.get() }
        #expect(error?.code == code)
      }
    }
    #expect(try await bodies(on: connection).count == 2_000)
  }

  @Test(.guarantee(.waitingEventsArePublishedTogether))
  func `a server with older data gets a new epoch for the whole batch`() async throws {
    let server = try RedisServer()
    let connection = try await RedisConnection.connected(to: server)
    let old = try await run(batch(1, ["a", "b"]), on: connection).map { try $0.get() }
    let latest = PublishedState.Confirmed(number: 1, position: old[0], time: 0)
    _ = try await connection.send(RedisCommand("DEL", [.text(names.sent(by: "a"))]))
    let new = try await run(batch(2, ["c", "d"], after: latest), on: connection)
      .map { try $0.get() }
    #expect(new.map(\.number) == [0, 1])
    #expect(new[0].epoch > old[0].epoch && new[0].epoch == new[1].epoch)
    let reply = try await connection.send(
      RedisCommand("XRANGE", [.text(names.stream), "-", "+"])
    )
    let losses = (reply.elements ?? []).compactMap { MessageFormat.Entry($0)?.isAfterLoss }
    #expect(losses == [false, false, true, false])
  }

  @Test(.guarantee(.waitingEventsArePublishedTogether))
  func `the script that publishes events announces each message of a batch to its listeners`()
    async throws
  {
    let server = try RedisServer()
    let pushes = Log<[RESPValue]>()
    let listener = try await RedisConnection.connected(to: server) { pushes.append($0) }
    _ = try await listener.send(RedisCommand("SUBSCRIBE", [.text(names.channel)]))
    let connection = try await RedisConnection.connected(to: server)
    let positions = try await run(batch(1, ["a", "b", "c"]), on: connection).map { try $0.get() }
    let heard = await pushes.first(3).map { MessageFormat.published($0.last?.bytes ?? []) }
    #expect(heard.map { $0?.position } == positions)
    let bodies = heard.map { String(decoding: $0?.message.body ?? [], as: UTF8.self) }
    #expect(bodies == ["a", "b", "c"])
  }
}

extension RedisConnection {
  /// Returns a connection whose commands have time, however busy the machine is.
  static func connected(
    to server: RedisServer,
    _ onPush: @escaping @Sendable ([RESPValue]) -> Void = { _ in }
  ) async throws -> RedisConnection {
    var settings = Settings(server.address)
    settings.commandTimeout = .seconds(60)
    let connected = Log<Void>()
    let connection = try RedisConnection(settings) { event in
      switch event {
      case .connected: connected.append(())
      case .push(let elements): onPush(elements)
      case .refusal: break
      case .disconnected: break
      }
    }
    await connected.first(1)
    return connection
  }
}
