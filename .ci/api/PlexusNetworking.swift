import Foundation
import FoundationNetworking
import Glibc
import Plexus
import PlexusHashing

/// How far a download has come.
public struct DownloadProgress : Hashable, Sendable {

    /// The bytes on disk, those of an earlier part included.
    public let receivedBytes: Int64

    /// The bytes of the whole file; `nil` as long as the server has not said.
    public let totalBytes: Int64?

    /// Creates a progress.
    ///
    /// - Parameters:
    ///   - receivedBytes: The bytes that are there.
    ///   - totalBytes: The bytes of the whole file, if known.
    public init(receivedBytes: Int64, totalBytes: Int64?)

    /// The share that is there, from 0 to 1; `nil` as long as the whole is not known.
    public var fraction: Double? { get }
}

/// A fetch over HTTP that asks whether a value has changed instead of loading it again, and heeds what the
/// server says about keeping it.
///
/// Hand its ``fetch(_:)`` to a multiplexer, or call it in the closure of a map:
///
/// ```swift
/// import Foundation
/// import Plexus
/// import PlexusNetworking
///
/// func weather(at url: URL) -> Multiplexer<String> {
///   let fetcher = HTTPFetcher(url) { data in String(decoding: data, as: UTF8.self) }
///   return Multiplexer(policy: .http, onFetch: fetcher.fetch)
/// }
///
/// func pages(below url: URL) -> MultiplexerMap<String, Data> {
///   MultiplexerMap(policy: .http) { (name: String, context: FetchContext<Data>) in
///     try await HTTPFetcher(url.appending(path: name)) { $0 }.fetch(context)
///   }
/// }
/// ```
///
/// ## What of HTTP it heeds
///
/// It is a cache of one user (RFC 9111, RFC 5861). A value is fresh for `max-age`, or until `Expires`, less
/// its age: what `Age` and `Date` say, and the time that the answer took. `no-cache` and `Vary: *` make it
/// stale at once. A stale one is asked for with `If-None-Match` and `If-Modified-Since`; after 304 the value
/// stays, with the freshness that the 304 gives or the value came with. A value without any word about
/// freshness has the policy's time to live.
///
/// `stale-while-revalidate` and `stale-if-error` hold for that value in place of the policy: how long it is
/// handed out at once while it is renewed, and how long it stands in for a 5xx status or a failure that is no
/// status, never for a 4xx. `must-revalidate` and `no-cache` forbid both, also what the policy allows. A
/// value that comes with `no-store` goes to those who wait for it and is not kept, and whatever was kept
/// before goes.
///
/// Only `GET` and `HEAD` are asked under conditions; an answer to any other method is kept as long as it
/// says. `Retry-After`, as seconds or as a date, is the advice of the ``HTTPStatusError``: a retry policy
/// waits that long.
///
/// ## Cancellation
///
/// A fetch that is cancelled stops the transfer and throws a `CancellationError`.
public struct HTTPFetcher<Value> : Sendable where Value : Sendable {

    /// Creates a fetch.
    ///
    /// - Parameters:
    ///   - request: What is sent; conditions are added.
    ///   - session: What sends it; one without a cache of its own that all fetchers share, if there is none. A
    ///     session with a cache would answer in the server's place.
    ///   - now: What tells the time of day, to compare with dates of the server.
    ///   - decode: Makes the value of the body of a 2xx answer. It runs outside of every actor; what it throws
    ///     is thrown by the fetch. It is released with the fetcher.
    public init(_ request: URLRequest, session: URLSession? = nil, now: @escaping @Sendable () -> Date = { Date() }, decode: @escaping @Sendable (Data) async throws -> Value)

    /// Creates a fetch of what is at a URL.
    ///
    /// - Parameters:
    ///   - url: The URL.
    ///   - session: What asks for it; one without a cache of its own that all fetchers share, if there is none.
    ///   - decode: Makes the value of the body of a 2xx answer, as for a request.
    public init(_ url: URL, session: URLSession? = nil, decode: @escaping @Sendable (Data) async throws -> Value)

