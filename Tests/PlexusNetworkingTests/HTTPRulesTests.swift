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

/// The rules above any transport.
@Suite(.fewAtOnce)
struct `Rules of HTTP` {
  let url: URL
  let clock = ManualClock()

  init() throws {
    url = try #require(URL(string: "https://a.example/value"))
  }

  private func fetch(
    _ transport: ClosureTransport,
    _ rules: HTTPRules,
    at url: URL? = nil
  ) async throws -> Int {
    let fetcher = HTTPFetcher(
      URLRequest(url: url ?? self.url),
      transport: transport,
      rules: rules,
      clock: clock,
      decode: { $0.count }
    )
    guard case .value(let count, _, _) = try await fetcher.fetch(FetchContext(previousValue: nil))
    else { throw URLError(.badServerResponse) }
    return count
  }

  /// Rules with limits of time.
  private func rules(total: Duration? = nil, rate: HTTPRate? = nil) -> HTTPRules {
    HTTPRules(totalTimeout: total, minimumRate: rate)
  }

  @Test(.guarantee(.transportsRespectTheLimits))
  func `a request that takes longer than the total time fails`() async throws {
    let gate = Gate()
    let transport = ClosureTransport { _, request, receiver in
      try receiver.begin(request)
      for _ in 0..<60 {
        try receiver.receive(Data(count: 10_000))
        try await gate.wait()
      }
    }
    let request = Task { try await fetch(transport, rules(total: .seconds(30))) }
    await gate.arrivals(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(29))
    gate.admit()
    await gate.arrivals(2)
    clock.advance(by: .seconds(1))
    await #expect(throws: URLError(.timedOut)) { try await request.value }
    #expect(clock.sleeperCount == 0)
  }

  @Test(.guarantee(.transportsRespectTheLimits))
  func `the total time is that of all redirects together`() async throws {
    let gate = Gate()
    let transport = ClosureTransport { count, request, receiver in
      try await gate.wait()
      try receiver.begin(request, status: 302, headers: ["Location": "/\(count)"])
    }
    let request = Task { try await fetch(transport, rules(total: .seconds(30))) }
    for count in 1...3 {
      await gate.arrivals(count)
      await clock.sleepers(1)
      clock.advance(by: .seconds(10))
      gate.admit()
    }
    await #expect(throws: URLError(.timedOut)) { try await request.value }
  }

  @Test(.guarantee(.transportsRespectTheLimits))
  func `a transfer that is slower than the least rate fails`() async throws {
    let gate = Gate()
    let transport = ClosureTransport { _, request, receiver in
      try receiver.begin(request)
      for count in [100, 99] {
        try receiver.receive(Data(count: count))
        try await gate.wait()
      }
    }
    let rate = HTTPRate(bytes: 100, per: .seconds(10))
    let request = Task { try await fetch(transport, rules(rate: rate)) }
    await gate.arrivals(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(10))
    // A hundred bytes have come in time; it waits for the next stretch.
    await clock.sleepers(1)
    gate.admit()
    await gate.arrivals(2)
    clock.advance(by: .seconds(10))
    await #expect(throws: URLError(.timedOut)) { try await request.value }
  }

  @Test func `an answer that does not begin is slower than any rate`() async throws {
    let gate = Gate()
    let transport = ClosureTransport { _, _, _ in try await gate.wait() }
    let request = Task { try await fetch(transport, HTTPRules(totalTimeout: nil)) }
    await clock.sleepers(1)
    clock.advance(by: .seconds(59))
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    await #expect(throws: URLError(.timedOut)) { try await request.value }
  }

  @Test func `a request in time leaves no timer behind`() async throws {
    let transport = ClosureTransport { _, request, receiver in try receiver.take(request, "abc") }
    #expect(try await fetch(transport, HTTPRules()) == 3)
    #expect(clock.sleeperCount == 0)
  }

