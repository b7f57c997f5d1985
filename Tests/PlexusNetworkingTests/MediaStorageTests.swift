import Foundation
import LoopbackOrigin
import Plexus
import PlexusNetworking
import PlexusSupport
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A loader of a folder below a file, which not even the superuser can write.
private func loaderWithoutFolder(
  _ file: URL,
  _ transport: some HTTPTransport,
  bytes: Int? = 1 << 30
) -> MediaLoader {
  MediaLoader(
    directory: file.appending(path: "folder"),
    transport: transport,
    rules: .patient,
    byteLimit: bytes,
    retry: .never
  )
}

private func counting() -> ClosureTransport {
  ClosureTransport { _, request, receiver in
    try receiver.take(request, headers: ["Content-Type": "text/one"], "abc")
  }
}

@Suite(.fewAtOnce)
struct `Media and a disk that does not do as it should` {
  let folder = MediaTestFolder()
  /// A file where a folder is expected.
  let file: URL
  let url: URL

  init() throws {
    try FileManager.default.createDirectory(at: folder.url, withIntermediateDirectories: true)
    file = folder.url.appending(path: "file")
    try Data().write(to: file)
    url = try #require(URL(string: "http://nowhere.invalid/a.txt"))
  }

  private func text(_ file: URL) throws -> String {
    String(decoding: try Data(contentsOf: file), as: UTF8.self)
  }

  @Test func `a file that another program removes during a look is there or not`() async throws {
    let loader = MediaLoader(
      directory: folder.url.appending(path: "media"),
      transport: counting(),
      rules: .patient
    )
    let cached = try await loader.request(url)
    let isOver = Guarded(false)
    let other = try LoopThread {
      while !isOver.withLock({ $0 }) {
        try? FileManager.default.removeItem(at: cached)
        try? Data("abc".utf8).write(to: cached)
      }
    }
    var results: Set<URL?> = []
    for _ in 0..<20_000 { results.insert(loader.cachedFile(for: url)) }
    isOver.withLock { $0 = true }
    other.join()
    #expect(results.isSubset(of: [nil, cached]))
  }

  @Test(.guarantee(.fullDisksMakeTemporaryFiles))
  func `a file is temporary if its folder cannot be written`() async throws {
    let transport = counting()
    var loader: MediaLoader? = loaderWithoutFolder(file, transport)
    let temporary = try #require(try await loader?.request(url))
    #expect(try text(temporary) == "abc")
    #expect(loader?.cachedFile(for: url) == temporary)
    #expect(try await loader?.request(url) == temporary)
    let right = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    #expect(try await loader?.request(url, sha256: right) == temporary)
    #expect(transport.names.count == 1)
    try await loader?.remove(url)
    #expect(loader?.cachedFile(for: url) == nil)
    let again = try #require(try await loader?.request(url))
    try await loader?.clear()
    #expect(!FileManager.default.fileExists(atPath: again.path))
    _ = try await loader?.request(url)
    loader = nil
    #expect(!FileManager.default.fileExists(atPath: again.path))
  }

