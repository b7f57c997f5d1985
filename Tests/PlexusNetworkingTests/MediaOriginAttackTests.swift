import Foundation
import LoopbackOrigin
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Real servers that are hostile or slow.
@Suite(.fewAtOnce)
struct `A media loader and hostile origins` {
  let origin: LoopbackOrigin
  let folder = MediaTestFolder()
  let clock = ManualClock()

  init() throws {
    origin = try LoopbackOrigin()
  }

  private func loader(
    maximumFileBytes: Int? = nil,
    connections: Int = 6,
    attempts: Int = 1
  ) -> MediaLoader {
    MediaLoader(
      directory: folder.url,
      transport: patientTransport,
      rules: .patient,
      maximumFileBytes: maximumFileBytes,
      connectionsPerHost: connections,
      retry: .exponential(attempts: attempts, base: .seconds(1), cap: .seconds(1), jitter: 0),
      clock: clock
    )
  }

  private func url(_ path: String = "/a", of server: LoopbackOrigin? = nil) throws -> URL {
    try #require(URL(string: (server ?? origin).address + path))
  }

  private func raw(_ text: String, count: Int = 1) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    origin.inject(.raw(Array(lines.joined(separator: "\r\n").utf8)), for: "/a", count: count)
  }

  @Test(.guarantee(.hostileMediaOriginsAreContained))
  func `a host that stalls does not hold up another one`() async throws {
    let other = try LoopbackOrigin()
    other.route("/*") { _ in OriginResponse(text: "other") }
    let loader = loader(connections: 2)
    var tasks: [Task<URL, any Error>] = []
    for number in 0..<5 {
      origin.inject(.stall(), for: "/\(number)")
      let url = try url("/\(number)")
      tasks.append(Task { try await loader.request(url) })
    }
    while origin.statistics.requestCount < 2 { await Task.detached {}.value }
    let file = try await loader.request(url("/there", of: other))
    #expect(try Data(contentsOf: file) == Data("other".utf8))
    #expect(origin.statistics.requestCount == 2)
    for task in tasks { task.cancel() }
    for task in tasks { _ = await task.result }
  }

  @Test(.guarantee(.hostileMediaOriginsAreContained))
  func `a challenge is an answer to a media loader`() async throws {
    for challenge in ["Basic realm=\"x\"", "Digest realm=\"x\", nonce=\"y\"", "Negotiate"] {
      origin.route("/a") { _ in
        var response = OriginResponse(text: "no", status: 401)
        response.headers["WWW-Authenticate"] = challenge
        return response
      }
      let error = await #expect(throws: HTTPStatusError.self) { try await loader().request(url()) }
      #expect(error?.status == 401)
      #expect(error?.headers["www-authenticate"] == challenge)
    }
    #expect(folder.files.isEmpty)
  }

  @Test(.guarantee(.hostileMediaOriginsAreContained))
  func `interim answers to a media loader are skipped`()
    async throws
  {
    let interim = "HTTP/1.1 103 Early Hints\nLink: </a>\n\n"
    raw(interim + interim + "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello")
    #expect(try Data(contentsOf: await loader().request(url())) == Data("hello".utf8))
  }

  @Test(.guarantee(.hostileMediaOriginsAreContained))
  func `a bomb that was not requested does not get further than the limit`() async throws {
    let (bomb, status) = (gzipBomb(25_800_001), Guarded(200))
    origin.route("/a") { _ in
      OriginResponse(
        status: status.withLock { $0 },
        headers: ["Content-Encoding": "gzip"],
        body: bomb
      )
    }
    let loader = loader(maximumFileBytes: 1 << 20)
    await #expect(throws: MediaError.fileTooLarge(limit: 1 << 20)) {
      try await loader.request(url())
    }
    status.withLock { $0 = 500 }
    let error = await #expect(throws: HTTPStatusError.self) { try await loader.request(url()) }
    #expect(error?.body == Data(count: 16_384))
    #expect(folder.files.isEmpty)
  }

  @Test(.guarantee(.hostileMediaOriginsAreContained)) func `no cookies are sent back`() async throws
  {
    let cookies = Guarded<[String?]>([])
    origin.route("/*") { request in
      cookies.withLock { $0.append(request.headers["Cookie"]) }
      return OriginResponse(headers: ["Set-Cookie": "a=1; Path=/"], body: [1])
    }
    for path in ["/a", "/b"] { _ = try await loader().request(url(path)) }
    #expect(cookies.withLock { $0 } == [nil, nil])
  }

  @Test(
    .guarantee(.hostileMediaOriginsAreContained),
    arguments: ["file:///etc/passwd", "ftp://localhost/", "data:,a"]
  )
  func `a redirect to another scheme is an error and leaves nothing`(location: String) async throws
  {
    origin.route("/a") { _ in OriginResponse(status: 302, headers: ["Location": location]) }
    await #expect(throws: URLError(.unsupportedURL)) { try await loader().request(url()) }
    #expect(folder.files.isEmpty)
  }

  @Test(.guarantee(.hostileMediaOriginsAreContained))
  func `an answer without a byte is tried again, and one that is broken is not`() async throws {
    origin.route("/a") { _ in OriginResponse(text: "fine") }
    raw("")
    let loader = loader(attempts: 3)
    let request = Task { try await loader.request(url()) }
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    #expect(try Data(contentsOf: await request.value) == Data("fine".utf8))
    try await loader.remove(url())
    raw("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\nzz\nhello", count: 3)
    let error = await #expect(throws: URLError.self) { try await loader.request(url()) }
    #expect(error?.isConnectivityFailure == false)
    #expect(clock.sleeperCount == 0)
  }

  @Test(
    .guarantee(.hostileMediaOriginsAreContained),
    .enabled(if: OpenSSLServer.executable != nil, "openssl is not installed here")
  )
  func `a certificate that is not trusted is final`() async throws {
    let server = try OpenSSLServer()
    let url = try #require(URL(string: "https://localhost:\(server.port)/a"))
    let loader = loader(attempts: 3)
    let error = await #expect(throws: URLError.self) { try await loader.request(url) }
    #expect(error?.isConnectivityFailure == false)
    #expect(clock.sleeperCount == 0 && folder.files.isEmpty)
  }
}
