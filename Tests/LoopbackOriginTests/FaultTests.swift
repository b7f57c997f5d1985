import LoopbackOrigin
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `An origin with faults` {
  let origin: LoopbackOrigin
  let clock = ManualClock()
  let requests = Requests()

  init() throws {
    origin = try LoopbackOrigin(clock: clock)
    origin.route("/file") { [requests] request in
      requests.append(request)
      return OriginResponse(text: "0123456789")
    }
  }

  @Test func `an origin answers with the error status of a fault, and continues`() async throws {
    let client = try await RawClient(port: origin.port)
    origin.inject(.status(503), for: "/file")
    #expect(try await client.exchange("/file").status == 503)
    #expect(requests.all.isEmpty)
    #expect(try await client.exchange("/file").status == 200)
    #expect(origin.statistics.requests == ["/file": 2])
  }

  @Test func `the faults of an origin occur one after another, each a number of times`()
    async throws
  {
    origin.inject(.status(500), for: "/file", count: 2)
    origin.inject(.status(404), for: "/file")
    origin.inject(.status(429), for: "/other")
    origin.inject(.status(418), for: "/file", count: 0)
    let client = try await RawClient(port: origin.port)
    var statuses: [Int] = []
    for _ in 0..<4 { statuses.append(try await client.exchange("/file").status) }
    #expect(statuses == [500, 500, 404, 200])
    #expect(try await client.exchange("/other").status == 429)
    #expect(try await client.exchange("/other").status == 404)
  }

  @Test func `an origin discards pending faults that are removed`() async throws {
    origin.inject(.status(500), for: "/file", count: 2)
    let client = try await RawClient(port: origin.port)
    #expect(try await client.exchange("/file").status == 500)
    origin.removeFaults()
    #expect(try await client.exchange("/file").status == 200)
  }

  @Test func `an origin sends any bytes instead of an answer, and closes the connection`()
    async throws
  {
    origin.inject(.raw(Array("HTTP/9 what\r\n".utf8)), for: "/file")
    origin.inject(.raw([]), for: "/file")
    for expected in ["HTTP/9 what\r\n", ""] {
      let client = try await RawClient(port: origin.port)
      try await client.send("GET /file HTTP/1.1\r\nHost: x\r\n\r\n")
      var received: [UInt8] = []
      while case let bytes = try await client.receive(), !bytes.isEmpty { received += bytes }
      #expect(String(decoding: received, as: UTF8.self) == expected)
    }
    #expect(requests.all.isEmpty)
  }

  @Test func `an origin sends any bytes of a fault a few at a time`() async throws {
    origin.inject(.raw([1, 2, 3], bytesAtOnce: 2, every: .seconds(1)), for: "/file")
    let client = try await RawClient(port: origin.port)
    try await client.send("GET /file HTTP/1.1\r\nHost: x\r\n\r\n")
    for expected in [[1, 2], [3]] as [[UInt8]] {
      await clock.sleepers(1)
      clock.advance(by: .seconds(1))
      #expect(try await client.receive() == expected)
    }
  }

  @Test func `an origin resets the connection immediately`() async throws {
    let client = try await RawClient(port: origin.port)
    origin.inject(.reset(), for: "/file")
    await #expect(throws: RawClient.Failure.reset) { try await client.exchange("/file") }
    #expect(requests.all.isEmpty)
    await origin.openConnections(atMost: 0)
  }

  @Test func `an origin resets the connection in the middle of a body`() async throws {
    let client = try await RawClient(port: origin.port)
    origin.inject(.reset(afterBytes: 4), for: "/file")
    try await client.send("GET /file HTTP/1.1\r\nHost: x\r\n\r\n")
    await #expect(throws: RawClient.Failure.reset) {
      // The number of bytes that arrive before the reset depends on the system.
      while try await !client.receive().isEmpty { await Task.detached {}.value }
    }
    #expect(requests.all.count == 1)
  }

  @Test(arguments: [0, 4, 9, 10])
  func `an origin closes the connection before the end of the body`(count: Int) async throws {
    let client = try await RawClient(port: origin.port)
    origin.inject(.truncation(afterBytes: count), for: "/file")
    let response = try await client.exchange("/file")
    #expect(response.headers["content-length"] == "10")
    #expect(response.body == "0123456789".prefix(count))
    #expect(try await client.receiveToEnd() == "")
  }

  @Test func `an origin truncates chunks`() async throws {
    origin.route("/chunks") { _ in
      var response = OriginResponse(text: "0123456789")
      response.framing = .chunked
      response.fault = .truncation(afterBytes: 4)
      return response
    }
    let client = try await RawClient(port: origin.port)
    try await client.send("GET /chunks HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(try await client.receiveToEnd().hasSuffix("\r\n\r\n4\r\n0123\r\n"))
  }

  @Test(arguments: [4, 20])
  func `an origin sends the whole body with a wrong length, and closes the connection`(
    length: Int
  ) async throws {
    let client = try await RawClient(port: origin.port)
    origin.inject(.wrongContentLength(length), for: "/file")
    try await client.send("GET /file HTTP/1.1\r\nHost: x\r\n\r\n")
    let text = try await client.receiveToEnd()
    #expect(text.contains("Content-Length: \(length)\r\n"))
    #expect(text.hasSuffix("\r\n\r\n0123456789"))
  }

  @Test func `an origin stalls immediately until the client disconnects`() async throws {
    origin.inject(.stall(), for: "/file")
    do {
      let client = try await RawClient(port: origin.port)
      try await client.send("GET /file HTTP/1.1\r\nHost: x\r\n\r\n")
      await origin.requests(1, for: "/file")
      #expect(origin.statistics.openConnections == 1)
    }
    await origin.openConnections(atMost: 0)
    #expect(requests.all.isEmpty)
  }

  @Test func `an origin stalls in the middle of a body until the client disconnects`() async throws
  {
    origin.inject(.stall(afterBytes: 4), for: "/file")
    do {
      let client = try await RawClient(port: origin.port)
      try await client.send("GET /file HTTP/1.1\r\nHost: x\r\n\r\n")
      var text = ""
      while !text.hasSuffix("0123") { text += try await client.receive(exactly: 1) }
      #expect(text.contains("Content-Length: 10\r\n"))
    }
    await origin.openConnections(atMost: 0)
  }

  @Test func `an origin drips the body, a few bytes after each pause`() async throws {
    let client = try await RawClient(port: origin.port)
    origin.inject(.drip(bytes: 4, every: .seconds(1)), for: "/file")
    try await client.send("GET /file HTTP/1.1\r\nHost: x\r\n\r\n")
    var head = ""
    while !head.hasSuffix("\r\n\r\n") { head += try await client.receive(exactly: 1) }
    for part in ["0123", "4567", "89"] {
      await clock.sleepers(1)
      #expect(clock.nextDeadline == clock.now.advanced(by: .seconds(1)))
      clock.advance(by: .seconds(1))
      #expect(try await client.receive(exactly: part.count) == part)
    }
    #expect(try await client.exchange("/file").body == "0123456789")
  }

  @Test func `an origin stops dripping a body when the client disconnects`() async throws {
    let origin = origin
    origin.inject(.drip(bytes: 1, every: .seconds(1)), for: "/file")
    do {
      let client = try await RawClient(port: origin.port)
      try await client.send("GET /file HTTP/1.1\r\nHost: x\r\n\r\n")
      await clock.sleepers(1)
    }
    // The clock is not advanced: the pauses end because the client has disconnected.
    await origin.openConnections(atMost: 0)
    #expect(origin.statistics.openConnections == 0)
  }

  @Test func `a handler of an origin can return a fault with its response`() async throws {
    origin.route("/flaky") { request in
      var response = OriginResponse(text: "0123456789")
      if request.query("fails") == "yes" { response.fault = .truncation(afterBytes: 2) }
      return response
    }
    let client = try await RawClient(port: origin.port)
    #expect(try await client.exchange("/flaky").body == "0123456789")
    #expect(try await client.exchange("/flaky?fails=yes").body == "01")
  }

  @Test func `a fault of an origin also applies to a part of a resource`() async throws {
    let client = try await RawClient(port: origin.port)
    origin.inject(.truncation(afterBytes: 2), for: "/file")
    let response = try await client.exchange("/file", headers: ["Range: bytes=5-"])
    #expect(response.status == 206)
    #expect(response.headers["content-length"] == "5")
    #expect(response.body == "56")
  }

  @Test func `an answer to HEAD has no body that a fault could truncate`() async throws {
    let client = try await RawClient(port: origin.port)
    origin.inject(.drip(bytes: 1, every: .seconds(1)), for: "/file")
    #expect(try await client.exchange("/file", method: "HEAD").status == 200)
    #expect(try await client.exchange("/file").status == 200)
  }
}
