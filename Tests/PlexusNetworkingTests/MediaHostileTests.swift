import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Servers, transports, URLs and file systems that break their rules.
@Suite(.fewAtOnce)
struct `A media loader in bad company` {
  let folder = MediaTestFolder()
  let url: URL

  init() throws {
    url = try #require(URL(string: "http://nowhere.invalid/a.bin"))
  }

  private func loader(
    bytes: Int? = nil,
    connections: Int = 6,
    retry: RetryPolicy = .never,
    clock: any Clock<Duration> = ContinuousClock(),
    _ transport: some HTTPTransport
  ) -> MediaLoader {
    MediaLoader(
      directory: folder.url,
      transport: transport,
      rules: .patient,
      byteLimit: bytes,
      connectionsPerHost: connections,
      retry: retry,
      clock: clock
    )
  }

  private func url(_ name: some CustomStringConvertible) throws -> URL {
    try #require(URL(string: "http://nowhere.invalid/\(name)"))
  }

  private func text(_ file: URL) throws -> String {
    String(decoding: try Data(contentsOf: file), as: UTF8.self)
  }

  // MARK: - Parts

  /// Leaves a part of three bytes, `abc`, of a file whose entity tag is `"v1"`.
  private func leavePart(_ headers: [String: String] = ["ETag": "\"v1\""]) async throws {
    let transport = ClosureTransport { _, request, receiver in
      try receiver.take(request, headers: headers, "abc")
      throw URLError(.networkConnectionLost)
    }
    await #expect(throws: URLError.self) { try await loader(transport).request(url) }
  }

