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
struct `Variants of images` {
  let folder = MediaTestFolder()
  let clock = ManualClock()
  /// The variants that were decoded, in order.
  let decoded = Log<String>()

  private static let small = ImageVariant(width: 10, height: 20)
  private static let large = ImageVariant(width: 100, height: 200)
  private static let named = ImageVariant("avatar", version: 2)

  private func request(_ variant: ImageVariant? = nil, _ name: String = "a") throws -> MediaRequest
  {
    MediaRequest(try #require(URL(string: "http://nowhere.invalid/" + name)), variant: variant)
  }

  private func media(_ transport: some HTTPTransport) -> MediaLoader {
    MediaLoader(
      directory: folder.url,
      transport: transport,
      rules: .patient,
      retry: .never,
      clock: clock
    )
  }

  /// A transport that answers with the number of each request.
  private func transport(_ gate: Gate? = nil) -> ClosureTransport {
    ClosureTransport { count, request, receiver in
      try await gate?.wait()
      try receiver.take(request, "\(count)")
    }
  }

  /// An image is the number of the download and the variant.
  private func images(
    _ media: MediaLoader,
    capacity: CacheCapacity<String>? = .count(50),
    concurrency: Int = 4,
    waiting gate: Gate? = nil
  ) -> ImageLoader<String> {
    ImageLoader(media: media, capacity: capacity, concurrency: concurrency) {
      [decoded] data, response in
      let variant = response.variant.map { "\($0)" } ?? "whole"
      decoded.append(variant)
      try await gate?.wait()
      return String(decoding: data, as: UTF8.self) + " " + variant
    }
  }

  @Test(.guarantee(.variantsShareADownload))
  func `all variants of an image share one download, and each is decoded once`() async throws {
    let gate = Gate()
    let transport = transport(gate)
    let images = images(media(transport))
    let variants = [nil, Self.small, Self.large, Self.named]
    let tasks = try (0..<40).map { number in
      let request = try request(variants[number % 4])
      return Task { try await images.request(request) }
    }
    await gate.arrivals(1)
    gate.open()
    for (number, task) in tasks.enumerated() {
      let names = ["whole", "10 x 20", "100 x 200", "avatar (2)"]
      #expect(try await task.value == "1 " + names[number % 4])
    }
    #expect(transport.names == ["a"])
    #expect(decoded.entries.sorted() == ["10 x 20", "100 x 200", "avatar (2)", "whole"])
  }

  @Test(.guarantee(.variantsShareADownload))
  func `each variant of an image is a value of its own in memory`() async throws {
    let images = images(media(transport()))
    #expect(try await images.request(request(Self.small)) == "1 10 x 20")
    #expect(try images.cachedImage(for: request(Self.small)) == "1 10 x 20")
    #expect(try images.cachedImage(for: request(ImageVariant(width: 10, height: 20))) != nil)
    for other in [nil, Self.large, Self.named, ImageVariant(width: 20, height: 10)] {
      #expect(try images.cachedImage(for: request(other)) == nil)
    }
    #expect(try await images.request(request()) == "1 whole")
    let next = ImageVariant("avatar", version: 3)
    #expect(try await images.request(request(Self.named)) == "1 avatar (2)")
    #expect(try await images.request(request(next)) == "1 avatar (3)")
    #expect(try images.cachedImage(for: request(Self.named)) == "1 avatar (2)")
    #expect(decoded.count == 4)
  }

  @Test func `a loader of files ignores variants`() async throws {
    let transport = transport()
    let media = media(transport)
    let file = try await media.request(request(ImageVariant(width: 0, height: -1)))
    #expect(try await media.request(request(Self.large)) == file)
    #expect(try media.cachedFile(for: request(Self.small)) == file)
    try await media.remove(request(Self.named))
    #expect(try media.cachedFile(for: request()) == nil)
    #expect(transport.names.count == 1)
  }

  @Test(.guarantee(.variantsShareADownload))
  func `removing an image removes all its variants, and those of no other image`() async throws {
    let images = images(media(transport()))
    let all = [nil, Self.small, Self.large]
    for variant in all {
      _ = try await images.request(request(variant))
      _ = try await images.request(request(variant, "b"))
    }
    try await images.remove(request(Self.small))
    for variant in all {
      #expect(try images.cachedImage(for: request(variant)) == nil)
      #expect(try images.cachedImage(for: request(variant, "b")) != nil)
    }
    #expect(try await images.request(request(Self.large)) == "3 100 x 200")
    try await images.clear()
    #expect(try images.cachedImage(for: request(Self.large)) == nil)
  }

  @Test(.guarantee(.variantsShareADownload))
  func `a variant that is decoded across a removal is not kept`() async throws {
    let gate = Gate()
    let images = images(media(transport()), waiting: gate)
    let request = try request(Self.small)
    let task = Task { try await images.request(request) }
    await gate.arrivals(1)
    try await images.remove(self.request(Self.large))
    gate.open()
    #expect(try await task.value == "1 10 x 20")
    #expect(images.cachedImage(for: request) == nil)
    #expect(try await images.request(request) == "2 10 x 20")
  }

  @Test(.guarantee(.variantsShareADownload))
  func `other variants of an image that is reloaded are decoded from the new file`() async throws {
    let images = images(media(transport()))
    for variant in [nil, Self.small] { _ = try await images.request(request(variant)) }
    #expect(try await images.reload(request(Self.small)) == "2 10 x 20")
    #expect(try images.cachedImage(for: request()) == "1 whole")
    #expect(try await images.request(request()) == "2 whole")
    #expect(try await images.reload(request(Self.large)) == "3 100 x 200")
    #expect(try await images.request(request(Self.small)) == "3 10 x 20")
    #expect(decoded.count == 6)
  }

  @Test(
    .guarantee(.invalidVariantsFail),
    arguments: [(0, 10), (10, 0), (-1, 10), (10, .min), (32_769, 1), (1, .max), (.max, .max)]
  )
  func `a variant without a possible size fails with a sentence, without a download`(
    width: Int,
    height: Int
  ) async throws {
    let transport = transport()
    let images = images(media(transport), capacity: nil)
    let variant = ImageVariant(width: width, height: height)
    #expect(!variant.isValid)
    let error = await #expect(throws: MediaError.self) {
      try await images.request(request(variant))
    }
    #expect(error == .invalidVariant(variant))
    #expect(error?.description.contains("\(width) x \(height)") == true)
    await #expect(throws: MediaError.invalidVariant(variant)) {
      try await images.reload(request(variant))
    }
    #expect(try images.cachedImage(for: request(variant)) == nil)
    #expect(transport.names.isEmpty)
  }

  @Test func `the largest and the smallest variant are possible`() async throws {
    let images = images(media(transport()), capacity: nil)
    for side in [1, ImageVariant.maximumSide] {
      let variant = ImageVariant(width: side, height: side)
      #expect(variant.isValid)
      #expect(try await images.request(request(variant)) == "1 \(side) x \(side)")
    }
    let named = ImageVariant("")
    #expect(named.isValid && named.name?.isEmpty == true && named.version == 1)
    #expect(named.width == nil && named.height == nil)
    #expect(Self.small.name == nil && Self.small.version == nil)
    #expect(Self.small.width == 10 && Self.small.height == 20)
    #expect(ImageVariant("1 x 1") != ImageVariant(width: 1, height: 1))
  }

  @Test func `a caller of a variant that leaves does not affect the others`() async throws {
    let gate = Gate()
    let transport = transport(gate)
    let images = images(media(transport))
    let (small, large) = (try request(Self.small), try request(Self.large))
    let leaving = [small, small, large].map { request in
      Task { try await images.request(request) }
    }
    await gate.arrivals(1)
    let staying = Task { try await images.request(large) }
    for task in leaving { task.cancel() }
    for task in leaving {
      await #expect(throws: CancellationError.self) { try await task.value }
    }
    gate.open()
    #expect(try await staying.value.hasSuffix("100 x 200"))
    #expect(decoded.entries == ["100 x 200"])
  }

  @Test func `a decoder can make a variant of another one`() async throws {
    let slot = Guarded<ImageLoader<String>?>(nil)
    let whole = try request()
    let images = ImageLoader(media: media(transport()), concurrency: 1) { data, response in
      guard response.variant != nil, let images = slot.withLock({ $0 }) else {
        return String(decoding: data, as: UTF8.self)
      }
      return "small " + (try await images.request(whole))
    }
    slot.withLock { $0 = images }
    #expect(try await images.request(request(Self.small)) == "small 1")
    #expect(images.cachedImage(for: whole) == "1")
    slot.withLock { $0 = nil }
  }

  @Test func `a file that one variant cannot be decoded of is downloaded again for none`()
    async throws
  {
    let transport = transport()
    let images = ImageLoader<String>(media: media(transport)) { _, _ in throw Undecodable() }
    for variant in [Self.small, nil, Self.large] {
      await #expect(throws: Undecodable.self) { try await images.request(request(variant)) }
    }
    #expect(transport.names.count == 1)
    try await images.remove(request(Self.named))
    await #expect(throws: Undecodable.self) { try await images.request(request(Self.small)) }
    #expect(transport.names.count == 2)
    clock.advance(by: .seconds(300))
    await #expect(throws: Undecodable.self) { try await images.request(request(Self.large)) }
    #expect(transport.names.count == 3)
  }

  @Test func `a variant is decoded from memory while no file can be stored`() async throws {
    let file = FileManager.default.temporaryDirectory.appending(path: "\(UUID())")
    try Data().write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let media = MediaLoader(
      directory: file.appending(path: "folder"),
      transport: transport(),
      rules: .patient,
      retry: .never
    )
    #expect(try await images(media).request(request(Self.small)).hasSuffix(" 10 x 20"))
  }

  @Test func `prefetching loads every variant that it is given`() async throws {
    let transport = transport()
    let images = images(media(transport))
    let prefetcher = Prefetcher(images)
    prefetcher.prefetch(try [request(Self.small), request(Self.large), request(Self.small)])
    await decoded.first(2)
    images.prefetch([try request(Self.named)])
    await decoded.first(3)
    for (variant, name) in [(Self.small, "10 x 20"), (Self.large, "100 x 200")] {
      #expect(try await images.request(request(variant)) == "1 " + name)
    }
    #expect(decoded.entries.sorted() == ["10 x 20", "100 x 200", "avatar (2)"])
    #expect(transport.names == ["a"])
  }

  @Test func `without a capacity, a variant with a size counts for its pixels`() async throws {
    let transport = ClosureTransport { _, request, receiver in
      try receiver.take(request, String(repeating: "x", count: 20 << 20))
    }
    let images = ImageLoader(media: media(transport)) { data, _ in data.count }
    // The file counts for 200 MB, and so does a variant with a name; the small ones fit in beside it.
    for number in 1...20 {
      _ = try await images.request(request(ImageVariant(width: number, height: 1)))
    }
    _ = try await images.request(request(Self.named))
    for number in 1...20 {
      let variant = ImageVariant(width: number, height: 1)
      #expect(try images.cachedImage(for: request(variant)) != nil)
    }
  }

  @Test func `a request says its variant, and is another one with another variant`() throws {
    var request = try request()
    let plain = request
    request.variant = Self.small
    #expect(request != plain && Set([request, plain]).count == 2)
    #expect(request.variant?.description == "10 x 20")
    #expect(MediaResponse(url: request.url).variant == nil)
    #expect(MediaResponse(url: request.url, variant: Self.named).variant == Self.named)
  }
}
