
public struct DownloadProgress : Hashable, Sendable {

    public let receivedBytes: Int64

    public let totalBytes: Int64?

    public init(receivedBytes: Int64, totalBytes: Int64?)

    public var fraction: Double? { get }
}

public struct HTTPAccounts : Sendable {
}

final public actor HTTPCache<Value> where Value : Sendable {

    public convenience init(id: String? = nil, policy: Plexus.CachePolicy = .http, capacity: Plexus.CacheCapacity<Value> = .count(1_000), transport: any PlexusNetworking.HTTPTransport = URLSessionTransport.shared, rules: PlexusNetworking.HTTPRules = HTTPRules(), clock: any Clock<Duration> = ContinuousClock(), now: @escaping @Sendable () -> Date = { Date() }, update: (@Sendable (Value, PlexusNetworking.HTTPResponse) -> Value)? = nil, decode: @escaping @Sendable (PlexusNetworking.HTTPResponse) async throws -> Value)

    public func request(_ url: URL) async throws -> Value

    public func request(_ request: URLRequest) async throws -> Value

    public func response(_ request: URLRequest) async throws -> Plexus.Response<Value>

    nonisolated public func cachedValue(_ request: URLRequest) -> Value?

    public func clear(_ url: URL) async throws

    public func clear() async throws

    nonisolated public func events(bufferingPolicy: Plexus.BufferingPolicy<Plexus.CacheEvent> = .unbounded) -> AsyncStream<Plexus.CacheEvent>

    nonisolated public var statistics: Plexus.CacheStatistics { get }

    @discardableResult
    nonisolated public func register(in repository: Plexus.MuxRepository = .shared) -> Self
}

extension HTTPCache where Value == PlexusNetworking.HTTPResponse {

    public convenience init(id: String? = nil, policy: Plexus.CachePolicy = .http, capacity: Plexus.CacheCapacity<PlexusNetworking.HTTPResponse> = .count(1_000), transport: any PlexusNetworking.HTTPTransport = URLSessionTransport.shared, rules: PlexusNetworking.HTTPRules = HTTPRules(), clock: any Clock<Duration> = ContinuousClock(), now: @escaping @Sendable () -> Date = { Date() })
}

final public class HTTPCookieJar : Sendable {

    public init(now: @escaping @Sendable () -> Date = { Date() })

    public func removeAll()

    public var count: Int { get }
}

public struct HTTPFetcher<Value> : Sendable where Value : Sendable {

    public typealias Invalidation = @Sendable (Set<URL>) async throws -> Void

    public init(_ request: URLRequest, transport: any PlexusNetworking.HTTPTransport = URLSessionTransport.shared, rules: PlexusNetworking.HTTPRules = HTTPRules(), clock: any Clock<Duration> = ContinuousClock(), now: @escaping @Sendable () -> Date = { Date() }, invalidate: PlexusNetworking.HTTPFetcher<Value>.Invalidation? = nil, decode: @escaping @Sendable (Data) async throws -> Value)

    public init(_ request: URLRequest, transport: any PlexusNetworking.HTTPTransport = URLSessionTransport.shared, rules: PlexusNetworking.HTTPRules = HTTPRules(), clock: any Clock<Duration> = ContinuousClock(), now: @escaping @Sendable () -> Date = { Date() }, invalidate: PlexusNetworking.HTTPFetcher<Value>.Invalidation? = nil, update: (@Sendable (Value, PlexusNetworking.HTTPResponse) -> Value)? = nil, decode: @escaping @Sendable (PlexusNetworking.HTTPResponse) async throws -> Value)

    public init(_ url: URL, transport: any PlexusNetworking.HTTPTransport = URLSessionTransport.shared, rules: PlexusNetworking.HTTPRules = HTTPRules(), decode: @escaping @Sendable (Data) async throws -> Value)

    @concurrent public func fetch(_ context: Plexus.FetchContext<Value>) async throws -> Plexus.FetchResult<Value>
}

extension HTTPFetcher where Value == PlexusNetworking.HTTPResponse {

    public init(_ request: URLRequest, transport: any PlexusNetworking.HTTPTransport = URLSessionTransport.shared, rules: PlexusNetworking.HTTPRules = HTTPRules(), clock: any Clock<Duration> = ContinuousClock(), now: @escaping @Sendable () -> Date = { Date() }, invalidate: PlexusNetworking.HTTPFetcher<Value>.Invalidation? = nil)
}

public struct HTTPHeaders : Sendable, Hashable, Codable, ExpressibleByDictionaryLiteral {

    public private(set) var fields: [String : String] { get }

    public init(dictionaryLiteral elements: (String, String)...)

    public init(_ fields: [String : String])

