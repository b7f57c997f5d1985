import Foundation
import LoopbackOrigin
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.fewAtOnce)
struct `An origin that serves` {
  let origin: LoopbackOrigin

  init() throws {
    origin = try LoopbackOrigin()
    origin.route("/hello") { _ in OriginResponse(text: "hello") }
    origin.route("/echo", methods: [.post, .put]) { OriginResponse(body: $0.body) }
  }

  @Test func `an origin answers although all threads of the pool are blocked`() async throws {
    let url = try #require(URL(string: "\(origin.address)/hello"))
    let body = try await blocking {
      let (blocked, released) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      let count = 64
      for _ in 0..<count {
        Task.detached {
          blocked.signal()
          block(on: released)
        }
      }
      // The pool has as many threads as the machine has processors, and gets more only after some time.
      for _ in 0..<ProcessInfo.processInfo.activeProcessorCount { blocked.wait() }
      defer { for _ in 0..<count { released.signal() } }
      return try Data(contentsOf: url)
    }
    #expect(body == Data("hello".utf8))
  }

  @Test func `an origin sends the response of the route`() async throws {
    let response = try await RawClient(port: origin.port).exchange("/hello")
    #expect(response.status == 200)
    #expect(response.body == "hello")
    #expect(response.headers["content-type"] == "text/plain; charset=utf-8")
    #expect(response.headers["content-length"] == "5")
    #expect(response.headers["connection"] == "keep-alive")
    #expect(response.headers["accept-ranges"] == "bytes")
    #expect(response.headers["date"]?.hasSuffix(" GMT") == true)
  }

  @Test func `an origin passes the request to the route`() async throws {
    let requests = Requests()
    origin.route("/airlines/*") { request in
      requests.append(request)
      return OriginResponse(json: "{}")
    }
    let client = try await RawClient(port: origin.port)
    let response = try await client.exchange("/airlines/a%2Fb?full=yes", headers: ["X-Key: 7"])
    #expect(response.headers["content-type"] == "application/json")
    let request = try #require(requests.all.first)
    #expect(request.pathComponents == ["airlines", "a/b"])
    #expect(request.query("full") == "yes")
    #expect(request.headers["x-key"] == "7")
  }

  @Test func `a route of an origin replaces an earlier one for the same path`() async throws {
    origin.route("/hello") { _ in OriginResponse(text: "good day") }
    let client = try await RawClient(port: origin.port)
    #expect(try await client.exchange("/hello").body == "good day")
  }

  @Test func `an origin answers HEAD like GET, without the body`() async throws {
    let client = try await RawClient(port: origin.port)
    let response = try await client.exchange("/hello", method: "HEAD")
    #expect(response.status == 200)
    #expect(response.headers["content-length"] == "5")
    // The next response follows, not a body.
    #expect(try await client.exchange("/hello").body == "hello")
  }

  @Test func `a route of an origin can answer HEAD itself`() async throws {
    origin.route("/hello", methods: [.head]) { _ in OriginResponse(status: 204) }
    let client = try await RawClient(port: origin.port)
    #expect(try await client.exchange("/hello", method: "HEAD").status == 204)
    #expect(try await client.exchange("/hello").status == 200)
  }

  @Test(arguments: [(200, "ok"), (201, "ok"), (404, "ok"), (503, "ok"), (204, ""), (304, "")])
  func `a response of an origin has a body unless its status allows none`(
    status: Int,
    body: String
  ) async throws {
    origin.route("/status") { _ in OriginResponse(text: "ok", status: status) }
    let client = try await RawClient(port: origin.port)
    let response = try await client.exchange("/status")
    #expect(response.status == status)
    #expect(response.body == body)
    #expect((response.headers["content-length"] == nil) == body.isEmpty)
    #expect(try await client.exchange("/hello").body == "hello")
  }

  @Test func `an origin answers unknown paths with 404, and methods without a route with 405`()
    async throws
  {
    let client = try await RawClient(port: origin.port)
    #expect(try await client.exchange("/nobody").status == 404)
    #expect(try await client.exchange("/hello/").status == 404)
    let response = try await client.exchange("/hello", method: "DELETE")
    #expect(response.status == 405)
    #expect(response.headers["allow"] == "GET, HEAD")
    #expect(try await client.exchange("/hello").status == 200)
  }

