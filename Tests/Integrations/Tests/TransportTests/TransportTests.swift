import AsyncHTTPClient
import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.serialized) struct `A transport over AsyncHTTPClient` {
  /// Sends a request with a client of its own, which is shut down afterwards.
  private func send(
    _ url: URL,
    to receiver: Body = Body(),
    method: String = "GET"
  ) async throws -> Body {
    try await withTransport { transport in
      var request = URLRequest(url: url)
      request.httpMethod = method
      try await within(.seconds(60)) { [request] in
        try await transport.send(request, to: receiver)
      }
      return receiver
    }
  }

  private func withTransport<Result: Sendable>(
    _ body: @Sendable (AsyncHTTPTransport) async throws -> Result
  ) async throws -> Result {
    let client = AsyncHTTPTransport.makeClient()
    let result: Swift.Result<Result, any Error>
    do {
      result = .success(try await body(AsyncHTTPTransport(client: client)))
    } catch {
      result = .failure(error)
    }
    try await client.shutdown()
    return try result.get()
  }

  private func code(of url: URL, to receiver: Body = Body()) async -> URLError.Code? {
    do {
      _ = try await send(url, to: receiver)
      return nil
    } catch {
      return (error as? URLError)?.code
    }
  }

  private func expectNoConnectivityFailure(of url: URL) async {
    do {
      _ = try await send(url)
      Issue.record("The answer was accepted")
    } catch {
      #expect(!(error is CancellationError))
      #expect((error as? any ConnectivityFailure)?.isConnectivityFailure != true, "\(error)")
    }
  }

  // MARK: - Answers

  @Test func `status, fields and body are delivered`() async throws {
    let origin = RawOrigin { connection in
      _ = connection.head()
      connection.write(
        "HTTP/1.1 404 Not Found\r\nVary: a\r\nVary: b\r\nContent-Length: 5\r\n\r\nnever"
      )
    }
    let body = try await send(origin.url())
    #expect(body.response?.statusCode == 404)
    #expect(body.response?.value(forHTTPHeaderField: "Vary") == "a, b")
    #expect(body.text == "never")
  }

  @Test func `a redirect is delivered`() async throws {
    let origin = RawOrigin { connection in
      _ = connection.head()
      connection.write("HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n")
    }
    #expect(try await send(origin.url()).response?.statusCode == 302)
  }

  @Test func `a challenge is delivered`() async throws {
    let origin = RawOrigin { connection in
      _ = connection.head()
      connection.write(
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n"
      )
    }
    #expect(try await send(origin.url()).response?.statusCode == 401)
  }

  @Test func `an interim answer is skipped`() async throws {
    let origin = RawOrigin { connection in
      _ = connection.head()
      connection.write("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    }
    let body = try await send(origin.url())
    #expect(body.response?.statusCode == 200)
    #expect(body.text == "ok")
  }

  @Test func `a fetcher follows redirects by its rules and keeps credentials at home`() async throws
  {
    let heads = Mutex<[String]>([])
    let other = RawOrigin { connection in
      let head = connection.head() ?? ""
      heads.withLock { $0.append(head) }
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    }
    let target = other.url("/end").absoluteString
    let origin = RawOrigin { connection in
      _ = connection.head()
      connection.write("HTTP/1.1 302 Found\r\nLocation: \(target)\r\nContent-Length: 0\r\n\r\n")
    }
    let text = try await withTransport { transport in
      var transport = transport
      transport.headers = ["Authorization": "Bearer secret"]
      let fetcher = HTTPFetcher(origin.url(), transport: transport) { data in
        String(decoding: data, as: UTF8.self)
      }
      return try await Multiplexer(policy: .http, onFetch: fetcher.fetch).request()
    }
    #expect(text == "ok")
    #expect(heads.withLock { $0.count } == 1)
    #expect(heads.withLock { !($0.first ?? "").lowercased().contains("authorization") })
  }

  @Test func `a rejected token is refreshed once for all requests of a client`() async throws {
    let origin = RawOrigin { connection in
      let isValid = connection.head()?.lowercased().contains("authorization: bearer new") == true
      connection.write(
        isValid
          ? "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
          : "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
      )
    }
    let fetches = Mutex(0)
    let answers = try await withTransport { base in
      let token = Multiplexer<String> {
        fetches.withLock { $0 += 1 }
        return "new"
      }
      token.store("old")
      let transport = TokenTransport(
        base: base,
        origin: origin.url(),
        token: token,
        account: { _ in "ada" }
      ) {
        $0.setValue("Bearer " + $1, forHTTPHeaderField: "Authorization")
      }
      return try await withThrowingTaskGroup(of: String.self) { group in
        for number in 0..<20 {
          group.addTask {
            let receiver = Body()
            try await transport.send(URLRequest(url: origin.url("/\(number)")), to: receiver)
            return receiver.text
          }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
    }
    #expect(answers == Array(repeating: "ok", count: 20))
    #expect(fetches.withLock { $0 } == 1)
  }

  @Test func `a body is sent with its method`() async throws {
    let heads = Mutex<[String]>([])
    let origin = RawOrigin { connection in
      let head = connection.head() ?? ""
      heads.withLock { $0.append(head) }
      connection.write("HTTP/1.1 204 No Content\r\n\r\n")
    }
    try await withTransport { transport in
      var request = URLRequest(url: origin.url())
      request.httpMethod = "PUT"
      request.httpBody = Data("body".utf8)
      try await transport.send(request, to: Body())
    }
    #expect(heads.withLock { $0.first?.hasPrefix("PUT / HTTP/1.1") } == true)
    #expect(heads.withLock { $0.first?.lowercased().contains("content-length: 4") } == true)
  }

  /// Sends a request to an origin that answers with some bytes.
  private func send(
    _ method: String = "GET",
    _ target: String = "/",
    to head: String,
    _ bytes: [UInt8] = []
  ) async throws -> Body {
    let origin = RawOrigin { connection in
      _ = connection.head()
      connection.write(Array(head.utf8) + bytes)
      connection.waitForClient()
    }
    return try await send(origin.url(target), method: method)
  }

  // MARK: - Content codings

  @Test(arguments: [
    ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n"),
    ("GET", "HTTP/1.1 304 Not Modified\r\n"),
    ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n"),
    ("GET", "HTTP/1.1 204 No Content\r\n"), ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"),
    ("GET", "HTTP/1.1 302 Found\r\nLocation: /a\r\nContent-Length: 0\r\n"),
  ])
  func `an answer without a body can name a content coding`(
    method: String,
    head: String
  )
    async throws
  {
    let body = try await send(method, to: head + "Content-Encoding: gzip\r\n\r\n")
    #expect(body.response?.value(forHTTPHeaderField: "Content-Encoding") == "gzip")
    #expect(body.count == 0)
  }

  /// "hello" by gzip.
  private static let hello = Array(
    Data(base64Encoded: "H4sIAAAAAAAAA8tIzcnJBwCGphA2BQAAAA==") ?? Data()
  )

  @Test(arguments: ["gzip", "GZIP", "x-gzip", "gzip,", "identity, gzip", "deflate"])
  func `a body is decoded, also of several members`(coding: String) async throws {
    for count in 1...3 {
      let bytes = Array(repeatElement(Self.hello, count: count).joined())
      let fields = "Content-Encoding: \(coding)\r\nContent-Length: \(bytes.count)"
      let body = try await send(to: "HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n", bytes)
      #expect(body.text == String(repeating: "hello", count: count))
    }
  }

  @Test func `a body that arrives byte by byte is decoded`() async throws {
    let chunks = Self.hello.flatMap { Array("1\r\n".utf8) + [$0] + Array("\r\n".utf8) }
    let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    #expect(try await send(to: head, chunks + Array("0\r\n\r\n".utf8)).text == "hello")
    #expect(try await send(to: head, Array("0\r\n\r\n".utf8)).count == 0)
    for count in 1..<Self.hello.count {
      let part = Array(chunks.prefix(6 * count)) + Array("0\r\n\r\n".utf8)
      await #expect(throws: URLError(.cannotDecodeContentData)) {
        _ = try await send(to: head, part)
      }
    }
  }

  @Test(arguments: ["br", "gzip, br", "gzip, gzip", "none"])
  func `a body in an unknown coding is an error`(coding: String) async throws {
    let head = "HTTP/1.1 200 OK\r\nContent-Encoding: \(coding)\r\nContent-Length: "
    await #expect(throws: URLError(.cannotDecodeContentData)) {
      _ = try await send(to: head + "\(Self.hello.count)\r\n\r\n", Self.hello)
    }
    #expect(try await send(to: head + "0\r\n\r\n").count == 0)
  }

  /// 256 MB of zeros are 256 kB on the way. The receiver waits with the first of them.
  @Test func `a body is decoded no faster than it is received`() async throws {
    let zeros = try gzip(Data(count: 256 << 20))
    let origin = RawOrigin { connection in
      _ = connection.head()
      connection.write(
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(zeros.count)\r\n\r\n"
      )
      connection.write(zeros)
      connection.waitForClient()
    }
    let url = origin.url()
    try await withTransport { transport in
      let before = try residentBytes()
      let body = Body(limit: 10 << 20, keepsBytes: false)
      await #expect(throws: Body.Full.self) {
        try await transport.send(URLRequest(url: url), to: body)
      }
      #expect(body.count <= 10 << 20 + 1 << 16)
      #expect(try residentBytes() - before < 32 << 20)
      let rules = HTTPRules(maximumBodyBytes: 1 << 20)
      let fetcher = HTTPFetcher(url, transport: transport, rules: rules) { $0 }
      await #expect(throws: URLError(.dataLengthExceedsMaximum)) {
        _ = try await Multiplexer(policy: .http, onFetch: fetcher.fetch).request()
      }
    }
  }

  private func gzip(_ bytes: Data) throws -> [UInt8] {
    let file = FileManager.default.temporaryDirectory
      .appending(path: "zeros-\(UUID().uuidString.prefix(8))")
    try bytes.write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let (process, output) = (Process(), Pipe())
    process.executableURL = URL(filePath: "/usr/bin/gzip")
    process.arguments = ["-9", "-c", file.path]
    process.standardOutput = output
    try process.run()
    return Array(try output.fileHandleForReading.readToEnd() ?? Data())
  }

  // MARK: - Requests

  @Test func `a URL is sent as it is, without its fragment`() async throws {
    let heads = Mutex<[String]>([])
    let origin = RawOrigin { connection in
      let head = connection.head() ?? ""
      heads.withLock { $0.append(head) }
      connection.write("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
    }
    let targets = [
      "/a%20b?c=%2F&d", "/?", "/a;b", "/a?q=%E9", "/%00", "/a%0D%0Ab", "//double", "?q=1",
    ]
    try await withTransport { transport in
      for target in targets {
        try await transport.send(URLRequest(url: origin.url(target + "#part")), to: Body())
      }
    }
    let sent = heads.withLock { $0.map { String($0.split(separator: " ")[1]) } }
    #expect(sent == targets.dropLast() + ["/?q=1"])
  }

  @Test(arguments: ["/%E9", "/caf%E9/menu?q=1", "/a/%FF.png"])
  func `a path that the client would omit is an error`(target: String) async throws {
    await #expect(throws: URLError(.badURL)) {
      _ = try await send("GET", target, to: "HTTP/1.1 204 No Content\r\n\r\n")
    }
  }

  @Test(arguments: [
    "http://127.0.0.1:65536/", "http://127.0.0.1:99999/", "http://127.0.0.1:18446744073709551696/",
    "http+unix://%2Ftmp%2Fsocket/", "ftp://127.0.0.1/", "a/b",
  ])
  func `a URL with another scheme or an impossible port is an error`(text: String) async throws {
    #expect(await code(of: try #require(URL(string: text))) == .badURL)
  }

  @Test func `a redirect to a port that does not exist is an error`() async throws {
    let origin = RawOrigin { connection in
      _ = connection.head()
      connection.write(
        "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:99999/\r\nContent-Length: 0\r\n\r\n"
      )
      connection.waitForClient()
    }
    try await withTransport { transport in
      let fetcher = HTTPFetcher(origin.url(), transport: transport) { $0 }
      await #expect(throws: URLError(.unsupportedURL)) {
        _ = try await Multiplexer(policy: .http, onFetch: fetcher.fetch).request()
      }
    }
  }

  @Test func `a body that is a stream is an error`() async throws {
    let origin = RawOrigin { _ in }
    try await withTransport { transport in
      var request = URLRequest(url: origin.url())
      request.httpMethod = "POST"
      request.httpBodyStream = InputStream(data: Data("body".utf8))
      let streamed = request
      await #expect(throws: URLError(.requestBodyStreamExhausted)) {
        try await transport.send(streamed, to: Body())
      }
    }
  }

  @Test(arguments: [1, 3, 4])
  func `a safe request whose connection is lost before the answer is sent again`(
    losses: Int
  )
    async throws
  {
    for method in ["GET", "HEAD", "POST", "DELETE"] {
      let requests = Mutex(0)
      let origin = RawOrigin { connection in
        let isAnswered =
          connection.head() != nil
          && requests.withLock { requests in
            requests += 1
            return requests > losses
          }
        if isAnswered { connection.write("HTTP/1.1 204 No Content\r\n\r\n") }
      }
      let error = try await withTransport { transport -> URLError? in
        var request = URLRequest(url: origin.url())
        request.httpMethod = method
        request.httpBody = Data()
        do {
          try await transport.send(request, to: Body())
          return nil
        } catch { return error as? URLError }
      }
      let isSafe = ["GET", "HEAD"].contains(method)
      #expect(error?.code == (isSafe && losses < 4 ? nil : .networkConnectionLost), "\(method)")
      #expect(requests.withLock { $0 } == (isSafe ? min(losses + 1, 4) : 1), "\(method)")
    }
  }

  @Test func `eight long answers leave connections for other requests`() async throws {
    let (areBegun, end) = (Gate(), DispatchSemaphore(value: 0))
    let begun = Mutex(0)
    let origin = RawOrigin { connection in
      guard let head = connection.head() else { return }
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
      if head.hasPrefix("GET /long") {
        if begun.withLock({
          $0 += 1
          return $0 == 8
        }) {
          areBegun.open()
        }
        end.wait()
      }
      connection.write("ok")
      connection.waitForClient()
    }
    let (long, short) = (origin.url("/long"), origin.url("/short"))
    try await withTransport { transport in
      let tasks = (0..<8).map { _ in
        Task { try await transport.send(URLRequest(url: long), to: Body()) }
      }
      try await within(.seconds(60)) { try await areBegun.wait() }
      let body = Body()
      try await within(.seconds(60)) { try await transport.send(URLRequest(url: short), to: body) }
      #expect(body.text == "ok")
      for _ in tasks { end.signal() }
      for task in tasks { try await task.value }
    }
  }

  // MARK: - Errors by cause

  @Test func `a refused connection fails at once`() async throws {
    let port = RawOrigin { _ in }.port
    let url = try #require(URL(string: "http://127.0.0.1:\(port)/"))
    let start = ContinuousClock.now
    #expect(await code(of: url) == .cannotConnectToHost)
    let named = try #require(URL(string: "http://localhost:\(port)/"))
    #expect(await code(of: named) == .cannotConnectToHost)
    #expect(start.duration(to: .now) < .seconds(8))
  }

  @Test func `an unknown host is a failure of connectivity`() async throws {
    let url = try #require(URL(string: "http://unknown.invalid/"))
    #expect(await code(of: url) == .cannotFindHost)
  }

  @Test(arguments: [
    "", "HTTP/1.1 200 OK\r\nContent-", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
  ])
  func `a connection that ends early is lost`(answer: String) async {
    let origin = RawOrigin { connection in
      _ = connection.head()
      connection.write(answer)
    }
    #expect(await code(of: origin.url()) == .networkConnectionLost)
  }

  @Test(arguments: ["", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"])
  func `a connection that is reset is lost`(answer: String) async {
    let origin = RawOrigin { connection in
      _ = connection.head()
      connection.write(answer)
      connection.reset()
    }
    #expect(await code(of: origin.url()) == .networkConnectionLost)
  }

  @Test(arguments: [
    "garbage\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nhalf",
  ])
  func `a malformed answer is no failure of connectivity`(answer: String) async {
    let origin = RawOrigin { connection in
      _ = connection.head()
      connection.write(answer)
      connection.waitForClient()
    }
    await expectNoConnectivityFailure(of: origin.url())
  }

  @Test func `a failure of TLS is no failure of connectivity`() async throws {
    let origin = RawOrigin { connection in
      connection.write("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
      connection.waitForClient()
    }
    let url = try #require(URL(string: "https://127.0.0.1:\(origin.port)/"))
    await expectNoConnectivityFailure(of: url)
  }

  // MARK: - Receivers and cancellation

  @Test func `an error of the receiver ends the transfer and is thrown`() async throws {
    let closed = Gate()
    let origin = RawOrigin { connection in
      _ = connection.head()
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
      connection.waitForClient()
      closed.open()
    }
    let body = Body(limit: 1)
    await #expect(throws: Body.Full.self) { _ = try await send(origin.url(), to: body) }
    try await within(.seconds(60)) { try await closed.wait() }
  }

  @Test(arguments: ["", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"])
  func `cancellation ends the transfer`(answer: String) async throws {
    let (requested, closed) = (Gate(), Gate())
    let origin = RawOrigin { connection in
      _ = connection.head()
      connection.write(answer)
      requested.open()
      connection.waitForClient()
      closed.open()
    }
    let url = origin.url()
    try await withTransport { transport in
      let body = Body()
      let task = Task { try await transport.send(URLRequest(url: url), to: body) }
      try await within(.seconds(60)) {
        try await requested.wait()
        if !answer.isEmpty { try await body.received.wait() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        try await closed.wait()
      }
    }
  }

  @Test func `a slow receiver stops the server, and 200 MB stay out of memory`() async throws {
    let chunk = [UInt8](repeating: 7, count: 1 << 16)
    let total = 200 << 20
    let stalled = Mutex(0)
    let isStalled = Gate()
    let origin = RawOrigin { connection in
      _ = connection.head()
      connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(total)\r\n\r\n")
      var sent = 0
      connection.limitWriting(2)
      while sent < total {
        let count = connection.write(Array(chunk.prefix(total - sent)))
        sent += count
        if count < chunk.count && sent < total && !isStalled.isOpen {
          stalled.withLock { $0 = sent }
          isStalled.open()
        }
      }
      connection.waitForClient()
    }
    let body = Body(keepsBytes: false)
    body.blocks.withLock { $0 = true }
    let before = try residentBytes()
    let url = origin.url()
    try await withTransport { transport in
      let task = Task { try await transport.send(URLRequest(url: url), to: body) }
      try await within(.seconds(300)) {
        try await isStalled.wait()
        body.blocks.withLock { $0 = false }
        body.turn.signal()
        try await task.value
      }
    }
    #expect(stalled.withLock { $0 } < 32 << 20)
    #expect(body.count == total)
    #expect(try residentBytes() - before < 64 << 20)
  }

  @Test func `a client that is shut down refuses requests`() async throws {
    let client = AsyncHTTPTransport.makeClient()
    try await client.shutdown()
    let transport = AsyncHTTPTransport(client: client)
    let url = try #require(URL(string: "http://127.0.0.1:1/"))
    await #expect(throws: HTTPClientError.alreadyShutdown) {
      try await transport.send(URLRequest(url: url), to: Body())
    }
  }

  private func residentBytes() throws -> Int {
    let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
    return line.flatMap { Int($0.filter(\.isNumber)) }.map { $0 << 10 } ?? 0
  }
}

/// A receiver that collects the body.
final class Body: HTTPReceiver {
  struct Full: Error {}

  private struct State {
    var response: HTTPURLResponse?
    var bytes = Data()
    var count = 0
  }

  private let state = Mutex(State())
  private let limit: Int
  private let keepsBytes: Bool
  /// Opens with the first bytes.
  let received = Gate()
  /// Whether the next bytes wait for a turn.
  let blocks = Mutex(false)
  let turn = DispatchSemaphore(value: 0)

  init(limit: Int = .max, keepsBytes: Bool = true) {
    self.limit = limit
    self.keepsBytes = keepsBytes
  }

  var response: HTTPURLResponse? { state.withLock { $0.response } }
  var text: String { state.withLock { String(decoding: $0.bytes, as: UTF8.self) } }
  var count: Int { state.withLock { $0.count } }

  func begin(_ response: HTTPURLResponse) throws {
    state.withLock { $0.response = response }
  }

  func receive(_ bytes: Data) throws {
    if blocks.withLock({ $0 }) { turn.wait() }
    try state.withLock { state in
      state.count += bytes.count
      if keepsBytes { state.bytes += bytes }
      if state.count > limit { throw Full() }
    }
    received.open()
  }
}
