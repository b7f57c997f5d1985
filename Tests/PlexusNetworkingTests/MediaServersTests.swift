import Foundation
import LoopbackOrigin
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

/// Servers that keep to HTTP, and servers that do not quite.
@Suite(.fewAtOnce)
struct `A media loader and servers` {
  /// The error of the decoder of the tests.
  let origin: LoopbackOrigin
  let folder = MediaTestFolder()
  let loader: MediaLoader
  let answer = Guarded(OriginResponse(body: (0..<50_000).map { UInt8($0 % 251) }))
  let asked = Guarded<[(method: OriginRequest.Method, range: String?, coding: String?)]>([])

  init() throws {
    origin = try LoopbackOrigin()
    loader = MediaLoader(
      directory: folder.url,
      transport: URLSessionTransport(timeout: 600),
      rules: .patient,
      retry: .never
    )
    origin.route("/a.bin", methods: Set(OriginRequest.Method.allCases)) { [asked, answer] request in
      asked.withLock { asked in
        let headers = request.headers
        asked.append((request.method, headers["Range"], headers["Accept-Encoding"]))
      }
      return answer.withLock { $0 }
    }
  }

  private var body: Data { Data(answer.withLock { $0.body }) }

  private func url(_ path: String = "/a.bin") throws -> URL {
    try #require(URL(string: origin.address + path))
  }

  @Test func `nothing but GET is ever sent, and no coding is requested`() async throws {
    answer.withLock { $0.etag = "\"v1\"" }
    origin.inject(.truncation(afterBytes: 20_000), for: "/a.bin")
    await #expect(throws: URLError.self) { try await loader.request(url()) }
    _ = try await loader.request(url())
    _ = loader.cachedFile(for: try url())
    #expect(asked.withLock { $0.map(\.method) } == [.get, .get])
    #expect(asked.withLock { $0.allSatisfy { $0.coding == "identity" } })
  }

  @Test
  func `a body that continues after its announced length is cut there, and nothing else follows`()
    async throws
  {
    // By HTTP the message ends where it was announced to end.
    origin.inject(.wrongContentLength(40_000), for: "/a.bin")
    let file = try await loader.request(url())
    #expect(try Data(contentsOf: file) == body.prefix(40_000))
    #expect(folder.files.count == 1)
    origin.route("/b.bin") { _ in OriginResponse(text: "b") }
    #expect(try Data(contentsOf: await loader.request(url("/b.bin"))) == Data("b".utf8))
  }

  /// A thousand letters `a` by gzip: the body is longer than its announced length.
  private let coded: [UInt8] = [
    0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3, 0x4b, 0x4c, 0x1c, 5, 0xa3, 0x60, 0x14, 0xc, 0x77, 0, 0, 3,
    0xda, 0x38, 0x9a, 0xe8, 3, 0, 0,
  ]

  @Test func `a coded body may be longer than its announced length`() async throws {
    answer.withLock { $0 = OriginResponse(headers: ["Content-Encoding": "gzip"], body: coded) }
    let file = try await loader.request(url())
    #expect(try Data(contentsOf: file) == Data(repeating: UInt8(ascii: "a"), count: 1_000))
  }

  @Test
  func `a coded body that breaks off is an error and leaves nothing, not even with an entity tag`()
    async throws
  {
    answer.withLock { answer in
      answer = OriginResponse(headers: ["Content-Encoding": "gzip"], body: coded)
      answer.etag = "\"v1\""
    }
    origin.inject(.truncation(afterBytes: 18), for: "/a.bin")
    await #expect(throws: URLError.self) { try await loader.request(url()) }
    #expect(folder.files.isEmpty)
    #expect(try Data(contentsOf: await loader.request(url())).count == 1_000)
    #expect(asked.withLock { $0.allSatisfy { $0.range == nil } })
  }

  @Test func `a download behind a redirect is continued`() async throws {
    answer.withLock { $0.etag = "\"v1\"" }
    origin.route("/moved.bin") { _ in
      OriginResponse(status: 307, headers: ["Location": "/a.bin"])
    }
    origin.inject(.truncation(afterBytes: 20_000), for: "/a.bin")
    await #expect(throws: URLError.self) { try await loader.request(url("/moved.bin")) }
    #expect(try Data(contentsOf: await loader.request(url("/moved.bin"))) == body)
    #expect(asked.withLock { $0.map(\.range) } == [nil, "bytes=20000-"])
  }

  @Test func `a part by its date of modification is continued`() async throws {
    let date = "Sun, 06 Nov 1994 08:49:37 GMT"
    answer.withLock { $0.headers["Last-Modified"] = date }
    origin.inject(.truncation(afterBytes: 20_000), for: "/a.bin")
    await #expect(throws: URLError.self) { try await loader.request(url()) }
    #expect(try Data(contentsOf: await loader.request(url())) == body)
    #expect(asked.withLock { $0.map(\.range) } == [nil, "bytes=20000-"])
  }

  @Test(arguments: [
    OriginFault.status(404), .status(500), .reset(), .reset(afterBytes: 9),
    .truncation(afterBytes: 9),
    .wrongContentLength(60_000), .stall(afterBytes: 9),
  ])
  func `after any fault at most a part is left, and the file is loaded afterwards`(
    fault: OriginFault
  ) async throws {
    let loader = MediaLoader(
      directory: folder.url,
      transport: URLSessionTransport(timeout: 1),
      rules: .patient,
      retry: .never
    )
    answer.withLock { $0.etag = "\"v1\"" }
    origin.inject(fault, for: "/a.bin", count: 9)
    for _ in 0..<2 {
      await #expect(throws: (any Error).self) { try await loader.request(url()) }
      #expect(folder.files == folder.parts && folder.parts.count <= 1)
    }
    origin.removeFaults()
    // A server that is busy answers late, and that is a fault as well.
    let patient = MediaLoader(
      directory: folder.url,
      transport: URLSessionTransport(timeout: 600),
      rules: .patient,
      retry: .never
    )
    #expect(try Data(contentsOf: await patient.request(url())) == body)
    #expect(folder.parts.isEmpty && folder.files.count == 1)
  }

