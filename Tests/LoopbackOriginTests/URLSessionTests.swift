import Foundation
import LoopbackOrigin
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.fewAtOnce)
struct `An origin and a URL session` {
  let origin: LoopbackOrigin
  let session: URLSession

  init() throws {
    let configuration = URLSessionConfiguration.ephemeral
    // Requests can take long on a busy machine.
    configuration.timeoutIntervalForRequest = 600
    session = URLSession(configuration: configuration)
    origin = try LoopbackOrigin()
    origin.route("/hello") { _ in OriginResponse(text: "hello") }
  }

  @Test func `an origin and a URL session exchange a request and a response`() async throws {
    let (data, response) = try await get("/hello")
    #expect(String(decoding: data, as: UTF8.self) == "hello")
    #expect(response.statusCode == 200)
    #expect(response.value(forHTTPHeaderField: "Content-Type") == "text/plain; charset=utf-8")
  }

  @Test func `an origin and a URL session reuse a connection`() async throws {
    for _ in 0..<10 { _ = try await get("/hello") }
    #expect(origin.statistics.acceptedConnections == 1)
  }

  @Test func `an origin and a URL session exchange a hundred requests at once`() async throws {
    try await withThrowingTaskGroup { group in
      for _ in 0..<100 { group.addTask { _ = try await get("/hello") } }
      try await group.waitForAll()
    }
    #expect(origin.statistics.requests["/hello"] == 100)
  }

  @Test func `an origin and a URL session exchange bodies`() async throws {
    origin.route("/echo", methods: [.post]) { OriginResponse(body: $0.body) }
    var request = URLRequest(url: try url("/echo"))
    request.httpMethod = "POST"
    request.httpBody = Data(repeating: 7, count: 3_000_000)
    let (data, _) = try await session.data(for: request)
    #expect(data == request.httpBody)
  }

  @Test func `an origin and a URL session follow redirects`() async throws {
    origin.route("/moved") { _ in OriginResponse(status: 302, headers: ["Location": "/hello"]) }
    let (data, _) = try await get("/moved")
    #expect(String(decoding: data, as: UTF8.self) == "hello")
    #expect(origin.statistics.requests == ["/moved": 1, "/hello": 1])
  }

  @Test func `an origin and a URL session exchange chunks`() async throws {
    let text = String(repeating: "0123456789", count: 5_000)
    origin.route("/chunks") { _ in
      var response = OriginResponse(text: text)
      response.framing = .chunked
      return response
    }
    let (data, response) = try await get("/chunks")
    #expect(data == Data(text.utf8))
    #expect(response.expectedContentLength == -1)
  }

  @Test(arguments: [
    OriginFault.reset(), .reset(afterBytes: 2), .truncation(afterBytes: 2), .wrongContentLength(20),
  ])
  func `an origin and a URL session report a broken transfer`(fault: OriginFault) async throws {
    // More than once, because a session can retry.
    origin.inject(fault, for: "/hello", count: 10)
    await #expect(throws: URLError.self) { try await get("/hello") }
  }

  @Test func `an origin and a URL session report a refused connection`() async throws {
    await origin.goOffline()
    let error = await #expect(throws: URLError.self) { try await get("/hello") }
    #expect(error?.code == .cannotConnectToHost)
    try await origin.goOnline()
    _ = try await get("/hello")
  }

  @Test func `a cancelled transfer of a URL session closes its connection to the origin`()
    async throws
  {
    origin.inject(.stall(afterBytes: 2), for: "/hello")
    let transfer = Task { try await get("/hello") }
    await origin.requests(1, for: "/hello")
    transfer.cancel()
    await #expect(throws: (any Error).self) { try await transfer.value }
    await origin.openConnections(atMost: 0)
  }

  private func url(_ path: String) throws -> URL {
    try #require(URL(string: origin.address + path))
  }

  private func get(_ path: String) async throws -> (Data, HTTPURLResponse) {
    let (data, response) = try await session.data(from: url(path))
    return (data, try #require(response as? HTTPURLResponse))
  }
}