    /// Fetches the value, or finds out that the one there is has not changed.
    ///
    /// A 304 that names another version than the one there is, or comes from another address after a redirect,
    /// is not believed: the value is asked for once more, without conditions.
    ///
    /// - Parameter context: The value that there is, if any, with what an earlier fetch returned for it.
    /// - Returns: The value, what its server says about keeping it, and what the next fetch needs to ask
    ///   whether it has changed.
    /// - Throws: ``HTTPStatusError`` for an answer that is neither 2xx nor an expected 304, and for a part
    ///   (206) that the request did not ask for; `URLError` if there is no answer, or one that breaks off;
    ///   ``HTTPRevalidationError`` in its place if the value that there is must not stand in; a
    ///   `CancellationError` if the fetch is cancelled; what the decoder throws.
    @concurrent public func fetch(_ context: Plexus.FetchContext<Value>) async throws -> Plexus.FetchResult<Value>
}

/// A value could not be renewed, and its server has forbidden to use it without asking.
///
/// Thrown in place of a failure of connectivity, after which a cache would use the value that it has: the
/// answer that the value came with said must-revalidate, no-cache or no-store.
public struct HTTPRevalidationError : Error {

    /// Why the server could not be asked.
    public let underlying: any Error

    /// Creates an error.
    ///
    /// - Parameter underlying: Why the server could not be asked.
    public init(underlying: any Error)
}

extension HTTPRevalidationError : CustomStringConvertible {

    /// A sentence that says what happened.
    public var description: String { get }
}

/// An answer whose status says that it is not what was asked for.
public struct HTTPStatusError : Error, Plexus.RetryAdvice, Plexus.OriginFailure, Hashable {

    /// The status code.
    public let status: Int

    /// How long the server asks to wait before the next attempt (Retry-After); `nil` if it does not.
    public let retryAfter: Duration?

    /// Whether the server has allowed the value that there is to stand in (stale-if-error).
    ///
    /// A multiplexer knows that by itself. `CachePolicy.http` heeds it for values from a cacher that keeps
    /// validators and no directives.
    public let allowsStaleValue: Bool

    /// Creates an error, for instance in a transport of your own.
    ///
    /// - Parameters:
    ///   - status: The status code.
    ///   - retryAfter: How long the server asks to wait.
    ///   - allowsStaleValue: Whether the value that there is may stand in.
    public init(status: Int, retryAfter: Duration? = nil, allowsStaleValue: Bool = false)
}

extension HTTPStatusError {

    /// Whether the server has failed (5xx), so that a value may stand in for which the server allows that.
    ///
    /// Any other status is an answer: what is gone, or not for this user any more, does not come back from a
    /// cache.
    public var isOriginFailure: Bool { get }
}

extension HTTPStatusError : CustomStringConvertible {

