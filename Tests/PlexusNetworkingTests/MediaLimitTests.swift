import Foundation
import LoopbackOrigin
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `The limits of a media loader` {
  let origin: LoopbackOrigin
  let folder = MediaTestFolder()
  /// The paths in the order in which they were requested.
  let asked = Guarded<[String]>([])

  init() throws {
    origin = try LoopbackOrigin()
    origin.route("/files/*") { [asked] request in
      asked.withLock { $0.append(request.pathComponents[1]) }
      return OriginResponse(body: Array(repeating: 1, count: 1000))
    }
  }

  private func url(_ name: some CustomStringConvertible) throws -> URL {
    try #require(URL(string: origin.address + "/files/\(name)"))
  }

  private func loader(bytes: Int?, connections: Int = 6) -> MediaLoader {
    MediaLoader(
      directory: folder.url,
      // As long as the tests may take: on a busy machine a minute passes before a test continues.
      transport: URLSessionTransport(timeout: 600),
      rules: .patient,
      byteLimit: bytes,
      connectionsPerHost: connections,
      retry: .never
    )
  }

  @Test(.guarantee(.downloadsAreLimited))
  func `files take no more than the byte limit when a new one is there`() async throws {
    let loader = loader(bytes: 20_000)
    for number in 0..<40 {
      let file = try await loader.request(url(number))
      #expect(FileManager.default.fileExists(atPath: file.path))
      #expect(folder.files.count <= 20)
    }
    #expect(folder.files.count >= 18)
  }

  @Test func `files of an earlier process count, and outlive the loader`() async throws {
    var loader: MediaLoader? = loader(bytes: nil)
    for number in 0..<30 { _ = try await loader?.request(url(number)) }
    loader = self.loader(bytes: 20_000)
    _ = try await loader?.request(url(30))
    #expect((18...20).contains(folder.files.count))
    let count = folder.files.count
    loader = nil
    #expect(folder.files.count == count)
  }

  @Test func `a file that is requested again stays longer`() async throws {
    let loader = loader(bytes: 20_000)
    for number in 0..<10 { _ = try await loader.request(url(number)) }
    for _ in 0..<3 { _ = try await loader.request(url("0")) }
    for number in 10..<40 { _ = try await loader.request(url(number)) }
    #expect(try loader.cachedFile(for: url(0)) != nil)
    #expect(try loader.cachedFile(for: url(1)) == nil)
  }

  @Test func `a file in use is not removed, and goes afterwards`() async throws {
    let loader = loader(bytes: 3000)
    let used = try url("used")
    try await loader.withFile(for: used) { file in
      for number in 0..<40 { _ = try await loader.request(url(number)) }
      #expect(FileManager.default.fileExists(atPath: file.path))
    }
    for number in 40..<60 { _ = try await loader.request(url(number)) }
    #expect(loader.cachedFile(for: used) == nil)
    // The files that were returned last stay beyond the limit.
    #expect(folder.files.count <= 8 + 3)
  }

  @Test func `a file larger than the limit is returned nevertheless`() async throws {
    let loader = loader(bytes: 10)
    let file = try await loader.request(url("large"))
    #expect(FileManager.default.fileExists(atPath: file.path))
    for number in 0..<20 { _ = try await loader.request(url(number)) }
    #expect(!FileManager.default.fileExists(atPath: file.path))
  }

  @Test(
    .guarantee(.overlongFilesAreRejected),
    arguments: [OriginResponse.Framing.contentLength, .chunked]
  )
  func `a file of more than the largest length is refused, and leaves nothing`(
    framing: OriginResponse.Framing
  ) async throws {
    origin.route("/files/*") { _ in
      var response = OriginResponse(body: Array(repeating: 1, count: 1001))
      response.framing = framing
      response.etag = "\"v1\""
      return response
    }
    func loader(_ bytes: Int?) -> MediaLoader {
      MediaLoader(
        directory: folder.url,
        transport: URLSessionTransport(timeout: 600),
        rules: .patient,
        maximumFileBytes: bytes,
        retry: .never
      )
    }
    await #expect(throws: MediaError.fileTooLarge(limit: 1000)) {
      try await loader(1000).request(url("a"))
    }
    #expect(folder.files.isEmpty)
    _ = try await loader(1001).request(url("a"))
    _ = try await loader(nil).request(url("b"))
  }

  @Test(.guarantee(.partsCountTowardsTheLimit)) func `parts count, and are removed as files are`()
    async throws
  {
    origin.route("/files/*") { _ in
      var response = OriginResponse(body: Array(repeating: 1, count: 2000))
      response.etag = "\"v1\""
      return response
    }
    let loader = loader(bytes: 20_000)
    for number in 0..<40 {
      origin.inject(.truncation(afterBytes: 1000), for: "/files/\(number)")
      await #expect(throws: URLError.self) { try await loader.request(url(number)) }
      #expect(folder.parts.count <= 20)
    }
    #expect(folder.parts.count >= 10)
    // A loader that comes later counts them, too.
    let later = self.loader(bytes: 5_000)
    _ = try await later.request(url("file"))
    #expect(folder.parts.count <= 3)
  }

  @Test(.guarantee(.partsCountTowardsTheLimit))
  func `parts that are being written count for what was announced`() async throws {
    let loader = loader(bytes: 20_000)
    for number in 0..<18 { _ = try await loader.request(url(number)) }
    origin.route("/files/large") { _ in OriginResponse(body: Array(repeating: 1, count: 15_000)) }
    origin.inject(.stall(afterBytes: 10), for: "/files/large")
    let large = try url("large")
    let progress = loader.progress(of: large)
    let request = Task { try await loader.request(large) }
    for await state in progress where state.receivedBytes > 0 { break }
    // The eight that were returned last stay beyond the limit.
    #expect(folder.files.count - folder.parts.count <= 8)
    request.cancel()
    _ = await request.result
  }

  @Test(.guarantee(.leastRecentlyUsedFilesGoFirst))
  func `files that were used last stay after a restart`() async throws {
    var loader: MediaLoader? = loader(bytes: nil)
    for number in 0..<20 { _ = try await loader?.request(url(number)) }
    for number in 0..<5 { _ = try await loader?.request(url(number)) }
    loader = nil
    let next = self.loader(bytes: 15_000)
    _ = try await next.request(url(20))
    let kept = try (0..<20).filter { try next.cachedFile(for: url($0)) != nil }
    #expect(kept == Array(0..<5) + Array(11..<20) || kept == Array(0..<5) + Array(12..<20))
  }

  @Test(.guarantee(.partsCountTowardsTheLimit)) func `parts are swept while a loader is in use`()
    async throws
  {
    let clock = ManualClock()
    let loader = MediaLoader(
      directory: folder.url,
      transport: URLSessionTransport(timeout: 600),
      rules: .patient,
      retry: .never,
      clock: clock
    )
    origin.route("/files/part") { _ in
      var response = OriginResponse(body: Array(repeating: 1, count: 2000))
      response.etag = "\"v1\""
      return response
    }
    origin.inject(.truncation(afterBytes: 1000), for: "/files/part")
    await #expect(throws: URLError.self) { try await loader.request(url("part")) }
    let part = folder.url.appending(path: try #require(folder.parts.first)).path
    let date = Date(timeIntervalSinceNow: -90_000)
    try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: part)
    _ = try await loader.request(url(1))
    #expect(folder.parts.count == 1)
    clock.advance(by: .seconds(3600))
    _ = try await loader.request(url(2))
    #expect(folder.parts.isEmpty)
  }

  @Test func `clearing a limited loader lets it begin again`() async throws {
    let loader = loader(bytes: 20_000)
    for number in 0..<30 { _ = try await loader.request(url(number)) }
    try await loader.clear()
    #expect(folder.files.isEmpty)
    for number in 0..<30 {
      let file = try await loader.request(url(number))
      #expect(FileManager.default.fileExists(atPath: file.path))
    }
    #expect((18...20).contains(folder.files.count))
  }

  @Test(.guarantee(.downloadsAreLimited))
  func `no more than so many downloads of a host run at once`() async throws {
    let gate = Gate()
    let running = Guarded((now: 0, most: 0))
    origin.route("/files/*") { _ in
      running.withLock { counts in
        counts.now += 1
        counts.most = max(counts.most, counts.now)
      }
      try? await gate.wait()
      running.withLock { $0.now -= 1 }
      return OriginResponse(text: "x")
    }
    let loader = loader(bytes: nil, connections: 2)
    let requests = try (0..<10).map { number in
      let url = try url(number)
      return Task { try await loader.request(url) }
    }
    await gate.arrivals(2)
    gate.open()
    for request in requests { _ = try await request.value }
    #expect(running.withLock { $0.most } == 2)
  }

  @Test func `a request joins what is prefetched`() async throws {
    let gate = Gate()
    origin.route("/files/*") { _ in
      try? await gate.wait()
      return OriginResponse(text: "x")
    }
    let loader = loader(bytes: nil)
    let url = try url("a")
    loader.prefetch([url])
    await gate.arrivals(1)
    let request = Task { try await loader.request(url) }
    gate.open()
    _ = try await request.value
    #expect(origin.statistics.requestCount == 1)
  }

  @Test func `prefetching ends with the loader`() async throws {
    let gate = Gate()
    origin.route("/files/*") { _ in
      try? await gate.wait()
      return OriginResponse(text: "x")
    }
    var loader: MediaLoader? = loader(bytes: nil)
    try loader?.prefetch([url("a")])
    await gate.arrivals(1)
    loader = nil
    await origin.openConnections(atMost: 0)
    #expect(folder.files.isEmpty)
  }
}
