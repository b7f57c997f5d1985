public import Foundation
public import Plexus

/// A cache of decoded files, such as images.
///
/// A file is downloaded by a ``MediaLoader`` and decoded once for all callers, off their actors. Decoded values
/// stay in memory within a capacity; a value that was evicted is decoded again from its file.
///
/// ```swift
/// import Foundation
/// import PlexusNetworking
///
/// /// Decodes one badge, of at most 16 MB of values in memory.
/// func badge(at url: URL) async throws -> [UInt8] {
///   let badges = ImageLoader(capacity: .cost(16 << 20) { $0.count }) { data in [UInt8](data) }
///   return try await badges.request(url)
/// }
/// ```
///
/// Every method takes a URL or a ``MediaRequest``.
///
/// ## Variants
///
/// A ``MediaRequest/variant`` asks for the image in another form, such as the size of its view. The decoder reads it
/// from ``MediaResponse/variant``; the loader of the platform's images makes a thumbnail of the file, without decoding
/// all of it. All variants share the file and one download. Each is decoded once for all its callers, and is a value
/// of its own in memory: ``cachedImage(for:)-(MediaRequest)`` returns that of the requested variant. A
/// decoder that does not look at the variant makes the same value for each.
///
/// ``remove(_:)-(MediaRequest)`` removes the values of all variants. After ``reload(_:)-(MediaRequest)``, the values of
/// the other variants are decoded from the new file when they are requested. A file that cannot be decoded for one
/// variant counts as one that cannot be decoded. A variant with sides that are not positive, or too long, fails
/// with ``MediaError/invalidVariant(_:)``, without a download.
///
/// ## Decoding
///
/// As many values are decoded at once as there are processor cores; the others wait, the most urgent first. A
/// decoder that waits for another value of a loader lets others decode meanwhile.
///
/// A file that cannot be decoded is removed, and the decoder's error is thrown. If the file was there before, it
/// is downloaded and decoded once more, since it may have been damaged. If another file has taken its place meanwhile,
/// that one stays and is decoded. The error is remembered for five minutes, for up to 1,000 files: requests fail at
/// once, without a download, until then, until ``reload(_:)-(MediaRequest)``, or until there is another file. A file
/// of a file URL stays, and is read at each request.
///
/// ## Cancellation
///
/// A cancelled caller leaves at once with a `CancellationError`. When the last caller leaves, decoding and download
/// are cancelled.
///
/// ## Topics
///
/// ### Creating a loader
/// - ``init(media:capacity:concurrency:failureTimeToLive:decode:)-(_,_,_,_,(Data)->Image)``
/// - ``init(media:capacity:concurrency:failureTimeToLive:decode:)-(_,_,_,_,(Data,MediaResponse)->Image)``
///
/// ### Requesting images
/// - ``request(_:)-(MediaRequest)``
/// - ``request(_:)-(URL)``
/// - ``subscript(_:)-(MediaRequest)``
/// - ``subscript(_:)-(URL)``
/// - ``cachedImage(for:)-(MediaRequest)``
/// - ``cachedImage(for:)-(URL)``
///
/// ### Following downloads
/// - ``progress(of:)-(MediaRequest)``
/// - ``progress(of:)-(URL)``
///
/// ### Loading ahead
/// - ``prefetch(_:)-(Sequence<MediaRequest>)``
/// - ``prefetch(_:)-(Sequence<URL>)``
///
/// ### Changing
/// - ``reload(_:)-(MediaRequest)``
/// - ``reload(_:)-(URL)``
/// - ``remove(_:)-(MediaRequest)``
/// - ``remove(_:)-(URL)``
/// - ``clear()``
/// - ``clearMemory()``
/// - ``register(in:)``
///
/// ### Monitoring
/// - ``entries(limit:where:)``
/// - ``flights(limit:)``
public final actor ImageLoader<Image: Sendable> {
  typealias Images = MultiplexerMap<MediaItem, DecodedImage<Image>>

  private nonisolated let media: MediaLoader
  nonisolated let images: Images
  private nonisolated let variants = VariantUse()
  /// Tests look at its line, and at what is prefetched.
  nonisolated let decoder: ImageDecoder<Image>
  nonisolated let prefetches: PrefetchQueue

  /// Creates a loader.
  ///
  /// - Parameters:
  ///   - media: The loader of the files. Image loaders can share one.
  ///   - capacity: The limit of the values in memory, by count or by cost; `nil` for 256 MB, where a value counts
  ///     for ten times the bytes of its file, as an image typically takes when it is decoded, and a variant with a
  ///     size for at most four bytes a pixel.
  ///   - concurrency: The number of values to decode at once; by default the number of processor cores.
  ///   - failureTimeToLive: How long a file that cannot be decoded is not downloaded again.
  ///   - decode: Makes the value of a file's bytes. It runs outside of every actor, and concurrently with
  ///     itself for several files. It is released with the loader.
  public init(
    media: MediaLoader = .main,
    capacity: CacheCapacity<Image>? = nil,
    concurrency: Int = ProcessInfo.processInfo.activeProcessorCount,
    failureTimeToLive: Duration = .seconds(300),
    decode: @escaping @concurrent @Sendable (Data) async throws -> Image
  ) {
    self.init(
      media: media,
      capacity: capacity,
      decoder: ImageDecoder(
        media: media,
        concurrency: concurrency,
        failureTimeToLive: failureTimeToLive,
        usesType: false
      ) { data, _ in try await decode(data) }
    )
  }

  /// Creates a loader whose decoder depends on the type or the URL of a file.
  ///
  /// ```swift
  /// import Foundation
  /// import PlexusNetworking
  ///
  /// struct UnknownType: Error {}
  ///
  /// let captions = ImageLoader { data, response in
  ///   guard response.type?.hasPrefix("text/") == true else { throw UnknownType() }
  ///   return String(decoding: data, as: UTF8.self)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - media: The loader of the files. Image loaders can share one.
  ///   - capacity: The limit of the values in memory; `nil` for 256 MB, where a value counts for ten times the
  ///     bytes of its file.
  ///   - concurrency: The number of values to decode at once; by default the number of processor cores.
  ///   - failureTimeToLive: How long a file that cannot be decoded is not downloaded again.
  ///   - decode: Makes the value of a file's bytes and of what is known about them.
  public init(
    media: MediaLoader = .main,
    capacity: CacheCapacity<Image>? = nil,
    concurrency: Int = ProcessInfo.processInfo.activeProcessorCount,
    failureTimeToLive: Duration = .seconds(300),
    decode: @escaping @concurrent @Sendable (Data, MediaResponse) async throws -> Image
  ) {
    self.init(
      media: media,
      capacity: capacity,
      decoder: ImageDecoder(
        media: media,
        concurrency: concurrency,
        failureTimeToLive: failureTimeToLive,
        usesType: true,
        decode: decode
      )
    )
  }

  /// - Precondition: The concurrency is positive.
  private init(
    media: MediaLoader,
    capacity: CacheCapacity<Image>?,
    decoder: ImageDecoder<Image>
  ) {
    var policy = CachePolicy()
    // The content of a URL is immutable.
    policy.timeToLive = .seconds(1_000_000_000)
    policy.whenUnobserved = .cancel
    policy.usesCachedValue = { _ in false }
    let images = Images(
      id: "ImageLoader",
      policy: policy,
      capacity: Self.capacity(capacity)
    ) { item in
      do {
        return try await decoder.image(for: item)
      } catch let error as HTTPStatusError {
        throw RejectedRequest(error: error, item: item)
      }
    }
    self.media = media
    self.decoder = decoder
    self.images = images
    prefetches = PrefetchQueue(Self.prefetchWork(media, images), concurrency: 4)
  }

  deinit {
    prefetches.cancelAll()
  }

  /// The limit by default: 256 MB, where a value counts for ten times the bytes of its file.
  private static func capacity(
    _ capacity: CacheCapacity<Image>?
  ) -> CacheCapacity<DecodedImage<Image>> {
    switch capacity {
    case nil: .cost(256 << 20) { $0.estimatedCost }
    case .unbounded: .unbounded
    case .count(let count): .count(count)
    case .cost(let limit, let cost): .cost(limit) { cost($0.image) }
    }
  }

  // MARK: - Requests

  /// Returns the value of a request: at once if it is in memory, otherwise after the one download and decoding that
  /// all callers share.
  ///
  /// - Parameter request: The request.
  /// - Returns: The value.
  /// - Throws: The decoder's error; what ``MediaLoader/request(_:)-(MediaRequest)`` throws.
  public nonisolated func request(_ request: MediaRequest) async throws -> Image {
    let item = item(of: request)
    if images.cachedValue(item) != nil { return try await images.request(item).image }
    return try await loaded(item, by: images)
  }

  /// A request as a value, for instance for a `Zipper`; it keeps the loader alive.
  ///
  /// - Parameter request: The request.
  public nonisolated subscript(request: MediaRequest) -> Request<Image> {
    Request { try await self.request(request) }
  }

  /// Returns the value of a request if it is in memory, without downloading or decoding anything.
  ///
  /// - Parameter request: The request.
  /// - Returns: The value; `nil` if there is none in memory.
  public nonisolated func cachedImage(for request: MediaRequest) -> Image? {
    images.cachedValue(MediaItem(request, hasVariant: true))?.image
  }

  /// Returns the progress of the download of a request.
  ///
  /// - Parameter request: The request.
  /// - Returns: The stream, as of ``MediaLoader/progress(of:)-(MediaRequest)``; decoding is not part of it. For a value
  ///   in memory it has one element.
  public nonisolated func progress(of request: MediaRequest) -> AsyncStream<DownloadProgress> {
    let entry = MediaEntry(MediaItem(request, hasVariant: true))
    return media.progress(of: entry) { images.cachedValue(entry.item)?.byteCount }
  }

  // MARK: - Commands

  /// Downloads and decodes a file again, and replaces the value and the file that are there.
  ///
  /// The old value stays until the new one is complete, or if the download fails. The values of other variants are
  /// decoded again when they are requested.
  ///
  /// - Parameter request: The request.
  /// - Returns: The new value.
  /// - Throws: What ``request(_:)-(MediaRequest)`` throws.
  @discardableResult
  public nonisolated func reload(_ request: MediaRequest) async throws -> Image {
    let item = item(of: request)
    if let variant = item.variant, !variant.isValid { throw MediaError.invalidVariant(variant) }
    let ticket = media.core.begin(MediaEntry(item))
    defer { media.core.end(ticket) }
    do {
      try await media.reload(request)
    } catch is POSIXError {
      // It is decoded from memory.
    }
    guard !media.core.isRemoved(since: ticket) else { throw MediaError.cleared }
    decoder.forgetFailure(of: item)
    guard variants.areUsed else {
      return try await loaded(item, by: images.refresh(item))
    }
    return try await loaded(item, by: images.refresh { $0.key == item.key })
  }

  /// Removes the values of all variants of a file, and the file.
  ///
  /// - Parameter request: The request, whose variant does not count.
  /// - Throws: What ``MediaLoader/remove(_:)-(MediaRequest)`` throws.
  public nonisolated func remove(_ request: MediaRequest) async throws {
    let item = MediaItem(request)
    defer { withExtendedLifetime(self) {} }
    decoder.forgetFailure(of: item)
    try await media.remove(request)
    guard variants.areUsed else { return try await images.clear(item) }
    try await images.clear { $0.key == item.key }
  }

  /// Downloads and decodes files that will be needed, at low priority and four at a time from all hosts together.
  ///
  /// A request of one of them joins, and its download then precedes all that no caller waits for. Errors are left
  /// to the request. Releasing the loader ends it; a ``Prefetcher`` can be cancelled and paused.
  ///
  /// - Parameter requests: The requests.
  public nonisolated func prefetch(_ requests: some Sequence<MediaRequest>) {
    prefetches.add(requests.map(item(of:)))
  }

  /// Removes everything: the values, and all files of the media loader, which others may use, too.
  ///
  /// Callers that wait for a download get ``MediaError/cleared``. All prefetching ends.
  ///
  /// - Throws: What ``MediaLoader/clear()`` throws.
  public nonisolated func clear() async throws {
    // First the files: a value that is decoded from now on is of a new one.
    media.invalidate()
    invalidate()
    try await images.clear()
    try await media.removeStored()
  }

  /// Removes the values from memory, for instance when memory is short; the files stay.
  public nonisolated func clearMemory() {
    images.clearMemory()
  }

  /// Adds the loader to a repository, which does not keep it alive.
  ///
  /// The values and the failures to decode are cleared with it; the files are if the media loader is registered, too.
  ///
  /// - Parameter repository: The repository, which clears its members together.
  /// - Returns: The loader itself.
  @discardableResult
  public nonisolated func register(in repository: MuxRepository = .shared) -> Self {
    repository.register(self)
    return self
  }
}

