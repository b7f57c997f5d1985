public import Foundation
public import Plexus

/// A cache of remote files on disk, which downloads each file once.
///
/// A file stays in a folder until it has to make room or is removed. The content of a URL is taken to be
/// immutable: an existing file is not requested again, unless the loader revalidates. Use a multiplexer with
/// an ``HTTPFetcher`` for values that change.
///
/// ```swift
/// import Foundation
/// import PlexusNetworking
///
/// func poster(at url: URL) async throws -> Data {
///   let file = try await MediaLoader.main.request(url)
///   return try Data(contentsOf: file)
/// }
/// ```
///
/// Every method takes a URL or a ``MediaRequest``, which adds header fields, a cache key and a priority.
///
/// ## Downloads
///
/// Bytes are written to a part of another name as they arrive. The part becomes the file, in one step, when it
/// has the length that the server has announced. Only a 2xx answer with a body is kept; any other fails with an
/// ``HTTPStatusError`` and leaves nothing behind. A transfer that breaks off leaves its part if the server has
/// named a strong entity tag, or a date of modification that is older than the answer: the next request continues
/// it with Range and If-Range, also in another process. If the file has changed, which another length shows, too, or
/// the server has no ranges, the download starts over.
///
/// After a failure of connectivity, and after an error status with a Retry-After of at most a minute, the retry
/// policy decides whether there is another attempt. Other errors are final.
///
/// URLs of scheme `file` are used in place; schemes other than `http`, `https` and `file` are refused.
///
/// ## Revalidation
///
/// A loader with `revalidates` asks the server whether a file has changed, when the file is requested and is
/// stale: `Cache-Control` and `Expires` decide how long it is fresh, and without them it is stale at once. The
/// request has the entity tag and the date of modification of the file; after 304 the file stays, otherwise the
/// answer replaces it. A 304 that names another version, or comes from another address after a redirect, is not used:
/// the file is requested again without conditions. If the server cannot be reached or fails with a 5xx status, the
/// file is returned as it is, unless `must-revalidate` or `no-cache` forbids that. After 404 or 410 the file is
/// removed, unless a newer one has taken its place meanwhile.
///
/// ## Cancellation
///
/// A cancelled caller leaves at once with a `CancellationError`. When the last caller leaves, the download is
/// cancelled and keeps its part. A download is as urgent as it is to the most urgent of its callers, also when
/// that caller comes later.
///
/// ## Limits
///
/// Files and parts together take no more than the byte limit when a new file is there, apart from those in use.
/// Which files are removed is decided as in a map with a `CacheCapacity`; after a restart, the least recently used
/// files go first. The limit never removes a file inside ``withFile(for:_:)-(MediaRequest,_)``, nor the eight
/// files that were returned last: open the result of ``request(_:)-(MediaRequest)`` soon. A file larger than
/// the whole limit is removed after eight others were returned. Parts count for the length that was announced, and
/// are removed when no download has continued them for a day. A download of more than the largest length of a file
/// fails with ``MediaError/fileTooLarge(limit:)``.
///
/// Several loaders and processes can use one folder. Each of them downloads what is not there yet, and keeps to
/// its own limit by the files that it has seen. Before files have to make room, and once an hour, it counts what others
/// have added and removed. The system can remove the folder at any time: a download in progress then begins again.
/// After a power cut, a file is used only if it has the length that was noted with it.
///
/// ## A disk that cannot be written
///
/// On a full or read-only disk, a file is stored in a folder for temporary files, of at most 64 MB, which is
/// removed with the loader. If that cannot be written either, the request fails with the system's error; an
/// ``ImageLoader`` then decodes an image of at most 64 MB from memory.
///
/// ## Topics
///
/// ### Creating a loader
/// - ``main``
/// - ``init(directory:transport:rules:byteLimit:maximumFileBytes:connectionsPerHost:revalidates:retry:clock:)``
///
/// ### Requesting files
/// - ``request(_:)-(MediaRequest)``
/// - ``request(_:)-(URL)``
/// - ``request(_:sha256:)-(MediaRequest,_)``
/// - ``request(_:sha256:)-(URL,_)``
/// - ``withFile(for:_:)-(MediaRequest,_)``
/// - ``withFile(for:_:)-(URL,_)``
/// - ``subscript(_:)-(MediaRequest)``
/// - ``subscript(_:)-(URL)``
/// - ``cachedFile(for:)-(MediaRequest)``
/// - ``cachedFile(for:)-(URL)``
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
///
/// ### Clearing with a repository
/// - ``register(in:)``
/// - ``invalidate()``
/// - ``removeStored()``
/// - ``clearMemory()``
///
/// ### Monitoring
/// - ``flights(limit:)``
public final actor MediaLoader {
  /// The loader of the whole process, with a folder in the user's caches.
  public static let main = MediaLoader()

  nonisolated let core: MediaCore
  /// Lets callers share downloads; it stores no values.
  nonisolated let flights: MultiplexerMap<MediaFlight, MediaDownload>
  /// Tests look at what is prefetched.
  nonisolated let prefetches: PrefetchQueue
  private nonisolated let digests: MediaDigests

  /// Creates a loader.
  ///
  /// - Parameters:
  ///   - directory: The folder, made when it is needed; `nil` for one in the user's caches that is named after
  ///     the program. No other files must be in it.
  ///   - transport: The transport that sends the requests.
  ///   - rules: The rules for requests, for instance for redirects.
  ///   - byteLimit: The number of bytes of all files and parts, 1 GB by default; `nil` for no limit.
  ///   - maximumFileBytes: The number of bytes of one file, 512 MB by default; `nil` for no limit.
  ///   - connectionsPerHost: The number of downloads from one host at once. Others wait; downloads with callers
  ///     precede prefetched ones.
  ///   - revalidates: Whether stale files are revalidated when they are requested.
  ///   - retry: The policy after a failure of connectivity; each attempt continues where the last one broke off.
  ///   - clock: The clock that measures the waits between attempts, and the times of the rules.
  /// - Precondition: The directory is a file URL, at least one connection is allowed, and the limits are not
  ///   negative.
  public init(
    directory: URL? = nil,
    transport: any HTTPTransport = URLSessionTransport.shared,
    rules: HTTPRules = .media,
    byteLimit: Int? = 1 << 30,
    maximumFileBytes: Int? = 512 << 20,
    connectionsPerHost: Int = 6,
    revalidates: Bool = false,
    retry: RetryPolicy = .exponential(
      attempts: 3,
      base: .milliseconds(500),
      cap: .seconds(10),
      jitter: 0.2
    ),
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    precondition(directory?.isFileURL != false, "A loader's directory must be a file URL")
    precondition(connectionsPerHost > 0, "A loader needs at least one connection a host")
    precondition(byteLimit ?? 0 >= 0, "A loader's byte limit cannot be negative")
    precondition(maximumFileBytes ?? 0 >= 0, "A loader's limit for a file cannot be negative")
    let core = MediaCore(
      folder: MediaFolder(root: directory ?? defaultMediaDirectory()),
      transport: transport,
      rules: rules,
      limits: MediaLimits(
        byteLimit: byteLimit,
        maximumFileBytes: maximumFileBytes,
        connectionsPerHost: connectionsPerHost
      ),
      revalidates: revalidates,
      retry: retry,
      clock: clock
    )
    var policy = CachePolicy()
    policy.whenUnobserved = .cancel
    let flights = MultiplexerMap<MediaFlight, MediaDownload>(
      id: "MediaLoader",
      policy: policy,
      capacity: .count(0)
    ) { flight in try await core.download(flight) }
    self.core = core
    digests = MediaDigests(core)
    self.flights = flights
    prefetches = PrefetchQueue(Self.prefetchWork(core, flights), concurrency: 4)
  }

  deinit {
    prefetches.cancelAll()
  }

  // MARK: - Requests

  /// Returns the local file of a request, after downloading it if it is not there.
  ///
  /// - Parameter request: The request.
  /// - Returns: The file; it must not be changed.
  /// - Throws: A ``MediaError``, an ``HTTPStatusError``, the transport's error, or the system's if the file
  ///   cannot be written; a `CancellationError` if the calling task is cancelled while it waits.
  public nonisolated func request(_ request: MediaRequest) async throws -> URL {
    try await pinnedOrSystemError(MediaEntry(request)).file
  }

  /// Returns the local file of a request if its bytes have a digest.
  ///
  /// The digest of a file is computed once, piece by piece and off the caller's actor, and stored with the file;
  /// cancellation ends that, too. A file of a file URL is read at each call.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - sha256: The SHA-256 digest of the file, in hexadecimal digits.
  /// - Returns: The file.
  /// - Throws: ``MediaError/wrongChecksum(expected:found:)``, and the file is removed, unless another one has taken its
  ///   place, which is then judged by its own digest; what ``request(_:)-(MediaRequest)`` throws.
  public nonisolated func request(_ request: MediaRequest, sha256: String) async throws -> URL {
    let entry = MediaEntry(request)
    let ticket = core.begin(entry)
    defer { core.end(ticket) }
    repeat {
      let pinned = try await pinnedOrSystemError(entry)
      defer { withExtendedLifetime(pinned) {} }
      // Another file can have taken its place by now, and is judged by its own digest.
      guard let digest = try await digests.digest(of: pinned, named: entry.name) else { continue }
      guard digest != sha256.lowercased() else { return pinned.file }
      _ = core.discard(pinned, entry)
      guard core.hasOther(than: pinned.properties.version, entry) else {
        throw MediaError.wrongChecksum(expected: sha256, found: digest)
      }
    } while !core.isRemoved(since: ticket)
    throw MediaError.cleared
  }

  /// Calls a closure with the local file of a request, which the byte limit does not remove before the closure
  /// has returned.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - body: The work to do with the file. It runs outside of every actor.
  /// - Returns: The result of the closure.
  /// - Throws: What the closure throws, and what ``request(_:)-(MediaRequest)`` throws.
  public nonisolated func withFile<Result: Sendable>(
    for request: MediaRequest,
    _ body: @concurrent @Sendable (URL) async throws -> Result
  ) async throws -> Result {
    let pinned = try await pinnedOrSystemError(MediaEntry(request))
    defer { withExtendedLifetime(pinned) {} }
    return try await body(pinned.file)
  }

  /// A request as a value, for instance for a `Zipper`; it keeps the loader alive.
  ///
  /// - Parameter request: The request.
  public nonisolated subscript(request: MediaRequest) -> Request<URL> {
    Request { try await self.request(request) }
  }

  /// Returns the local file of a request if it is there, without asking the server.
  ///
  /// - Parameter request: The request.
  /// - Returns: The file; `nil` if there is none.
  public nonisolated func cachedFile(for request: MediaRequest) -> URL? {
    core.cachedFile(for: MediaEntry(request))
  }

  /// Returns the progress of the download of a request.
  ///
  /// The stream starts no download. It begins with the present progress, skips elements while its reader is busy,
  /// and ends with the download, however that ends; for an existing file it has one element. While there is no
  /// download, it waits for one, or for a request that ends without one.
  ///
  /// - Parameter request: The request.
  /// - Returns: The stream; it does not keep the loader alive, and ends with it.
  public nonisolated func progress(of request: MediaRequest) -> AsyncStream<DownloadProgress> {
    progress(of: MediaEntry(request)) { nil }
  }

  /// Returns the progress of a download, which has ended if the file or something made of it is there.
  ///
  /// - Parameters:
  ///   - entry: The file.
  ///   - memory: Returns the length of a file that something in memory was made of.
  /// - Returns: The stream.
  nonisolated func progress(
    of entry: MediaEntry,
    inMemory memory: () -> Int?
  ) -> AsyncStream<DownloadProgress> {
    let (stream, id) = core.progress.subscribe(entry.item.key)
    // Checked after registering: otherwise the file could be stored, and the download end, in between.
    if let length = core.properties(of: entry)?.length ?? memory().map({ Int64($0) }) {
      core.progress.finish(id, of: entry.item.key, with: DownloadProgress(whole: length))
    }
    return stream
  }

  // MARK: - Commands

  /// Downloads a file again and replaces the existing one.
  ///
  /// The existing file stays, and other requests return it, until the new one is complete; if the download
  /// fails, it stays. Several calls share a download that has not begun; one in progress is followed by
  /// another one.
  ///
  /// - Parameter request: The request. A file of a file URL is returned as it is.
  /// - Returns: The new file.
  /// - Throws: What ``request(_:)-(MediaRequest)`` throws.
  @discardableResult
  public nonisolated func reload(_ request: MediaRequest) async throws -> URL {
    let entry = MediaEntry(request)
    guard entry.url.isHTTP else { return try await pinnedOrSystemError(entry).file }
    let flight = core.flight(entry, .reload)
    do {
      // A download that began before does not count.
      let result = try await perform(flight, by: flights.refresh(flight))
      guard let pinned = await core.pinned(entry, after: result) else { throw MediaError.cleared }
      return pinned.file
    } catch let failure as StorageFailure {
      throw failure.error
    }
  }

  /// Removes a file and its parts.
  ///
  /// A download of it in progress is not kept: its callers get ``MediaError/cleared``, also those of other loaders of
  /// the folder, and of other processes whose download has begun to arrive. A file of a file URL stays.
  ///
  /// - Parameter request: The request.
  /// - Throws: The system's error if the file cannot be removed.
  public nonisolated func remove(_ request: MediaRequest) async throws {
    try await core.remove(MediaEntry(request))
  }

  /// Downloads files that will be needed, at low priority and four at a time from all hosts together.
  ///
  /// A request of one of them joins its download, which then precedes all that no caller waits for. Errors are
  /// left to the request. Releasing or clearing the loader ends it; a ``Prefetcher`` can be cancelled and paused, and
  /// loads as many at a time as you choose.
  ///
  /// - Parameter requests: The requests.
  public nonisolated func prefetch(_ requests: some Sequence<MediaRequest>) {
    prefetches.add(requests.map { MediaItem($0) })
  }

  /// Removes all files and parts.
  ///
  /// They are inaccessible before this call suspends. A download in progress is not kept, as with
  /// ``remove(_:)-(MediaRequest)``: its callers get ``MediaError/cleared``. All prefetching ends. The removal runs to
  /// its end when the calling task is cancelled.
  ///
  /// - Throws: The system's error if something is left, which this loader no longer uses; the next
  ///   call tries again.
  public nonisolated func clear() async throws {
    invalidate()
    try await removeStored()
  }

  /// Adds the loader to a repository, which does not keep it alive.
  ///
  /// - Parameter repository: The repository, which clears its members together.
  /// - Returns: The loader itself.
  @discardableResult
  public nonisolated func register(in repository: MuxRepository = .shared) -> Self {
    repository.register(self)
    return self
  }
}

