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

/// A loader of a process that is given all it needs as text.
private func makeLoader(_ path: String, bytes: Int? = nil) -> MediaLoader {
  MediaLoader(
    directory: URL(filePath: path, directoryHint: .isDirectory),
    transport: URLSessionTransport(timeout: 600),
    rules: .patient,
    byteLimit: bytes,
    retry: .never
  )
}

/// Gives up the rights of the superuser, who can change any file.
private func becomeNobody() {
  // URLSession looks for the program, which an unprivileged user cannot find in a private folder.
  _ = Bundle.main
  if geteuid() == 0 { seteuid(65_534) }
}

/// Ends the process at once, and well if nothing was recorded: what a URLSession releases later is no leak.
private func leave() -> Never {
  _exit(EXIT_SUCCESS)
}

/// Lets no file of this process get longer, and writing fail instead of ending the process.
private func limitFiles(to bytes: rlim_t) {
  signal(SIGXFSZ, SIG_IGN)
  var limit = rlimit(rlim_cur: bytes, rlim_max: .max)
  #if canImport(Glibc)
  setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
  #else
  setrlimit(RLIMIT_FSIZE, &limit)
  #endif
}

@Suite(.fewAtOnce, .serialized)
struct `Processes that share media` {
  let origin: LoopbackOrigin
  /// The superuser's folder for temporary files may be closed to others, whom two of the tests become.
  let folder = MediaTestFolder(
    parent: geteuid() == 0 ? URL(filePath: "/tmp") : FileManager.default.temporaryDirectory
  )
  /// The Range fields that the server saw, in order.
  let ranges = Guarded<[String?]>([])
  let body = (0..<50_000).map { UInt8($0 % 251) }

  init() throws {
    origin = try LoopbackOrigin()
    origin.route("/files/*") { [ranges, body] request in
      let range = request.headers["Range"]
      ranges.withLock { $0.append(range.map { $0 + " " + (request.headers["If-Range"] ?? "-") }) }
      var response = OriginResponse(body: body)
      response.etag = "\"v1\""
      return response
    }
  }

  private func url(_ number: Int) throws -> URL {
    try #require(URL(string: "\(origin.address)/files/\(number)"))
  }

