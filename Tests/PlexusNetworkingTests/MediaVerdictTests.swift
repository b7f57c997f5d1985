import Foundation
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Verdicts about a file, which can come after another file has taken its place.
@Suite(.fewAtOnce)
struct `A verdict about an old version` {
  let folder = MediaTestFolder()
  let url: URL

  init() throws {
    url = try #require(URL(string: "http://nowhere.invalid/a.bin"))
  }

  private func loader(revalidates: Bool = false, _ transport: some HTTPTransport) -> MediaLoader {
    MediaLoader(
      directory: folder.url,
      transport: transport,
      rules: .patient,
      revalidates: revalidates,
      retry: .never
    )
  }

  /// A transport that numbers its answers.
  private func numbering() -> ClosureTransport {
    ClosureTransport { count, request, receiver in try receiver.take(request, "\(count)") }
  }

  private func text(_ file: URL) throws -> String {
    String(decoding: try Data(contentsOf: file), as: UTF8.self)
  }

  /// An image loader that cannot decode the first file, and decides that once a gate is open.
  private func images(_ media: MediaLoader, _ gate: Gate) -> ImageLoader<String> {
    ImageLoader(media: media) { data in
      let text = String(decoding: data, as: UTF8.self)
      guard text == "1" else { return text }
      try await gate.wait()
      throw Undecodable()
    }
  }

  // MARK: - Decoding

  @Test(.guarantee(.verdictsConcernTheirVersion), arguments: [true, false])
  func `a decoder's verdict about an old version leaves the file that was reloaded meanwhile`(
    byAnotherLoader: Bool
  ) async throws {
    let gate = Gate()
    let transport = numbering()
    let media = loader(transport)
    let images = images(media, gate)
    let early = Task { try await images.request(url) }
    await gate.arrivals(1)
    try await (byAnotherLoader ? loader(transport) : media).reload(url)
    gate.open()
    #expect(try await early.value == "2")
    #expect(try media.cachedFile(for: url).map(text) == "2")
    #expect(try await images.request(url) == "2")
    #expect(transport.names.count == 2)
  }

  /// The ways to get rid of a file.
  enum Removal: CaseIterable {
    case remove, clear, clearAll, removeByAnother, clearByAnother, reloadAfterwards
  }

  @Test(.guarantee(.removalsForgetDecodingFailures), arguments: Removal.allCases)
  func `a decoder's verdict is not remembered if the file was removed meanwhile`(
    removal: Removal
  ) async throws {
    let gate = Gate()
    let transport = numbering()
    let media = loader(transport)
    let images = images(media, gate)
    let repository = MuxRepository()
    media.register(in: repository)
    images.register(in: repository)
    let early = Task { try await images.request(url) }
    await gate.arrivals(1)
    switch removal {
    case .remove: try await images.remove(url)
    case .clear: try await images.clear()
    case .clearAll: try await repository.clearAll()
    case .removeByAnother: try await loader(transport).remove(url)
    case .clearByAnother: try await loader(transport).clear()
    case .reloadAfterwards: break
    }
    gate.open()
    await #expect(throws: Undecodable.self) { try await early.value }
    if removal == .reloadAfterwards { try await loader(transport).reload(url) }
    #expect(try await images.request(url) == "2")
    #expect(transport.names.count == 2)
  }

  @Test(.guarantee(.removalsForgetDecodingFailures))
  func `a decoder's verdict is forgotten when a repository clears everything`()
    async throws
  {
    let gate = Gate()
    gate.open()
    let images = images(loader(numbering()), gate)
    let repository = MuxRepository()
    images.register(in: repository)
    await #expect(throws: Undecodable.self) { try await images.request(url) }
    try await repository.clearAll()
    #expect(try await images.request(url) == "2")
  }

  // MARK: - Digests

  @Test(.guarantee(.verdictsConcernTheirVersion), arguments: 1...12)
  func `a digest's verdict about an old version leaves the file that was reloaded at any moment`(
    job: Int
  ) async throws {
    let digests = [
      "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b",
      "d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35",
    ]
    let transport = numbering()
    let (media, other) = (loader(transport), loader(transport))
    _ = try await media.request(url)
    let jobs = Guarded(0)
    let caller = CallerActor { [url] in
      let isTime = jobs.withLock { jobs in
        jobs += 1
        return jobs == job
      }
      if isTime { CallerActor.wait { _ = try? await other.reload(url) } }
    }
    // The first file has another digest, and the second one has this.
    let file = try await caller.run { [url] _ in
      do {
        return try await media.request(url, sha256: digests[1])
      } catch MediaError.wrongChecksum(_, let found) {
        #expect(found == digests[0])
        // The file that was reloaded before the verdict would have been judged by its own digest.
        #expect(jobs.withLock { $0 } < job)
        return try await media.request(url)
      }
    }
    let newest = String(transport.names.count)
    #expect(try text(file) == newest)
    #expect(try await text(media.request(url)) == newest)
    #expect(transport.names.count <= 3)
  }

  // MARK: - The server

  @Test(.guarantee(.verdictsConcernTheirVersion), arguments: [404, 410], [true, false])
  func `a 404 or 410 for an old version leaves the file that was reloaded meanwhile`(
    status: Int,
    byAnotherLoader: Bool
  ) async throws {
    let gate = Gate()
    let transport = ClosureTransport { count, request, receiver in
      if count == 2 { try await gate.wait() }
      try receiver.take(request, status: count == 2 ? status : 200, "\(count)")
    }
    let media = loader(revalidates: true, transport)
    _ = try await media.request(url)
    let late = Task { try await media.request(url) }
    await gate.arrivals(1)
    try await (byAnotherLoader ? loader(transport) : media).reload(url)
    gate.open()
    #expect(try await text(late.value) == "3")
    #expect(try media.cachedFile(for: url).map(text) == "3")
  }

