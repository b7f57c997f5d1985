import LoopbackOrigin
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `An origin that refuses` {
  let origin: LoopbackOrigin
  let clock = ManualClock()

  init() throws {
    origin = try LoopbackOrigin(
      limits: OriginLimits(headBytes: 1_000, bodyBytes: 100),
      clock: clock
    )
    origin.route("/hello") { _ in OriginResponse(text: "hello") }
  }

  @Test(arguments: [
    ("nonsense\r\n\r\n", 400),
    ("GET /\r\n\r\n", 400),
    ("GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ("GET / HTTP/1.1 \r\nHost: x\r\n\r\n", 400),
    ("GET hello HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ("GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ("GET /?a=%2 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ("GET /?a=%4g HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ("GET /%%41 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ("GET /%FF HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ("GET /?%E2%82 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ("GET / http/1.1\r\nHost: x\r\n\r\n", 400),
    ("GET / HTTP/1.10\r\nHost: x\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: x\r\nX: a\u{0}b\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n", 413),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", 413),
    ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", 501),
    ("BREW /hello HTTP/1.1\r\nHost: x\r\n\r\n", 501),
    ("get /hello HTTP/1.1\r\nHost: x\r\n\r\n", 501),
    ("GET /hello HTTP/2.0\r\nHost: x\r\n\r\n", 505),
    ("GET /hello HTTP/1.1\r\nHost: x\r\nExpect: tea\r\n\r\n", 417),
    ("\u{16}\u{3}\u{1}\u{2}\n\n", 400),
  ])
  func `an origin responds to a malformed request with its reason, and closes the connection`(
    request: String,
    status: Int
  ) async throws {
    let client = try await RawClient(port: origin.port)
    try await client.send(request)
    let response = try await client.response()
    #expect(response.status == status)
    #expect(response.headers["connection"] == "close")
    #expect(response.body.hasPrefix("\(status) "))
    #expect(try await client.receiveToEnd() == "")
    #expect(origin.statistics.requests.isEmpty)
  }

  @Test(arguments: [("GET /", 414), ("GET / HTTP/1.1\r\nX: ", 431)])
  func `an origin rejects a head that is too large, no matter how much is sent`(
    start: String,
    status: Int
  ) async throws {
    let client = try await RawClient(port: origin.port)
    try await client.send(start + String(repeating: "a", count: 300_000))
    #expect(try await client.response().status == status)
  }

  @Test func `an origin rejects a body that is too large, although it is sent`() async throws {
    let client = try await RawClient(port: origin.port)
    try await client.send("POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 500000\r\n\r\n")
    #expect(try await client.response().status == 413)
    // The origin still reads the body; otherwise the client could lose the response.
    for _ in 0..<5 { try await client.send(String(repeating: "a", count: 100_000)) }
    #expect(try await client.receiveToEnd() == "")
  }

  @Test func `an origin does not wait forever for a client that does not close`() async throws {
    let client = try await RawClient(port: origin.port)
    try await client.send("nonsense\r\n\r\n")
    #expect(try await client.response().status == 400)
    await clock.sleepers(1)
    #expect(origin.statistics.openConnections == 1)
    clock.advance(by: .seconds(2))
    await origin.openConnections(atMost: 0)
  }

  @Test func `an origin answers the requests before a malformed one`() async throws {
    let client = try await RawClient(port: origin.port)
    try await client.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\nnonsense\r\n\r\n")
    #expect(try await client.response().body == "hello")
    #expect(try await client.response().status == 400)
    #expect(try await client.receiveToEnd() == "")
  }

  @Test(.startsProcess) func `an origin rejects invalid limits`() async {
    await #expect(processExitsWith: .failure) { _ = OriginLimits(headBytes: 0) }
    await #expect(processExitsWith: .failure) { _ = OriginLimits(bodyBytes: -1) }
    await #expect(processExitsWith: .failure) { _ = OriginLimits(connections: 0) }
  }

  @Test(.startsProcess)
  func `an origin rejects a route without a slash, and a fault with a negative count`()
    async
  {
    await #expect(processExitsWith: .failure) {
      try LoopbackOrigin().route("hello") { _ in OriginResponse() }
    }
    await #expect(processExitsWith: .failure) {
      try LoopbackOrigin().inject(.reset(), for: "/", count: -1)
    }
  }
}