  @Test(.startsProcess) func `two processes that download the same at once both get whole files`()
    async throws
  {
    let (path, address) = (folder.url.path, origin.address)
    for number in 0..<20 {
      origin.inject(
        .drip(bytes: 10_000, every: .milliseconds(1)),
        for: "/files/\(number)",
        count: 2
      )
    }
    async let other = #expect(processExitsWith: .success) {
      [path = path as String, address = address as String] in
      let loader = makeLoader(path)
      for number in 0..<20 {
        let url = try #require(URL(string: "\(address)/files/\(number)"))
        #expect(try Data(contentsOf: await loader.request(url)).count == 50_000)
      }
      leave()
    }
    let loader = makeLoader(path)
    for number in 0..<20 {
      #expect(try Data(contentsOf: await loader.request(url(number))) == Data(body))
    }
    _ = await other
    #expect(folder.files.count == 20)
    #expect(try folder.permissions("files") == 0o700)
  }

  @Test(.startsProcess)
  func `a file that one process has is found by another, and neither evicts what it has not seen`()
    async throws
  {
    let (path, address) = (folder.url.path, origin.address)
    await #expect(processExitsWith: .success) {
      [path = path as String, address = address as String] in
      let loader = makeLoader(path, bytes: 1_000_000)
      for number in 0..<10 {
        let url = try #require(URL(string: "\(address)/files/\(number)"))
        _ = try await loader.request(url)
      }
      leave()
    }
    let loader = makeLoader(path, bytes: 1_000_000)
    for number in 0..<10 { _ = try await loader.request(url(number)) }
    #expect(origin.statistics.requestCount == 10)
  }

  @Test(.startsProcess) func `what kill -9 has interrupted is continued by the next process`()
    async throws
  {
    let (path, address) = (folder.url.path, origin.address)
    origin.inject(.stall(afterBytes: 20_000), for: "/files/0")
    await #expect(processExitsWith: .signal(SIGKILL)) {
      [path = path as String, address = address as String] in
      let loader = makeLoader(path)
      let url = try #require(URL(string: "\(address)/files/0"))
      let progress = loader.progress(of: url)
      let request = Task { try await loader.request(url) }
      for await progress in progress where progress.receivedBytes == 20_000 {
        kill(getpid(), SIGKILL)
      }
      _ = await request.result
    }
    #expect(folder.parts.count == 1 && folder.files.count == 1)
    await #expect(processExitsWith: .success) {
      [path = path as String, address = address as String] in
      let url = try #require(URL(string: "\(address)/files/0"))
      let file = try await makeLoader(path).request(url)
      #expect(try Data(contentsOf: file) == Data((0..<50_000).map { UInt8($0 % 251) }))
      leave()
    }
    #expect(ranges.withLock { $0 } == [nil, "bytes=20000- \"v1\""])
    #expect(folder.parts.isEmpty && folder.files.count == 1)
  }

  @Test(.startsProcess, arguments: 0..<6)
  func `kill -9 at any moment leaves nothing that is mistaken for a file`(round: Int) async throws {
    let (path, address) = (folder.url.path, origin.address)
    await #expect(processExitsWith: .signal(SIGKILL)) {
      [path = path as String, address = address as String, round = round as Int] in
      let loader = makeLoader(path)
      for number in 0... {
        if number == round {
          Thread {
            for _ in 0..<Int.random(in: 0..<20_000) { _ = getpid() }
            kill(getpid(), SIGKILL)
          }.start()
        }
        let url = try #require(URL(string: "\(address)/files/\(number)"))
        _ = try await loader.request(url)
        if number % 4 == 3 { try await loader.clear() }
      }
    }
    let loader = makeLoader(path)
    // How far the process has come until it was killed is up to the system.
    let asked = origin.statistics.requestCount
    for number in 0..<max(asked, round) + 1 {
      if let file = try loader.cachedFile(for: url(number)) {
        #expect(try Data(contentsOf: file) == Data(body))
      }
      #expect(try Data(contentsOf: await loader.request(url(number))) == Data(body))
    }
    #expect(!folder.files.contains { $0.hasPrefix("removed-") })
    #expect(folder.parts.isEmpty)
  }

  // MARK: - A process whose file system fails

  @Test(.startsProcess) func `a disk that is full is an error and leaves nothing`() async throws {
    let (path, address) = (folder.url.path, origin.address)
    await #expect(processExitsWith: .success) {
      [path = path as String, address = address as String] in
      limitFiles(to: 30_000)
      let loader = makeLoader(path)
      let url = try #require(URL(string: "\(address)/files/0"))
      let error = await #expect(throws: POSIXError.self) { try await loader.request(url) }
      #expect(error?.code == .EFBIG)
      let found = FileManager.default.enumerator(atPath: path)?.allObjects as? [String]
      #expect(found?.sorted() == ["files", "parts", "records"])
      limitFiles(to: .max)
      #expect(try Data(contentsOf: await loader.request(url)).count == 50_000)
      leave()
    }
    // The folder for temporary files was tried, too.
    #expect(ranges.withLock { $0 } == [nil, nil, nil])
  }

  @Test(.startsProcess) func `a folder that cannot be written is an error`() async throws {
    let (path, address) = (folder.url.path, origin.address)
    await #expect(processExitsWith: .success) {
      [path = path as String, address = address as String] in
      becomeNobody()
      setenv("TMPDIR", "/dev/null", 1)
      try FileManager.default.createDirectory(
        atPath: path,
        withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o500]
      )
      let loader = makeLoader(path)
      let url = try #require(URL(string: "\(address)/files/0"))
      await #expect(throws: (any Error).self) { try await loader.request(url) }
      try await loader.clear()
      chmod(path, 0o700)
      _ = try await loader.request(url)
      chmod(path + "/files", 0o500)
      let other = try #require(URL(string: "\(address)/files/1"))
      await #expect(throws: (any Error).self) { try await loader.request(other) }
      #expect(try await loader.request(url) == loader.cachedFile(for: url))
      chmod(path + "/files", 0o700)
      _ = try await loader.request(other)
      leave()
    }
  }

  @Test(.startsProcess) func `files that cannot be cleared are an error, and are no longer used`()
    async throws
  {
    let (path, address) = (folder.url.path, origin.address)
    await #expect(processExitsWith: .success) {
      [path = path as String, address = address as String] in
      becomeNobody()
      setenv("TMPDIR", "/dev/null", 1)
      let loader = makeLoader(path)
      let url = try #require(URL(string: "\(address)/files/0"))
      let file = try await loader.request(url)
      chmod(path, 0o500)
      await #expect(throws: POSIXError.self) { try await loader.clear() }
      #expect(loader.cachedFile(for: url) == nil)
      await #expect(throws: POSIXError.self) { try await loader.request(url) }
      chmod(path, 0o700)
      try await loader.clear()
      #expect(!FileManager.default.fileExists(atPath: file.path))
      _ = try await loader.request(url)
      chmod(path, 0o500)
      loader.invalidate()
      chmod(path, 0o700)
      // The next request sets aside what could not be.
      #expect(loader.cachedFile(for: url) == nil)
      _ = try await loader.request(url)
      leave()
    }
    // The second request was answered, and could not be stored.
    #expect(ranges.withLock { $0.count } == 4)
  }

  @Test(.startsProcess) func `a loader that makes no sense stops the program`() async {
    await #expect(processExitsWith: .failure) { _ = MediaLoader(connectionsPerHost: 0) }
    await #expect(processExitsWith: .failure) { _ = MediaLoader(connectionsPerHost: -1) }
    await #expect(processExitsWith: .failure) { _ = MediaLoader(byteLimit: -1) }
    await #expect(processExitsWith: .failure) {
      _ = MediaLoader(directory: URL(string: "http://localhost/"))
    }
    await #expect(processExitsWith: .success) {
      _ = MediaLoader(byteLimit: 0, connectionsPerHost: .max)
      leave()
    }
  }

  #if os(Linux)
  @Test(.guarantee(.digestsReadTheBytesOnce), .startsProcess)
  func `the bytes of a file are read once for its digest`() async throws {
    let path = folder.url.path
    await #expect(processExitsWith: .success) { [path = path as String] in
      let folder = URL(filePath: path, directoryHint: .isDirectory)
      let transport = ClosureTransport { _, request, receiver in
        try receiver.begin(request)
        try receiver.receive(Data(count: 1 << 20))
      }
      func loader() -> MediaLoader {
        MediaLoader(directory: folder, transport: transport, rules: .patient, retry: .never)
      }
      /// The bytes that the process has read while a closure ran.
      func read(_ body: () async throws -> Void) async throws -> Int {
        func count() throws -> Int {
          let text = try String(contentsOfFile: "/proc/self/io", encoding: .utf8)
          let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("rchar: ") })
          return try #require(Int(line.dropFirst(7)))
        }
        let before = try count()
        try await body()
        return try count() - before
      }
      let digest = "30e14955ebf1352266dc2ff8067e68104607e750abb9d3b36582b8af909fcb58"
      let url = try #require(URL(string: "http://nowhere.invalid/a"))
      let first = loader()
      _ = try await first.request(url)
      let once = try await read {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for _ in 0..<50 {
            group.addTask { _ = try await first.request(url, sha256: digest) }
          }
          try await group.waitForAll()
        }
      }
      #expect(once >= 1 << 20 && once < 3 << 19)
      let later = try await read {
        for _ in 0..<5 { _ = try await loader().request(url, sha256: digest) }
      }
      #expect(later < 1 << 19)
      // A record that was lost is replaced, so that the digest is not computed again and again.
      try FileManager.default.removeItem(at: folder.appending(path: "records"))
      try FileManager.default.createDirectory(
        at: folder.appending(path: "records"),
        withIntermediateDirectories: true
      )
      let again = try await read {
        for _ in 0..<5 { _ = try await loader().request(url, sha256: digest) }
      }
      #expect(again >= 1 << 20 && again < 3 << 19)
      leave()
    }
  }
  #endif
}