  @Test(.guarantee(.fullDisksMakeTemporaryFiles), .startsProcess)
  func `temporary files of a process that was killed are removed by the next one`()
    async throws
  {
    let (path, temporary) = (file.path, folder.url.path)
    func names() throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: temporary)
        .filter { $0.hasPrefix("plexus-media-") }
    }
    for _ in 0..<2 {
      await #expect(processExitsWith: .signal(SIGKILL)) {
        [path = path as String, temporary = temporary as String] in
        setenv("TMPDIR", temporary, 1)
        let media = loaderWithoutFolder(URL(filePath: path), counting())
        let url = try #require(URL(string: "http://nowhere.invalid/a.txt"))
        #expect(try await media.request(url).path.hasPrefix(temporary))
        kill(getpid(), SIGKILL)
      }
      #expect(try names().count == 1)
    }
  }

  @Test(.guarantee(.fullDisksMakeTemporaryFiles), .startsProcess)
  func `an image is shown without any disk`() async throws {
    let path = file.path
    await #expect(processExitsWith: .success) { [path = path as String] in
      setenv("TMPDIR", "/dev/null", 1)
      let transport = counting()
      let media = loaderWithoutFolder(URL(filePath: path), transport)
      let url = try #require(URL(string: "http://nowhere.invalid/a.txt"))
      await #expect(throws: POSIXError.self) { try await media.request(url) }
      let images = ImageLoader(media: media) { data, response in
        #expect(response.type == "text/one" && response.file == nil)
        return String(decoding: data, as: UTF8.self)
      }
      #expect(try await images.request(url) == "abc")
      #expect(try await images.reload(url) == "abc")
      let count = transport.names.count
      #expect(try await images.request(url) == "abc")
      #expect(transport.names.count == count)
      _exit(EXIT_SUCCESS)
    }
  }

  @Test(.startsProcess)
  func `a failure to decode without any disk is not remembered if all was cleared meanwhile`()
    async throws
  {
    let path = file.path
    await #expect(processExitsWith: .success) { [path = path as String] in
      setenv("TMPDIR", "/dev/null", 1)
      let (gate, transport) = (Gate(), counting())
      let images = ImageLoader(media: loaderWithoutFolder(URL(filePath: path), transport)) { data in
        if !gate.isOpen {
          try await gate.wait()
          throw Undecodable()
        }
        return String(decoding: data, as: UTF8.self)
      }
      let repository = MuxRepository()
      images.register(in: repository)
      let url = try #require(URL(string: "http://nowhere.invalid/a.txt"))
      let early = Task { try await images.request(url) }
      await gate.arrivals(1)
      try await repository.clearAll()
      gate.open()
      await #expect(throws: Undecodable.self) { try await early.value }
      #expect(try await images.request(url) == "abc")
      _exit(EXIT_SUCCESS)
    }
  }

  @Test(.guarantee(.smallImagesDecodeFromMemory), .startsProcess)
  func `an image of more than 64 MB is not decoded from memory`() async throws {
    let path = file.path
    await #expect(processExitsWith: .success) { [path = path as String] in
      setenv("TMPDIR", "/dev/null", 1)
      let transport = ClosureTransport { count, request, receiver in
        try receiver.begin(request)
        for _ in 0..<64 { try receiver.receive(Data(count: 1 << 20)) }
        if request.url?.lastPathComponent == "large" { try receiver.receive(Data(count: 1)) }
      }
      let images = ImageLoader(media: loaderWithoutFolder(URL(filePath: path), transport)) {
        $0.count
      }
      let url = try #require(URL(string: "http://nowhere.invalid/"))
      #expect(try await images.request(url.appending(path: "fits")) == 64 << 20)
      await #expect(throws: MediaError.fileTooLarge(limit: 64 << 20)) {
        try await images.request(url.appending(path: "large"))
      }
      _exit(EXIT_SUCCESS)
    }
  }

  @Test(.guarantee(.incompleteFilesAreNotUsed))
  func `after a power cut, only files with the length and date of their records are used`()
    async throws
  {
    let transport = counting()
    func loader() -> MediaLoader {
      MediaLoader(
        directory: folder.url,
        transport: transport,
        rules: .patient,
        retry: .never
      )
    }
    let names = ["whole", "short", "unknown"]
    let urls = try names.map { try #require(URL(string: "http://nowhere.invalid/\($0)")) }
    let seconds = 1_000_000_000
    for (name, url) in zip(names, urls) {
      let file = try await loader().request(url)
      let record = folder.url.appending(path: "records/" + file.lastPathComponent)
      let changed = try text(record).replacing(
        /"modified":\d+/,
        with: "\"modified\":\(seconds)000000000"
      )
      try Data(changed.utf8).write(to: record)
      if name == "short" { try Data("ab".utf8).write(to: file) }
      if name == "unknown" { try FileManager.default.removeItem(at: record) }
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSince1970: Double(seconds))],
        ofItemAtPath: file.path
      )
    }
    #expect(urls.map { loader().cachedFile(for: $0) != nil } == [true, false, false])
    for url in urls { #expect(try await text(loader().request(url)) == "abc") }
    #expect(transport.names == names + ["short", "unknown"])
  }

  @Test(.guarantee(.wrongKindsOfFilesAreReplaced)) func `a folder instead of a file is replaced`()
    async throws
  {
    let transport = counting()
    let loader = MediaLoader(
      directory: folder.url,
      transport: transport,
      rules: .patient,
      retry: .never
    )
    let file = try await loader.request(url)
    try FileManager.default.removeItem(at: file)
    try FileManager.default.createDirectory(
      at: file.appending(path: "inner"),
      withIntermediateDirectories: true
    )
    #expect(loader.cachedFile(for: url) == nil)
    #expect(try await text(loader.request(url)) == "abc")
    #expect(transport.names.count == 2)
    #expect(!folder.files.contains { $0.hasPrefix("removed-") })
  }

  @Test(.guarantee(.wrongKindsOfFilesAreReplaced), arguments: ["files", "parts", "records"])
  func `a file instead of a folder is replaced`(name: String) async throws {
    try Data("x".utf8).write(to: folder.url.appending(path: name))
    let loader = MediaLoader(
      directory: folder.url,
      transport: counting(),
      rules: .patient,
      retry: .never
    )
    let file = try await loader.request(url)
    #expect(file.path.hasPrefix(folder.url.path + "/files/"))
    #expect(try text(file) == "abc")
  }
}

