import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A transport without network that delivers the path of each URL, when a gate lets it, and fails a number of times.
private final class PathTransport: HTTPTransport {
  let gate = Gate()
  let arrivals = Guarded((now: 0, most: 0, all: 0))
  private let failures: Guarded<Int>

  init(failures: Int = 0) {
    self.failures = Guarded(failures)
  }

  @concurrent
  func send(_ request: URLRequest, to receiver: any HTTPReceiver) async throws {
    arrivals.withLock { counts in
      counts.now += 1
      counts.all += 1
      counts.most = max(counts.most, counts.now)
    }
    defer { arrivals.withLock { $0.now -= 1 } }
    try await gate.wait()
    let fails = failures.withLock { failures in
      failures -= 1
      return failures >= 0
    }
    if fails { throw URLError(.networkConnectionLost) }
    let url = try #require(request.url)
    let response = try #require(
      HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: [:])
    )
    try receiver.begin(response)
    try receiver.receive(Data(url.path.utf8))
  }
}

@Suite(.fewAtOnce)
struct `The defaults of media loaders` {
  let folder = MediaTestFolder()

  private func url(_ number: Int) throws -> URL {
    try #require(URL(string: "http://nowhere.invalid/\(number)"))
  }

  @Test(.guarantee(.mediaDefaultsAreDocumented))
  func `six downloads of one host run at once, and no file is evicted`() async throws {
    let transport = PathTransport()
    let loader = MediaLoader(directory: folder.url, transport: transport)
    let requests = try (0..<60).map { number in
      let url = try url(number)
      return Task { try await loader.request(url) }
    }
    await transport.gate.arrivals(6)
    transport.gate.open()
    for request in requests { _ = try await request.value }
    #expect(transport.arrivals.withLock { $0.most } == 6)
    for number in 0..<60 { #expect(try loader.cachedFile(for: url(number)) != nil) }
  }

  @Test(.guarantee(.mediaDefaultsAreDocumented))
  func `a failure of connectivity is tried three times, half a second and a second later`()
    async throws
  {
    let clock = ManualClock()
    let transport = PathTransport(failures: 3)
    transport.gate.open()
    let loader = MediaLoader(
      directory: folder.url,
      transport: transport,
      rules: .patient,
      clock: clock
    )
    let url = try url(1)
    let request = Task { try await loader.request(url) }
    for milliseconds in [500, 1000] {
      await clock.sleepers(1)
      let wait = try #require(clock.nextDeadline).offset - clock.now.offset
      #expect(wait >= .milliseconds(milliseconds * 8 / 10))
      #expect(wait <= .milliseconds(milliseconds * 12 / 10))
      clock.advance(by: wait)
    }
    await #expect(throws: URLError.self) { try await request.value }
    #expect(transport.arrivals.withLock { $0.all } == 3)
  }

  @Test(.guarantee(.mediaDefaultsAreDocumented))
  func `images count for ten times their files, up to 256 MB`() async throws {
    let transport = ClosureTransport { _, request, receiver in
      try receiver.begin(request)
      try receiver.receive(Data(count: 6 << 20))
    }
    let media = MediaLoader(directory: folder.url, transport: transport)
    let images = ImageLoader(media: media) { $0.count }
    for number in 0..<4 { _ = try await images.request(url(number)) }
    #expect(try (0..<4).allSatisfy { try images.cachedImage(for: url($0)) != nil })
    for number in 4..<7 { _ = try await images.request(url(number)) }
    #expect(try (0..<7).count { try images.cachedImage(for: url($0)) != nil } == 4)
  }

  @Test(.guarantee(.mediaDefaultsAreDocumented))
  func `a file has 512 MB at most, and all have one gigabyte`() async throws {
    let transport = ClosureTransport { _, request, receiver in
      let path = try #require(request.url?.lastPathComponent)
      try receiver.begin(request, headers: ["Content-Length": path])
      try receiver.receive(Data(path.utf8))
    }
    let loader = MediaLoader(
      directory: folder.url,
      transport: transport,
      rules: .patient,
      retry: .never
    )
    await #expect(throws: MediaError.fileTooLarge(limit: 512 << 20)) {
      try await loader.request(url(512 << 20 + 1))
    }
    // The bytes that the answer announced are missing, not too many.
    await #expect(throws: URLError.self) { try await loader.request(url(512 << 20)) }
  }

  @Test(.guarantee(.gigabyteIsKeptByDefault))
  func `files of more than a gigabyte together have to go`() async throws {
    let files = folder.url.appending(path: "files")
    try FileManager.default.createDirectory(at: files, withIntermediateDirectories: true)
    // They have holes, and occupy no blocks of the disk.
    for number in 0..<5 {
      let file = files.appending(path: String(repeating: "\(number)", count: 64))
      try Data().write(to: file)
      let handle = try FileHandle(forWritingTo: file)
      try handle.truncate(atOffset: 250 << 20)
      try handle.close()
    }
    func largeCount() -> Int { folder.files.count { !$0.hasSuffix(".txt") } }
    #expect(largeCount() == 5)
    let transport = ClosureTransport { _, request, receiver in
      try receiver.take(request, headers: ["Content-Length": "3"], "abc")
    }
    let loader = MediaLoader(directory: folder.url, transport: transport)
    _ = try await loader.request(try #require(URL(string: "http://nowhere.invalid/a.txt")))
    #expect(largeCount() == 4)
  }

  @Test func `a download that does not get a kilobyte a minute fails`() async throws {
    let (gate, clock) = (Gate(), ManualClock())
    let transport = ClosureTransport { _, request, receiver in
      try receiver.take(request, "abc")
      try await gate.wait()
    }
    let loader = MediaLoader(
      directory: folder.url,
      transport: transport,
      retry: .never,
      clock: clock
    )
    let request = Task { try await loader.request(url(1)) }
    await gate.arrivals(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(60))
    await #expect(throws: URLError(.timedOut)) { try await request.value }
  }
}