// MARK: - Downloads

extension MediaLoader {
  /// Returns the file of an entry and a pin of it; a failure to write is thrown as the system's error.
  private nonisolated func pinnedOrSystemError(
    _ entry: MediaEntry
  ) async throws -> MediaStore.PinnedFile {
    do {
      return try await pinned(entry)
    } catch let failure as StorageFailure {
      throw failure.error
    }
  }

  /// Returns the file of an entry and a pin of it, after downloading or revalidating it if that is necessary.
  ///
  /// - Parameters:
  ///   - entry: The file.
  ///   - isForOthers: Whether the gate has been told already how urgent the file is.
  /// - Returns: The file and the pin.
  /// - Throws: ``StorageFailure`` if no disk can be written.
  nonisolated func pinned(
    _ entry: MediaEntry,
    isForOthers: Bool = false
  ) async throws -> MediaStore.PinnedFile {
    do {
      let pinned = try await found(entry, isForOthers)
      core.endProgress(of: entry.item, with: pinned.properties.length)
      return pinned
    } catch {
      core.endProgress(of: entry.item, with: nil)
      throw error
    }
  }

  private nonisolated func found(
    _ entry: MediaEntry,
    _ isForOthers: Bool
  ) async throws -> MediaStore.PinnedFile {
    guard core.allows(entry.url) else {
      throw MediaError.unsupportedScheme(entry.url)
    }
    let flight = core.flight(entry)
    if let pinned = await core.pinned(entry) {
      guard core.isStale(pinned, entry) else { return pinned }
      return try await revalidated(entry, isForOthers)
    }
    guard !entry.url.isFileURL else { throw MediaError.noSuchFile(entry.url) }
    let ticket = core.begin(entry)
    defer { core.end(ticket) }
    // The system or another process can remove a file that was just stored: then it is downloaded once more.
    for _ in 0..<3 {
      let result = try await perform(flight, isForOthers)
      if let pinned = await core.pinned(entry, after: result) { return pinned }
      // Callers from before a removal do not bring the file back.
      guard !core.isRemoved(since: ticket) else { break }
    }
    throw MediaError.cleared
  }