extension ImageLoader: RepositoryMember {
  /// Discards the values in memory, the failures to decode, and all work in progress; the files stay.
  public nonisolated func invalidate() {
    prefetches.cancelAll()
    images.member.invalidate()
    decoder.forgetFailures()
  }

  /// Discards what ``invalidate()`` does, and the results of all work that starts before ``resume()``.
  public nonisolated func pause() {
    images.member.pause()
    invalidate()
  }

  /// Resumes storing the results of work that starts after this call.
  public nonisolated func resume() {
    images.member.resume()
    decoder.forgetFailures()
  }

  /// The name by which the loader appears in the errors and statistics of a repository.
  public nonisolated var name: String { images.member.name }

  /// The statistics of the values.
  public nonisolated var statistics: CacheStatistics? { images.statistics }
}

// MARK: - Loading

extension ImageLoader {
  /// Makes the items of requests; it does not keep the loader alive.
  nonisolated var items: @Sendable (MediaRequest) -> MediaItem {
    { [variants] in variants.item(of: $0) }
  }

  private nonisolated func item(of request: MediaRequest) -> MediaItem {
    variants.item(of: request)
  }

  /// Returns a value that is not in memory, or that has to be loaded again.
  private nonisolated func loaded(_ item: MediaItem, by images: Images) async throws -> Image {
    // A decoder that waits for another image lets others decode meanwhile.
    if let turn = DecodeTurn.current {
      return try await turn.yielding { try await shared(item, by: images) }
    }
    return try await shared(item, by: images)
  }

