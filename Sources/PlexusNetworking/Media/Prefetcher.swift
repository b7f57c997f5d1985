public import Foundation

/// A handle to files or images that are loaded ahead of their use, such as those of the next rows of a list.
///
/// ```swift
/// import Foundation
/// import PlexusNetworking
///
/// final class Gallery {
///   private let prefetcher = Prefetcher(MediaLoader.main)
///
///   func willScroll(to urls: [URL], awayFrom others: [URL]) {
///     prefetcher.cancel(others)
///     prefetcher.prefetch(urls)
///   }
/// }
/// ```
///
/// Prefetching has low priority. A request for a file that is being prefetched joins the download, which
/// then precedes all that no caller waits for. Errors are ignored: a later request tries again. An existing file
/// costs no request.
///
/// ## Lifetime
///
/// Releasing the last reference ends its prefetching, as ``cancelAll()`` does. A download that callers wait for
/// continues for them; otherwise it stops and keeps its part. The prefetcher keeps the loader's downloads going
/// when the loader itself is released. Clearing the loader ends all prefetching that was requested before.
///
/// ## Topics
///
/// ### Creating a prefetcher
/// - ``init(_:concurrency:)-(MediaLoader,_)``
/// - ``init(_:concurrency:)-(ImageLoader<Image>,_)``
///
/// ### Prefetching
/// - ``prefetch(_:)-(Sequence<MediaRequest>)``
/// - ``prefetch(_:)-(Sequence<URL>)``
///
/// ### Ending
/// - ``cancel(_:)-(Sequence<MediaRequest>)``
/// - ``cancel(_:)-(Sequence<URL>)``
/// - ``cancelAll()``
///
/// ### Pausing
/// - ``pause()``
/// - ``resume()``
/// - ``isPaused``
public final class Prefetcher: Sendable {
  /// Tests look at what is prefetched.
  let queue: PrefetchQueue
  private let item: @Sendable (MediaRequest) -> MediaItem

  /// Creates a prefetcher of files.
  ///
  /// - Parameters:
  ///   - loader: The loader of the files.
  ///   - concurrency: The number of files to load at once, from all hosts together.
  /// - Precondition: The concurrency is positive.
  public init(_ loader: MediaLoader, concurrency: Int = 4) {
    precondition(concurrency > 0, "A prefetcher needs a concurrency of at least one")
    queue = PrefetchQueue(loader.prefetchWork, concurrency: concurrency)
    item = { MediaItem($0) }
  }

  /// Creates a prefetcher of images, which are decoded ahead, too.
  ///
  /// - Parameters:
  ///   - loader: The loader of the images.
  ///   - concurrency: The number of images to load at once, from all hosts together.
  /// - Precondition: The concurrency is positive.
  public init<Image>(_ loader: ImageLoader<Image>, concurrency: Int = 4) {
    precondition(concurrency > 0, "A prefetcher needs a concurrency of at least one")
    queue = PrefetchQueue(loader.prefetchWork, concurrency: concurrency)
    item = loader.items
  }

  /// Loads missing files in this order, after the ones that were added before.
  ///
  /// - Parameter requests: The requests. One that is waiting or loading already is not added again.
  public func prefetch(_ requests: some Sequence<MediaRequest>) {
    queue.add(requests.map(item))
  }

  /// Loads missing files in this order, after the ones that were added before.
  ///
  /// - Parameter urls: The URLs. One that is waiting or loading already is not added again.
  @_disfavoredOverload
  public func prefetch(_ urls: some Sequence<URL>) {
    prefetch(urls.map { MediaRequest($0) })
  }

  /// Ends the prefetching of some requests.
  ///
  /// - Parameter requests: The requests, identified by their cache keys, and by their variants if it is one of images.
  public func cancel(_ requests: some Sequence<MediaRequest>) {
    queue.cancel(requests.map(item))
  }

  /// Ends the prefetching of some URLs.
  ///
  /// - Parameter urls: The URLs.
  @_disfavoredOverload
  public func cancel(_ urls: some Sequence<URL>) {
    cancel(urls.map { MediaRequest($0) })
  }

  /// Ends all prefetching; a paused prefetcher stays paused.
  public func cancelAll() {
    queue.cancelAll()
  }

  /// Stops prefetching until ``resume()``.
  ///
  /// Downloads that no caller waits for stop, too. If their parts can be continued, no byte is transferred twice.
  public func pause() {
    queue.pause()
  }

  /// Continues prefetching where ``pause()`` has stopped it.
  public func resume() {
    queue.resume()
  }

  /// Whether prefetching is paused.
  public var isPaused: Bool { queue.isPaused }
}