    /// A sentence that names the status.
    public var description: String { get }
}

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
final public actor ImageLoader<Image> where Image : Sendable {

    /// Creates a loader.
    ///
    /// - Parameters:
    ///   - media: What downloads the files. Loaders may share one.
    ///   - capacity: How much is kept in memory, by count or by cost.
    ///   - decode: Makes the value of a file's bytes. It runs outside of every actor, and concurrently with
    ///     itself for several files. It is released with the loader.
    public init(media: PlexusNetworking.MediaLoader = .main, capacity: Plexus.CacheCapacity<Image> = .count(50), decode: @escaping @Sendable (Data) async throws -> Image)

    deinit

    /// Returns the value of a URL: at once if it is in memory, else after the one download and decoding that
    /// everybody waits for.
    ///
    /// - Parameter url: The URL.
    /// - Returns: The value.
    /// - Throws: The decoder's error; what ``MediaLoader/request(_:)`` throws.
    public func request(_ url: URL) async throws -> Image

    /// A request of one URL, for instance for a `Zipper`; it keeps the loader alive.
    ///
    /// - Parameter url: The URL.
    nonisolated public subscript(url: URL) -> Plexus.Request<Image> { get }

    /// Returns the value of a URL if it is in memory; it neither downloads nor decodes.
    ///
    /// - Parameter url: The URL.
    /// - Returns: The value; `nil` if there is none in memory.
    nonisolated public func cachedImage(for url: URL) -> Image?

    /// Downloads and decodes what will be needed, at low priority and a few at a time.
    ///
    /// A request of one of them joins, and brings its download before those that nobody has requested. Errors
    /// are left to the request. Releasing the loader ends it.
    ///
    /// - Parameter urls: The URLs.
    nonisolated public func prefetch(_ urls: some Sequence<URL>)

    /// Removes everything: the values, and all files of the media loader, which others may use, too.
    ///
    /// Those who wait for a download get ``MediaError/cleared``. What is being prefetched is no longer.
    ///
    /// - Throws: What ``MediaLoader/clear()`` throws.
    public func clear() async throws

    /// Forgets the values in memory, for instance when memory is short; the files stay.
    nonisolated public func clearMemory()

    /// Adds the loader to a repository, which does not keep it alive.
    ///
    /// The values are cleared with it; the files are if the media loader is registered, too.
    ///
    /// - Parameter repository: What clears its members together.
    /// - Returns: The loader itself.
    @discardableResult
    nonisolated public func register(in repository: Plexus.MuxRepository = .shared) -> Self
}

/// The reasons why a media file cannot be had, besides those of the network.
@nonexhaustive public enum MediaError : Error, Hashable, Sendable {

    /// The URL is neither http, https nor file.
    case unsupportedScheme(URL)

    /// There is no file at a file URL.
    case noSuchFile(URL)

    /// The bytes are not those that were asked for.
    case wrongChecksum(expected: String, found: String)

    /// The server has sent another length or part than it announced, and again when asked anew.
    case inconsistentLength

    /// The loader was cleared during the download.
    case cleared
}

extension MediaError : CustomStringConvertible {