  private nonisolated func shared(_ item: MediaItem, by images: Images) async throws -> Image {
    do {
      let decoded = try await requested(item, by: images)
      media.core.endProgress(of: item, with: Int64(decoded.byteCount))
      return decoded.image
    } catch {
      media.core.endProgress(of: item, with: nil)
      throw error
    }
  }

  private nonisolated func requested(
    _ item: MediaItem,
    by images: Images
  ) async throws -> DecodedImage<Image> {
    guard item.url.isHTTP else { return try await images.request(item) }
    // The download may have been begun for others, to whom it is less urgent.
    let lines = [(media.core.gate, item.key), (decoder.gate, item.decodingKey)]
    let priority = item.callerPriority
    for (gate, key) in lines { gate.want(key, priority) }
    defer { for (gate, key) in lines { gate.unwant(key, priority) } }
    do {
      return try await images.request(item)
    } catch let rejected as RejectedRequest {
      guard !rejected.item.isSent(like: item) else { throw rejected.error }
    }
    // The request of another caller was rejected, which says nothing about this one.
    do {
      _ = try await media.pinned(MediaEntry(item), isForOthers: true)
    } catch is StorageFailure {
      // It is decoded from memory.
    }
    do {
      return try await images.request(item)
    } catch let rejected as RejectedRequest {
      throw rejected.error
    }
  }

  /// The work of prefetching an image.
  nonisolated var prefetchWork: PrefetchQueue.Work { Self.prefetchWork(media, images) }

  private static nonisolated func prefetchWork(
    _ media: MediaLoader,
    _ images: Images
  ) -> PrefetchQueue.Work {
    PrefetchQueue.Work(of: media.core) { item in
      _ = try? await images.request(item)
    }
  }
}
