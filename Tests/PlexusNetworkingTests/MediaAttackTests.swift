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

/// URLs, servers, decoders and file systems that a media loader must survive.
@Suite(.fewAtOnce)
struct `A media loader under attack` {
  private let folder = MediaTestFolder()
  private let clock = ManualClock()

  private func url(_ name: some CustomStringConvertible) throws -> URL {
    try #require(URL(string: "http://nowhere.invalid/\(name)"))
  }

  private func loader(
    bytes: Int? = nil,
    fileBytes: Int? = nil,
    connections: Int = 6,
    revalidates: Bool = false,
    _ transport: some HTTPTransport
  ) -> MediaLoader {
    MediaLoader(
      directory: folder.url,
      transport: transport,
      rules: .patient,
      byteLimit: bytes,
      maximumFileBytes: fileBytes,
      connectionsPerHost: connections,
      revalidates: revalidates,
      retry: .never,
      clock: clock
    )
  }

  /// A transport that answers with so many bytes.
  private func transport(bytes: Int) -> ClosureTransport {
    ClosureTransport { _, request, receiver in
      try receiver.take(request, String(repeating: "x", count: bytes))
    }
  }

  // MARK: - Limits

  @Test(arguments: ["part", "PART", "", "removed-", "lock", "..", "tmp"])
  func `files of any extension go when there are too many bytes`(suffix: String) async throws {
    let loader = loader(bytes: 5_000, transport(bytes: 1_000))
    for number in 0..<40 { _ = try await loader.request(url("\(number).\(suffix)")) }
    #expect(folder.files.count <= 13)
  }

