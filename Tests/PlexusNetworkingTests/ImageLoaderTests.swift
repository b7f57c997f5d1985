import Foundation
import LoopbackOrigin
import Plexus
import PlexusNetworking
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `An image loader` {
  /// The error of the decoder of the tests.
  let origin: LoopbackOrigin
  let folder = MediaTestFolder()
  let media: MediaLoader
  let decodings = Guarded(0)

  init() throws {
    origin = try LoopbackOrigin()
    media = MediaLoader(
      directory: folder.url,
      transport: URLSessionTransport(timeout: 600),
      rules: .patient,
      retry: .never
    )
    for number in 1...4 {
      origin.route("/\(number).png") { _ in
        OriginResponse(text: String(repeating: "x", count: number))
      }
    }
  }

  private func url(_ number: Int) throws -> URL {
    try #require(URL(string: origin.address + "/\(number).png"))
  }

  /// The image of a file is its length.
  private func images(capacity: CacheCapacity<Int> = .count(50)) -> ImageLoader<Int> {
    ImageLoader(media: media, capacity: capacity) { [decodings] data in
      decodings.withLock { $0 += 1 }
      guard data.first == UInt8(ascii: "x") else { throw Undecodable() }
      return data.count
    }
  }

  @Test(.guarantee(.imagesDecodeOnce)) func `an image loader decodes once for a hundred callers`()
    async throws
  {
    let images = images()
    let url = try url(3)
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<100 { group.addTask { try await images.request(url) } }
      for try await image in group { #expect(image == 3) }
    }
    #expect(decodings.withLock { $0 } == 1)
    #expect(origin.statistics.requestCount == 1)
    #expect(images.cachedImage(for: url) == 3)
    #expect(try await images[url].request() == 3)
  }

  @Test(.guarantee(.imagesDecodeOnce)) @MainActor
  func `an image loader decodes off the actor of the caller`()
    async throws
  {
    let images = ImageLoader(media: media) { _ in
      #expect(#isolation == nil)
      return Thread.isMainThread
    }
    #expect(try await images.request(url(1)) == false)
  }

  @Test
  func `an image loader keeps a number of images, and decodes the others again from their files`()
    async throws
  {
    let images = images(capacity: .count(2))
    for number in 1...4 { #expect(try await images.request(url(number)) == number) }
    let kept = try (1...4).filter { try images.cachedImage(for: url($0)) != nil }
    #expect(kept.count == 2)
    let gone = try #require((1...4).first { !kept.contains($0) })
    #expect(try await images.request(url(gone)) == gone)
    #expect(origin.statistics.requestCount == 4)
    #expect(decodings.withLock { $0 } == 5)
  }

  @Test func `an image loader keeps images that cost no more than its capacity`() async throws {
    let images = images(capacity: .cost(6) { $0 })
    for number in 1...4 { _ = try await images.request(url(number)) }
    let kept = try (1...4).filter { try images.cachedImage(for: url($0)) != nil }
    #expect(!kept.isEmpty && kept.reduce(0, +) <= 6)
  }

  @Test(.guarantee(.imagesDecodeOnce))
  func `what cannot be decoded is an error, and its file goes`() async throws {
    let bad = Guarded(true)
    origin.route("/9.png") { _ in OriginResponse(text: bad.withLock { $0 } ? "??" : "xx") }
    let images = images()
    await #expect(throws: Undecodable.self) { try await images.request(url(9)) }
    #expect(folder.files.isEmpty)
    bad.withLock { $0 = false }
    #expect(try await images.reload(url(9)) == 2)
    let own = folder.url.appending(path: "own")
    try Data("??".utf8).write(to: own)
    await #expect(throws: Undecodable.self) { try await images.request(own) }
    #expect(FileManager.default.fileExists(atPath: own.path))
  }

  @Test func `the last caller to leave cancels the decoding, and the file stays`() async throws {
    let gate = Gate()
    let cancelled = Gate()
    let images = ImageLoader(media: media) { _ in
      defer { cancelled.open() }
      try await gate.wait()
    }
    let url = try url(1)
    let request = Task { try await images.request(url) }
    await gate.arrivals(1)
    request.cancel()
    await #expect(throws: CancellationError.self) { try await request.value }
    try await cancelled.wait()
    #expect(media.cachedFile(for: url) != nil)
  }

  @Test func `clearing memory keeps files, and clearing removes them`() async throws {
    let images = images()
    _ = try await images.request(url(1))
    images.clearMemory()
    #expect(try images.cachedImage(for: url(1)) == nil)
    _ = try await images.request(url(1))
    #expect(origin.statistics.requestCount == 1)
    try await images.clear()
    #expect(try images.cachedImage(for: url(1)) == nil)
    #expect(folder.files.isEmpty)
    let repository = MuxRepository()
    repository.register(images)
    _ = try await images.request(url(1))
    try await repository.clearAll()
    #expect(try images.cachedImage(for: url(1)) == nil)
  }

  @Test func `prefetching decodes ahead`() async throws {
    let gate = Gate()
    let images = ImageLoader(media: media) { data in
      try await gate.wait()
      return data.count
    }
    try images.prefetch([url(1), url(2)])
    await gate.arrivals(2)
    gate.open()
    #expect(try await images.request(url(1)) == 1)
    #expect(try await images.request(url(2)) == 2)
    #expect(gate.arrivalCount == 2)
  }
}
