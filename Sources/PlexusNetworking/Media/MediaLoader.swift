public import Foundation
public import Plexus
internal import PlexusSupport

/// The local files of remote files that never change.
///
/// A file is downloaded once, however many ask for it, and stays in a folder until it has to make room or is
/// cleared. What a URL stands for is taken to be immutable: a file that is there is never asked for again.
/// Use a multiplexer with an ``HTTPFetcher`` for what changes.
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
/// ## Downloads
///
/// Bytes are written to disk as they arrive, to a file of another name, which gets its own when it is
/// complete: when its length is the one that the server has announced. Only a 2xx answer is kept; any other
/// fails with an ``HTTPStatusError`` and leaves nothing behind. A transfer that breaks off leaves its part if
/// the server has named a strong entity tag, or a date of modification that is older than the answer: the
/// next request continues it with Range and If-Range, also in another process. A file that has changed, an
/// answer that may not fit, or a server without ranges means starting over. After a failure of connectivity
/// the retry policy decides whether and when to try again; other errors are final, and a file that cannot be
/// written, for instance on a disk that is full, leaves nothing.
///
/// URLs of scheme `file` are used in place; schemes other than `http`, `https` and `file` are refused.
///
/// ## Cancellation
///
/// A cancelled caller leaves at once with a `CancellationError`. The last one to leave cancels the download
/// and keeps its part. A download is as urgent as to the most urgent of its callers, also when that one comes
/// later.
///
/// ## How much is kept
///
/// With a byte limit the files together take no more than that when a new one is there, apart from those in
/// use. Which ones go is decided as in a map with a `CacheCapacity`. The limit never removes a file inside
/// ``withFile(for:_:)``, nor the eight files that were handed out last; what a URL from ``request(_:)``
/// stands for is there when the call returns, and should be opened soon. A file larger than the whole limit
/// goes when eight others were handed out. Lengths are those of the files; parts do not count, and are
/// removed when nobody has continued them for a day.
///
/// Several loaders and processes may use one folder. Each downloads for itself what is not there yet, and
/// keeps to its own limit by what it has seen; what the other one has removed is downloaded again. The system
/// may remove the folder at any time: a download under way is then begun anew.
public final actor MediaLoader {
  /// The loader of the whole process, with a folder in the user's caches.
  public static let main = MediaLoader()

  nonisolated let core: MediaCore
  /// Joins those who want the same; it remembers nothing.
  private nonisolated let flights: MultiplexerMap<MediaFlight, URL>
  private nonisolated let prefetches = PrefetchTasks()

  /// Creates a loader.
  ///
  /// - Parameters:
  ///   - directory: The folder, made when it is needed; one in the user's caches, named after the program, if
  ///     there is none. It belongs to loaders alone.
  ///   - transport: What sends requests.
  ///   - rules: The rules for requests, for instance how much a file may have.
  ///   - byteLimit: How many bytes the files may take; `nil` for any number.
  ///   - connectionsPerHost: How many downloads of one host go on at once; others wait, those that somebody
  ///     has requested before those that are only prefetched.
  ///   - retry: What happens after a failure of connectivity; each attempt continues where the last one broke
  ///     off.
  ///   - clock: What measures the waits between attempts, and the time of the rules.
  /// - Precondition: The directory is a file URL, at least one connection is allowed, and the limit is not
  ///   negative.
  public init(
    directory: URL? = nil,
    transport: any HTTPTransport = URLSessionTransport.shared,
    rules: HTTPRules = .media,
    byteLimit: Int? = nil,
    connectionsPerHost: Int = 6,
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
    let core = MediaCore(
      folder: MediaFolder(root: directory ?? defaultMediaDirectory()),
      transport: transport,
      rules: rules,
      byteLimit: byteLimit,
      connectionsPerHost: connectionsPerHost,
      retry: retry,
      clock: clock
    )
    var policy = CachePolicy()
    policy.whenUnobserved = .cancel
    self.core = core
    flights = MultiplexerMap(id: "MediaLoader", policy: policy, capacity: .count(0)) { flight in
      try await core.download(flight)
    }
  }

  deinit {
    prefetches.cancel()
  }

  // MARK: - Requests

  /// Returns the local file of a URL, after downloading it if it is not there.
  ///
  /// - Parameter url: The URL.
  /// - Returns: The file; it must not be changed.
  /// - Throws: A ``MediaError``, an ``HTTPStatusError``, the transport's error, or the system's if the file
  ///   cannot be written; a `CancellationError` if the calling task is cancelled while it waits.
  public nonisolated func request(_ url: URL) async throws -> URL {
    try await held(url.asSent).file
  }

  /// Returns the local file of a URL if its bytes have a digest.
  ///
  /// The whole file is read at each call, piece by piece and off the caller's actor; cancellation ends that,
  /// too.
  ///
  /// - Parameters:
  ///   - url: The URL.
  ///   - sha256: The SHA-256 digest of the file, in hexadecimal digits.
  /// - Returns: The file.
  /// - Throws: ``MediaError/wrongChecksum(expected:found:)``, and the file is removed; what ``request(_:)``
  ///   throws.
  @concurrent
  public nonisolated func request(_ url: URL, sha256: String) async throws -> URL {
    let (file, hold) = try await held(url.asSent)
    defer { withExtendedLifetime(hold) {} }
    let found = try digest(of: file)
    guard found == sha256.lowercased() else {
      await core.remove(url.asSent)
      throw MediaError.wrongChecksum(expected: sha256, found: found)
    }
    return file
  }

  /// Calls a closure with the local file of a URL, which the byte limit does not remove before the closure
  /// has returned.
  ///
  /// - Parameters:
  ///   - url: The URL.
  ///   - body: What to do with the file. It runs outside of every actor.
  /// - Returns: What the closure returns.
  /// - Throws: What the closure throws, and what ``request(_:)`` throws.
  public nonisolated func withFile<Result: Sendable>(
    for url: URL,
    _ body: @concurrent @Sendable (URL) async throws -> Result
  ) async throws -> Result {
    let (file, hold) = try await held(url.asSent)
    defer { withExtendedLifetime(hold) {} }
    return try await body(file)
  }

  /// Calls a closure with the local file of a URL on behalf of others, who have told the gate how urgent it
  /// is.
  nonisolated func withFileForOthers<Result: Sendable>(
    at url: URL,
    _ body: @concurrent @Sendable (URL) async throws -> Result
  ) async throws -> Result {
    let (file, hold) = try await held(url, isForOthers: true)
    defer { withExtendedLifetime(hold) {} }
    return try await body(file)
  }

  /// A request of one URL, for instance for a `Zipper`; it keeps the loader alive.
  ///
  /// - Parameter url: The URL.
  public nonisolated subscript(url: URL) -> Request<URL> {
    Request { try await self.request(url) }
  }

  /// Returns the local file of a URL if it is there; it downloads nothing.
  ///
  /// - Parameter url: The URL.
  /// - Returns: The file; `nil` if there is none.
  public nonisolated func cachedFile(for url: URL) -> URL? {
    core.cachedFile(for: url.asSent)
  }

  /// Returns how far the download of a URL is.
  ///
  /// The stream starts no download. It begins with what is known, skips what its reader is too slow for, and
  /// ends with the download, however that ends; for a file that is there it has one element. If nobody
  /// downloads the file, it waits until somebody does.
  ///
  /// - Parameter url: The URL.
  /// - Returns: The stream; it does not keep the loader alive, and ends with it.
  public nonisolated func progress(of url: URL) -> AsyncStream<DownloadProgress> {
    let url = url.asSent
    let (stream, id) = core.progress.subscribe(url)
    // Looked at after registering: else it could come, and end, in between.
    if let length = core.length(of: url) {
      let progress = DownloadProgress(receivedBytes: length, totalBytes: length)
      core.progress.finish(id, of: url, with: progress)
    }
    return stream
  }

  // MARK: - Commands

  /// Downloads files that will be needed, at low priority and a few at a time.
  ///
  /// A request of one of them joins its download, and brings it before those that nobody has requested.
  /// Errors are left to the request. Releasing the loader ends it.
  ///
  /// - Parameter urls: The URLs.
  public nonisolated func prefetch(_ urls: some Sequence<URL>) {
    let (core, flights) = (core, flights)
    prefetches.start(urls.map(\.asSent).filter(\.isHTTP)) { url in
      if await core.held(url) == nil { _ = try? await flights.request(core.flight(url)) }
    }
  }

  /// Removes all files and parts.
  ///
  /// They are out of reach before this call suspends. A download under way is not kept: its callers get
  /// ``MediaError/cleared``. What is being prefetched is no longer. It runs to its end when the calling task
  /// is cancelled.
  ///
  /// - Throws: The system's error if something is left, which this loader does not use any more; the next
  ///   call tries again.
  public nonisolated func clear() async throws {
    invalidate()
    try await removeStored()
  }

  /// Adds the loader to a repository, which does not keep it alive.
  ///
  /// - Parameter repository: What clears its members together.
  /// - Returns: The loader itself.
  @discardableResult
  public nonisolated func register(in repository: MuxRepository = .shared) -> Self {
    repository.register(self)
    return self
  }

  /// Returns the file and what keeps it.
  private nonisolated func held(
    _ url: URL,
    isForOthers: Bool = false
  ) async throws -> (file: URL, hold: DiskLimit.Hold?) {
    guard core.allows(url) else { throw MediaError.unsupportedScheme(url) }
    let (core, flights) = (core, flights)
    let flight = core.flight(url)
    if let held = await core.held(url) { return held }
    guard !url.isFileURL else { throw MediaError.noSuchFile(url) }
    let priority = Task.currentPriority
    if !isForOthers { core.gate.want(url, priority) }
    defer { if !isForOthers { core.gate.unwant(url, priority) } }
    // A file that goes in the moment after it has come is loaded once more.
    for _ in 0..<3 {
      _ = try await flights.request(flight)
      if let held = await core.held(url) { return held }
      // What was cleared is not brought back by those who had asked for it before.
      guard core.isCurrent(flight) else { break }
    }
    throw MediaError.cleared
  }
}