  @Test func `many callers who compare with digests each get their own answer`() async throws {
    answer.withLock { $0.body = Array("abc".utf8) }
    let right = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    let url = try url()
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<40 {
        group.addTask {
          if number.isMultiple(of: 2) {
            do {
              _ = try await loader.request(url, sha256: right)
            } catch {
              // One with a wrong digest may remove the file before it is opened; the bytes are right.
              #expect((error as? MediaError) == nil || error as? MediaError == .cleared)
            }
          } else {
            await #expect(throws: (any Error).self) { try await loader.request(url, sha256: "") }
          }
        }
      }
    }
    _ = try await loader.request(url, sha256: right)
    // The digest of the new file is not known yet.
    try await loader.reload(url)
    let cancelled = Task {
      while !Task.isCancelled { await Task.detached {}.value }
      return try await loader.request(url, sha256: right)
    }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
  }

  @Test func `many callers of what cannot be decoded all get the error`() async throws {
    let gate = Gate()
    let images = ImageLoader<Int>(media: loader) { _ in
      try await gate.wait()
      throw Undecodable()
    }
    let url = try url()
    let first = Task { try await images.request(url) }
    await gate.arrivals(1)
    let others = (0..<50).map { _ in Task { try await images.request(url) } }
    gate.open()
    for task in [first] + others {
      await #expect(throws: Undecodable.self) { try await task.value }
    }
    #expect(folder.files.isEmpty)
    #expect(images.cachedImage(for: url) == nil)
  }

  @Test func `the file of what cannot be decoded no longer counts, and one that comes again stays`()
    async throws
  {
    let loader = MediaLoader(
      directory: folder.url,
      transport: URLSessionTransport(timeout: 600),
      rules: .patient,
      byteLimit: 60_000,
      retry: .never
    )
    origin.route("/small/*") { _ in OriginResponse(body: Array(repeating: 1, count: 1_000)) }
    for number in 0..<9 { _ = try await loader.request(url("/small/\(number)")) }
    let images = ImageLoader<Int>(media: loader) { data in
      guard data.count == 1_000 else { throw Undecodable() }
      return 1
    }
    for _ in 0..<3 {
      await #expect(throws: Undecodable.self) { try await images.request(url()) }
      #expect(folder.files.count == 9)
    }
    for number in 9..<50 { _ = try await loader.request(url("/small/\(number)")) }
    #expect(folder.files.count == 50)
  }

  @Test(.guarantee(.errorStatusesHaveTheirBody))
  func `a media loader keeps the beginning of the body of an error, and does not load the rest`()
    async throws
  {
    for count in [0, 7, 16_384, 16_385, 2_000_000] {
      let body = [UInt8](repeating: 7, count: count)
      answer.withLock { $0 = OriginResponse(status: 403, headers: ["X": "y"], body: body) }
      let images = ImageLoader(media: loader) { $0.count }
      for call in [
        { _ = try await loader.request(url()) }, { _ = try await images.request(url()) },
      ] {
        let error = await #expect(throws: HTTPStatusError.self) { try await call() }
        #expect(error?.status == 403 && error?.headers["x"] == "y")
        #expect(error?.body == Data(body.prefix(16_384)))
      }
      #expect(folder.files.isEmpty)
    }
  }

  @Test(.guarantee(.errorStatusesHaveTheirBody))
  func `an error keeps its status if its body breaks off, or is more than is allowed`()
    async throws
  {
    answer.withLock { $0 = OriginResponse(text: "0123456789", status: 404) }
    origin.inject(.truncation(afterBytes: 4), for: "/a.bin")
    let error = await #expect(throws: HTTPStatusError.self) { try await loader.request(url()) }
    #expect(error?.status == 404 && error?.body == Data("0123".utf8))
    var rules = HTTPRules.patient
    rules.maximumBodyBytes = 3
    let strict = MediaLoader(
      directory: folder.url,
      transport: URLSessionTransport(timeout: 600),
      rules: rules,
      retry: .never
    )
    let short = await #expect(throws: HTTPStatusError.self) { try await strict.request(url()) }
    #expect(short?.status == 404 && short?.body == Data("012".utf8))
    #expect(folder.files.isEmpty)
  }

  @Test(.guarantee(.errorStatusesHaveTheirBody))
  func `an error whose body drips ends with the time of the rules, or with its callers`()
    async throws
  {
    let (gate, clock) = (Gate(), ManualClock())
    let transport = ClosureTransport { _, request, receiver in
      try receiver.take(request, status: 404, "gone")
      try await gate.wait()
    }
    let loader = MediaLoader(
      directory: folder.url,
      transport: transport,
      retry: .never,
      clock: clock
    )
    let request = Task { try await loader.request(url()) }
    await gate.arrivals(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(60))
    let error = await #expect(throws: HTTPStatusError.self) { try await request.value }
    #expect(error?.status == 404 && error?.body == Data("gone".utf8))
    let left = Task { try await loader.request(url()) }
    await gate.arrivals(2)
    left.cancel()
    await #expect(throws: CancellationError.self) { try await left.value }
    #expect(folder.files.isEmpty)
  }
}
