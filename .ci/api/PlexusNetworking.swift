
public struct DownloadProgress : Hashable, Sendable {

    public let receivedBytes: Int64

    public let totalBytes: Int64?

    public init(receivedBytes: Int64, totalBytes: Int64?)

    public var fraction: Double? { get }
}

public struct HTTPFetcher<Value> : Sendable where Value : Sendable {

    public init(_ request: URLRequest, session: URLSession? = nil, now: @escaping @Sendable () -> Date = { Date() }, decode: @escaping @Sendable (Data) async throws -> Value)

    public init(_ url: URL, session: URLSession? = nil, decode: @escaping @Sendable (Data) async throws -> Value)

    @concurrent public func fetch(_ context: Plexus.FetchContext<Value>) async throws -> Plexus.FetchResult<Value>
}

public struct HTTPRevalidationError : Error {

    public let underlying: any Error

    public init(underlying: any Error)
}

extension HTTPRevalidationError : CustomStringConvertible {

    public var description: String { get }
}

public struct HTTPStatusError : Error, Plexus.RetryAdvice, Plexus.OriginFailure, Hashable {

    public let status: Int

    public let retryAfter: Duration?

    public let allowsStaleValue: Bool

    public init(status: Int, retryAfter: Duration? = nil, allowsStaleValue: Bool = false)
}

extension HTTPStatusError {

    public var isOriginFailure: Bool { get }
}

extension HTTPStatusError : CustomStringConvertible {

    public var description: String { get }
}

final public actor ImageLoader<Image> where Image : Sendable {

    public init(media: PlexusNetworking.MediaLoader = .main, capacity: Plexus.CacheCapacity<Image> = .count(50), decode: @escaping @Sendable (Data) async throws -> Image)

    deinit

    public func request(_ url: URL) async throws -> Image

    nonisolated public subscript(url: URL) -> Plexus.Request<Image> { get }

    nonisolated public func cachedImage(for url: URL) -> Image?

    nonisolated public func prefetch(_ urls: some Sequence<URL>)

    public func clear() async throws

    nonisolated public func clearMemory()

    @discardableResult
    nonisolated public func register(in repository: Plexus.MuxRepository = .shared) -> Self
}

@nonexhaustive public enum MediaError : Error, Hashable, Sendable {

    case unsupportedScheme(URL)

    case noSuchFile(URL)

    case wrongChecksum(expected: String, found: String)

    case inconsistentLength

    case cleared
}

extension MediaError : CustomStringConvertible {

    public var description: String { get }
}

final public actor MediaLoader {

    public static let main: PlexusNetworking.MediaLoader

    public init(directory: URL? = nil, transport: any PlexusNetworking.MediaTransport = URLSessionTransport(), byteLimit: Int? = nil, connectionsPerHost: Int = 6, retry: Plexus.RetryPolicy = .exponential(
      attempts: 3,
      base: .milliseconds(500),
      cap: .seconds(10),
      jitter: 0.2
    ), clock: any Clock<Duration> = ContinuousClock())

    deinit

    public func request(_ url: URL) async throws -> URL

    @concurrent nonisolated public func request(_ url: URL, sha256: String) async throws -> URL

    public func withFile<Result>(for url: URL, _ body: @Sendable (URL) async throws -> Result) async throws -> Result where Result : Sendable

    nonisolated public subscript(url: URL) -> Plexus.Request<URL> { get }

    nonisolated public func cachedFile(for url: URL) -> URL?

    nonisolated public func progress(of url: URL) -> AsyncStream<PlexusNetworking.DownloadProgress>

    nonisolated public func prefetch(_ urls: some Sequence<URL>)

    public func clear() async throws

    @discardableResult
    nonisolated public func register(in repository: Plexus.MuxRepository = .shared) -> Self
}

extension MediaLoader : Plexus.RepositoryMember {

    nonisolated public func invalidate()

    @concurrent nonisolated public func removeStored() async throws

    nonisolated public func clearMemory()
}

public protocol MediaReceiver : Sendable {

    func onPriorityChange(_ change: @escaping @Sendable (TaskPriority) -> Void)

    func begin(_ response: HTTPURLResponse) throws

    func receive(_ bytes: Data) throws
}

extension MediaReceiver {

    public func onPriorityChange(_ change: @escaping @Sendable (TaskPriority) -> Void)
}

public protocol MediaTransport : Sendable {

    @concurrent func send(_ request: URLRequest, to receiver: any PlexusNetworking.MediaReceiver) async throws
}

final public class URLSessionTransport : PlexusNetworking.MediaTransport {

    public init(timeout: TimeInterval = 60, redirectLimit: Int = 10, headers: [String : String] = [:])

    deinit

    @concurrent public func send(_ request: URLRequest, to receiver: any PlexusNetworking.MediaReceiver) async throws
}

extension CachePolicy {

    public static var http: Plexus.CachePolicy { get }
}

extension URLError : Plexus.ConnectivityFailure {

    public var isConnectivityFailure: Bool { get }
}

