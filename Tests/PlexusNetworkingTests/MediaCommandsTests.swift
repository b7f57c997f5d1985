import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.fewAtOnce)
struct `Removing and reloading media` {
  let folder = MediaTestFolder()
  let url: URL

  init() throws {
    url = try #require(URL(string: "http://nowhere.invalid/a.bin"))
  }

  private func loader(_ transport: some HTTPTransport) -> MediaLoader {
    MediaLoader(directory: folder.url, transport: transport, rules: .patient, retry: .never)
  }

  /// A transport that numbers its answers, and lets a gate hold up some of them.
  private func numbering(_ gate: Gate = Gate(), waits: Set<Int> = []) -> ClosureTransport {
    ClosureTransport { count, request, receiver in
      if waits.contains(count) { try await gate.wait() }
      try receiver.take(request, "\(count)")
    }
  }

  private func text(_ file: URL) throws -> String {
    String(decoding: try Data(contentsOf: file), as: UTF8.self)
  }

  @Test(.guarantee(.removedFilesAreNotRestored))
  func `removing takes the file, its record and its part, and nothing else`() async throws {
    let transport = ClosureTransport { count, request, receiver in
      try receiver.take(request, headers: ["ETag": "\"v1\""], "abc")
      if count == 2 { throw URLError(.networkConnectionLost) }
    }
    let loader = loader(transport)
    _ = try await loader.request(url)
    let other = try #require(URL(string: "http://nowhere.invalid/b.bin"))
    await #expect(throws: URLError.self) { try await loader.request(other) }
    let kept = try #require(URL(string: "http://nowhere.invalid/c.bin"))
    _ = try await loader.request(kept)
    #expect(folder.parts.count == 1 && folder.files.count == 3 && folder.records.count == 2)
    try await loader.remove(url)
    try await loader.remove(MediaRequest(other))
    #expect(folder.files.count == 1 && folder.records.count == 1)
    #expect(loader.cachedFile(for: kept) != nil)
    try await loader.remove(url)
    #expect(try await text(loader.request(url)) == "abc")
  }

  @Test(.guarantee(.removedFilesAreNotRestored))
  func `a download in progress is not kept when its file is removed, nor joined afterwards`()
    async throws
  {
    let gate = Gate()
    let transport = numbering(gate, waits: [1])
    let loader = loader(transport)
    let early = Task { try await loader.request(url) }
    await gate.arrivals(1)
    try await loader.remove(url)
    #expect(try await text(loader.request(url)) == "2")
    gate.open()
    await #expect(throws: MediaError.cleared) { try await early.value }
    #expect(try await text(loader.request(url)) == "2")
    #expect(folder.files.count == 1)
  }

  /// The loader that removes a file during a download.
  enum Remover: CaseIterable {
    case same, another, ofAnotherProcess
  }

  /// Whether the bytes of a download are below the folder.
  private var holdsSecret: Bool {
    get throws {
      let paths = FileManager.default.enumerator(atPath: folder.url.path)?.allObjects as? [String]
      return try (paths ?? []).contains { path in
        let file = folder.url.appending(path: path)
        guard try file.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile == true else {
          return false
        }
        return try Data(contentsOf: file).range(of: Data("secret".utf8)) != nil
      }
    }
  }

  @Test(.guarantee(.removedFilesAreUnreadable), arguments: Remover.allCases, [true, false])
  func `nothing is left of a download whose file is removed, by whatever loader, nor comes back`(
    remover: Remover,
    removesAll: Bool
  ) async throws {
    let gate = Gate()
    let transport = ClosureTransport { count, request, receiver in
      let headers = ["ETag": "\"v1\"", "Content-Length": "9"]
      try receiver.take(request, headers: headers, "secret")
      if count == 1 { try await gate.wait() }
      try receiver.receive(Data("end".utf8))
    }
    let loader = loader(transport)
    let early = Task { try await loader.request(url) }
    await gate.arrivals(1)
    #expect(try holdsSecret)
    let alias = try MediaTestAlias(of: folder)
    let directory = remover == .ofAnotherProcess ? alias.url : folder.url
    let other =
      remover == .same
      ? loader
      : MediaLoader(directory: directory, transport: transport, rules: .patient, retry: .never)
    try await (removesAll ? other.clear() : other.remove(url))
    #expect(try !holdsSecret)
    gate.open()
    await #expect(throws: MediaError.cleared) { try await early.value }
    #expect(folder.files.isEmpty)
    #expect(transport.names.count == 1)
    #expect(try await text(loader.request(url)) == "secretend")
    withExtendedLifetime(alias) {}
  }

