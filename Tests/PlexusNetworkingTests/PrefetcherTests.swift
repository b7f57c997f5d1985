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
struct `A prefetcher` {
  let folder = MediaTestFolder()
  let gate = Gate()
  /// The downloads that have ended, one way or the other.
  let ended = Guarded<[String]>([])

  /// A transport whose transfers wait for the gate.
  private func transport() -> ClosureTransport {
    ClosureTransport { [gate, ended] _, request, receiver in
      defer { ended.withLock { $0.append(request.url?.lastPathComponent ?? "") } }
      try await gate.wait()
      try receiver.take(request, "abc")
    }
  }

  private func loader(_ transport: some HTTPTransport, connections: Int = 6) -> MediaLoader {
    MediaLoader(
      directory: folder.url,
      transport: transport,
      rules: .patient,
      connectionsPerHost: connections,
      retry: .never
    )
  }

  private func urls(_ range: Range<Int>) throws -> [URL] {
    try range.map { try #require(URL(string: "http://nowhere.invalid/\($0)")) }
  }

  private func ends(_ count: Int) async {
    while ended.withLock({ $0.count }) < count { await Task.detached {}.value }
  }

  @Test func `a prefetcher takes an empty list`() async throws {
    let transport = transport()
    let loader = loader(transport)
    let images = ImageLoader(media: loader) { $0 }
    let prefetcher = Prefetcher(loader)
    prefetcher.prefetch([])
    prefetcher.cancel([])
    loader.prefetch([])
    images.prefetch([])
    #expect(transport.names.isEmpty)
  }

  @Test func `a prefetcher loads files ahead, so many at once`() async throws {
    let transport = transport()
    let loader = loader(transport)
    let prefetcher = Prefetcher(loader, concurrency: 2)
    let urls = try urls(0..<6)
    prefetcher.prefetch(urls)
    prefetcher.prefetch(urls.map { MediaRequest($0) })
    await gate.arrivals(2)
    #expect(transport.names.count == 2)
    gate.open()
    await ends(6)
    for url in urls { _ = try await loader.request(url) }
    #expect(transport.names.count == 6)
    withExtendedLifetime(prefetcher) {}
  }

  @Test(.guarantee(.prefetchersStopAndPause))
  func `a prefetcher ends its prefetching when it is released`()
    async throws
  {
    let transport = transport()
    let loader = loader(transport)
    var prefetcher: Prefetcher? = Prefetcher(loader, concurrency: 2)
    prefetcher?.prefetch(try urls(0..<9))
    await gate.arrivals(2)
    let joined = Task { try await loader.request(urls(0..<1)[0]) }
    // The request holds on to the download of the first file.
    prefetcher = nil
    await ends(1)
    gate.open()
    _ = try await joined.value
    #expect(transport.names.count <= 3)
    #expect(try loader.cachedFile(for: urls(8..<9)[0]) == nil)
  }

  @Test(.guarantee(.prefetchersStopAndPause)) func `a prefetcher pauses and resumes`() async throws
  {
    let transport = transport()
    let loader = loader(transport)
    let prefetcher = Prefetcher(loader, concurrency: 2)
    prefetcher.prefetch(try urls(0..<3))
    await gate.arrivals(2)
    prefetcher.pause()
    #expect(prefetcher.isPaused)
    await ends(2)
    #expect(folder.files.isEmpty)
    gate.open()
    prefetcher.prefetch(try urls(3..<4))
    #expect(transport.names.count == 2)
    prefetcher.resume()
    #expect(!prefetcher.isPaused)
    await ends(6)
    for url in try urls(0..<4) { _ = try await loader.request(url) }
    #expect(transport.names.sorted() == ["0", "0", "1", "1", "2", "3"])
  }

  @Test(.guarantee(.prefetchersStopAndPause)) func `a prefetcher cancels what is no longer needed`()
    async throws
  {
    let transport = transport()
    let loader = loader(transport)
    let prefetcher = Prefetcher(loader, concurrency: 1)
    prefetcher.prefetch(try urls(0..<4))
    await gate.arrivals(1)
    prefetcher.cancel(try urls(0..<1))
    prefetcher.cancel([MediaRequest(try urls(2..<3)[0])])
    await ends(1)
    gate.open()
    await ends(3)
    #expect(transport.names == ["0", "1", "3"])
    prefetcher.prefetch(try urls(4..<5))
    prefetcher.cancelAll()
    withExtendedLifetime(prefetcher) {}
  }

  @Test(.guarantee(.prefetchersStopAndPause))
  func `a prefetcher ends with what was requested before the loader was cleared`() async throws {
    let transport = transport()
    let loader = loader(transport)
    let prefetcher = Prefetcher(loader, concurrency: 1)
    prefetcher.prefetch(try urls(0..<9))
    await gate.arrivals(1)
    try await loader.clear()
    gate.open()
    prefetcher.prefetch(try urls(9..<10))
    await ends(2)
    #expect(transport.names == ["0", "9"])
    #expect(loader.cachedFile(for: try urls(0..<1)[0]) == nil)
  }

  @Test func `a prefetcher decodes images ahead`() async throws {
    gate.open()
    let count = Guarded(0)
    let images = ImageLoader(media: loader(transport())) { data in
      count.withLock { $0 += 1 }
      return data.count
    }
    let prefetcher = Prefetcher(images)
    let urls = try urls(0..<3)
    prefetcher.prefetch(urls)
    while urls.contains(where: { images.cachedImage(for: $0) == nil }) {
      await Task.detached {}.value
    }
    #expect(count.withLock { $0 } == 3)
    withExtendedLifetime(prefetcher) {}
  }
}
