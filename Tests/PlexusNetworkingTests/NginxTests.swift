import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// With a server that was not written together with its client.
@Suite(
  .fewAtOnce,
  .enabled(if: Nginx.executable != nil, "nginx is not installed here")
)
struct `With a real nginx` {
  let server: Nginx
  let clock = ManualClock()
  let folder = MediaTestFolder()
  /// The number of bodies that were read.
  let bodies = Guarded(0)

  // Made each time: the address sanitizer does not find what a constant of these types refers to.
  private static var text: String { String(repeating: "Values in motion. ", count: 1_000) }
  private static var bytes: Data {
    Data((0..<60_000).map { UInt8(truncatingIfNeeded: $0 * 7 / 3) })
  }

  init() throws {
    server = try Nginx(
      files: [
        "/minute/value.txt": Data("one".utf8),
        "/plain/value.txt": Data("one".utf8),
        "/dated/value.txt": Data("one".utf8),
        "/never/value.txt": Data("one".utf8),
        "/gzip/value.txt": Data(Self.text.utf8),
        "/fast/file.bin": Self.bytes,
        "/slow/file.bin": Self.bytes,
        "/refusing/file.bin": Self.bytes,
      ],
      locations: """
        location /minute/ { expires 60s; }
        location /plain/ { }
        location /dated/ { etag off; }
        location /never/ { add_header Cache-Control no-store; }
        location /gzip/ { gzip on; gzip_types *; gzip_min_length 1; }
        location /slow/ {
          limit_rate_after 20k;
          if ($http_range = "") { set $limit_rate 100; }
        }
        location /refusing/ {
          limit_rate_after 20k;
          if ($http_hurry = "") { set $limit_rate 100; }
          if ($http_range != "") { return 416; }
        }
        location /moved { return 302 /fast/file.bin; }
        location /far { return 301 ftp://localhost/; }
        location /loop { return 302 /loop; }
        """
    )
  }

  private func url(_ path: String) throws -> URL {
    try #require(URL(string: server.address + path))
  }

  private func cache(_ path: String) throws -> Multiplexer<String> {
    // Before all dates of the server: an answer has no age because the machine is busy.
    let start = Date(timeIntervalSince1970: 0)
    let fetcher = HTTPFetcher(
      URLRequest(url: try url(path)),
      transport: patientTransport,
      rules: .patient,
      now: { start },
      decode: { [bodies] data in
        bodies.withLock { $0 += 1 }
        return String(decoding: data, as: UTF8.self)
      }
    )
    return Multiplexer(policy: .http, clock: clock, onFetch: fetcher.fetch)
  }

  @Test func `a value is fresh as long as it says, and renewed by 304`() async throws {
    let cache = try cache("/minute/value.txt")
    #expect(try await cache.request() == "one")
    clock.advance(by: .seconds(59))
    #expect(try await cache.response().source == .memory)
    clock.advance(by: .seconds(1))
    #expect(try await cache.response().source == .fetch)
    clock.advance(by: .seconds(59))
    #expect(try await cache.response().source == .memory)
    #expect(bodies.withLock { $0 } == 1)
    let log = server.stop()
    #expect(log.map { $0.prefix(3) } == ["200", "304"])
    #expect(log.last?.contains(" \"") == true, "It was asked with an entity tag")
  }

  @Test(.guarantee(.redirectsLimitFreshness))
  func `a value without an entity tag is renewed by its date of modification`() async throws {
    let cache = try cache("/dated/value.txt")
    for _ in 0..<2 {
      #expect(try await cache.request() == "one")
    }
    try server.write(
      Data("two".utf8),
      to: "/dated/value.txt",
      modified: Date(timeIntervalSince1970: 1_000_000_000)
    )
    #expect(try await cache.request() == "two")
    let log = server.stop()
    #expect(log.map { $0.prefix(3) } == ["200", "304", "200"])
    #expect(log.allSatisfy { $0.contains("/value.txt  ") }, "None has an entity tag")
    #expect(log.last?.contains(" GMT") == true, "It was asked with a date")
  }

  @Test(.guarantee(.redirectsLimitFreshness))
  func `a file is confirmed by its entity tag, and by its date where there is none`()
    async throws
  {
    for path in ["/plain/value.txt", "/dated/value.txt"] {
      let loader = MediaLoader(
        directory: folder.url,
        transport: patientTransport,
        rules: .patient,
        revalidates: true,
        retry: .never
      )
      let url = try url(path)
      for _ in 0..<2 {
        #expect(try String(contentsOf: await loader.request(url), encoding: .utf8) == "one")
      }
    }
    #expect(server.stop().map { $0.prefix(3) } == ["200", "304", "200", "304"])
  }

  @Test func `a value that has changed is sent`() async throws {
    let cache = try cache("/plain/value.txt")
    #expect(try await cache.request() == "one")
    #expect(try await cache.request() == "one")
    try server.write(
      Data("two".utf8),
      to: "/plain/value.txt",
      modified: Date(timeIntervalSince1970: 1_000_000_000)
    )
    #expect(try await cache.request() == "two")
    #expect(try await cache.request() == "two")
    #expect(bodies.withLock { $0 } == 2)
    #expect(server.stop().map { $0.prefix(3) } == ["200", "304", "200", "304"])
  }

