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

/// A transport over the network that counts the bytes of the bodies.
private final class CountingTransport: HTTPTransport {
  struct Receiver: HTTPReceiver {
    let next: any HTTPReceiver
    let count: Guarded<Int>

    func begin(_ response: HTTPURLResponse) throws { try next.begin(response) }

    func receive(_ bytes: Data) throws {
      try next.receive(bytes)
      count.withLock { $0 += bytes.count }
    }
  }

  let count = Guarded(0)

  @concurrent
  func send(_ request: URLRequest, to receiver: any HTTPReceiver) async throws {
    try await patientTransport.send(request, to: Receiver(next: receiver, count: count))
  }

  func received(_ bytes: Int) async {
    while count.withLock({ $0 }) < bytes { await Task.detached {}.value }
  }
}

/// The limits of rules that are created without arguments.
@Suite(.fewAtOnce)
struct `The defaults of HTTP rules` {
  let origin: LoopbackOrigin
  let clock = ManualClock()

  init() throws {
    origin = try LoopbackOrigin()
  }

  private func fetch(
    _ path: String = "/value",
    _ transport: some HTTPTransport = patientTransport
  ) async throws -> Int {
    let fetcher = HTTPFetcher(
      URLRequest(url: try #require(URL(string: origin.address + path))),
      transport: transport,
      clock: clock,
      decode: { $0.count }
    )
    guard case .value(let count, _, _) = try await fetcher.fetch(FetchContext(previousValue: nil))
    else { throw URLError(.badServerResponse) }
    return count
  }

  @Test(.guarantee(.httpDefaultsAreDocumented))
  func `a body that decompresses to more than 64 MB is refused`() async throws {
    let body = Guarded(gzipBomb(258 * 260_112 + 1))
    origin.route("/value") { _ in
      OriginResponse(headers: ["Content-Encoding": "gzip"], body: body.withLock { $0 })
    }
    #expect(body.withLock { $0.count } < 500_000)
    await #expect(throws: URLError(.dataLengthExceedsMaximum)) { try await fetch() }
    // It is read up to its checksum, which is wrong.
    body.withLock { $0 = gzipBomb(258 * 260_111 + 1) }
    let error = await #expect(throws: URLError.self) { try await fetch() }
    #expect(error?.code != .dataLengthExceedsMaximum)
  }

  @Test(.guarantee(.httpDefaultsAreDocumented))
  func `a body of 64 MB is taken, and one with one more byte is refused`() async throws {
    let extra = Guarded(0)
    let transport = ClosureTransport { _, request, receiver in
      try receiver.begin(request)
      for _ in 0..<64 { try receiver.receive(Data(count: 1 << 20)) }
      try receiver.receive(Data(count: extra.withLock { $0 }))
    }
    #expect(try await fetch("/value", transport) == 64 << 20)
    extra.withLock { $0 = 1 }
    await #expect(throws: URLError(.dataLengthExceedsMaximum)) {
      try await fetch("/value", transport)
    }
  }

  @Test(.guarantee(.httpDefaultsAreDocumented))
  func `a body that is announced with more than 64 MB is not read`() async throws {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 67108865\r\n\r\n"
    origin.inject(.raw(Array(head.utf8)), for: "/value")
    await #expect(throws: URLError(.dataLengthExceedsMaximum)) { try await fetch() }
  }

  @Test(.guarantee(.httpDefaultsAreDocumented))
  func `a request ends after five minutes, however many bytes it gets`() async throws {
    let (dripping, transport) = (ManualClock(), CountingTransport())
    let origin = try LoopbackOrigin(clock: dripping)
    let head = "HTTP/1.1 200 OK\r\n\r\n"
    let bytes = Array(head.utf8) + [UInt8](repeating: 1, count: 40_000)
    origin.inject(.raw(bytes, bytesAtOnce: 2_048, every: .seconds(29)), for: "/value")
    let fetcher = HTTPFetcher(
      URLRequest(url: try #require(URL(string: origin.address + "/value"))),
      transport: transport,
      clock: clock,
      decode: { $0.count }
    )
    let end = clock.now.advanced(by: .seconds(300))
    let request = Task { try await fetcher.fetch(FetchContext(previousValue: nil)) }
    for number in 1...11 {
      await dripping.sleepers(1)
      dripping.advance(by: .seconds(29))
      await transport.received(number * 2_048 - head.utf8.count)
      await clock.sleepers(1)
      // After ten pieces 290 seconds have passed, and the eleventh comes at the last second.
      clock.advance(by: .seconds(number < 11 ? 29 : 9))
    }
    await clock.sleepers(1)
    #expect(clock.nextDeadline == end)
    clock.advance(by: .seconds(1))
    await #expect(throws: URLError(.timedOut)) { try await request.value }
    await origin.openConnections(atMost: 0)
  }

  @Test(.guarantee(.httpDefaultsAreDocumented), arguments: [(1_024, true), (1_023, false)])
  func `a kilobyte a minute is fast enough, and a byte less is not`(
    bytes: Int,
    isEnough: Bool
  ) async throws {
    let gate = Gate()
    let transport = ClosureTransport { _, request, receiver in
      try receiver.begin(request)
      try receiver.receive(Data(count: bytes))
      try await gate.wait()
    }
    let request = Task { try await fetch("/value", transport) }
    await gate.arrivals(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(60))
    if isEnough {
      await clock.sleepers(1)
      gate.open()
      #expect(try await request.value == bytes)
    } else {
      await #expect(throws: URLError(.timedOut)) { try await request.value }
    }
  }

  @Test(.guarantee(.httpDefaultsAreDocumented)) func `ten redirects are followed, and no more`()
    async throws
  {
    origin.route("/steps/*") { request in
      guard let left = Int(request.pathComponents[1]), left > 0 else {
        return OriginResponse(text: "end")
      }
      return OriginResponse(status: 302, headers: ["Location": "/steps/\(left - 1)"])
    }
    #expect(try await fetch("/steps/10") == 3)
    await #expect(throws: URLError(.httpTooManyRedirects)) { try await fetch("/steps/11") }
  }

  @Test(.guarantee(.httpDefaultsAreDocumented)) func `no cookies are kept, and no files are read`()
    async throws
  {
    let cookies = Guarded<[String?]>([])
    origin.route("/value") { request in
      cookies.withLock { $0.append(request.headers["Cookie"]) }
      return OriginResponse(headers: ["Set-Cookie": "a=1; Path=/"], body: [1])
    }
    for _ in 0..<2 { #expect(try await fetch() == 1) }
    #expect(cookies.withLock { $0 } == [nil, nil])
    let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try Data([1]).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    await #expect(throws: URLError(.unsupportedURL)) {
      let fetcher = HTTPFetcher(file) { $0.count }
      _ = try await fetcher.fetch(FetchContext(previousValue: nil))
    }
  }
}