  @Test(
    arguments: [
      // Its end is unknown.
      ["Content-Range": "bytes 3-5/*"],
      // It is of another version, in any form.
      ["Content-Range": "bytes 3-5/6", "ETag": "\"v2\""],
      ["Content-Range": "bytes 3-5/6", "ETag": "W/\"v2\""],
      // Decoded bytes have no place in a part.
      ["Content-Range": "bytes 3-5/6", "Content-Encoding": "gzip"],
      ["Content-Range": "bytes 2-5/6"], ["Content-Range": "bytes */6"],
      ["Content-Range": "lines 3-5/6"], ["Content-Range": "bytes 3-5/2"],
      ["Content-Range": "bytes 3-5/-6"], ["Content-Range": "bytes -3-5/6"], [:],
    ] as [[String: String]]
  )
  func `a part that may not fit is not used`(headers: [String: String]) async throws {
    try await leavePart()
    let transport = ClosureTransport { count, request, receiver in
      if request.value(forHTTPHeaderField: "Range") != nil {
        try receiver.take(request, status: 206, headers: headers, "XYZ")
      } else {
        try receiver.take(request, headers: ["Content-Length": "6", "ETag": "\"v2\""], "ABCDEF")
      }
    }
    let loader = loader(transport)
    // Another try may be up to the caller, but no wrong file.
    let file = try? await loader.request(url)
    if let file { #expect(try text(file) == "ABCDEF") }
    #expect(try await text(loader.request(url)) == "ABCDEF")
    #expect(folder.parts.isEmpty)
  }

  @Test func `a part that fits is continued`() async throws {
    try await leavePart()
    let transport = ClosureTransport { _, request, receiver in
      #expect(request.value(forHTTPHeaderField: "Range") == "bytes=3-")
      #expect(request.value(forHTTPHeaderField: "If-Range") == "\"v1\"")
      let headers = ["Content-Range": "bytes 3-5/6", "ETag": "\"v1\""]
      try receiver.take(request, status: 206, headers: headers, "def")
    }
    #expect(try await text(loader(transport).request(url)) == "abcdef")
  }

  @Test func `a transport that returns without an answer completes nothing`() async throws {
    try await leavePart()
    let silent = loader(ClosureTransport { _, _, _ in })
    await #expect(throws: URLError.self) { try await silent.request(url) }
    #expect(silent.cachedFile(for: url) == nil)
  }

  @Test func `a transport that continues after it has returned changes nothing`() async throws {
    let kept = Guarded<(any HTTPReceiver)?>(nil)
    let transport = ClosureTransport { _, request, receiver in
      try receiver.take(request, "abc")
      kept.withLock { $0 = receiver }
    }
    let file = try await loader(transport).request(url)
    let receiver = try #require(kept.withLock { $0 })
    #expect(throws: CancellationError.self) { try receiver.receive(Data("def".utf8)) }
    #expect(throws: CancellationError.self) { try receiver.begin(URLRequest(url: url)) }
    #expect(try text(file) == "abc")
    #expect(folder.files.count == 1)
  }

  @Test(arguments: [
    ("Sun, 06 Nov 1994 08:49:37 GMT", true), ("Sun, 06 Nov 1994 08:49:38 GMT", false),
    ("Sun, 06 Nov 1994 08:49:39 GMT", false),
  ])
  func `a date of modification continues a part only if it is older than the answer`(
    changed: String,
    continues: Bool
  ) async throws {
    try await leavePart(["Last-Modified": changed, "Date": "Sun, 06 Nov 1994 08:49:38 GMT"])
    #expect(folder.parts.count == (continues ? 1 : 0))
    let transport = ClosureTransport { _, request, receiver in
      #expect(request.value(forHTTPHeaderField: "If-Range") == (continues ? changed : nil))
      guard continues else { return try receiver.take(request, "abcdef") }
      let headers = ["Content-Range": "bytes 3-5/6", "Last-Modified": changed]
      try receiver.take(request, status: 206, headers: headers, "def")
    }
    #expect(try await text(loader(transport).request(url)) == "abcdef")
  }

  @Test func `an entity tag that does not fit into a name continues nothing`() async throws {
    try await leavePart(["ETag": "\"" + String(repeating: "v", count: 500) + "\""])
    #expect(folder.files.isEmpty)
  }

  // MARK: - Clearing and removal

  /// Requests a file, and calls a closure once it is there: the caller has not looked at it yet.
  private func request(
    _ loader: MediaLoader,
    unseen act: @escaping @Sendable () -> Void
  ) async throws -> URL {
    let isDone = Guarded(false)
    let caller = CallerActor { [url] in
      guard loader.cachedFile(for: url) != nil else { return }
      let isFirst = isDone.withLock { isDone in
        defer { isDone = true }
        return !isDone
      }
      if isFirst { act() }
    }
    return try await caller.run { [url] _ in try await loader.request(url) }
  }

  @Test func `a file that disappears before its caller looks is not returned`() async throws {
    let transport = ClosureTransport { _, request, receiver in try receiver.take(request, "abc") }
    let files = folder.url.appending(path: "files")
    let file = try await request(loader(transport)) {
      try? FileManager.default.removeItem(at: files)
    }
    #expect(FileManager.default.fileExists(atPath: file.path))
    #expect(transport.names.count == 2)
  }

  @Test func `a file that is cleared before its caller looks is an error and not loaded again`()
    async throws
  {
    let transport = ClosureTransport { _, request, receiver in try receiver.take(request, "abc") }
    let loader = loader(transport)
    await #expect(throws: MediaError.cleared) {
      try await request(loader) { loader.invalidate() }
    }
    try await loader.removeStored()
    #expect(folder.files.isEmpty)
    #expect(transport.names.count == 1)
  }

  @Test func `a download that breaks off after the loader was cleared leaves no part`() async throws
  {
    let gate = Gate()
    let transport = ClosureTransport { count, request, receiver in
      if count == 1 { try await gate.wait() }
      try receiver.take(request, headers: ["ETag": "\"v1\""], "abc")
      throw URLError(.networkConnectionLost)
    }
    let loader = loader(transport)
    let request = Task { try await loader.request(url) }
    await gate.arrivals(1)
    try await loader.clear()
    gate.open()
    await #expect(throws: MediaError.cleared) { try await request.value }
    #expect(folder.files.isEmpty)
  }

