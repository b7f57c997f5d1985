import Foundation
import LoopbackOrigin
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `Responses that are written while they are read` {
  private let origin: LoopbackOrigin
  private let streams = Log<OriginStream>()
  private let endings = Log<String>()

  init() throws {
    origin = try LoopbackOrigin()
    origin.route("/news", methods: [.get, .post]) { [streams, endings] _ in
      let stream = OriginStream { endings.append("end") }
      streams.append(stream)
      return OriginResponse(stream: stream, contentType: "text/event-stream")
    }
  }

  private func open(_ target: String = "/news") async throws -> (RawClient, OriginStream) {
    let client = try await RawClient(port: origin.port)
    try await client.send("GET \(target) HTTP/1.1\r\nHost: x\r\n\r\n")
    _ = try await client.receive(exactly: "HTTP/1.1 200 OK\r\n".utf8.count)
    var head = ""
    while !head.hasSuffix("\r\n\r\n") { head += try await client.receive(exactly: 1) }
    #expect(head.contains("Content-Type: text/event-stream\r\n"))
    #expect(head.contains("Connection: close") && !head.contains("Content-Length"))
    return (client, await streams.first(1)[0])
  }

  @Test func `the pieces of a stream reach the client one after the other, until its end`()
    async throws
  {
    let (client, stream) = try await open()
    for text in ["one", "two", "three"] {
      #expect(stream.write(Array(text.utf8)))
      #expect(try await client.receive(exactly: text.utf8.count) == text)
    }
    stream.finish()
    #expect(try await client.receiveToEnd() == "")
    _ = await endings.first(1)
    #expect(!stream.write([1]) && !stream.isWritable)
  }

  @Test func `a piece that was written before the response is sent after its head`() async throws {
    origin.route("/ready") { _ in
      let stream = OriginStream()
      stream.write(Array("ready".utf8))
      stream.finish()
      return OriginResponse(stream: stream, contentType: "text/plain")
    }
    let client = try await RawClient(port: origin.port)
    try await client.send("GET /ready HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(try await client.receiveToEnd().hasSuffix("\r\n\r\nready"))
  }

  @Test func `a client that does not read makes no queue grow`() async throws {
    let (client, stream) = try await open()
    // More than the buffers of the system hold.
    let piece = [UInt8](repeating: 7, count: 16 << 20)
    #expect(stream.write(piece))
    #expect(!stream.write([8]))
    #expect(!stream.isWritable)
    #expect(try await client.receive(exactly: piece.count).utf8.count == piece.count)
    // The origin notes a little later that the client has read.
    try await blocking { while !stream.isWritable { poll(nil, 0, 5) } }
    #expect(stream.write([8]))
    #expect(try await client.receive(exactly: 1).utf8.elementsEqual([8]))
  }

  @Test func `a stream ends when its client leaves`() async throws {
    do { _ = try await open() }
    _ = await endings.first(1)
    #expect(endings.count == 1)
    await origin.openConnections(atMost: 0)
  }

  @Test func `a stream ends when its origin stops`() async throws {
    let (client, stream) = try await open()
    origin.stop()
    _ = await endings.first(1)
    #expect(!stream.isWritable)
    await #expect(throws: RawClient.Failure.reset) { try await client.receive() }
  }

  @Test func `a stream has no body for a request of its head`() async throws {
    let client = try await RawClient(port: origin.port)
    try await client.send("HEAD /news HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(try await client.receiveToEnd().hasSuffix("\r\n\r\n"))
    _ = await endings.first(1)
  }
}

@Suite(.fewAtOnce)
struct `Limits of an origin that others can reach` {
  @Test func `a connection that sends no complete request in time is closed`() async throws {
    let clock = ManualClock()
    var limits = OriginLimits()
    limits.requestTimeout = .seconds(10)
    let origin = try LoopbackOrigin(limits: limits, clock: clock)
    origin.route("/hello") { _ in OriginResponse(text: "hello") }
    let silent = try await RawClient(port: origin.port)
    await clock.sleepers(1)
    let slow = try await RawClient(port: origin.port)
    try await slow.send("GET /hello HT")
    await clock.sleepers(2)
    let polite = try await RawClient(port: origin.port)
    #expect(try await polite.exchange("/hello").body == "hello")
    await clock.sleepers(3)
    clock.advance(by: .seconds(10))
    try #require(await origin.closesAll())
    #expect(try await silent.receiveToEnd() == "")
    // What was sent and not read resets the connection.
    _ = try? await slow.receiveToEnd()
    #expect(try await polite.receiveToEnd() == "")
  }

  @Test func `a client that reads no response is disconnected`() async throws {
    let clock = ManualClock()
    var limits = OriginLimits()
    limits.requestTimeout = .seconds(10)
    let origin = try LoopbackOrigin(limits: limits, clock: clock)
    let text = String(repeating: "a", count: 8_000_000)
    origin.route("/large") { _ in OriginResponse(text: text) }
    let deaf = try await RawClient(port: origin.port)
    await clock.sleepers(1)
    try await deaf.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
    while origin.statistics.requests["/large"] == nil { await Task.detached {}.value }
    // The timeout of the response, after that of the request has ended.
    let deadline = clock.now.advanced(by: .seconds(10))
    while clock.nextDeadline != deadline || clock.sleeperCount != 1 { await Task.detached {}.value }
    clock.advance(by: .seconds(10))
    #expect(await origin.closesAll())
  }

  @Test func `a new connection takes the place of the one that has waited longest`() async throws {
    var limits = OriginLimits(connections: 2)
    limits.refusesConnections = true
    let origin = try LoopbackOrigin(limits: limits)
    origin.route("/hello") { _ in OriginResponse(text: "hello") }
    let first = try await RawClient(port: origin.port)
    _ = try await first.exchange("/hello")
    let second = try await RawClient(port: origin.port)
    _ = try await second.exchange("/hello")
    let third = try await RawClient(port: origin.port)
    #expect(try await third.exchange("/hello").body == "hello")
    await #expect(throws: RawClient.Failure.reset) { try await first.receive() }
    #expect(try await second.exchange("/hello").body == "hello")
    #expect(origin.statistics.openConnections == 2)
  }

  @Test func `connections that are answered keep their places`() async throws {
    var limits = OriginLimits(connections: 1)
    limits.refusesConnections = true
    let origin = try LoopbackOrigin(limits: limits)
    let (entered, gate) = (Gate(), Gate())
    origin.route("/wait") { _ in
      entered.open()
      try? await gate.wait()
      return OriginResponse(text: "done")
    }
    origin.route("/hello") { _ in OriginResponse(text: "hello") }
    let busy = try await RawClient(port: origin.port)
    try await busy.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
    try await entered.wait()
    let other = try await RawClient(port: origin.port)
    // It is reset before or after it has sent its request.
    #expect(await (try? other.exchange("/hello")) == nil)
    gate.open()
    #expect(try await busy.response().body == "done")
  }

  @Test func `an origin that does not count requests keeps no paths`() async throws {
    var limits = OriginLimits()
    limits.countsRequests = false
    let origin = try LoopbackOrigin(limits: limits)
    let client = try await RawClient(port: origin.port)
    for number in 0..<10 { _ = try await client.exchange("/\(number)") }
    #expect(origin.statistics.requests.isEmpty)
    #expect(origin.statistics.acceptedConnections == 1)
  }
}

extension LoopbackOrigin {
  /// Waits until no connection is open, for a time that only a broken origin exceeds; returns whether none is.
  fileprivate func closesAll() async -> Bool {
    let end = ContinuousClock.now + .seconds(20)
    while statistics.openConnections > 0, ContinuousClock.now < end {
      await Task.detached {}.value
    }
    return statistics.openConnections == 0
  }
}