  @Test func `an origin keeps a connection for many requests`() async throws {
    let client = try await RawClient(port: origin.port)
    for _ in 0..<100 { #expect(try await client.exchange("/hello").body == "hello") }
    #expect(origin.statistics.acceptedConnections == 1)
    #expect(origin.statistics.openConnections == 1)
  }

  @Test func `an origin closes the connection when the client asks for it`() async throws {
    do {
      let client = try await RawClient(port: origin.port)
      let response = try await client.exchange("/hello", headers: ["Connection: close"])
      #expect(response.headers["connection"] == "close")
      #expect(try await client.receiveToEnd() == "")
    }
    await origin.openConnections(atMost: 0)
  }

  @Test func `an origin closes the connection of an old client`() async throws {
    let client = try await RawClient(port: origin.port)
    origin.route("/chunks") { _ in
      var response = OriginResponse(text: "hello")
      response.framing = .chunked
      return response
    }
    try await client.send("GET /chunks HTTP/1.0\r\n\r\n")
    let text = try await client.receiveToEnd()
    // An old client does not support chunks.
    #expect(text.hasSuffix("\r\n\r\nhello"))
    #expect(!text.lowercased().contains("transfer-encoding"))
  }

  @Test func `an origin answers requests that were sent ahead in order`() async throws {
    let gate = Gate()
    origin.route("/slow") { _ in
      try? await gate.wait()
      return OriginResponse(text: "slow")
    }
    let client = try await RawClient(port: origin.port)
    let requests = ["/slow", "/hello", "/nobody", "/hello"].map {
      "GET \($0) HTTP/1.1\r\nHost: x\r\n\r\n"
    }
    try await client.send(requests.joined())
    await gate.arrivals(1)
    gate.open()
    var bodies: [String] = []
    for _ in requests { bodies.append(try await client.response().body) }
    #expect(bodies == ["slow", "hello", "404 Not Found\n", "hello"])
  }

  @Test func `an origin answers a thousand requests that were sent ahead`() async throws {
    let client = try await RawClient(port: origin.port)
    let request = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n"
    let all = (1_000..<2_000).map { request + "\($0)" }.joined()
    async let sent: Void = client.send(all)
    for number in 1_000..<2_000 {
      #expect(try await client.response().body == "\(number)")
    }
    try await sent
  }

  @Test func `an origin answers requests after the client has closed its sending side`()
    async throws
  {
    let client = try await RawClient(port: origin.port)
    let request = "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"
    try await client.send(request + request + "GET /unfinis")
    client.finishSending()
    let text = try await client.receiveToEnd()
    #expect(text.split(separator: "HTTP/1.1 200 OK").count == 2)
    await origin.openConnections(atMost: 0)
  }

  @Test func `an origin sends bodies that are larger than any buffer, and receives them`()
    async throws
  {
    let body = (0..<4_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) & 0x7F }
    let client = try await RawClient(port: origin.port)
    async let sent: Void = client.send(
      Array("PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.count)\r\n\r\n".utf8) + body
    )
    let response = try await client.response()
    try await sent
    #expect(response.body.utf8.elementsEqual(body))
  }