    public init(from decoder: any Decoder) throws

    public func encode(to encoder: any Encoder) throws

    public subscript(name: String) -> String?
}

public struct HTTPRate : Sendable, Hashable {

    public let bytes: Int

    public let duration: Duration

    public init(bytes: Int, per duration: Duration)
}

public protocol HTTPReceiver : Sendable {

    func onPriorityChange(_ change: @escaping @Sendable (TaskPriority) -> Void)

    func begin(_ response: HTTPURLResponse) throws

    func receive(_ bytes: Data) throws
}

extension HTTPReceiver {

    public func onPriorityChange(_ change: @escaping @Sendable (TaskPriority) -> Void)
}

public struct HTTPRedirectRules : Sendable, Hashable {

    public var limit: Int

    public var sendsCredentialsToOtherOrigins: Bool

    public var allowsDowngrade: Bool

    public var credentials: [String]

    public init(limit: Int = 10, sendsCredentialsToOtherOrigins: Bool = false, allowsDowngrade: Bool = false, credentials: [String] = ["Authorization", "Cookie", "Proxy-Authorization"])
}

@nonexhaustive public enum HTTPRequestError : Error, Hashable, Sendable {

    case methodNotCached(String)

    case methodOfFile(String, URL)

    case cookiesRemoved

    case accountChanged

    case signedOut

    case authorizedForOtherOrigin(URL?)
}

extension HTTPRequestError : Plexus.OriginFailure {

    public var isOriginFailure: Bool { get }
}

extension HTTPRequestError : CustomStringConvertible {

    public var description: String { get }
}

public struct HTTPResponse : Sendable, Hashable, Codable {

    public var url: URL

    public var status: Int

    public var headers: PlexusNetworking.HTTPHeaders

    public var body: Data

    public init(url: URL, status: Int = 200, headers: PlexusNetworking.HTTPHeaders = [:], body: Data = Data())

    public init(from decoder: any Decoder) throws
}

public struct HTTPRevalidationError : Error {

    public let underlying: any Error

    public init(underlying: any Error)
}

extension HTTPRevalidationError : CustomStringConvertible {

    public var description: String { get }
}

public struct HTTPRules : Sendable {

    public var redirects: PlexusNetworking.HTTPRedirectRules

    public var cookies: PlexusNetworking.HTTPCookieJar?

    public var maximumBodyBytes: Int64?

    public var totalTimeout: Duration?

    public var minimumRate: PlexusNetworking.HTTPRate?

    public var allowsFileURLs: Bool

    public init(redirects: PlexusNetworking.HTTPRedirectRules = HTTPRedirectRules(), cookies: PlexusNetworking.HTTPCookieJar? = nil, maximumBodyBytes: Int64? = 64 << 20, totalTimeout: Duration? = .seconds(300), minimumRate: PlexusNetworking.HTTPRate? = HTTPRate(bytes: 1_024, per: .seconds(60)), allowsFileURLs: Bool = false)

    public static var media: PlexusNetworking.HTTPRules { get }
}

public struct HTTPStatusError : Error, Plexus.RetryAdvice, Plexus.OriginFailure, Hashable {

    public let status: Int

    public let url: URL?

    public let headers: PlexusNetworking.HTTPHeaders

    public let body: Data

    public let retryAfter: Duration?

    public let allowsStaleValue: Bool

    public init(status: Int, url: URL? = nil, headers: PlexusNetworking.HTTPHeaders = [:], body: Data = Data(), retryAfter: Duration? = nil, allowsStaleValue: Bool = false)
}

extension HTTPStatusError {

    public var isOriginFailure: Bool { get }
}

extension HTTPStatusError : CustomStringConvertible {

    public var description: String { get }
}

public protocol HTTPTransport : Sendable {

    var headers: [String : String] { get }

    var accounts: PlexusNetworking.HTTPAccounts? { get }

    @concurrent func send(_ request: URLRequest, to receiver: any PlexusNetworking.HTTPReceiver) async throws
}

extension HTTPTransport {

    public var headers: [String : String] { get }

    public var accounts: PlexusNetworking.HTTPAccounts? { get }
}