  @Test func `a request that is cancelled stops its transfer, with limits of time, too`()
    async throws
  {
    let gate = Gate()
    let transport = ClosureTransport { _, _, _ in try await gate.wait() }
    let request = Task { try await fetch(transport, HTTPRules()) }
    await gate.arrivals(1)
    request.cancel()
    await #expect(throws: CancellationError.self) { try await request.value }
  }

  @Test(
    .guarantee(.transportsRespectTheLimits),
    arguments: [[:], ["Content-Length": "11"], ["Content-Length": "-1"]]
  )
  func `a body that is larger than the rules allow ends the transfer`(
    headers: [String: String]
  )
    async throws
  {
    let received = Guarded(0)
    let transport = ClosureTransport { _, request, receiver in
      try receiver.begin(request, headers: headers)
      for _ in 0..<100 {
        try receiver.receive(Data(count: 5))
        received.withLock { $0 += 5 }
      }
    }
    await #expect(throws: URLError(.dataLengthExceedsMaximum)) {
      try await fetch(transport, HTTPRules(maximumBodyBytes: 10))
    }
    #expect(received.withLock { $0 } == (headers["Content-Length"] == "11" ? 0 : 10))
  }

  @Test func `a body as large as the rules allow is taken`() async throws {
    let transport = ClosureTransport { _, request, receiver in
      try receiver.begin(request, headers: ["Content-Length": "10"])
      try receiver.receive(Data(count: 10))
    }
    #expect(try await fetch(transport, HTTPRules(maximumBodyBytes: 10)) == 10)
  }

  @Test func `an interim answer is skipped, and alone is none`() async throws {
    let transport = ClosureTransport { _, request, receiver in
      for status in [100, 102, 103] { try receiver.begin(request, status: status) }
      try receiver.take(request, "abc")
    }
    #expect(try await fetch(transport, HTTPRules()) == 3)
    let interim = ClosureTransport { _, request, receiver in
      try receiver.begin(request, status: 101)
    }
    await #expect(throws: URLError(.badServerResponse)) { try await fetch(interim, HTTPRules()) }
    let body = ClosureTransport { _, request, receiver in
      try receiver.take(request, status: 101, "junk")
    }
    await #expect(throws: URLError(.badServerResponse)) { try await fetch(body, HTTPRules()) }
  }

  @Test func `the body of a redirect does not count, however it ends`() async throws {
    let transport = ClosureTransport { count, request, receiver in
      guard count == 1 else { return try receiver.take(request, "abc") }
      try receiver.begin(request, status: 302, headers: ["Location": "/there"])
      for _ in 0..<1_000 { try receiver.receive(Data(count: 1_000)) }
      Issue.record("The whole body of a redirect is read")
    }
    #expect(try await fetch(transport, HTTPRules(maximumBodyBytes: 3)) == 3)
    #expect(transport.names == ["value", "there"])
    let broken = ClosureTransport { count, request, receiver in
      guard count == 1 else { return try receiver.take(request, "abc") }
      try receiver.begin(request, status: 302, headers: ["Location": "/there"])
      throw URLError(.networkConnectionLost)
    }
    #expect(try await fetch(broken, HTTPRules()) == 3)
  }

  @Test func `cookies are sent to the host that has set them, by all fetchers that share a jar`()
    async throws
  {
    let seen = Guarded<[String?]>([])
    let transport = ClosureTransport { count, request, receiver in
      seen.withLock { $0.append(request.value(forHTTPHeaderField: "Cookie")) }
      switch request.url?.path {
      case "/value":
        let headers = ["Set-Cookie": "a=\(count); Path=/", "Location": "https://b.example/b"]
        try receiver.begin(request, status: 302, headers: headers)
      case "/b":
        try receiver.begin(request, status: 302, headers: ["Location": "https://a.example/c"])
      default: try receiver.take(request, "abc")
      }
    }
    let (one, two) = (HTTPRules(cookies: HTTPCookieJar()), HTTPRules(cookies: HTTPCookieJar()))
    _ = try await fetch(transport, one)
    _ = try await fetch(transport, two)
    _ = try await fetch(transport, one)
    _ = try await fetch(transport, HTTPRules())
    one.cookies?.removeAll()
    _ = try await fetch(transport, one)
    #expect(
      seen.withLock { $0 } == [
        nil, nil, "a=1", nil, nil, "a=4", "a=1", nil, "a=7", nil, nil, nil, nil, nil, "a=13",
      ]
    )
  }

  @Test(.guarantee(.transportsRespectTheLimits))
  func `a file is read if the rules allow it, and within their limit`() async throws {
    let transport = ClosureTransport { _, _, _ in throw URLError(.badURL) }
    let folder = FileManager.default.temporaryDirectory
    let file = folder.appending(path: "rules-\(UUID().uuidString)")
    try Data(count: 100_000).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let allowed = HTTPRules(allowsFileURLs: true)
    #expect(try await fetch(transport, allowed, at: file) == 100_000)
    await #expect(throws: URLError(.unsupportedURL)) {
      try await fetch(transport, HTTPRules(), at: file)
    }
    await #expect(throws: URLError(.dataLengthExceedsMaximum)) {
      try await fetch(
        transport,
        HTTPRules(maximumBodyBytes: 99_999, allowsFileURLs: true),
        at: file
      )
    }
    for missing in [file.appending(path: "none"), folder] {
      await #expect(throws: URLError.self) { try await fetch(transport, allowed, at: missing) }
    }
    let redirect = ClosureTransport { _, request, receiver in
      try receiver.begin(request, status: 302, headers: ["Location": file.absoluteString])
    }
    await #expect(throws: URLError(.unsupportedURL)) { try await fetch(redirect, allowed) }
  }

  @Test func `a media loader uses a file in place if its rules allow it`() async throws {
    let folder = MediaTestFolder()
    let file = FileManager.default.temporaryDirectory.appending(path: "m-\(UUID().uuidString)")
    try Data(count: 1).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let strict = MediaLoader(directory: folder.url, rules: HTTPRules())
    await #expect(throws: MediaError.unsupportedScheme(file)) { try await strict.request(file) }
    #expect(strict.cachedFile(for: file) == nil)
    #expect(try await MediaLoader(directory: folder.url).request(file) == file)
  }

  @Test(.guarantee(.slowRedirectsOccupyNoSlots))
  func `a redirected download takes its turn at the target`() async throws {
    let gate = Gate()
    let transport = ClosureTransport { _, request, receiver in
      switch request.url?.host() {
      case "slow.example":
        try await gate.wait()
        try receiver.take(request, "slow")
      case "short.example" where request.url?.lastPathComponent == "moved":
        try receiver.begin(request, status: 302, headers: ["Location": "https://slow.example/"])
      default: try receiver.take(request, "fast")
      }
    }
    let loader = MediaLoader(
      directory: MediaTestFolder().url,
      transport: transport,
      rules: .patient,
      connectionsPerHost: 1
    )
    let moved = try #require(URL(string: "https://short.example/moved"))
    let slow = Task { try await loader.request(moved) }
    await gate.arrivals(1)
    // The only turn at the host that has redirected is free again.
    let fast = try await loader.request(try #require(URL(string: "https://short.example/here")))
    #expect(try Data(contentsOf: fast) == Data("fast".utf8))
    gate.open()
    #expect(try Data(contentsOf: await slow.value) == Data("slow".utf8))
  }

  @Test(.startsProcess) func `rules that make no sense stop the program`() async {
    await #expect(processExitsWith: .failure) { _ = HTTPRules(maximumBodyBytes: -1) }
    await #expect(processExitsWith: .failure) { _ = HTTPRules(totalTimeout: .zero) }
    await #expect(processExitsWith: .failure) { _ = HTTPRedirectRules(limit: -1) }
    await #expect(processExitsWith: .failure) { _ = HTTPRate(bytes: 0, per: .seconds(1)) }
    await #expect(processExitsWith: .failure) { _ = HTTPRate(bytes: 1, per: .zero) }
  }
}
