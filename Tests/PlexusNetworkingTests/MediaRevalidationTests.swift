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

@Suite(.fewAtOnce)
struct `A media loader that revalidates` {
  let origin: LoopbackOrigin
  let folder = MediaTestFolder()
  let answer = Guarded(OriginResponse(text: "one"))
  /// The If-None-Match and If-Modified-Since fields that the server saw, in order.
  let conditions = Guarded<[String]>([])

  init() throws {
    origin = try LoopbackOrigin()
    origin.route("/a.txt") { [answer, conditions] request in
      conditions.withLock { conditions in
        let fields = ["If-None-Match", "If-Modified-Since"].compactMap { request.headers[$0] }
        conditions.append(fields.joined(separator: " "))
      }
      return answer.withLock { $0 }
    }
  }

  private func loader(revalidates: Bool = true) -> MediaLoader {
    MediaLoader(
      directory: folder.url,
      transport: URLSessionTransport(timeout: 600),
      rules: .patient,
      revalidates: revalidates,
      retry: .exponential(attempts: 9, base: .seconds(600), cap: .seconds(600), jitter: 0)
    )
  }

  private func url() throws -> URL { try #require(URL(string: origin.address + "/a.txt")) }

  private func text(_ file: URL) throws -> String {
    String(decoding: try Data(contentsOf: file), as: UTF8.self)
  }

  private func answer(_ text: String, tag: String? = nil, _ headers: [String: String] = [:]) {
    answer.withLock { answer in
      answer = OriginResponse(text: text)
      answer.etag = tag
      for (name, value) in headers { answer.headers[name] = value }
    }
  }

  @Test(.guarantee(.staleFilesAreRevalidated))
  func `a file that has not changed is confirmed, also by another loader`() async throws {
    answer("one", tag: "\"v1\"")
    let file = try await loader().request(url())
    let number = try FileManager.default.attributesOfItem(atPath: file.path)[.systemFileNumber]
    for _ in 0..<2 { #expect(try await loader().request(url()) == file) }
    #expect(conditions.withLock { $0 } == ["", "\"v1\"", "\"v1\""])
    let now = try FileManager.default.attributesOfItem(atPath: file.path)[.systemFileNumber]
    #expect(number as? NSNumber == now as? NSNumber)
    #expect(try text(file) == "one")
  }

  @Test(.guarantee(.staleFilesAreRevalidated)) func `a file that has changed is replaced`()
    async throws
  {
    let loader = loader()
    answer("one", tag: "\"v1\"")
    _ = try await loader.request(url())
    answer("three", tag: "\"v2\"")
    #expect(try await text(loader.request(url())) == "three")
    #expect(try await text(loader.request(url())) == "three")
    #expect(conditions.withLock { $0 } == ["", "\"v1\"", "\"v2\""])
    #expect(folder.files.count == 1 && folder.records.count == 1)
  }

  @Test func `a file is confirmed by its date of modification`() async throws {
    let date = "Sun, 06 Nov 1994 08:49:37 GMT"
    answer("one", ["Last-Modified": date])
    for _ in 0..<2 { #expect(try await text(loader().request(url())) == "one") }
    #expect(conditions.withLock { $0 } == ["", date])
  }

  @Test(.guarantee(.staleFilesAreRevalidated)) func `a fresh file is not requested`() async throws {
    let loader = loader()
    answer("one", tag: "\"v1\"", ["Cache-Control": "max-age=100000"])
    for _ in 0..<3 { _ = try await loader.request(url()) }
    #expect(origin.statistics.requestCount == 1)
  }

  @Test(.guarantee(.staleFilesAreRevalidated)) func `a loader does not revalidate by default`()
    async throws
  {
    let loader = loader(revalidates: false)
    answer("one", tag: "\"v1\"", ["Cache-Control": "no-cache"])
    for _ in 0..<3 { _ = try await loader.request(url()) }
    #expect(origin.statistics.requestCount == 1)
  }

  @Test(.guarantee(.staleFilesAreRevalidated))
  func `a file is used when its server fails, unless that is forbidden`() async throws {
    let loader = loader()
    answer("one", tag: "\"v1\"")
    _ = try await loader.request(url())
    origin.inject(.status(503), for: "/a.txt")
    #expect(try await text(loader.request(url())) == "one")
    answer("two", tag: "\"v2\"", ["Cache-Control": "no-cache"])
    #expect(try await text(loader.request(url())) == "two")
    origin.inject(.status(503), for: "/a.txt")
    await #expect(throws: HTTPStatusError.self) { try await loader.request(url()) }
    answer("three", tag: "\"v3\"")
    _ = try await loader.request(url())
    await origin.goOffline()
    #expect(try await text(loader.request(url())) == "three")
  }

  @Test(.guarantee(.staleFilesAreRevalidated), arguments: [404, 410, 403])
  func `a file that is gone is removed, and stays after other rejections`(status: Int) async throws
  {
    let loader = loader()
    answer("one", tag: "\"v1\"")
    _ = try await loader.request(url())
    origin.inject(.status(status), for: "/a.txt")
    let error = await #expect(throws: HTTPStatusError.self) { try await loader.request(url()) }
    #expect(error?.status == status)
    #expect(try (loader.cachedFile(for: url()) == nil) == (status != 403))
    #expect(folder.files.count == (status == 403 ? 1 : 0))
  }

  @Test func `a hundred callers share a revalidation`() async throws {
    let loader = loader()
    answer("one", tag: "\"v1\"")
    _ = try await loader.request(url())
    let gate = Gate()
    origin.route("/a.txt") { _ in
      try? await gate.wait()
      return OriginResponse(text: "two")
    }
    let tasks = try (0..<100).map { _ in
      let url = try url()
      return Task { try await loader.request(url) }
    }
    await gate.arrivals(1)
    gate.open()
    for task in tasks { #expect(try await text(task.value) == "two") }
    // A caller that comes after the answer asks again.
    #expect(gate.arrivalCount <= 100)
  }

  @Test(.guarantee(.decodersReceiveTheType)) func `the type of a file outlives the loader`()
    async throws
  {
    answer("one", ["Content-Type": "text/x-one; charset=utf-8"])
    for _ in 0..<2 {
      let types = ImageLoader(media: loader(revalidates: false)) { _, response in
        [response.type, response.url.lastPathComponent, response.file?.pathExtension]
      }
      #expect(try await types.request(url()) == ["text/x-one; charset=utf-8", "a.txt", "txt"])
    }
    #expect(origin.statistics.requestCount == 1)
  }

  @Test(.guarantee(.digestsAreComputedOnce))
  func `a digest is computed once for a file, also by several loaders`() async throws {
    answer.withLock { $0.body = Array("abc".utf8) }
    let right = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    let first = loader(revalidates: false)
    for _ in 0..<2 { _ = try await first.request(url(), sha256: right) }
    // Another loader gets what was stored, not what it would find.
    let record = folder.url.appending(path: try #require(folder.records.first))
    let changed = try text(record).replacingOccurrences(of: right, with: "00")
    try Data(changed.utf8).write(to: record)
    _ = try await loader(revalidates: false).request(url(), sha256: "00")
    _ = try await first.request(url(), sha256: right)
    // A file that was replaced has another digest.
    answer.withLock { $0.body = Array("abd".utf8) }
    try await first.reload(url())
    await #expect(throws: MediaError.self) { try await first.request(url(), sha256: right) }
  }
}