  /// Returns the bytes of a file without storing them, because no disk can be written.
  nonisolated func unstored(_ entry: MediaEntry) async throws -> UnstoredFile {
    guard case .memory(let file) = try await perform(core.flight(entry, .memory), true) else {
      throw MediaError.cleared
    }
    return file
  }

  /// Returns the file after the server was asked whether it has changed.
  private nonisolated func revalidated(
    _ entry: MediaEntry,
    _ isForOthers: Bool
  ) async throws -> MediaStore.PinnedFile {
    let result: MediaDownload
    do {
      result = try await perform(core.flight(entry, .revalidate), isForOthers)
    } catch {
      let isFailure =
        (error as? HTTPStatusError)?.isOriginFailure
        ?? (error as? any ConnectivityFailure)?.isConnectivityFailure ?? (error is StorageFailure)
      // It can have been removed meanwhile.
      guard isFailure, let pinned = await core.pinned(entry),
        core.record(of: pinned, entry)?.mustRevalidate != true
      else { throw error }
      return pinned
    }
    guard let pinned = await core.pinned(entry, after: result) else { throw MediaError.cleared }
    return pinned
  }

  /// Joins or starts a download; a rejection of the request of another caller does not count.
  ///
  /// - Returns: The result, which is the same for all callers.
  private nonisolated func perform(
    _ flight: MediaFlight,
    _ isForOthers: Bool = false,
    by flights: MultiplexerMap<MediaFlight, MediaDownload>? = nil
  ) async throws -> MediaDownload {
    let flights = flights ?? self.flights
    let item = flight.entry.item
    let (gate, key, priority) = (core.gate, item.key, item.callerPriority)
    if !isForOthers { gate.want(key, priority) }
    defer { if !isForOthers { gate.unwant(key, priority) } }
    do {
      return try await flights.request(flight)
    } catch let rejected as RejectedRequest {
      guard !rejected.item.isSent(like: item) else { throw rejected.error }
    }
    do {
      return try await flights.request(flight.withOwnRequest)
    } catch let rejected as RejectedRequest {
      throw rejected.error
    }
  }

  /// The work of prefetching a file.
  nonisolated var prefetchWork: PrefetchQueue.Work { Self.prefetchWork(core, flights) }

  private static nonisolated func prefetchWork(
    _ core: MediaCore,
    _ flights: MultiplexerMap<MediaFlight, MediaDownload>
  ) -> PrefetchQueue.Work {
    PrefetchQueue.Work(of: core) { item in
      let entry = MediaEntry(item)
      guard entry.url.isHTTP, await core.pinned(entry) == nil else { return }
      _ = try? await flights.request(core.flight(entry))
    }
  }
}

/// The folder in the user's caches.
private func defaultMediaDirectory() -> URL {
  let caches = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first
  return (caches ?? FileManager.default.temporaryDirectory)
    .appending(path: ProcessInfo.processInfo.processName, directoryHint: .isDirectory)
    .appending(path: "plexus-media", directoryHint: .isDirectory)
}