    /// A sentence that says what happened and what to do about it.
    public var description: String { get }
}

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
final public actor MediaLoader {

    /// The loader of the whole process, with a folder in the user's caches.
    public static let main: PlexusNetworking.MediaLoader

    /// Creates a loader.
    ///
    /// - Parameters:
    ///   - directory: The folder, made when it is needed; one in the user's caches, named after the program, if
    ///     there is none. It belongs to loaders alone.
    ///   - transport: What sends requests.
    ///   - byteLimit: How many bytes the files may take; `nil` for any number.
    ///   - connectionsPerHost: How many downloads of one host go on at once; others wait, those that somebody
    ///     has requested before those that are only prefetched.
    ///   - retry: What happens after a failure of connectivity; each attempt continues where the last one broke
    ///     off.
    ///   - clock: What measures the waits between attempts.
    /// - Precondition: The directory is a file URL, at least one connection is allowed, and the limit is not
    ///   negative.
    public init(directory: URL? = nil, transport: any PlexusNetworking.MediaTransport = URLSessionTransport(), byteLimit: Int? = nil, connectionsPerHost: Int = 6, retry: Plexus.RetryPolicy = .exponential(
      attempts: 3,
      base: .milliseconds(500),
      cap: .seconds(10),
      jitter: 0.2
    ), clock: any Clock<Duration> = ContinuousClock())

    deinit

    /// Returns the local file of a URL, after downloading it if it is not there.
    ///
    /// - Parameter url: The URL.
    /// - Returns: The file; it must not be changed.
    /// - Throws: A ``MediaError``, an ``HTTPStatusError``, the transport's error, or the system's if the file
    ///   cannot be written; a `CancellationError` if the calling task is cancelled while it waits.
    public func request(_ url: URL) async throws -> URL

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
    @concurrent nonisolated public func request(_ url: URL, sha256: String) async throws -> URL

    /// Calls a closure with the local file of a URL, which the byte limit does not remove before the closure
    /// has returned.
    ///
    /// - Parameters:
    ///   - url: The URL.
    ///   - body: What to do with the file. It runs outside of every actor.
    /// - Returns: What the closure returns.
    /// - Throws: What the closure throws, and what ``request(_:)`` throws.
    public func withFile<Result>(for url: URL, _ body: @Sendable (URL) async throws -> Result) async throws -> Result where Result : Sendable

    /// A request of one URL, for instance for a `Zipper`; it keeps the loader alive.
    ///
    /// - Parameter url: The URL.
    nonisolated public subscript(url: URL) -> Plexus.Request<URL> { get }

    /// Returns the local file of a URL if it is there; it downloads nothing.
    ///
    /// - Parameter url: The URL.
    /// - Returns: The file; `nil` if there is none.
    nonisolated public func cachedFile(for url: URL) -> URL?

    /// Returns how far the download of a URL is.
    ///
    /// The stream starts no download. It begins with what is known, skips what its reader is too slow for, and
    /// ends with the download, however that ends; for a file that is there it has one element. If nobody
    /// downloads the file, it waits until somebody does.
    ///
    /// - Parameter url: The URL.
    /// - Returns: The stream; it does not keep the loader alive, and ends with it.
    nonisolated public func progress(of url: URL) -> AsyncStream<PlexusNetworking.DownloadProgress>

    /// Downloads files that will be needed, at low priority and a few at a time.
    ///
    /// A request of one of them joins its download, and brings it before those that nobody has requested.
    /// Errors are left to the request. Releasing the loader ends it.
    ///
    /// - Parameter urls: The URLs.
    nonisolated public func prefetch(_ urls: some Sequence<URL>)

    /// Removes all files and parts.
    ///
    /// They are out of reach before this call suspends. A download under way is not kept: its callers get
    /// ``MediaError/cleared``. What is being prefetched is no longer. It runs to its end when the calling task
    /// is cancelled.
    ///
    /// - Throws: The system's error if something is left, which this loader does not use any more; the next
    ///   call tries again.
    public func clear() async throws

    /// Adds the loader to a repository, which does not keep it alive.
    ///
    /// - Parameter repository: What clears its members together.
    /// - Returns: The loader itself.
    @discardableResult
    nonisolated public func register(in repository: Plexus.MuxRepository = .shared) -> Self
}

extension MediaLoader : Plexus.RepositoryMember {

    /// Sets all files aside, so that nothing finds them, and keeps no download that has begun.
    nonisolated public func cutOff()

    /// Removes the files that were set aside.
    ///
    /// - Throws: The system's error if something is left.
    @concurrent nonisolated public func removeStored() async throws

    /// Does nothing: a loader keeps no files in memory.
    nonisolated public func clearMemory()
}

/// What takes an answer piece by piece.
public protocol MediaReceiver : Sendable {

    /// Takes what changes the priority of the transfer.
    ///
    /// A transport whose transfers have priorities calls it once before `begin`; others need not. There is a
    /// default implementation, which never calls the closure.
    ///
    /// - Parameter change: What to call with the priority of the caller to whom the transfer is most urgent: at
    ///   once, and whenever that has become another one. It is called on any thread, and released with the
    ///   transfer.
    func onPriorityChange(_ change: @escaping @Sendable (TaskPriority) -> Void)

    /// Takes status and header fields of the final answer.
    ///
    /// - Parameter response: The answer.
    /// - Throws: An error if the body is not wanted.
    func begin(_ response: HTTPURLResponse) throws

    /// Takes the next bytes of the body, without the coding that they were sent in.
    ///
    /// - Parameter bytes: The bytes.
    /// - Throws: An error if no more are wanted.
    func receive(_ bytes: Data) throws
}