  @Test(arguments: [OriginResponse.Framing.contentLength, .untilClose])
  func `an origin closes the connection only when everything has been sent, however large`(
    framing: OriginResponse.Framing
  ) async throws {
    let body = [UInt8](repeating: 0x61, count: 20_000_000)
    origin.route("/large") { _ in
      var response = OriginResponse(body: body)
      response.framing = framing
      return response
    }
    let client = try await RawClient(port: origin.port)
    try await client.send("GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    let answer = try await client.receiveToEnd()
    let head = try #require(answer.firstRange(of: "\r\n\r\n"))
    #expect(answer.utf8.distance(from: head.upperBound, to: answer.endIndex) == body.count)
  }

  @Test func `an origin asks a waiting client for the body`() async throws {
    let client = try await RawClient(port: origin.port)
    try await client.send(
      "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
    )
    #expect(try await client.response().status == 100)
    try await client.send("ok")
    #expect(try await client.response().body == "ok")
  }

  @Test func `an origin sends a body in chunks, or up to the end of the connection`() async throws {
    let body = String(repeating: "0123456789", count: 1_000)
    for framing in [OriginResponse.Framing.chunked, .untilClose] {
      origin.route("/framed") { _ in
        var response = OriginResponse(text: body)
        response.framing = framing
        return response
      }
      let client = try await RawClient(port: origin.port)
      try await client.send("GET /framed HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
      let text = try await client.receiveToEnd()
      let parts = text.split(separator: "\r\n\r\n", maxSplits: 1)
      #expect(!parts[0].contains("Content-Length"))
      if framing == .untilClose {
        #expect(parts[1] == body)
      } else {
        #expect(parts[0].contains("Transfer-Encoding: chunked"))
        #expect(
          parts[1]
            == "2000\r\n\(body.prefix(8_192))\r\n710\r\n\(body.dropFirst(8_192))\r\n0\r\n\r\n"
        )
      }
    }
  }

  @Test func `an origin serves hundreds of connections at once`() async throws {
    let (origin, gate, count) = (origin, Gate(), 300)
    origin.route("/together") { request in
      try? await gate.wait()
      return OriginResponse(text: request.query("n") ?? "")
    }
    let numbers = try await withThrowingTaskGroup(of: String.self) { group in
      for number in 0..<count {
        group.addTask {
          try await RawClient(port: origin.port).exchange("/together?n=\(number)").body
        }
      }
      await gate.arrivals(count)
      #expect(origin.statistics.openConnections == count)
      gate.open()
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(numbers == Set((0..<count).map(String.init)))
    await origin.openConnections(atMost: 0)
    #expect(origin.statistics.requests == ["/together": count])
  }

  @Test func `connections to an origin beyond its limit wait for their turn`() async throws {
    let origin = try LoopbackOrigin(limits: OriginLimits(connections: 2))
    origin.route("/hello") { _ in OriginResponse(text: "hello") }
    let bodies = try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<20 {
        group.addTask {
          let client = try await RawClient(port: origin.port)
          let response = try await client.exchange("/hello")
          #expect(origin.statistics.openConnections <= 2)
          return response.body
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(bodies == Array(repeating: "hello", count: 20))
  }

  @Test func `an origin counts the requests for each path, answered or not`() async throws {
    let client = try await RawClient(port: origin.port)
    async let waiting: Void = origin.requests(3, for: "/hello")
    for query in ["", "?a=1", "?a=2"] { _ = try await client.exchange("/hello\(query)") }
    await waiting
    _ = try await client.exchange("/no%20body")
    #expect(origin.statistics.requests == ["/hello": 3, "/no body": 1])
    #expect(origin.statistics.requestCount == 4)
  }

  @Test func `waiting for requests to an origin ends when the waiting task is cancelled`() async {
    let origin = origin
    let waiting = Task { await origin.requests(1, for: "/hello") }
    waiting.cancel()
    await waiting.value
    #expect(origin.statistics.requestCount == 0)
  }

  @Test func `an origin waits for its latency before it answers`() async throws {
    let clock = ManualClock()
    let origin = try LoopbackOrigin(clock: clock)
    origin.route("/hello") { _ in OriginResponse(text: "hello") }
    origin.latency = .milliseconds(250)
    #expect(origin.latency == .milliseconds(250))
    let client = try await RawClient(port: origin.port)
    async let response = client.exchange("/hello")
    await clock.sleepers(1)
    #expect(clock.nextDeadline?.offset == .milliseconds(250))
    clock.advance(by: .milliseconds(250))
    #expect(try await response.body == "hello")
    origin.latency = .zero
    #expect(try await client.exchange("/hello").body == "hello")
  }

  @Test func `an origin cancels the handler of a client that disconnects`() async throws {
    let (entered, endings) = (Gate(), Log<Bool>())
    origin.route("/wait") { _ in
      entered.open()
      try? await Gate().wait()
      endings.append(Task.isCancelled)
      return OriginResponse(text: "too late")
    }
    let origin = origin
    let caller = Task {
      let client = try await RawClient(port: origin.port)
      try await client.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
      try await entered.wait()
    }
    try await caller.value
    #expect(await endings.first(1) == [true])
    await origin.openConnections(atMost: 0)
  }
}

/// Blocks the thread of a task.
private func block(on semaphore: DispatchSemaphore) {
  semaphore.wait()
}