final public actor ImageLoader<Image> where Image : Sendable {

    public convenience init(media: PlexusNetworking.MediaLoader = .main, capacity: Plexus.CacheCapacity<Image>? = nil, concurrency: Int = ProcessInfo.processInfo.activeProcessorCount, failureTimeToLive: Duration = .seconds(300), decode: @escaping @Sendable (Data) async throws -> Image)

    public convenience init(media: PlexusNetworking.MediaLoader = .main, capacity: Plexus.CacheCapacity<Image>? = nil, concurrency: Int = ProcessInfo.processInfo.activeProcessorCount, failureTimeToLive: Duration = .seconds(300), decode: @escaping @Sendable (Data, PlexusNetworking.MediaResponse) async throws -> Image)

    deinit

    public func request(_ request: PlexusNetworking.MediaRequest) async throws -> Image

    nonisolated public subscript(request: PlexusNetworking.MediaRequest) -> Plexus.Request<Image> { get }

    nonisolated public func cachedImage(for request: PlexusNetworking.MediaRequest) -> Image?

    nonisolated public func progress(of request: PlexusNetworking.MediaRequest) -> AsyncStream<PlexusNetworking.DownloadProgress>

    @discardableResult
    public func reload(_ request: PlexusNetworking.MediaRequest) async throws -> Image

    public func remove(_ request: PlexusNetworking.MediaRequest) async throws

    nonisolated public func prefetch(_ requests: some Sequence<PlexusNetworking.MediaRequest>)

    public func clear() async throws

    nonisolated public func clearMemory()

    @discardableResult
    nonisolated public func register(in repository: Plexus.MuxRepository = .shared) -> Self
}

extension ImageLoader {

    public func request(_ url: URL) async throws -> Image

    nonisolated public subscript(url: URL) -> Plexus.Request<Image> { get }

    nonisolated public func cachedImage(for url: URL) -> Image?

    nonisolated public func progress(of url: URL) -> AsyncStream<PlexusNetworking.DownloadProgress>

    @discardableResult
    public func reload(_ url: URL) async throws -> Image

    public func remove(_ url: URL) async throws

    nonisolated public func prefetch(_ urls: some Sequence<URL>)
}

extension ImageLoader : Plexus.RepositoryMember {

    nonisolated public func invalidate()

    nonisolated public func pause()

    nonisolated public func resume()

    nonisolated public var name: String { get }

    nonisolated public var statistics: Plexus.CacheStatistics? { get }
}

extension ImageLoader {

    nonisolated public func entries(limit: Int, where isIncluded: (String) -> Bool = { _ in true }) -> [PlexusNetworking.MediaEntrySnapshot]

    nonisolated public func flights(limit: Int) -> [PlexusNetworking.MediaFlightSnapshot]
}

public struct ImageVariant : Sendable, Hashable {

    public init(width: Int, height: Int)

    public init(_ name: String, version: Int = 1)

    public var width: Int? { get }

    public var height: Int? { get }

    public var name: String? { get }

    public var version: Int? { get }

    public static let maximumSide: Int

    public var isValid: Bool { get }
}

extension ImageVariant : CustomStringConvertible {

    public var description: String { get }
}

public struct MediaEntrySnapshot : Sendable {

    public let key: String

    public let state: Plexus.CacheEntryState

    public let age: Duration

    public let cost: Int
}

@nonexhaustive public enum MediaError : Error, Hashable, Sendable {

    case unsupportedScheme(URL)

    case noSuchFile(URL)

    case wrongChecksum(expected: String, found: String)

    case inconsistentLength

    case fileTooLarge(limit: Int64)

    case cleared

    case invalidVariant(PlexusNetworking.ImageVariant)
}

extension MediaError : CustomStringConvertible {

    public var description: String { get }
}

public struct MediaFlightSnapshot : Sendable {

    public let key: String

    public let age: Duration

    public let callerCount: Int

    public let isWaiting: Bool
}

final public actor MediaLoader {

    public static let main: PlexusNetworking.MediaLoader

    public init(directory: URL? = nil, transport: any PlexusNetworking.HTTPTransport = URLSessionTransport.shared, rules: PlexusNetworking.HTTPRules = .media, byteLimit: Int? = 1 << 30, maximumFileBytes: Int? = 512 << 20, connectionsPerHost: Int = 6, revalidates: Bool = false, retry: Plexus.RetryPolicy = .exponential(
      attempts: 3,
      base: .milliseconds(500),
      cap: .seconds(10),
      jitter: 0.2
    ), clock: any Clock<Duration> = ContinuousClock())

    deinit

    public func request(_ request: PlexusNetworking.MediaRequest) async throws -> URL

    public func request(_ request: PlexusNetworking.MediaRequest, sha256: String) async throws -> URL

    public func withFile<Result>(for request: PlexusNetworking.MediaRequest, _ body: @Sendable (URL) async throws -> Result) async throws -> Result where Result : Sendable

    nonisolated public subscript(request: PlexusNetworking.MediaRequest) -> Plexus.Request<URL> { get }

    nonisolated public func cachedFile(for request: PlexusNetworking.MediaRequest) -> URL?

    nonisolated public func progress(of request: PlexusNetworking.MediaRequest) -> AsyncStream<PlexusNetworking.DownloadProgress>

    @discardableResult
    public func reload(_ request: PlexusNetworking.MediaRequest) async throws -> URL

    public func remove(_ request: PlexusNetworking.MediaRequest) async throws

    nonisolated public func prefetch(_ requests: some Sequence<PlexusNetworking.MediaRequest>)

    public func clear() async throws

    @discardableResult
    nonisolated public func register(in repository: Plexus.MuxRepository = .shared) -> Self
}

