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

  @Test func `removing takes the file, its record and its part, and nothing else`() async throws {
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

  @Test func `a download in progress is not kept when its file is removed, nor joined afterwards`()
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

  @Test func `removing leaves a file of a file URL`() async throws {
    let file = folder.url.appending(path: "own.txt")
    try FileManager.default.createDirectory(at: folder.url, withIntermediateDirectories: true)
    try Data("own".utf8).write(to: file)
    let loader = loader(numbering())
    try await loader.remove(file)
    #expect(try await text(loader.reload(file)) == "own")
  }

  @Test func `reloading replaces the file, which is there until then`() async throws {
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

  @Test func `the file stays when reloading fails`() async throws {
    let transport = ClosureTransport { count, request, receiver in
      try receiver.take(request, status: count == 1 ? 200 : 500, "\(count)")
    }
    let loader = loader(transport)
    _ = try await loader.request(url)
    await #expect(throws: HTTPStatusError.self) { try await loader.reload(url) }
    #expect(try await text(loader.request(url)) == "1")
  }

  @Test func `a reload is not satisfied by one that began before`() async throws {
    let gate = Gate()
    let loader = loader(numbering(gate, waits: [1]))
    let first = Task { try await loader.reload(url) }
    await gate.arrivals(1)
    let arrived = Gate()
    let second = Task {
      arrived.open()
      return try await loader.reload(url)
    }
    try await arrived.wait()
    gate.open()
    _ = try await first.value
    #expect(try await text(second.value) == "2")
  }

  @Test func `an older download does not replace the file of a newer one`() async throws {
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
