public import Foundation
public import Plexus

#if canImport(UIKit)
public import UIKit
#elseif canImport(AppKit)
public import AppKit
#endif

/// The decoded values of remote files, such as images.
///
/// A file is downloaded by a ``MediaLoader`` and decoded once, however many ask for it, off their actors.
/// Decoded values stay in memory within a capacity; what had to go is decoded again from the file.
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
/// A file that cannot be decoded is removed, so that the next request downloads it again; the decoder's error
/// is thrown. A `file` URL's file stays.
///
/// ## Cancellation
///
/// A cancelled caller leaves at once with a `CancellationError`; the last one to leave cancels decoding and
/// download.
public final actor ImageLoader<Image: Sendable> {
  private nonisolated let media: MediaLoader
  private nonisolated let images: MultiplexerMap<URL, Image>
  private nonisolated let tasks = PrefetchTasks()

  /// Creates a loader.
  ///
  /// - Parameters:
  ///   - media: What downloads the files. Loaders may share one.
  ///   - capacity: How much is kept in memory, by count or by cost.
  ///   - decode: Makes the value of a file's bytes. It runs outside of every actor, and concurrently with
  ///     itself for several files. It is released with the loader.
  public init(
    media: MediaLoader = .main,
    capacity: CacheCapacity<Image> = .count(50),
    decode: @escaping @concurrent @Sendable (Data) async throws -> Image
  ) {
    var policy = CachePolicy()
    // What a URL stands for does not change.
    policy.timeToLive = .seconds(1_000_000_000)
    policy.whenUnobserved = .cancel
    policy.usesCachedValue = { _ in false }
    self.media = media
    images = MultiplexerMap(id: "ImageLoader", policy: policy, capacity: capacity) { url in
      try await media.decoded(url, decode)
    }
  }

  deinit {
    tasks.cancel()
  }

  /// Returns the value of a URL: at once if it is in memory, else after the one download and decoding that
  /// everybody waits for.
  ///
  /// - Parameter url: The URL.
  /// - Returns: The value.
  /// - Throws: The decoder's error; what ``MediaLoader/request(_:)`` throws.
  public nonisolated func request(_ url: URL) async throws -> Image {
    let url = url.asSent
    guard images.cachedValue(url) == nil, url.isHTTP else { return try await images.request(url) }
    // The download may be one that was begun for others, to whom it is less urgent.
    let (gate, images, priority) = (media.core.gate, images, Task.currentPriority)
    gate.want(url, priority)
    defer { gate.unwant(url, priority) }
    return try await images.request(url)
  }

  /// A request of one URL, for instance for a `Zipper`; it keeps the loader alive.
  ///
  /// - Parameter url: The URL.
  public nonisolated subscript(url: URL) -> Request<Image> {
    Request { try await self.request(url) }
  }

  /// Returns the value of a URL if it is in memory; it neither downloads nor decodes.
  ///
  /// - Parameter url: The URL.
  /// - Returns: The value; `nil` if there is none in memory.
  public nonisolated func cachedImage(for url: URL) -> Image? {
    images.cachedValue(url.asSent)
  }

  /// Downloads and decodes what will be needed, at low priority and a few at a time.
  ///
  /// A request of one of them joins, and brings its download before those that nobody has requested. Errors
  /// are left to the request. Releasing the loader ends it.
  ///
  /// - Parameter urls: The URLs.
  public nonisolated func prefetch(_ urls: some Sequence<URL>) {
    let images = images
    tasks.start(urls.map(\.asSent)) { url in _ = try? await images.request(url) }
  }

  /// Removes everything: the values, and all files of the media loader, which others may use, too.
  ///
  /// Those who wait for a download get ``MediaError/cleared``. What is being prefetched is no longer.
  ///
  /// - Throws: What ``MediaLoader/clear()`` throws.
  public nonisolated func clear() async throws {
    tasks.cancel()
    // First the files: what is decoded from now on is from a new one.
    media.invalidate()
    try await images.clear()
    try await media.removeStored()
  }

  /// Forgets the values in memory, for instance when memory is short; the files stay.
  public nonisolated func clearMemory() {
    images.clearMemory()
  }

  /// Adds the loader to a repository, which does not keep it alive.
  ///
  /// The values are cleared with it; the files are if the media loader is registered, too.
  ///
  /// - Parameter repository: What clears its members together.
  /// - Returns: The loader itself.
  @discardableResult
  public nonisolated func register(in repository: MuxRepository = .shared) -> Self {
    images.register(in: repository)
    return self
  }
}

extension MediaLoader {
  /// Returns what a decoder makes of a file.
  fileprivate nonisolated func decoded<Image: Sendable>(
    _ url: URL,
    _ decode: @concurrent @Sendable (Data) async throws -> Image
  ) async throws -> Image {
    try await withFileForOthers(at: url) { [core] file in
      // Files of loaders are never changed; others may be, and what is mapped must not get shorter.
      let data = try Data(contentsOf: file, options: url.isFileURL ? [] : .mappedIfSafe)
      do {
        return try await decode(data)
      } catch {
        // One who has given up says nothing about the file.
        if !Task.isCancelled, !(error is CancellationError) { await core.remove(url) }
        throw error
      }
    }
  }
}

#if canImport(UIKit)
extension ImageLoader where Image == UIImage {
  /// The loader of the whole process: fifty images, prepared for display, from the files of
  /// ``MediaLoader/main``.
  public static let main = ImageLoader { data in
    guard let image = UIImage(data: data) else { throw URLError(.cannotDecodeContentData) }
    #if os(watchOS)
    return image
    #else
    return await image.byPreparingForDisplay() ?? image
    #endif
  }
}
#elseif canImport(AppKit)
extension ImageLoader where Image == NSImage {
  /// The loader of the whole process: fifty images from the files of ``MediaLoader/main``.
  public static let main = ImageLoader { data in
    guard let image = NSImage(data: data) else { throw URLError(.cannotDecodeContentData) }
    return image
  }
}
#endif