extension MediaLoader : Plexus.RepositoryMember {

    nonisolated public func invalidate()

    @concurrent nonisolated public func removeStored() async throws

    nonisolated public func clearMemory()
}

extension MediaLoader {

    public func request(_ url: URL) async throws -> URL

    public func request(_ url: URL, sha256: String) async throws -> URL

    public func withFile<Result>(for url: URL, _ body: @Sendable (URL) async throws -> Result) async throws -> Result where Result : Sendable

    nonisolated public subscript(url: URL) -> Plexus.Request<URL> { get }

    nonisolated public func cachedFile(for url: URL) -> URL?

    nonisolated public func progress(of url: URL) -> AsyncStream<PlexusNetworking.DownloadProgress>

    @discardableResult
    public func reload(_ url: URL) async throws -> URL

    public func remove(_ url: URL) async throws

    nonisolated public func prefetch(_ urls: some Sequence<URL>)
}

extension MediaLoader {

    nonisolated public func flights(limit: Int) -> [PlexusNetworking.MediaFlightSnapshot]
}

public struct MediaRequest : Sendable, Hashable {

    public var url: URL

    public var headers: [String : String]

    public var cacheKey: String?

    public var priority: TaskPriority?

    public var variant: PlexusNetworking.ImageVariant?

    public init(_ url: URL, headers: [String : String] = [:], cacheKey: String? = nil, priority: TaskPriority? = nil, variant: PlexusNetworking.ImageVariant? = nil)

    public func hash(into hasher: inout Hasher)
}

public struct MediaResponse : Sendable, Hashable {

    public let url: URL

    public let file: URL?

    public let type: String?

    public let variant: PlexusNetworking.ImageVariant?

    public init(url: URL, file: URL? = nil, type: String? = nil, variant: PlexusNetworking.ImageVariant? = nil)
}

final public class Prefetcher : Sendable {

    public init(_ loader: PlexusNetworking.MediaLoader, concurrency: Int = 4)

    public init<Image>(_ loader: PlexusNetworking.ImageLoader<Image>, concurrency: Int = 4) where Image : Sendable

    public func prefetch(_ requests: some Sequence<PlexusNetworking.MediaRequest>)

    public func prefetch(_ urls: some Sequence<URL>)

    public func cancel(_ requests: some Sequence<PlexusNetworking.MediaRequest>)

    public func cancel(_ urls: some Sequence<URL>)

    public func cancelAll()

    public func pause()

    public func resume()

    public var isPaused: Bool { get }
}

final public actor TokenTransport<Token> : PlexusNetworking.HTTPTransport where Token : Sendable {

    public init(base: any PlexusNetworking.HTTPTransport = URLSessionTransport.shared, origin: URL, token: Plexus.Multiplexer<Token>, account: @escaping @Sendable (Token) -> String, authorize: @escaping @Sendable (inout URLRequest, Token) throws -> Void, onSignedOut: @escaping @Sendable (any Error) -> Void = { _ in })

    nonisolated public var headers: [String : String] { get }

    nonisolated public var accounts: PlexusNetworking.HTTPAccounts? { get }

    @concurrent nonisolated public func send(_ request: URLRequest, to receiver: any PlexusNetworking.HTTPReceiver) async throws
}

final public class URLSessionTransport : PlexusNetworking.HTTPTransport {

    public static let shared: PlexusNetworking.URLSessionTransport

    public let headers: [String : String]

    public init(configuration: URLSessionConfiguration = .ephemeral, timeout: TimeInterval? = nil, headers: [String : String] = [:])

    deinit

    @concurrent public func send(_ request: URLRequest, to receiver: any PlexusNetworking.HTTPReceiver) async throws
}

extension CachePolicy {

    public static var http: Plexus.CachePolicy { get }
}

extension MuxRepository {

    nonisolated public func register<Value>(_ cache: PlexusNetworking.HTTPCache<Value>) where Value : Sendable

    nonisolated public func unregister<Value>(_ cache: PlexusNetworking.HTTPCache<Value>) where Value : Sendable
}

extension URLError : Plexus.ConnectivityFailure {

    public var isConnectivityFailure: Bool { get }
}