  @Test(.guarantee(.verdictsConcernTheirVersion))
  func `a 404 ends a reload that began before`() async throws {
    let gate = Gate()
    let transport = ClosureTransport { count, request, receiver in
      if count == 2 { try await gate.wait() }
      try receiver.take(request, status: count == 3 ? 404 : 200, "\(count)")
    }
    let media = loader(revalidates: true, transport)
    _ = try await media.request(url)
    let reload = Task { try await media.reload(url) }
    await gate.arrivals(1)
    await #expect(throws: HTTPStatusError.self) { try await media.request(url) }
    gate.open()
    await #expect(throws: MediaError.cleared) { try await reload.value }
    #expect(folder.files.isEmpty)
  }

  @Test(.guarantee(.notModifiedConfirmsOnlyItsVersion), arguments: ["\"v2\"", "W/\"v2\""])
  func `a 304 with another entity tag does not confirm the file`(
    tag: String
  ) async throws {
    let transport = ClosureTransport { count, request, receiver in
      let isConditional = request.value(forHTTPHeaderField: "If-None-Match") != nil
      #expect(isConditional == (count == 2))
      let tags = [1: "\"v1\"", 2: tag]
      let headers = ["ETag": tags[count] ?? "\"v2\""]
      guard count != 2 else { return try receiver.begin(request, status: 304, headers: headers) }
      try receiver.take(request, headers: headers, "\(count)")
    }
    let media = loader(revalidates: true, transport)
    #expect(try await text(media.request(url)) == "1")
    #expect(try await text(media.request(url)) == "3")
  }

  @Test(.guarantee(.notModifiedConfirmsOnlyItsVersion))
  func `a 304 of another server after a redirect does not confirm the file`() async throws {
    let moved = Guarded(false)
    let transport = ClosureTransport { count, request, receiver in
      if moved.withLock({ $0 }), request.url?.lastPathComponent == "a.bin" {
        return try receiver.begin(request, status: 302, headers: ["Location": "/b.bin"])
      }
      let headers = ["ETag": "\"v1\""]
      guard request.value(forHTTPHeaderField: "If-None-Match") == nil else {
        return try receiver.begin(request, status: 304, headers: headers)
      }
      try receiver.take(request, headers: headers, request.url?.lastPathComponent ?? "")
    }
    #expect(try await text(loader(revalidates: true, transport).request(url)) == "a.bin")
    moved.withLock { $0 = true }
    #expect(try await text(loader(revalidates: true, transport).request(url)) == "b.bin")
    #expect(transport.names.count == 5)
    // What the other place has sent is confirmed by it.
    #expect(try await text(loader(revalidates: true, transport).request(url)) == "b.bin")
    #expect(transport.names.count == 7)
  }

  @Test(.guarantee(.partsBelongToTheirPlace), arguments: [true, false])
  func `a part is continued only by the place that it came from`(isMoved: Bool) async throws {
    let transport = ClosureTransport { count, request, receiver in
      guard request.url?.path() != "/a.bin" else {
        let place = count > 2 && isMoved ? "/new" : "/old"
        return try receiver.begin(request, status: 302, headers: ["Location": place])
      }
      // The tag and the length of one place say nothing about those of another one.
      let tag = ["ETag": "\"v1\""]
      let body = request.url?.path() == "/new" ? "ABCDEF" : "abcdef"
      if request.value(forHTTPHeaderField: "Range") != nil {
        let headers = tag.merging(["Content-Range": "bytes 3-5/6"]) { $1 }
        return try receiver.take(request, status: 206, headers: headers, String(body.suffix(3)))
      }
      let headers = tag.merging(["Content-Length": "6"]) { $1 }
      try receiver.take(request, headers: headers, String(body.prefix(count == 2 ? 3 : 6)))
      if count == 2 { throw URLError(.networkConnectionLost) }
    }
    await #expect(throws: URLError.self) { try await loader(transport).request(url) }
    let file = try await loader(transport).request(url)
    #expect(try text(file) == (isMoved ? "ABCDEF" : "abcdef"))
    #expect(transport.names.count == (isMoved ? 6 : 4))
  }

  @Test(.guarantee(.notModifiedConfirmsOnlyItsVersion), arguments: [(9, 8), (9, 10), (9, 9)])
  func `a part is continued only by an answer with the length that was announced`(
    announced: Int,
    total: Int
  ) async throws {
    let transport = ClosureTransport { count, request, receiver in
      let tag = ["ETag": "\"v1\""]
      switch count {
      case 1:
        let headers = tag.merging(["Content-Length": "\(announced)"]) { $1 }
        try receiver.take(request, headers: headers, "abc")
        throw URLError(.networkConnectionLost)
      case 2:
        let headers = tag.merging(["Content-Range": "bytes 3-\(total - 1)/\(total)"]) { $1 }
        let rest = String("defghijklm".prefix(total - 3))
        try receiver.take(request, status: 206, headers: headers, rest)
      default:
        try receiver.take(request, headers: tag, "new")
      }
    }
    await #expect(throws: URLError.self) { try await loader(transport).request(url) }
    let file = try await loader(transport).request(url)
    #expect(try text(file) == (total == announced ? "abcdefghi" : "new"))
  }
}