@Suite(.fewAtOnce)
struct `Answers to a media loader` {
  let origin: LoopbackOrigin
  let folder = MediaTestFolder()
  let clock = ManualClock()

  init() throws {
    origin = try LoopbackOrigin()
  }

  private func loader(attempts: Int) -> MediaLoader {
    MediaLoader(
      directory: folder.url,
      transport: URLSessionTransport(timeout: 600),
      rules: .patient,
      retry: .exponential(attempts: attempts, base: .seconds(1), cap: .seconds(1), jitter: 0),
      clock: clock
    )
  }

  @Test(.guarantee(.retryAfterIsRespected), arguments: [204, 205])
  func `an answer without a body is no file`(status: Int) async throws {
    origin.route("/a") { _ in OriginResponse(status: status) }
    let url = try #require(URL(string: origin.address + "/a"))
    let error = await #expect(throws: HTTPStatusError.self) {
      try await loader(attempts: 1).request(url)
    }
    #expect(error?.status == status)
    #expect(folder.files.isEmpty)
  }

  @Test(.guarantee(.retryAfterIsRespected)) func `Retry-After is waited for`() async throws {
    let count = Guarded(0)
    origin.route("/a") { _ in
      let number = count.withLock { count in
        count += 1
        return count
      }
      return number == 1
        ? OriginResponse(status: 503, headers: ["Retry-After": "30"]) : OriginResponse(text: "a")
    }
    let url = try #require(URL(string: origin.address + "/a"))
    let loader = loader(attempts: 3)
    let request = Task { try await loader.request(url) }
    await clock.sleepers(1)
    #expect(clock.nextDeadline == clock.now.advanced(by: .seconds(30)))
    clock.advance(by: .seconds(30))
    #expect(try Data(contentsOf: await request.value) == Data("a".utf8))
  }

  @Test(.guarantee(.retryAfterIsRespected))
  func `a Retry-After of more than a minute, or without attempts, is final`() async throws {
    origin.route("/a") { request in
      OriginResponse(status: 429, headers: ["Retry-After": request.query("s") ?? "61"])
    }
    let url = try #require(URL(string: origin.address + "/a"))
    let error = await #expect(throws: HTTPStatusError.self) {
      try await loader(attempts: 9).request(url)
    }
    #expect(error?.retryAfter == .seconds(61))
    let short = try #require(URL(string: origin.address + "/a?s=1"))
    await #expect(throws: HTTPStatusError.self) { try await loader(attempts: 1).request(short) }
  }
}