  @Test(.guarantee(.downloadedFilesAreHeld))
  func `files take no more than the limit with many callers at once`() async throws {
    let loader = loader(bytes: 5_000, connections: 3, transport(bytes: 1_000))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<200 {
        let url = try url(number % 50)
        group.addTask {
          try await loader.withFile(for: url) { file in
            let length = try? Data(contentsOf: file).count
            #expect(length == 1_000)
          }
        }
      }
      try await group.waitForAll()
    }
    for number in 100..<110 { _ = try await loader.request(url(number)) }
    #expect(folder.files.count <= 13)
  }

  @Test(arguments: [0, 1, 999])
  func `a file of more than the limit is refused, however it comes`(limit: Int) async throws {
    let sizes: [[String: String]] = [
      [:], ["Content-Length": "1000"], ["Content-Length": "99999999999999999999"],
      ["Content-Length": "-1"], ["Content-Length": "1000, 1000"], ["Content-Encoding": "gzip"],
    ]
    for (number, headers) in sizes.enumerated() {
      let transport = ClosureTransport { _, request, receiver in
        try receiver.begin(request, headers: headers)
        for _ in 0..<1_000 { try receiver.receive(Data([1])) }
      }
      let loader = loader(fileBytes: limit, transport)
      await #expect(throws: MediaError.self) { try await loader.request(url(number)) }
      #expect(folder.files.isEmpty)
    }
  }

  // MARK: - Files in the way

  @Test func `a symbolic link instead of a file is not followed`() async throws {
    let loader = loader(transport(bytes: 3))
    let file = try await loader.request(url("a"))
    let secret = folder.url.appending(path: "secret")
    try Data("secret".utf8).write(to: secret)
    try FileManager.default.removeItem(at: file)
    try FileManager.default.createSymbolicLink(at: file, withDestinationURL: secret)
    #expect(loader.cachedFile(for: try url("a")) == nil)
    let again = try await loader.request(url("a"))
    #expect(try Data(contentsOf: again) == Data("xxx".utf8))
    try FileManager.default.removeItem(at: file)
    try FileManager.default.createSymbolicLink(at: file, withDestinationURL: secret)
    try await loader.remove(url("a"))
    try await loader.clear()
    #expect(try Data(contentsOf: secret) == Data("secret".utf8))
  }

  @Test func `a folder, a link or nonsense instead of a record does no harm`() async throws {
    let transport = ClosureTransport { count, request, receiver in
      let headers = ["Cache-Control": "max-age=60", "ETag": "\"1\"", "Content-Type": "text/a"]
      try receiver.take(request, headers: headers, "\(count)")
    }
    let media = loader(revalidates: true, transport)
    let file = try await media.request(url("a"))
    let record = folder.url.appending(path: "records").appending(path: file.lastPathComponent)
    let manager = FileManager.default
    let nonsense = [
      "", "{}", "[]", "{\"version\":{\"length\":1e400}}", "\u{0}",
      String(repeating: "[", count: 100_000),
    ]
    for text in nonsense {
      try? manager.removeItem(at: record)
      try Data(text.utf8).write(to: record)
      _ = try await media.request(url("a"))
      #expect(try Data(contentsOf: record).count > 20, "It is stored again")
    }
    try manager.removeItem(at: record)
    try manager.createDirectory(at: record, withIntermediateDirectories: false)
    for _ in 0..<2 { _ = try await media.request(url("a")) }
    #expect(try Data(contentsOf: record).count > 20, "It replaces the folder")
    try await media.remove(url("a"))
    #expect(media.cachedFile(for: try url("a")) == nil)
  }

  @Test func `names of hostile URLs stay in the folder`() async throws {
    let transport = transport(bytes: 1)
    let loader = loader(transport)
    let long = String(repeating: "a", count: 300)
    for key in [
      "../../../etc/passwd", "..", ".", "/", "", "a/../../b.txt", "a.\0", "a.b/c", "a.\u{301}jpg",
      "a.\u{212a}pg", "a.tar.gz", long, "a." + long, "con", "a.jp g", "a.jpg\n", "~/.ssh",
      "%2e%2e%2f", ".hidden", "a.part",
    ] {
      let request = MediaRequest(try url("a"), cacheKey: key)
      let file = try await loader.request(request)
      #expect(file.deletingLastPathComponent().path == folder.url.path + "/files", "\(key)")
      #expect(file.lastPathComponent.utf8.allSatisfy { $0 < 128 && $0 > 32 })
      #expect(loader.cachedFile(for: request) == file)
      try await loader.remove(request)
      #expect(folder.files.isEmpty)
    }
  }

  // MARK: - Removing and reloading while files arrive

  @Test func `removing and reloading at once leaves one file of a newest download or none`()
    async throws
  {
    let transport = ClosureTransport { count, request, receiver in
      try receiver.begin(request, headers: ["ETag": "\"\(count)\""])
      try receiver.receive(Data("\(count)".utf8))
    }
    let loader = loader(bytes: 100, transport)
    let url = try url("a")
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<300 {
        group.addTask {
          switch number % 4 {
          case 0: try? await loader.remove(url)
          case 1: _ = try? await loader.reload(url)
          case 2: _ = try? await loader.request(url)
          default: try? await loader.clear()
          }
        }
      }
    }
    let last = try await loader.reload(url)
    #expect(try String(contentsOf: last, encoding: .utf8) == "\(transport.names.count)")
    #expect(folder.files.count == 1)
    try await loader.remove(url)
    #expect(folder.files.isEmpty)
  }

  @Test(arguments: [200, 304, 500])
  func `a file that is removed while it is revalidated does not come back`(status: Int) async throws
  {
    let gate = Gate()
    let transport = ClosureTransport { count, request, receiver in
      if count > 1 { try await gate.wait() }
      let headers = ["ETag": "\"1\"", "Cache-Control": "max-age=0"]
      let isFirst = count == 1
      try receiver.take(
        request,
        status: isFirst ? 200 : status,
        headers: headers,
        isFirst ? "a" : ""
      )
    }
    let loader = loader(revalidates: true, transport)
    _ = try await loader.request(url("a"))
    let request = Task { [url = try url("a")] in try await loader.request(url) }
    await gate.arrivals(1)
    try await loader.remove(url("a"))
    gate.open()
    _ = await request.result
    #expect(loader.cachedFile(for: try url("a")) == nil)
    #expect(folder.files.isEmpty)
  }

  // MARK: - Decoders

  @Test func `a decoder that leaves a task behind does not take a turn with it`() async throws {
    let box = Guarded<ImageLoader<String>?>(nil)
    let tasks = Guarded<[Task<String?, Never>]>([])
    let returned = Gate()
    let transport = ClosureTransport { _, request, receiver in
      try receiver.take(request, request.url?.lastPathComponent ?? "")
    }
    let images = ImageLoader(media: loader(transport), concurrency: 1) { data in
      let text = String(decoding: data, as: UTF8.self)
      guard let images = box.withLock({ $0 }), text.hasPrefix("first") else { return text }
      let url = URL(string: "http://nowhere.invalid/later-\(text)")
      let task = Task<String?, Never> {
        try? await returned.wait()
        guard let url else { return nil }
        return try? await images.request(url)
      }
      tasks.withLock { $0.append(task) }
      return text
    }
    box.withLock { $0 = images }
    defer { box.withLock { $0 = nil } }
    for number in 0..<3 {
      #expect(try await images.request(url("first\(number)")) == "first\(number)")
    }
    returned.open()
    for task in tasks.withLock({ $0 }) { #expect(await task.value != nil) }
    // Every turn has been given back.
    #expect(try await images.request(url("last")) == "last")
  }

  @Test func `a decoder of a media loader that requests its own URL does not hang`() async throws {
    let box = Guarded<ImageLoader<String>?>(nil)
    let own = try url("own")
    let images = ImageLoader(media: loader(transport(bytes: 3)), concurrency: 1) { data in
      guard let images = box.withLock({ $0 }), data.count == 3 else { return "" }
      return try await images.request(own)
    }
    box.withLock { $0 = images }
    await #expect(throws: (any Error).self) { try await images.request(own) }
    box.withLock { $0 = nil }
    try await images.clear()
    #expect(try await images.request(own) == "")
  }

  @Test func `a decoder that never ends is left, and gives its turn back when it is cancelled`()
    async throws
  {
    let gate = Gate()
    let images = ImageLoader(media: loader(transport(bytes: 3)), concurrency: 1) { data in
      try await gate.wait()
      return data.count
    }
    for number in 0..<5 {
      let url = try url(number)
      let request = Task { try await images.request(url) }
      await gate.arrivals(number + 1)
      request.cancel()
      await #expect(throws: CancellationError.self) { try await request.value }
    }
    gate.open()
    #expect(try await images.request(url("last")) == 3)
  }

  @Test func `a decoder that throws what looks like a cancellation fails its callers alone`()
    async throws
  {
    let count = Guarded(0)
    let images = ImageLoader(media: loader(transport(bytes: 3))) { data in
      let number = count.withLock { count in
        count += 1
        return count
      }
      if number == 1 { throw CancellationError() }
      return data.count
    }
    await #expect(throws: (any Error).self) { try await images.request(url("a")) }
    #expect(try await images.request(url("a")) == 3)
  }

  // MARK: - Transports

  @Test func `a transport that answers twice, too much, or after an error completes nothing wrong`()
    async throws
  {
    let bodies: [@Sendable (URLRequest, any HTTPReceiver) throws -> Void] = [
      { request, receiver in
        try receiver.take(request, headers: ["Content-Length": "3"], "abcd")
      },
      { request, receiver in
        try receiver.take(request, headers: ["Content-Length": "3"], "ab")
      },
      { _, receiver in try receiver.receive(Data("abc".utf8)) },
      { request, receiver in
        try receiver.take(request, status: 404, "no")
      },
      { request, receiver in
        try receiver.take(request, status: 304, "abc")
      },
      { request, receiver in
        try receiver.take(request, status: 206, headers: ["Content-Range": "bytes 0-2/3"], "abc")
      },
      { request, receiver in
        try? receiver.take(request, headers: ["Content-Length": "2"], "abc")
      },
    ]
    for (number, body) in bodies.enumerated() {
      let transport = ClosureTransport { _, request, receiver in try body(request, receiver) }
      await #expect(throws: (any Error).self, "\(number)") {
        try await loader(transport).request(url(number))
      }
      #expect(folder.files.isEmpty, "\(number)")
    }
  }

  @Test func `every phase of a download can be cancelled`() async throws {
    let url = try url("a")
    let inTransport = Gate()
    let transport = ClosureTransport { count, request, receiver in
      try receiver.begin(request, headers: ["Content-Length": "3", "ETag": "\"1\""])
      try receiver.receive(Data("ab".utf8))
      try await inTransport.wait()
      try receiver.receive(Data("c".utf8))
    }
    let loader = loader(connections: 1, transport)
    // Before it begins.
    let early = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await loader.request(url)
    }
    await #expect(throws: CancellationError.self) { try await early.value }
    // One of two callers, and then the last one, during the transfer.
    let first = Task { try await loader.request(url) }
    await inTransport.arrivals(1)
    let second = Task { try await loader.request(url) }
    // One that waits for its turn.
    let other = Task { [url = try self.url("b")] in try await loader.request(url) }
    second.cancel()
    await #expect(throws: CancellationError.self) { try await second.value }
    other.cancel()
    await #expect(throws: CancellationError.self) { try await other.value }
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    inTransport.open()
    let last = try await loader.request(url)
    #expect(try Data(contentsOf: last).count == 3)
  }

  @Test(.guarantee(.recordsBelongToTheirVersion))
  func `a pipe, a link or too much instead of a record is not read`() async throws {
    let transport = ClosureTransport { _, request, receiver in
      try receiver.take(request, headers: ["Content-Type": "text/a", "ETag": "\"1\""], "abc")
    }
    let file = try await loader(transport).request(url("a"))
    let record = folder.url.appending(path: try #require(folder.records.first)).path
    let secret = folder.url.appending(path: "secret").path
    try FileManager.default.moveItem(atPath: record, toPath: secret)
    let places: [() throws -> Void] = [
      { try #require(mkfifo(record, 0o600) == 0) },
      { try #require(symlink(secret, record) == 0) },
      {
        let text = try Data(contentsOf: URL(filePath: secret))
        try (text + Data(repeating: UInt8(ascii: " "), count: 2 << 20)).write(
          to: URL(filePath: record)
        )
      },
    ]
    for place in places {
      try place()
      let types = ImageLoader(media: loader(transport)) { data, response in
        [String(decoding: data, as: UTF8.self), response.type]
      }
      #expect(try await types.request(url("a")) == ["abc", nil])
      #expect(try await loader(transport).request(url("a")) == file)
      try FileManager.default.removeItem(atPath: record)
    }
    #expect(transport.names.count == 1)
  }
}
