import Foundation
import LoopbackOrigin
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `A media loader` {
  let origin: LoopbackOrigin
  let folder = MediaTestFolder()
  let loader: MediaLoader
  /// The Range and If-Range fields that the server saw, in order.
  let ranges = Guarded<[String?]>([])
  let answer = Guarded(OriginResponse(body: (0..<50_000).map { UInt8($0 % 251) }))

  init() throws {
    origin = try LoopbackOrigin()
    loader = MediaLoader(
      directory: folder.url,
      transport: URLSessionTransport(timeout: 600),
      rules: .patient,
      retry: .never
    )
    origin.route("/a.jpg") { [ranges, answer] request in
      let range = request.headers["Range"]
      ranges.withLock { $0.append(range.map { $0 + " " + (request.headers["If-Range"] ?? "-") }) }
      return answer.withLock { $0 }
    }
  }

  /// A loader of the same folder, with the retries that loaders have by default.
  private func anotherLoader() -> MediaLoader {
    MediaLoader(
      directory: folder.url,
      transport: URLSessionTransport(timeout: 600),
      rules: .patient
    )
  }

  private var body: Data { Data(answer.withLock { $0.body }) }

  private func url(_ path: String = "/a.jpg") throws -> URL {
    try #require(URL(string: origin.address + path))
  }

  private func tag(_ tag: String) { answer.withLock { $0.etag = tag } }

  @Test(.guarantee(.filesAreDownloadedOnce))
  func `a media loader downloads a file once and finds it again`()
    async throws
  {
    let file = try await loader.request(url())
    #expect(try Data(contentsOf: file) == body)
    #expect(file.pathExtension == "jpg")
    #expect(try loader.cachedFile(for: url()) == file)
    #expect(try await loader.request(url("/a.jpg#top")) == file)
    let another = anotherLoader()
    #expect(try await another[url()].request() == file)
    #expect(origin.statistics.requestCount == 1)
    #expect(folder.files.count == 1)
  }

  @Test(.guarantee(.filesAreDownloadedOnce))
  func `a media loader keeps files for their owner alone`() async throws {
    let file = try await loader.request(url())
    #expect(try folder.permissions() == 0o700)
    #expect(try folder.permissions("files") == 0o700)
    #expect(try folder.permissions("files/" + file.lastPathComponent) == 0o600)
  }

  @Test(.guarantee(.filesAreDownloadedOnce)) func `a hundred callers share one download`()
    async throws
  {
    let url = try url()
    let files = try await withThrowingTaskGroup(of: URL.self) { group in
      for _ in 0..<100 { group.addTask { try await loader.request(url) } }
      return try await group.reduce(into: Set<URL>()) { $0.insert($1) }
    }
    #expect(files.count == 1)
    #expect(origin.statistics.requests["/a.jpg"] == 1)
  }

  @Test(.guarantee(.errorStatusesLeaveNothing), arguments: [404, 500, 304])
  func `an error status is thrown and leaves nothing`(status: Int) async throws {
    origin.inject(.status(status), for: "/a.jpg")
    let error = await #expect(throws: HTTPStatusError.self) { try await loader.request(url()) }
    #expect(error?.status == status)
    #expect(folder.files.isEmpty)
    _ = try await loader.request(url())
  }

  @Test(
    .guarantee(.errorStatusesLeaveNothing),
    arguments: [
      OriginFault.reset(), .reset(afterBytes: 20_000), .truncation(afterBytes: 20_000),
      .wrongContentLength(60_000),
    ]
  )
  func `a broken transfer is a failure of connectivity and leaves only what can be continued`(
    fault: OriginFault
  ) async throws {
    origin.inject(fault, for: "/a.jpg", count: 4)
    let error = await #expect(throws: URLError.self) { try await loader.request(url()) }
    #expect(error?.isConnectivityFailure == true)
    #expect(folder.files.isEmpty)
    origin.removeFaults()
    #expect(try Data(contentsOf: await loader.request(url())) == body)
  }

  @Test(.guarantee(.errorStatusesLeaveNothing))
  func `a broken transfer is continued, by another loader, too`() async throws {
    tag("\"v1\"")
    origin.inject(.truncation(afterBytes: 20_000), for: "/a.jpg")
    await #expect(throws: URLError.self) { try await loader.request(url()) }
    #expect(folder.files.count == 1 && folder.parts.count == 1)
    let another = anotherLoader()
    #expect(try Data(contentsOf: await another.request(url())) == body)
    #expect(ranges.withLock { $0 } == [nil, "bytes=20000- \"v1\""])
    #expect(folder.files.count == 1 && folder.parts.isEmpty)
  }

  @Test(.guarantee(.errorStatusesLeaveNothing))
  func `a file that has changed is loaded from the beginning`() async throws {
    tag("\"v1\"")
    origin.inject(.truncation(afterBytes: 20_000), for: "/a.jpg")
    await #expect(throws: URLError.self) { try await loader.request(url()) }
    tag("\"v2\"")
    answer.withLock { $0.body = Array(repeating: 7, count: 30_000) }
    #expect(try Data(contentsOf: await loader.request(url())) == body)
    #expect(folder.parts.isEmpty)
  }

  @Test func `a server without ranges sends it all again`() async throws {
    tag("\"v1\"")
    answer.withLock { $0.allowsRanges = false }
    origin.inject(.truncation(afterBytes: 20_000), for: "/a.jpg")
    await #expect(throws: URLError.self) { try await loader.request(url()) }
    #expect(try Data(contentsOf: await loader.request(url())) == body)
    #expect(folder.parts.isEmpty)
  }

  @Test func `a weak entity tag continues nothing`() async throws {
    tag("W/\"v1\"")
    origin.inject(.truncation(afterBytes: 20_000), for: "/a.jpg")
    await #expect(throws: URLError.self) { try await loader.request(url()) }
    #expect(folder.files.isEmpty)
  }

  @Test func `a media loader drops a part that the server refuses`() async throws {
    tag("\"v1\"")
    origin.inject(.truncation(afterBytes: 20_000), for: "/a.jpg")
    await #expect(throws: URLError.self) { try await loader.request(url()) }
    origin.inject(.status(416), for: "/a.jpg")
    #expect(try Data(contentsOf: await loader.request(url())) == body)
    #expect(ranges.withLock { $0.last } == .some(nil))
    #expect(folder.parts.isEmpty)
  }

  @Test(.guarantee(.lastCallerStopsTheDownload))
  func `the last caller to leave stops the download and keeps its part`() async throws {
    tag("\"v1\"")
    origin.inject(.stall(afterBytes: 20_000), for: "/a.jpg")
    let url = try url()
    let progress = Recorder(loader.progress(of: url))
    let arriving = loader.progress(of: url)
    let first = Task { try await loader.request(url) }
    let second = Task { try await loader.request(url) }
    // The first report may be the length: there are no bytes yet, and no part to keep.
    for await state in arriving where state.receivedBytes > 0 { break }
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    #expect(origin.statistics.openConnections == 1)
    second.cancel()
    await #expect(throws: CancellationError.self) { try await second.value }
    await origin.openConnections(atMost: 0)
    _ = await progress.finished()
    #expect(folder.parts.count == 1)
    #expect(try Data(contentsOf: await loader.request(url)) == body)
    #expect(ranges.withLock { $0.last??.hasPrefix("bytes=") } == true)
  }

  @Test func `a media loader tries again after a failure of connectivity, and continues`()
    async throws
  {
    tag("\"v1\"")
    let clock = ManualClock()
    let loader = MediaLoader(
      directory: folder.url,
      rules: .patient,
      retry: .exponential(attempts: 2, base: .seconds(8), cap: .seconds(8), jitter: 0),
      clock: clock
    )
    origin.inject(.truncation(afterBytes: 20_000), for: "/a.jpg")
    let url = try url()
    let request = Task { try await loader.request(url) }
    await clock.sleepers(1)
    #expect(clock.nextDeadline == clock.now.advanced(by: .seconds(8)))
    clock.advance(by: .seconds(8))
    #expect(try Data(contentsOf: await request.value) == body)
    #expect(ranges.withLock { $0 } == [nil, "bytes=20000- \"v1\""])
  }

  @Test func `an answer is final, whatever the retry policy`() async throws {
    let loader = MediaLoader(
      directory: folder.url,
      rules: .patient,
      retry: .exponential(attempts: 9, base: .zero, cap: .zero, jitter: 0)
    )
    origin.inject(.status(500), for: "/a.jpg")
    await #expect(throws: HTTPStatusError.self) { try await loader.request(url()) }
    #expect(origin.statistics.requestCount == 1)
  }

  @Test func `a server that falls silent is given up`() async throws {
    let loader = MediaLoader(
      directory: folder.url,
      transport: URLSessionTransport(timeout: 1),
      rules: .patient,
      retry: .never
    )
    origin.inject(.stall(afterBytes: 100), for: "/a.jpg")
    let error = await #expect(throws: URLError.self) { try await loader.request(url()) }
    #expect(error?.code == .timedOut)
    #expect(folder.files.isEmpty)
  }

  @Test func `redirects are followed within a limit`() async throws {
    origin.route("/moved.jpg") { _ in OriginResponse(status: 302, headers: ["Location": "/a.jpg"]) }
    #expect(try Data(contentsOf: await loader.request(url("/moved.jpg"))) == body)
    origin.route("/loop") { _ in OriginResponse(status: 302, headers: ["Location": "/loop"]) }
    let error = await #expect(throws: URLError.self) { try await loader.request(url("/loop")) }
    #expect(error?.code == .httpTooManyRedirects)
    #expect(origin.statistics.requests["/loop"] == 11)
    origin.route("/out") { _ in
      OriginResponse(status: 302, headers: ["Location": "ftp://localhost/"])
    }
    await #expect(throws: (any Error).self) { try await loader.request(url("/out")) }
    #expect(folder.files.count == 1)
  }

  @Test(.guarantee(.localFilesAreUsedInPlace))
  func `files are used in place, and other schemes refused`() async throws {
    let file = folder.url.appending(path: "own.txt")
    await #expect(throws: MediaError.noSuchFile(file)) { try await loader.request(file) }
    try FileManager.default.createDirectory(at: folder.url, withIntermediateDirectories: true)
    try Data("own".utf8).write(to: file)
    #expect(try await loader.request(file) == file)
    for text in ["ftp://localhost/a", "data:,a", "http:", "a.jpg"] {
      let url = try #require(URL(string: text))
      await #expect(throws: MediaError.unsupportedScheme(url)) { try await loader.request(url) }
    }
  }

  @Test(.guarantee(.lengthAndDigestAreVerified)) func `bytes are compared with a digest`()
    async throws
  {
    answer.withLock { $0.body = Array("abc".utf8) }
    let right = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    _ = try await loader.request(url(), sha256: right.uppercased())
    await #expect(throws: MediaError.wrongChecksum(expected: "00", found: right)) {
      try await loader.request(url(), sha256: "00")
    }
    #expect(folder.files.isEmpty)
  }

  @Test func `what arrives coded is kept decoded`() async throws {
    // "hello\n" by gzip.
    let coded: [UInt8] = [
      0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0xe7, 2, 0, 0x20, 0x30,
      0x3a, 0x36, 6, 0, 0, 0,
    ]
    answer.withLock { $0 = OriginResponse(headers: ["Content-Encoding": "gzip"], body: coded) }
    #expect(try Data(contentsOf: await loader.request(url())) == Data("hello\n".utf8))
  }

  @Test(arguments: [OriginResponse.Framing.chunked, .untilClose])
  func `a length that was not announced is no error`(
    framing: OriginResponse.Framing
  ) async throws {
    answer.withLock { $0.framing = framing }
    #expect(try Data(contentsOf: await loader.request(url())) == body)
  }

  @Test(.guarantee(.subscribersReceiveProgress)) func `a slow transfer reports its progress`()
    async throws
  {
    answer.withLock { $0.fault = .drip(bytes: 10_000, every: .milliseconds(5)) }
    let url = try url()
    let recorders = (0..<3).map { _ in Recorder(loader.progress(of: url)) }
    _ = try await loader.request(url)
    for recorder in recorders {
      let seen = await recorder.finished()
      #expect(seen.last == DownloadProgress(receivedBytes: 50_000, totalBytes: 50_000))
      #expect(seen.last?.fraction == 1)
      #expect(seen.map(\.receivedBytes) == seen.map(\.receivedBytes).sorted())
    }
    let late = await Recorder(loader.progress(of: url)).finished()
    #expect(late == [DownloadProgress(receivedBytes: 50_000, totalBytes: 50_000)])
  }

  @Test(.guarantee(.subscribersReceiveProgress))
  func `progress ends with a download that fails, and with the loader`() async throws {
    origin.inject(.status(404), for: "/a.jpg")
    let failing = Recorder(loader.progress(of: try url()))
    await #expect(throws: HTTPStatusError.self) { try await loader.request(url()) }
    _ = await failing.finished()
    var another: MediaLoader? = anotherLoader()
    let orphan = Recorder(try #require(another).progress(of: try url()))
    another = nil
    #expect(await orphan.finished().isEmpty)
  }

  @Test(.guarantee(.clearsDuringDownloadsStoreNothing))
  func `clearing removes everything, and keeps nothing that has begun`() async throws {
    _ = try await loader.request(url())
    try await loader.clear()
    #expect(folder.files.isEmpty)
    #expect(try loader.cachedFile(for: url()) == nil)
    origin.inject(.stall(afterBytes: 20_000), for: "/a.jpg")
    let url = try url()
    let progress = Recorder(loader.progress(of: url))
    let early = Task { try await loader.request(url) }
    _ = await progress.first(1)
    let repository = MuxRepository()
    loader.register(in: repository)
    try await repository.clearAll()
    // A request from now on does not join the old download.
    let file = try await loader.request(url)
    #expect(try Data(contentsOf: file) == body)
    await origin.goOffline()
    await #expect(throws: MediaError.cleared) { try await early.value }
    #expect(try Data(contentsOf: file) == body)
    #expect(folder.files.count == 1)
  }

  @Test func `a folder that was removed meanwhile is made again`() async throws {
    _ = try await loader.request(url())
    try FileManager.default.removeItem(at: folder.url)
    #expect(try loader.cachedFile(for: url()) == nil)
    #expect(try Data(contentsOf: await loader.request(url())) == body)
  }

  @Test func `two loaders on one folder do not disturb each other`() async throws {
    tag("\"v1\"")
    let another = anotherLoader()
    let url = try url()
    origin.inject(.drip(bytes: 5_000, every: .milliseconds(2)), for: "/a.jpg", count: 2)
    async let first = loader.request(url)
    async let second = another.request(url)
    let files = try await (first, second)
    #expect(files.0 == files.1)
    #expect(try Data(contentsOf: files.0) == body)
    #expect(folder.files.count == 1)
  }

  @Test func `old parts are swept, young ones are not`() async throws {
    tag("\"v1\"")
    origin.inject(.truncation(afterBytes: 20_000), for: "/a.jpg")
    await #expect(throws: URLError.self) { try await loader.request(url()) }
    origin.route("/b.jpg") { _ in OriginResponse(text: "b") }
    _ = try await anotherLoader().request(url("/b.jpg"))
    #expect(folder.parts.count == 1)
    let part = folder.url.appending(path: try #require(folder.parts.first)).path
    let date = Date(timeIntervalSinceNow: -90_000)
    try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: part)
    origin.route("/c.jpg") { _ in OriginResponse(text: "c") }
    _ = try await anotherLoader().request(url("/c.jpg"))
    #expect(folder.parts.isEmpty)
  }

  @Test func `a zipper takes files`() async throws {
    origin.route("/b.jpg") { _ in OriginResponse(text: "b") }
    let (one, two) = try await Zipper(loader[url()], loader[url("/b.jpg")]).values()
    #expect(one != two)
  }
}