  @Test(.guarantee(.removedFilesAreUnreadable), arguments: [true, false], [true, false])
  func `an unanswered download stores nothing after another loader has removed its file`(
    removesAll: Bool,
    isNewerThere: Bool
  ) async throws {
    let gate = Gate()
    let transport = numbering(gate, waits: [1])
    let (loader, other) = (loader(transport), loader(transport))
    let early = Task { try await loader.request(url) }
    await gate.arrivals(1)
    if isNewerThere { #expect(try await text(other.request(url)) == "2") }
    try await (removesAll ? other.clear() : other.remove(url))
    gate.open()
    await #expect(throws: MediaError.cleared) { try await early.value }
    #expect(folder.files.isEmpty)
  }

  @Test(.guarantee(.olderDownloadsReplaceNothing))
  func `an older download of another loader does not replace a newer file`() async throws {
    let gate = Gate()
    let transport = numbering(gate, waits: [1])
    let (loader, other) = (loader(transport), loader(transport))
    let early = Task { try await loader.request(url) }
    await gate.arrivals(1)
    #expect(try await text(other.reload(url)) == "2")
    gate.open()
    #expect(try await text(early.value) == "2")
    #expect(try await text(loader.request(url)) == "2")
  }

  @Test(.guarantee(.removedFilesAreUnreadable), arguments: [true, false])
  func `an image whose file is removed while it is decoded is not loaded again`(
    removesAll: Bool
  ) async throws {
    let gate = Gate()
    let transport = numbering()
    let media = loader(transport)
    let images = ImageLoader<String>(media: media) { _ in
      try await gate.wait()
      throw Undecodable()
    }
    // A file that was there can be damaged: it would be loaded and decoded once more.
    _ = try await media.request(url)
    let early = Task { try await images.request(url) }
    await gate.arrivals(1)
    try await (removesAll ? images.clear() : images.remove(url))
    gate.open()
    await #expect(throws: Undecodable.self) { try await early.value }
    #expect(transport.names.count == 1)
    #expect(folder.files.isEmpty)
  }

  @Test(
    .guarantee(.vanishedMediaFoldersAreMadeAgain),
    arguments: ["", "files", "parts", "records"]
  )
  func `a folder that vanishes while a file is written is made again`(name: String) async throws {
    let folder = folder
    let transport = ClosureTransport { count, request, receiver in
      try receiver.take(request, headers: ["ETag": "\"v1\"", "Content-Length": "6"], "abc")
      if count <= 2, name.isEmpty || count == 1 {
        try FileManager.default.removeItem(at: folder.url.appending(path: name))
      }
      try receiver.receive(Data("def".utf8))
    }
    let loader = loader(transport)
    // The parts alone are removed by loaders only.
    guard name != "parts" else {
      await #expect(throws: MediaError.cleared) { try await loader.request(url) }
      return
    }
    #expect(try await text(loader.request(url)) == "abcdef")
    #expect(try loader.cachedFile(for: url).map(text) == "abcdef")
    #expect(folder.files.count == 1)
    #expect(transport.names.count == (name.isEmpty ? 3 : 1))
  }

  @Test func `removing leaves a file of a file URL`() async throws {
    let file = folder.url.appending(path: "own.txt")
    try FileManager.default.createDirectory(at: folder.url, withIntermediateDirectories: true)
    try Data("own".utf8).write(to: file)
    let loader = loader(numbering())
    try await loader.remove(file)
    #expect(try await text(loader.reload(file)) == "own")
  }

  @Test(.guarantee(.reloadingReplacesTheFile))
  func `reloading replaces the file, which is there until then`() async throws {
    let gate = Gate()
    let transport = numbering(gate, waits: [2])
    let loader = loader(transport)
    _ = try await loader.request(url)
    let reload = Task { try await loader.reload(url) }
    await gate.arrivals(1)
    #expect(try await text(loader.request(url)) == "1")
    gate.open()
    #expect(try await text(reload.value) == "2")
    #expect(try await text(loader.request(url)) == "2")
    #expect(folder.files.count == 1)
  }

  @Test(.guarantee(.reloadingReplacesTheFile)) func `the file stays when reloading fails`()
    async throws
  {
    let transport = ClosureTransport { count, request, receiver in
      try receiver.take(request, status: count == 1 ? 200 : 500, "\(count)")
    }
    let loader = loader(transport)
    _ = try await loader.request(url)
    await #expect(throws: HTTPStatusError.self) { try await loader.reload(url) }
    #expect(try await text(loader.request(url)) == "1")
  }

  @Test(.guarantee(.reloadingReplacesTheFile))
  func `a reload is not satisfied by one that began before`() async throws {
    let gate = Gate()
    let loader = loader(numbering(gate, waits: [1]))
    let (first, second) = try await loader.beginTwoReloads(of: url, firstAt: gate)
    gate.open()
    _ = try await first.value
    #expect(try await text(second.value) == "2")
  }

  @Test(.guarantee(.reloadingReplacesTheFile))
  func `an older download does not replace the file of a newer one`() async throws {
    let gate = Gate()
    let transport = numbering(gate, waits: [1])
    let loader = loader(transport)
    let early = Task { try await loader.request(url) }
    await gate.arrivals(1)
    #expect(try await text(loader.reload(url)) == "2")
    gate.open()
    #expect(try await text(early.value) == "2")
    #expect(try await text(loader.request(url)) == "2")
    #expect(folder.files.count == 1)
  }

  @Test func `an image is reloaded, and removed with its file`() async throws {
    let transport = numbering()
    let images = ImageLoader(media: loader(transport)) { String(decoding: $0, as: UTF8.self) }
    #expect(try await images.request(url) == "1")
    #expect(try await images.reload(url) == "2")
    #expect(images.cachedImage(for: url) == "2")
    try await images.remove(url)
    #expect(images.cachedImage(for: url) == nil)
    #expect(folder.files.isEmpty)
    #expect(try await images.request(url) == "3")
  }
}