  @Test func `clearing ends prefetching`() async throws {
    let gate = Gate()
    let transport = ClosureTransport { count, request, receiver in
      if count <= 4 { try await gate.wait() }
      try receiver.take(request, "abc")
    }
    let loader = loader(transport)
    let urls = try (0..<40).map(url)
    loader.prefetch(urls)
    await gate.arrivals(4)
    try await loader.clear()
    gate.open()
    for number in 100..<150 { _ = try await loader.request(url(number)) }
    #expect(transport.names.filter { Int($0).map { $0 < 40 } == true }.count == 4)
    #expect(urls.allSatisfy { loader.cachedFile(for: $0) == nil })
  }

  @Test func `two loaders that clear one folder at once do not fail`() async throws {
    let transport = ClosureTransport { _, request, receiver in try receiver.take(request, "abc") }
    let loaders = [loader(transport), loader(transport)]
    for _ in 0..<30 {
      for number in 0..<20 { _ = try await loaders[0].request(url(number)) }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for loader in loaders { group.addTask { try await loader.clear() } }
        try await group.waitForAll()
      }
      #expect(folder.files.isEmpty)
    }
  }

  @Test func `what another process has set aside and not removed goes with the first download`()
    async throws
  {
    let transport = ClosureTransport { _, request, receiver in try receiver.take(request, "abc") }
    _ = try await loader(transport).request(url)
    try FileManager.default.moveItem(
      at: folder.url.appending(path: "files"),
      to: folder.url.appending(path: "removed-1")
    )
    _ = try await loader(transport).request(url)
    #expect(folder.files.count == 1)
  }

  @Test func `two loaders that load the same at once both get it`() async throws {
    let transport = ClosureTransport { _, request, receiver in
      try receiver.begin(request, headers: ["ETag": "\"v1\""])
      for letter in ["a", "b", "c"] { try receiver.receive(Data(letter.utf8)) }
    }
    for round in 0..<300 {
      let url = try url(round)
      try await withThrowingTaskGroup(of: URL.self) { group in
        for _ in 0..<4 {
          let loader = loader(transport)
          group.addTask { try await loader.request(url) }
        }
        for try await file in group { #expect(try text(file) == "abc") }
      }
    }
  }

  // MARK: - Limits

  @Test func `a file in use that was evicted once and is requested again stays`() async throws {
    let transport = ClosureTransport { _, request, receiver in
      try receiver.take(request, String(repeating: "x", count: 1_000))
    }
    let loader = loader(bytes: 3_000, transport)
    let used = try url("used")
    try await loader.withFile(for: used) { file in
      for number in 0..<40 { _ = try await loader.request(url(number)) }
      #expect(try await loader.request(used) == file)
      for number in 40..<80 { _ = try await loader.request(url(number)) }
      #expect(FileManager.default.fileExists(atPath: file.path))
    }
    for number in 80..<120 { _ = try await loader.request(url(number)) }
    #expect(loader.cachedFile(for: used) == nil)
  }

  // MARK: - URLs and files

  @Test func `URLs that differ in anything that is sent have files of their own`() async throws {
    let transport = ClosureTransport { _, request, receiver in
      try receiver.take(request, request.url?.absoluteString ?? "")
    }
    let loader = loader(transport)
    let long = "http://nowhere.invalid/" + String(repeating: "long/", count: 4_000) + "a.jpeg"
    let texts = [
      "http://nowhere.invalid/a", "http://nowhere.invalid/a?b", "http://nowhere.invalid/a?b=1",
      "http://nowhere.invalid/a?b=2", "http://nowhere.invalid/A", "http://nowhere.invalid/a/",
      "http://nowhere.invalid:8080/a", "https://nowhere.invalid/a", "http://me@nowhere.invalid/a",
      "http://me:secret@nowhere.invalid/a", "http://nowhere.invalid/%2e%2e%2fa", long,
      "http://nowhere.invalid/../../a.jpg", "http://nowhere.invalid/a.%00jpg",
      "http://nowhere.invalid/a.j/pg", "http://nowhere.invalid/%F0%9F%8E%B5.%F0%9F%8E%B5",
      "http://nowhere.invalid/é.png", "http://[::1]/a",
    ]
    for text in texts {
      let url = try #require(URL(string: text), "\(text)")
      let file = try await loader.request(url)
      #expect(try self.text(file) == url.absoluteString)
      #expect(file.deletingLastPathComponent().path == folder.url.path + "/files")
      #expect(file.lastPathComponent.utf8.count <= 80)
    }
    #expect(folder.files.count == texts.count)
  }

  @Test(arguments: ["http:///a", "http://", "https:?a", "HTTP:a", "file", ""])
  func `URLs without a host are refused`(text: String) async throws {
    guard let url = URL(string: text) else { return }
    let loader = loader(ClosureTransport { _, _, _ in Issue.record("It was sent") })
    await #expect(throws: MediaError.unsupportedScheme(url)) { try await loader.request(url) }
  }

  @Test func `file URLs are followed to a file, and to nothing else`() async throws {
    let loader = loader(ClosureTransport { _, _, _ in Issue.record("It was sent") })
    let manager = FileManager.default
    try manager.createDirectory(at: folder.url, withIntermediateDirectories: true)
    let odd = folder.url.appending(path: "100% é #1?.txt")
    try Data("odd".utf8).write(to: odd)
    #expect(try await text(loader.request(odd)) == "odd")
    let link = folder.url.appending(path: "link.txt")
    try manager.createSymbolicLink(at: link, withDestinationURL: odd)
    #expect(try await loader.request(link) == link)
    #expect(await Recorder(loader.progress(of: link)).finished().last?.receivedBytes == 3)
    let lost = folder.url.appending(path: "lost.txt")
    try manager.createSymbolicLink(at: lost, withDestinationURL: folder.url.appending(path: "no"))
    let null = try #require(URL(string: odd.absoluteString + "%00.jpg"))
    for url in [folder.url, folder.url.appending(path: "missing"), lost, null] {
      await #expect(throws: MediaError.noSuchFile(url)) { try await loader.request(url) }
      #expect(loader.cachedFile(for: url) == nil)
    }
    let shouted = try #require(
      URL(string: odd.absoluteString.replacingOccurrences(of: "file:", with: "FILE:"))
    )
    #expect(try await text(loader.request(shouted)) == "odd")
  }

  // MARK: - Callers

  @Test func `callers that wait for a download keep their loader alive`() async throws {
    let gate = Gate()
    var loader: MediaLoader? = self.loader(
      ClosureTransport { _, request, receiver in
        try await gate.wait()
        try receiver.take(request, "abc")
      }
    )
    let request = try #require(loader?[url])
    let task = Task { try await request.request() }
    await gate.arrivals(1)
    loader = nil
    gate.open()
    #expect(try await text(task.value) == "abc")
  }

  @Test func `a request joins what is prefetched, whenever it comes`() async throws {
    for round in 0..<200 {
      let transport = ClosureTransport { _, request, receiver in
        if round % 2 == 0 { await Task.detached {}.value }
        try receiver.take(request, "abc")
      }
      let loader = loader(transport)
      let url = try url("join-\(round)")
      loader.prefetch([url])
      if round % 3 == 0 { await Task.detached {}.value }
      let first = Task { try await loader.request(url) }
      let second = Task { try await loader.request(url) }
      _ = try await (first.value, second.value)
      try #require(transport.names.count == 1, "in round \(round)")
    }
  }
}