extension MediaLoader: RepositoryMember {
  /// Sets all files aside, so that nothing finds them, and keeps no download that has begun.
  public nonisolated func invalidate() {
    core.invalidate()
    prefetches.cancel()
  }

  /// Removes the files that were set aside.
  ///
  /// - Throws: The system's error if something is left.
  @concurrent
  public nonisolated func removeStored() async throws {
    try core.completeClearing()
    try core.folder.removeAside()
  }

  /// Does nothing: a loader keeps no files in memory.
  public nonisolated func clearMemory() {}
}

extension URL {
  /// The same URL as an absolute one, without what is not sent.
  var asSent: URL {
    // A file is used as it was named.
    guard !isFileURL else { return self }
    guard fragment() != nil,
      var components = URLComponents(url: self, resolvingAgainstBaseURL: true)
    else { return absoluteURL }
    components.fragment = nil
    return components.url ?? absoluteURL
  }
}

/// Returns the digest of a file, of which a piece at a time is in memory.
private func digest(of file: URL) throws -> String {
  let handle = try FileHandle(forReadingFrom: file)
  defer { try? handle.close() }
  var digest = SHA256()
  while let piece = try handle.read(upToCount: 1 << 18), !piece.isEmpty {
    try Task.checkCancellation()
    digest.update([UInt8](piece))
  }
  return digest.hexadecimalDigest()
}

/// The folder in the user's caches.
private func defaultMediaDirectory() -> URL {
  let caches = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first
  return (caches ?? FileManager.default.temporaryDirectory)
    .appending(path: ProcessInfo.processInfo.processName, directoryHint: .isDirectory)
    .appending(path: "plexus-media", directoryHint: .isDirectory)
}