extension MediaReceiver {

    /// Never calls the closure: the transfer keeps the priority that it has.
    ///
    /// - Parameter change: What changes the priority of the transfer.
    public func onPriorityChange(_ change: @escaping @Sendable (TaskPriority) -> Void)
}

/// What sends the requests of a ``MediaLoader``; conform a type of your own to use another client than
/// URLSession, or none in a test.
///
/// A transport follows redirects, knows nothing of files and keeps nothing.
public protocol MediaTransport : Sendable {

    /// Sends a request and hands over the answer while it arrives.
    ///
    /// It calls `begin` once and then `receive` in order, one call after another, and none any more soon after
    /// it has returned. What the receiver throws ends the transfer and is thrown. Cancelling the calling task
    /// ends the transfer, too, with a `CancellationError`.
    ///
    /// - Parameters:
    ///   - request: What to send.
    ///   - receiver: What takes the answer, whatever its status.
    /// - Throws: An error if there was no answer or not all of it; a `ConnectivityFailure` lets the loader try
    ///   again.
    @concurrent func send(_ request: URLRequest, to receiver: any PlexusNetworking.MediaReceiver) async throws
}

/// A transport that uses a URLSession of its own, without cache and cookies.
///
/// Bytes are handed over as they arrive. Redirects are followed within a limit, to http and https only.
/// Releasing the last reference lets running transfers end and closes the connections. A transfer has the
/// priority of the caller to whom it is most urgent, also when that one comes later.
final public class URLSessionTransport : PlexusNetworking.MediaTransport {

    /// Creates a transport.
    ///
    /// - Parameters:
    ///   - timeout: How many seconds to wait for the next bytes before the transfer fails with
    ///     `URLError.timedOut`.
    ///   - redirectLimit: How many redirects of one request are followed; one more fails with
    ///     `URLError.httpTooManyRedirects`.
    ///   - headers: Fields that are sent with every request.
    public init(timeout: TimeInterval = 60, redirectLimit: Int = 10, headers: [String : String] = [:])

    deinit

    /// Sends a request and hands over the answer while it arrives.
    ///
    /// - Parameters:
    ///   - request: What to send.
    ///   - receiver: What takes the answer, on a thread of the session.
    /// - Throws: `URLError` if there was no answer or not all of it; what the receiver throws; a
    ///   `CancellationError` if the calling task is cancelled.
    @concurrent public func send(_ request: URLRequest, to receiver: any PlexusNetworking.MediaReceiver) async throws
}

extension CachePolicy {

    /// A policy that leaves to the server how long values are fresh, for fetches by an ``HTTPFetcher``.
    ///
    /// A value without Cache-Control and Expires is stale at once, so that every request asks whether it has
    /// changed. The value that there is stands in after a failure of connectivity, and after a 5xx status if
    /// the server has allowed it (stale-if-error), unless the server forbids it. A stored copy is read before
    /// the first fetch, which it may save, or let end with 304. All other properties have their defaults.
    ///
    /// ```swift
    /// var policy = CachePolicy.http
    /// policy.staleWhileRevalidate = .seconds(60)
    /// ```
    public static var http: Plexus.CachePolicy { get }
}

extension URLError : Plexus.ConnectivityFailure {

    /// Whether the network, rather than the server or the request, stood in the way.
    ///
    /// These are the errors of a device that is offline, or kept offline by its settings or by a call;
    /// of a connection that was lost or could not be made; of a host name that could not be looked up;
    /// and of a time-out. With the default `CachePolicy`, a cache answers them with the value that it
    /// still has.
    ///
    /// A failure of TLS is none of them, since a certificate that cannot be trusted must never look
    /// like a bad connection; nor is a cancelled transfer, a wrong URL or a bad response.
    public var isConnectivityFailure: Bool { get }
}