  @Test func `a value that must not be stored is sent each time`() async throws {
    let cache = try cache("/never/value.txt")
    for _ in 0..<2 { #expect(try await cache.request() == "one") }
    #expect(cache.cachedValue == nil)
    #expect(server.stop().map { $0.prefix(3) } == ["200", "200"])
  }

  @Test func `a compressed value is read, and renewed by its weak tag`() async throws {
    let cache = try cache("/gzip/value.txt")
    for _ in 0..<2 { #expect(try await cache.request() == Self.text) }
    #expect(bodies.withLock { $0 } == 1)
    let log = server.stop()
    #expect(log.map { $0.prefix(3) } == ["200", "304"])
    #expect(log.last?.contains("W/\"") == true)
  }

  @Test func `a missing file is an error, and while the server is down the value is used`()
    async throws
  {
    let missing = try cache("/plain/missing.txt")
    await #expect(throws: HTTPStatusError.self) { try await missing.request() }
    let cache = try cache("/plain/value.txt")
    _ = try await cache.request()
    server.stop()
    let response = try await cache.response()
    #expect(response.value == "one")
    #expect(response.error is URLError)
  }

  // MARK: - Files

  /// Begins to download a file and stops once there is a part of it.
  private func interrupt(_ url: URL, _ loader: MediaLoader) async throws {
    let progress = loader.progress(of: url)
    let download = Task { try await loader.request(url) }
    for await state in progress where state.receivedBytes > 0 { break }
    download.cancel()
    _ = await download.result
    // The caller leaves at once; what it has begun gives up the part a little later.
    let part = try #require(folder.parts.first)
    while !folder.isFree(part) { await Task.detached {}.value }
  }

  private func loader(_ headers: [String: String] = [:]) -> MediaLoader {
    MediaLoader(
      directory: folder.url,
      transport: URLSessionTransport(timeout: 600, headers: headers),
      rules: .patient,
      retry: .never
    )
  }

  @Test func `a download that broke off is continued`() async throws {
    let url = try url("/slow/file.bin")
    try await interrupt(url, loader())
    let file = try await loader().request(url)
    #expect(try Data(contentsOf: file) == Self.bytes)
    #expect(folder.parts.isEmpty)
    // The server may notice that the first download broke off after it has answered the second.
    let lines = server.stop().filter { $0.contains("bytes=") }
    #expect(lines.count == 1)
    #expect(lines.first?.hasPrefix("206 ") == true)
    #expect(lines.first?.hasSuffix("\"") == true, "With If-Range")
  }

  @Test func `a download that broke off begins again when the file has changed`() async throws {
    let url = try url("/slow/file.bin")
    let loader = loader()
    try await interrupt(url, loader)
    let content = Data(repeating: 7, count: 10_000)
    try server.write(
      content,
      to: "/slow/file.bin",
      modified: Date(timeIntervalSince1970: 1_000_000_000)
    )
    #expect(try Data(contentsOf: await loader.request(url)) == content)
    let lines = server.stop().filter { $0.contains("bytes=") }
    #expect(lines.map { $0.prefix(3) } == ["200"])
  }

  @Test func `a part of a download that nginx refuses is dropped`() async throws {
    let url = try url("/refusing/file.bin")
    try await interrupt(url, loader())
    let loader = loader(["Hurry": "yes"])
    #expect(try Data(contentsOf: await loader.request(url)) == Self.bytes)
    #expect(folder.parts.isEmpty)
    let lines = server.stop()
    #expect(lines.filter { $0.contains("bytes=") }.map { $0.prefix(3) } == ["416"])
    #expect(lines.allSatisfy { $0.contains("bytes=") || $0.hasPrefix("200 ") })
  }

  @Test func `a file is loaded as it is, though the server would compress it`() async throws {
    let loader = loader()
    #expect(try Data(contentsOf: await loader.request(url("/fast/file.bin"))) == Self.bytes)
    #expect(
      try Data(contentsOf: await loader.request(url("/gzip/value.txt"))) == Data(Self.text.utf8)
    )
  }

  @Test func `a file that has moved is followed, and an answer that is none is an error`()
    async throws
  {
    let loader = loader()
    #expect(try Data(contentsOf: await loader.request(url("/moved"))) == Self.bytes)
    for (path, code) in [("/far", URLError.Code.unsupportedURL), ("/loop", .httpTooManyRedirects)] {
      let thrown = await #expect(throws: URLError.self) { try await loader.request(url(path)) }
      #expect(thrown?.code == code)
    }
    let missing = await #expect(throws: HTTPStatusError.self) {
      try await loader.request(url("/missing"))
    }
    #expect(missing?.status == 404)
    #expect(folder.files.count == 1)
    #expect(folder.parts.isEmpty)
  }
}
