import Glibc
import Observation
import Synchronization

/// The identity of a sender.
///
/// A sender that also listens gives its author along with what it sends, and subscribes with
/// ``Messenger/subscribe(ignoring:bufferingPolicy:)``: it then never hears itself, and two objects
/// that answer each other's messages do not do so for ever.
public struct Author : Hashable, Sendable {

    /// Creates an author that is equal to its own copies only.
    public init()
}

/// The reasons why waiting for a broadcaster is in vain.
@nonexhaustive public enum BroadcastError : Error, Hashable, Sendable {

    /// The broadcaster has ended before anybody has subscribed, and nobody can any more.
    case finished
}

extension BroadcastError : CustomStringConvertible {

    /// A sentence that says what happened and what to do about it.
    public var description: String { get }
}

/// A source of elements that any number of tasks may subscribe to.
///
/// `any Broadcaster<DatabaseUpdate>` can be stored, so that a type need not say what kind of source
/// it listens to.
///
/// Every broadcaster of this library keeps one contract. A subscriber is registered, without a gap,
/// when the call that subscribes returns. All subscribers see the same order. Sending is synchronous
/// and callable from anywhere. A subscriber that is dropped, cancelled or released is unsubscribed,
/// and no subscriber keeps its broadcaster alive: streams end with the last reference to it.
public protocol Broadcaster<Element> : Sendable {

    /// What subscribers receive.
    associatedtype Element : Sendable

    /// Registers a subscriber and returns what it receives.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
    nonisolated func subscription(bufferingPolicy: Plexus.BufferingPolicy<Self.Element>) -> Plexus.Subscription<Self.Element>

    /// Registers a subscriber and returns what it receives as the standard library's stream.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
    nonisolated func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Self.Element>) -> AsyncStream<Self.Element>

    /// The number of subscribers at this moment, streams and handlers alike.
    nonisolated var subscriberCount: Int { get }
}

extension Broadcaster {

    /// Registers a subscriber and returns what it receives as the standard library's stream.
    ///
    /// The stream follows the rules of ``Subscription``, but one task iterates it only.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Self.Element>) -> AsyncStream<Self.Element>
}

extension Broadcaster {

    /// Calls a closure for every element, on the actor that the closure belongs to.
    ///
    /// The synchronous handlers of one source that share an actor run one after another, in
    /// subscription order, message by message: everybody sees one message before anybody sees the
    /// next. What a handler sends itself comes afterwards.
    ///
    /// - Parameters:
    ///   - bufferingPolicy: Which elements the handler may miss while it is behind.
    ///   - handler: What to call. It is released when the token is cancelled.
    /// - Returns: The token that keeps the handler registered. Dropping it removes the handler.
    nonisolated public func observe(bufferingPolicy: Plexus.BufferingPolicy<Self.Element> = .unbounded, _ handler: @escaping @isolated(any) @Sendable (Self.Element) -> Void) -> Plexus.ObservationToken

    /// Calls an asynchronous closure for every element, on the actor that the closure belongs to.
    ///
    /// The handler has a task of its own. It sees every element in order, never overlaps itself, and
    /// holds up nobody else while it is suspended.
    ///
    /// - Parameters:
    ///   - bufferingPolicy: Which elements the handler may miss while it is behind.
    ///   - handler: What to call. When the token is cancelled, so is the task that a running handler
    ///     is in; the closure is released when it has returned.
    /// - Returns: The token that keeps the handler registered. Dropping it removes the handler.
    nonisolated public func observe(bufferingPolicy: Plexus.BufferingPolicy<Self.Element> = .unbounded, _ handler: @escaping @isolated(any) @Sendable (Self.Element) async -> Void) -> Plexus.ObservationToken

    /// Calls a closure for every element as long as its owner lives.
    ///
    /// The rules are those of the handlers that a token keeps. The owner is held weakly; once it has gone,
    /// the handler is not called any more, and is released at the next element or the next look at
    /// ``subscriberCount``.
    ///
    /// - Parameters:
    ///   - owner: Whose life decides. The closure must not capture it strongly: it is handed in.
    ///   - bufferingPolicy: Which elements the handler may miss while it is behind.
    ///   - handler: What to call, with the owner and the element.
    nonisolated public func observe<Owner>(as owner: Owner, bufferingPolicy: Plexus.BufferingPolicy<Self.Element> = .unbounded, _ handler: @escaping @isolated(any) @Sendable (Owner, Self.Element) -> Void) where Owner : AnyObject, Owner : Sendable

    /// Calls an asynchronous closure for every element as long as its owner lives.
    ///
    /// The handler has a task of its own, which keeps the owner alive only while the handler runs.
    ///
    /// - Parameters:
    ///   - owner: Whose life decides. The closure must not capture it strongly: it is handed in.
    ///   - bufferingPolicy: Which elements the handler may miss while it is behind.
    ///   - handler: What to call, with the owner and the element.
    nonisolated public func observe<Owner>(as owner: Owner, bufferingPolicy: Plexus.BufferingPolicy<Self.Element> = .unbounded, _ handler: @escaping @isolated(any) @Sendable (Owner, Self.Element) async -> Void) where Owner : AnyObject, Owner : Sendable
}

/// What is kept for a subscriber that is slower than the sender.
///
/// It is `AsyncStream`'s own type: `.unbounded` loses nothing, `.bufferingNewest(n)` skips ahead to
/// the newest `n` elements, `.bufferingOldest(n)` refuses new ones while `n` are waiting. A limit of
/// zero or less keeps nothing: an element reaches only a subscriber that waits for it.
///
/// Messages and events default to `.unbounded`, states to `.bufferingNewest(1)`.
public typealias BufferingPolicy<Element> = AsyncStream<Element>.Continuation.BufferingPolicy

/// How much a map keeps in memory.
///
/// When there is too much, values have to go that are not likely to be asked for again: which ones,
/// S3-FIFO decides (Yang et al., "FIFO Queues are All You Need for Cache Eviction", SOSP 2023), with a
/// small queue that grows and shrinks with what returns.
///
/// ```swift
/// var policy = CachePolicy()
/// policy.timeToLive = .seconds(3600)
/// let pages = MultiplexerMap<String, [UInt8]>(
///   policy: policy,
///   capacity: .cost(64 * 1024 * 1024, of: { page in page.count })
/// ) { url in Array(url.utf8) }
/// ```
///
/// A value that has gone is fetched again when it is asked for, or read from the cacher if the policy says
/// so; one that the cacher does not have yet is written to it first. A fetch under way and its callers
/// notice nothing.
public enum CacheCapacity<Value> : Sendable where Value : Sendable {

    /// Everything.
    case unbounded

    /// So many values, never more.
    ///
    /// With 0 nothing is kept, and callers still share fetches.
    case count(Int)

    /// Values that cost no more than so much together.
    ///
    /// The closure is called once for each new value, under no lock; a negative cost counts as 0. A value
    /// that costs more than the whole limit is returned to those who wait for it, not kept, and nothing has
    /// to go for it.
    case cost(Int, of: @Sendable (Value) -> Int)
}

/// What the origin of a value says about keeping it, which holds for that value in place of the policy.
///
/// A fetch returns it with ``FetchResult/fetched(_:directives:validator:)``. What it leaves out is up to the
/// ``CachePolicy``.
///
/// ```swift
/// let rates = Multiplexer { (_: FetchContext<[String]>) in
///   .fetched(
///     ["EUR"],
///     directives: CacheDirectives(timeToLive: .seconds(60), staleIfError: .seconds(3_600))
///   )
/// }
/// ```
///
/// ## Failing
///
/// After a failed fetch the value stands in if the policy's ``CachePolicy/usesCachedValue`` allows it, *or*
/// if ``staleIfError`` does: each of them permits, and neither forbids what the other one permits. Only
/// ``requiresRevalidation`` forbids, and then whatever the other two say. In no case is the deadline of the
/// value extended, or the value dropped.
public struct CacheDirectives : Hashable, Sendable {

    /// How long the value is fresh, from the end of its fetch; `nil` for the time to live of the policy.
    ///
    /// It is kept exactly, without jitter.
    public var timeToLive: Duration?

    /// How long after its time to live the value is still handed out at once, while one fetch renews it in the
    /// background; `nil` for the time of the policy.
    public var staleWhileRevalidate: Duration?

    /// How long after its time to live the value stands in for one that could not be fetched, whatever the
    /// policy says of the error; `nil` or zero if only the policy decides.
    ///
    /// Every error counts, but for an ``OriginFailure`` that says that it is none, and for cancellation. The
    /// time goes on when a fetch fails: it is counted from the deadline of the value. A stored copy counts
    /// where it has been read: by a policy that does so before it fetches, or after an error for which the
    /// policy allows a cached value.
    public var staleIfError: Duration?

    /// Whether the value must not be used any more once it is past its time to live, until a fetch has
    /// confirmed or replaced it.
    ///
    /// Then nothing stale is handed out, neither while it is renewed nor after an error, whatever the policy
    /// and the other directives say. The value is not dropped: ``Multiplexer/cachedValue`` and the next fetch
    /// still have it.
    public var requiresRevalidation: Bool

    /// Creates directives.
    ///
    /// - Parameters:
    ///   - timeToLive: How long the value is fresh.
    ///   - staleWhileRevalidate: How long it is handed out after that, while it is renewed.
    ///   - staleIfError: How long it stands in after that for one that could not be fetched.
    ///   - requiresRevalidation: Whether it must not be used once it is stale.
    public init(timeToLive: Duration? = nil, staleWhileRevalidate: Duration? = nil, staleIfError: Duration? = nil, requiresRevalidation: Bool = false)
}

extension CacheDirectives : Codable {

    /// Reads directives that an encoder has written, for instance for a ``Cacher`` of your own.
    ///
    /// - Parameter decoder: Where they are read from. What is not there is left to the policy.
    /// - Throws: The error of the decoder.
    public init(from decoder: any Decoder) throws
}

/// A value in a ``Cacher``, with what is needed to judge and renew it later.
public struct CacheEntry<Value> : Sendable where Value : Sendable {

    /// The value.
    public var value: Value

    /// The time at which the value was fetched or stored, since 1970-01-01T00:00Z.
    ///
    /// It is the wall clock's, because it has to mean something after a restart. A cacher keeps it as it
    /// is, times in the future included: whether an entry is fresh is decided by who reads it.
    public var storedAt: Duration

    /// What came with the value to ask the origin whether it has changed, such as an entity tag.
    public var validator: String?

    /// What came with the value about keeping it.
    ///
    /// A cacher that does not keep it leaves everything to the policy of whoever reads the entry.
    public var directives: Plexus.CacheDirectives

    /// Creates an entry.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - storedAt: The time at which it was fetched or stored, since 1970-01-01T00:00Z.
    ///   - validator: What came with it to ask the origin whether it has changed.
    ///   - timeToLive: The time to live that came with it.
    public init(value: Value, storedAt: Duration, validator: String? = nil, timeToLive: Duration? = nil)

    /// Creates an entry with all that came with its value about keeping it.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - storedAt: The time at which it was fetched or stored, since 1970-01-01T00:00Z.
    ///   - validator: What came with it to ask the origin whether it has changed.
    ///   - directives: What came with it about keeping it.
    public init(value: Value, storedAt: Duration, validator: String? = nil, directives: Plexus.CacheDirectives)

    /// The time to live that came with the value; `nil` if the policy of whoever reads it decides.
    ///
    /// It is the one of the ``directives``.
    public var timeToLive: Duration?
}

extension CacheEntry : Equatable where Value : Equatable {
}

extension CacheEntry : Hashable where Value : Hashable {
}

/// Something that has happened in a multiplexer or a map, for a log.
///
/// Keys appear as text; a multiplexer, which has only one, appears by its id.
@nonexhaustive public enum CacheEvent : Sendable {

    /// A fetch has brought a value.
    case fetched(key: String)

    /// A fetch has failed in the end, after all retries; one that was cancelled has not.
    case fetchFailed(key: String, error: any Error)

    /// A request found that the value is past its time to live, and a fetch has begun.
    case expired(key: String)

    /// A value had to make room for others.
    case evicted(key: String)

    /// A value was stored from outside.
    case stored(key: String)

    /// The stored copy was used in place of a fetch, or after one that failed.
    case restored(key: String)

    /// A value was cleared; all of them if no key is named.
    case cleared(key: String?)

    /// Values were written to the cacher.
    case flushed(count: Int)

    /// The cacher failed with one entry, or as a whole if no key is named.
    ///
    /// No request fails because of it.
    case cacherFailed(key: String?, error: any Error)
}

extension CacheEvent : CustomStringConvertible {

    /// A line for a log.
    public var description: String { get }
}

/// How long a multiplexer keeps values, and what it does when fetching is slow or fails.
///
/// ```swift
/// var policy = CachePolicy()
/// policy.timeToLive = .seconds(60)
/// policy.staleWhileRevalidate = .seconds(600)
/// policy.retry = .exponential(attempts: 3, base: .milliseconds(200), cap: .seconds(5), jitter: 0.2)
/// let rates = Multiplexer(policy: policy) { ["EUR": 1.08] }
/// ```
///
/// A value that comes with ``CacheDirectives`` goes by them where they say something, and by the policy where
/// they do not.
public struct CachePolicy : Sendable {

    /// How long a value is fresh, from the end of its fetch.
    ///
    /// A value is stale at exactly that age. With zero or less a value is never fresh: it serves only where a
    /// stale one does.
    public var timeToLive: Duration

    /// How long after its time to live a stale value is still handed out at once, while one fetch
    /// renews it in the background.
    public var staleWhileRevalidate: Duration

    /// Whether the value that there is, however old, is handed out after a fetch failed with this error.
    ///
    /// By default after a ``ConnectivityFailure`` that says it is one. It is asked once a failed fetch. A value
    /// may stand in without it for the time of its ``CacheDirectives/staleIfError``, and none that is stale
    /// does against its ``CacheDirectives/requiresRevalidation``.
    public var usesCachedValue: @Sendable (any Error) -> Bool

    /// How long a failure is remembered: requests get it at once instead of a new fetch.
    public var failureTimeToLive: Duration

    /// Whether and when a failed fetch is tried again before it counts as failed.
    public var retry: Plexus.RetryPolicy

    /// The longest wait that an error may ask for, such as the `Retry-After` of a server: ``RetryAdvice``.
    ///
    /// An error that asks for a longer one ends the attempts. Default: a minute.
    public var maximumRetryAfter: Duration

    /// How long one attempt of a fetch may take; `nil` for as long as it likes.
    ///
    /// An attempt that takes longer is cancelled and fails with ``MultiplexerError/fetchTimedOut(after:)``
    /// even if it does not heed the cancellation.
    public var fetchTimeout: Duration?

    /// What happens to a fetch when the last caller that waited for it has left.
    public var whenUnobserved: Plexus.UnobservedFetch

    /// When the stored copy is read.
    public var cacherRead: Plexus.CacherRead

    /// The share by which the time to live of each value is made longer or shorter at random, so that
    /// keys stored together do not expire together: 0.1 is up to 10 %.
    ///
    /// A time to live that the fetch itself gives is kept exactly.
    public var expiryJitter: Double

    /// Creates the policy that every property describes as its default.
    public init()

    /// Creates the default policy, but for how long a value is fresh.
    ///
    /// - Parameter timeToLive: How long a value is fresh.
    public init(timeToLive: Duration)
}

/// What has happened in a multiplexer since it was created.
///
/// Every request counts once: as a hit, a stale hit, a miss or a join.
public struct CacheStatistics : Hashable, Sendable {

    /// The requests that were answered at once with a fresh value.
    public var hits: Int

    /// The requests that were answered at once with a stale value.
    public var staleHits: Int

    /// The requests that began a fetch, or got a remembered failure.
    public var misses: Int

    /// The requests that waited for a fetch begun by somebody else.
    public var joins: Int

    /// The fetches begun.
    ///
    /// One that is tried again counts once, and so does one for several keys.
    public var fetches: Int

    /// The fetches that failed in the end; cancelled ones do not count.
    ///
    /// One for several keys counts once, however many of them it failed for.
    public var failures: Int

    /// The values that had to make room for others.
    public var evictions: Int

    /// The errors of the storage behind the multiplexer.
    public var cacherErrors: Int

    /// The stored copies that were used in place of a fetch, or after one that failed.
    public var restorations: Int

    /// Creates statistics.
    ///
    /// - Parameters:
    ///   - hits: The requests that were answered at once with a fresh value.
    ///   - staleHits: The requests that were answered at once with a stale value.
    ///   - misses: The requests that began a fetch, or got a remembered failure.
    ///   - joins: The requests that waited for a fetch begun by somebody else.
    ///   - fetches: The fetches begun.
    ///   - failures: The fetches that failed in the end.
    ///   - evictions: The values that had to make room for others.
    ///   - cacherErrors: The errors of the storage behind the multiplexer.
    ///   - restorations: The stored copies that were used.
    @inlinable public init(hits: Int = 0, staleHits: Int = 0, misses: Int = 0, joins: Int = 0, fetches: Int = 0, failures: Int = 0, evictions: Int = 0, cacherErrors: Int = 0, restorations: Int = 0)

    /// Returns the sum of two statistics, number by number.
    ///
    /// - Parameters:
    ///   - left: The one.
    ///   - right: The other.
    /// - Returns: The sum.
    public static func + (left: Plexus.CacheStatistics, right: Plexus.CacheStatistics) -> Plexus.CacheStatistics
}

/// The storage behind a multiplexer, where its values outlive the process.
///
/// The `PlexusStorage` module has two that keep JSON in files: `JSONFileCacher` and `JSONLogCacher`.
/// One of your own may stand on a database or a server:
///
/// ```swift
/// actor MemoryCacher: Cacher {
///   private var entries: [String: CacheEntry<String>] = [:]
///
///   func entry(forKey key: String) -> CacheEntry<String>? { entries[key] }
///
///   func store(_ new: [String: CacheEntry<String>]) {
///     entries.merge(new) { _, newer in newer }
///   }
///
///   func removeEntries(forKeys keys: Set<String>) {
///     for key in keys { entries[key] = nil }
///   }
///
///   func removeAllEntries() { entries = [:] }
/// }
/// ```
///
/// <doc:writing-a-cacher> has a complete one.
///
/// ## Whole entries
///
/// A reader gets an entry as it was stored, the newest one or an older one, or none: never parts of
/// it and never another key's. After a crash that holds, too. Keys are any strings, the empty one, long ones
/// and ones that look like paths included.
///
/// ## Durability
///
/// When ``store(_:)``, ``removeEntries(forKeys:)`` or ``removeAllEntries()`` returns, what it did
/// survives a crash and a power cut. In particular nothing that was removed comes back.
///
/// ## Failing
///
/// An entry that is damaged, cut short, foreign or from an older version is no error but a miss. An
/// operation throws if the storage itself fails; multiplexers count that and go on, so that no request
/// fails because of storage. A batch does what it can and then throws a ``CacherError`` that names
/// the rest.
///
/// ## Concurrency and cancellation
///
/// Any task may call any operation at any time. Of two that overlap and touch the same key either may
/// take effect last; one that begins after another has returned sees its effect. When the calling task is
/// cancelled, ``store(_:)`` may leave out entries, which it names with a `CancellationError` as the
/// reason. Reading and removing are carried out nevertheless.
public protocol Cacher<Value> : Sendable {

    /// The type of the values.
    associatedtype Value : Sendable

    /// Returns the entry of a key.
    ///
    /// - Parameter key: The key.
    /// - Returns: The entry as it was stored, however old it is; `nil` if there is none that can be used.
    /// - Throws: An error of the storage itself.
    func entry(forKey key: String) async throws -> Plexus.CacheEntry<Self.Value>?

    /// Stores entries in place of those that their keys have.
    ///
    /// An entry that cannot be stored leaves the older one of its key untouched or removes it, and does not
    /// stop the others.
    ///
    /// - Parameter entries: The entries by key.
    /// - Throws: A ``CacherError`` that names the keys whose entries were not stored.
    func store(_ entries: [String : Plexus.CacheEntry<Self.Value>]) async throws

    /// Removes the entries of some keys; those that have none are ignored.
    ///
    /// - Parameter keys: The keys.
    /// - Throws: A ``CacherError`` that names the keys whose entries may still be there.
    func removeEntries(forKeys keys: Set<String>) async throws

    /// Removes every entry.
    ///
    /// - Throws: An error of the storage, which may still have entries then.
    func removeAllEntries() async throws
}

/// The entries of a batch that a ``Cacher`` could not store or remove, and why.
///
/// The keys that are not named have been dealt with, durably.
public struct CacherError : Error {

    /// The reason for each key that failed.
    public let failures: [String : any Error]

    /// Creates an error.
    ///
    /// - Parameter failures: The reason for each key that failed.
    public init(failures: [String : any Error])

    /// The keys that failed.
    public var keys: Set<String> { get }
}

extension CacherError : CustomStringConvertible {

    /// A sentence that names some of the keys and their reasons, in order of the keys.
    public var description: String { get }
}

/// When a multiplexer reads its stored copy.
public enum CacherRead : Hashable, Sendable {

    /// After a fetch has failed with an error after which a cached value may be used.
    case afterConnectivityError

    /// Before the first fetch, so that what was stored before a restart is there at once.
    case beforeFetch
}

/// A value before and after it changed.
///
/// The old value is `nil` only where there was none: in what a subscriber is told first.
public struct Change<Value> : Sendable where Value : Sendable {

    /// What the value was, exactly one change before.
    public let old: Value?

    /// What the value is.
    public let new: Value

    /// Creates a change.
    ///
    /// - Parameters:
    ///   - old: What the value was; `nil` if there was none.
    ///   - new: What the value is.
    @inlinable public init(old: Value?, new: Value)
}

extension Change : Equatable where Value : Equatable {
}

extension Change : Hashable where Value : Hashable {
}

/// An error that can say whether it came about because the other side could not be reached.
///
/// After such a failure a multiplexer hands out the value that it has, by default: see
/// ``CachePolicy/usesCachedValue``. The `PlexusNetworking` module makes `URLError` one. An answer
/// that was received, even a bad one, is none.
public protocol ConnectivityFailure : Error {

    /// Whether the other side could not be reached.
    var isConnectivityFailure: Bool { get }
}

/// Something that knows how to fetch a piece of data, and tells what is known of it.
///
/// A conforming type says where the data is published and how it is fetched; subscribing, refreshing
/// and logging out come with it.
///
/// ```swift
/// struct ProfileManager: DataManager {
///   let publisher = DataPublisher<Profile>(staleAfter: .seconds(300))
///
///   func fetch() async throws -> Profile {
///     try await backend.fetchProfile()
///   }
/// }
///
/// let manager = ProfileManager()
/// let states = manager.subscribe()
/// try await manager.refreshIfNeeded()
/// manager.logOut()
/// ```
///
/// An actor conforms with a `nonisolated let` as its publisher. So does a class on the main actor, which
/// also writes `@MainActor func fetch()`: a requirement that belongs to no actor takes that from it
/// otherwise.
public protocol DataManager<Value> : Sendable {

    /// The data.
    associatedtype Value : Sendable

    /// Where the state of the data is published. It is always the same one.
    var publisher: Plexus.DataPublisher<Self.Value> { get }

    /// Fetches the data, anew each time.
    ///
    /// It is called by ``refresh()`` and ``refreshIfNeeded()``, at most once at a time and apart from the
    /// caller's task, and need not publish anything itself.
    ///
    /// - Returns: The data.
    /// - Throws: Why there is none.
    func fetch() async throws -> Self.Value
}

extension DataManager {

    /// Registers a subscriber and returns the current state of the data and those that follow.
    ///
    /// Nothing is fetched by that.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Self.Value>> = .bufferingNewest(1)) -> AsyncStream<Plexus.LoadState<Self.Value>>

    /// Fetches the data and publishes it, or joins the fetch that is under way.
    ///
    /// The rules are those of ``DataPublisher/load(_:)``: a result that arrives after ``logOut()`` is not
    /// published, and the last caller that is cancelled takes the fetch with it.
    ///
    /// - Returns: The data.
    /// - Throws: The error of the fetch, or a `CancellationError` if the calling task is cancelled.
    @discardableResult
    public func refresh() async throws -> Self.Value

    /// Fetches the data only if it is unknown, has failed or is stale.
    ///
    /// - Returns: The loaded data that there was, or the new one.
    /// - Throws: As ``refresh()``.
    @discardableResult
    public func refreshIfNeeded() async throws -> Self.Value

    /// Forgets the data of the user who leaves, and publishes `.unknown`.
    ///
    /// Nobody can reach the data any more when subscribers learn of it, and a fetch that is under way
    /// will not be published.
    nonisolated public func logOut()
}

/// The state of one piece of data, told to any number of subscribers.
///
/// A new subscriber gets the current state at once, `.unknown` included, and then every change. By
/// default a slow subscriber skips ahead to the newest state.
///
/// ```swift
/// let profile = DataPublisher<String>(staleAfter: .seconds(300))
/// let states = profile.subscribe()
/// try await profile.loadIfNeeded { "Ada" }
/// for await state in states {
///   print(state.value ?? "nobody yet")
///   break
/// }
/// ```
///
/// ## What survives
///
/// The newest known value survives ``startLoading()``, ``fail(_:)`` and a reload as the previous
/// value. Only ``reset()`` drops it, before `.unknown` is published.
///
/// ## Loading
///
/// ``load(_:)`` publishes `.loading`, then `.loaded` or `.failed`. A second call while one runs
/// joins it. A result that arrives after a reset, or after a newer update or failure, is not
/// published; those who wait for it get it.
///
/// ## Staleness
///
/// ``isStale`` tells whether a loaded value has reached the age given at the beginning. A publisher that
/// was made with `publishesStaleness` also tells its subscribers: in the moment when the value goes stale,
/// `.loaded` is published once more, and ``isStale`` is `true` by then.
///
/// ```swift
/// let weather = DataPublisher<String>(staleAfter: .seconds(60), publishesStaleness: true, clock: clock)
/// let token = weather.observe { state in
///   print(state.value ?? "?", weather.isStale ? "(old)" : "")
/// }
/// ```
///
/// ## Cancellation
///
/// A caller of ``load(_:)`` that is cancelled leaves at once with a `CancellationError`. When the
/// last one has left, the operation is cancelled and the state goes back to what it was before.
///
/// ## Release
///
/// The last reference to a publisher ends its streams. A caller that waits in ``load(_:)`` holds one.
final public actor DataPublisher<Value> : Plexus.Broadcaster where Value : Sendable {

    /// What subscribers receive.
    public typealias Element = Plexus.LoadState<Value>

    /// Creates a publisher of something unknown.
    ///
    /// - Parameters:
    ///   - staleAfter: The age from which on a loaded value counts as stale, by the clock. `nil` is never.
    ///   - publishesStaleness: Whether subscribers are told when a loaded value goes stale.
    ///   - clock: What measures the age.
    public init(staleAfter: Duration? = nil, publishesStaleness: Bool = false, clock: any Clock<Duration> = ContinuousClock())

    deinit

    /// What is known at this moment.
    nonisolated public var state: Plexus.LoadState<Value> { get }

    /// Whether there is a loaded value that has reached the age given at the beginning.
    ///
    /// It is `false` in every other state than `.loaded`.
    nonisolated public var isStale: Bool { get }

    /// The number of subscribers at this moment, streams and handlers alike.
    nonisolated public var subscriberCount: Int { get }

    /// Registers a subscriber and returns the current state and those that follow.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Value>> = .bufferingNewest(1)) -> AsyncStream<Plexus.LoadState<Value>>

    /// Registers a subscriber and returns the current state and those that follow.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscription(bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Value>> = .bufferingNewest(1)) -> Plexus.Subscription<Plexus.LoadState<Value>>

    /// Says that loading has begun; the newest known value becomes the previous one.
    nonisolated public func startLoading()

    /// Publishes a value.
    ///
    /// - Parameter value: The newest value.
    nonisolated public func update(_ value: Value)

    /// Publishes that loading has failed; the newest known value becomes the previous one.
    ///
    /// - Parameter error: Why.
    nonisolated public func fail(_ error: any Error)

    /// Forgets everything and publishes `.unknown`.
    ///
    /// What was known cannot be reached through ``state`` any more when subscribers learn of it, and the
    /// result of a load that is under way will not be published.
    nonisolated public func reset()

    /// Loads a value and publishes it, or joins the load that is under way.
    ///
    /// - Parameter operation: What loads the value. It runs at most once at a time, off the caller's
    ///   actor and apart from the caller's task: neither its cancellation nor its task-local values
    ///   reach it.
    /// - Returns: The value.
    /// - Throws: The error of the operation; a `CancellationError` if the calling task is cancelled, in
    ///   which case nothing has changed if it was so from the beginning;
    ///   ``LoadError/recursiveLoad`` if called by the operation of the load that it would join, or by one
    ///   for which that load waits in turn.
    @discardableResult
    public func load(_ operation: @escaping @Sendable () async throws -> Value) async throws -> Value

    /// Loads a value only if it is unknown, has failed or is stale.
    ///
    /// - Parameter operation: What loads the value, as in ``load(_:)``.
    /// - Returns: The loaded value that there was, or the new one.
    /// - Throws: As ``load(_:)``.
    @discardableResult
    public func loadIfNeeded(_ operation: @escaping @Sendable () async throws -> Value) async throws -> Value
}

extension DataPublisher {

    /// Publishes every element of a sequence as it arrives.
    ///
    /// ```swift
    /// let counter = DataPublisher<Int>()
    /// counter.follow(AsyncStream { continuation in
    ///   for number in 1...3 { continuation.yield(number) }
    ///   continuation.finish()
    /// })
    /// ```
    ///
    /// The sequence is iterated by a task of its own. An element is published like one that is given to
    /// ``update(_:)``, an error like one that is given to ``fail(_:)``; the end of the sequence changes
    /// nothing. Several sequences can be followed at once.
    ///
    /// The publisher is held weakly: the task is cancelled when the publisher is released, and what the
    /// sequence still yields has no effect. That is the only way to stop it early; end the sequence itself
    /// for another one.
    ///
    /// - Parameter sequence: What to follow.
    nonisolated public func follow<Source>(_ sequence: Source) where Value == Source.Element, Source : Sendable, Source : AsyncSequence
}

extension DataPublisher {

    /// Returns the number of subscribers at this moment and whenever it changes, each number in order.
    ///
    /// The rules are those of ``Messenger/subscriberCounts(bufferingPolicy:)``: it is not a subscriber, and
    /// ends with the publisher.
    ///
    /// - Parameter bufferingPolicy: What is kept while the reader is behind.
    /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscriberCounts(bufferingPolicy: Plexus.BufferingPolicy<Int> = .unbounded) -> AsyncStream<Int>

    /// Waits until somebody is subscribed, streams and handlers alike; returns at once if there is somebody.
    ///
    /// - Throws: A `CancellationError` if the calling task is cancelled.
    public func waitForSubscriber() async throws
}

/// The elements of another sequence after which it was quiet for a while.
///
/// Make one with `debounced(for:leading:maximumDelay:clock:)` on any sequence that is `Sendable`.
public struct DebouncedSequence<Base> : AsyncSequence, Sendable where Base : Sendable, Base : AsyncSequence, Base.Element : Sendable {

    /// What the base sequence yields.
    public typealias Element = Base.Element

    /// What the base sequence throws.
    public typealias Failure = Base.Failure

    /// Creates an iterator, which iterates the base sequence anew from its first `next()` on.
    public func makeAsyncIterator() -> Plexus.DebouncedSequence<Base>.Iterator

    /// The iterator of a debounced sequence.
    public struct Iterator : AsyncIteratorProtocol {

        /// Waits for the next element that is followed by a quiet time.
        ///
        /// - Returns: The element, or `nil` when the base sequence has ended or the task is cancelled.
        /// - Throws: The error of the base sequence, after what was pending.
        public mutating func next() async throws(Base.Failure) -> Base.Element?

        /// Waits for the next element that is followed by a quiet time.
        ///
        /// - Parameter actor: Where the caller runs.
        /// - Returns: The element, or `nil` when the base sequence has ended or the task is cancelled.
        /// - Throws: The error of the base sequence, after what was pending.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Base.Failure) -> Base.Element?
    }
}

/// A bell that rings once after the last of many touches.
///
/// Touch it whenever something happens. It fires when nothing has happened for the delay: streams and
/// handlers get an element, and the action, if there is one, runs.
///
/// ```swift
/// let debouncer = Debouncer(delay: .milliseconds(300)) {
///   print("the user has stopped typing")
/// }
/// debouncer.touch()
/// debouncer.touch()  // only this one counts
/// ```
///
/// A touch is synchronous, may come from any thread or actor, and starts no task between the first
/// and the last: while a firing is pending, one task sleeps, and touches move its deadline. Nothing
/// sleeps while nothing is pending.
///
/// ## When it fires
///
/// A firing is due when the delay has passed since the last touch. With a maximum delay it is due at
/// the latest when so much time has passed since the first touch that it answers, however many
/// follow; a delay that is longer than the maximum is cut off by it. With `leading`, a touch after a
/// quiet time of at least the delay fires at once, and another firing follows only if it is touched
/// again. A delay of zero or less fires at every touch, before `touch()` returns.
///
/// A touch never postpones a firing that was due before it, even if nobody has found the time to
/// carry it out.
///
/// ## The action
///
/// Elements are sent first: when an action begins, its element is in every buffer. Actions never
/// overlap. A firing while one runs is followed by one more run when it has ended, however many
/// firings there were; an action that never ends is never called again, while streams go on. It runs
/// off every actor, in a task of its own. It cannot throw: what may fail has to say what happens then.
///
/// An action that uses its debouncer captures it weakly, or neither is ever released.
///
/// ## Cancellation
///
/// The task that makes or touches a debouncer may be cancelled; nothing changes. ``cancel()`` drops
/// what is pending. Releasing the last reference drops it, too, cancels the task of an action that is
/// running, ends the streams and frees the action.
///
/// ## Clocks
///
/// All times are measured by the clock that is given at the beginning. One that jumps ahead makes
/// things due at the next touch or when it wakes the sleeping task; one that is set back makes what
/// is pending wait anew from the next touch on. If it throws instead of sleeping, what is pending
/// fires at once.
///
/// ## Topics
///
/// ### Creating a debouncer
/// - ``init(delay:leading:maximumDelay:clock:action:)``
///
/// ### Touching it
/// - ``touch()``
/// - ``cancel()``
/// - ``flush()``
///
/// ### Listening to it
/// - ``subscribe(bufferingPolicy:)``
/// - ``subscription(bufferingPolicy:)``
/// - ``subscriberCount``
final public actor Debouncer : Plexus.Broadcaster {

    /// What subscribers receive: that it has fired, and nothing else.
    public typealias Element = Void

    /// Creates a debouncer with nothing pending.
    ///
    /// - Parameters:
    ///   - delay: How long it has to be quiet; zero or less fires at every touch.
    ///   - leading: Whether the first touch after a quiet time fires at once.
    ///   - maximumDelay: How long a touch waits at most for its firing, however many follow; `nil` is
    ///     for ever.
    ///   - clock: What measures the time.
    ///   - action: What to do when it fires. It runs off every actor and never overlaps itself.
    public init(delay: Duration, leading: Bool = false, maximumDelay: Duration? = nil, clock: any Clock<Duration> = ContinuousClock(), action: (@Sendable () async -> Void)? = nil)

    deinit

    /// Notes that something has happened.
    ///
    /// It returns at once, and may be called from anywhere.
    nonisolated public func touch()

    /// Drops what is pending.
    ///
    /// An action that has not been called by then will not be called for what came before; one that is
    /// running goes on to its end. With `leading`, the next touch
    /// fires at once.
    nonisolated public func cancel()

    /// Fires what is pending now, and waits until no action runs that was asked for before.
    ///
    /// It waits for an action that is running even if nothing is pending, and returns at once if there
    /// is neither, if the action that was to come is cancelled, and when the calling task is cancelled;
    /// what was pending has fired even then. Called from inside the action it fires and does not wait,
    /// since it would wait for itself. Two debouncers whose actions flush each other wait until one of
    /// them is released.
    public func flush() async

    /// Registers a subscriber and returns an element for every firing from now on.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Void> = .unbounded) -> AsyncStream<Void>

    /// Registers a subscriber and returns an element for every firing from now on.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscription(bufferingPolicy: Plexus.BufferingPolicy<Void> = .unbounded) -> Plexus.Subscription<Void>

    /// The number of subscribers at this moment, streams and handlers alike.
    nonisolated public var subscriberCount: Int { get }
}

/// A variable that tells its value once it has stopped changing.
///
/// Set ``value`` as often as you like, from any thread or actor. When it has not changed for the
/// delay, the value is fired: streams and handlers get it, and the action, if there is one, runs with
/// it.
///
/// ```swift
/// let query = DebouncerVar("", delay: .milliseconds(300)) { text in
///   print("search for \(text)")
/// }
/// query.value = "s"
/// query.value = "sw"
/// query.value = "swift"  // only this one is searched for
/// ```
///
/// Everything that ``Debouncer`` promises about times, the action, cancellation, release and clocks
/// holds here, too.
///
/// ## What counts as a change
///
/// Setting an equal value does nothing, and does not postpone either. Going back to the value that
/// was fired last, before the delay has passed, cancels the firing: nobody has seen another one. The
/// initial value counts as fired. Values are compared without a lock; the comparison may take its
/// time, and may use the variable.
///
/// ``touch()`` fires the value as it will be then, changed or not; going back takes that back, too.
///
/// The variable is read and set atomically, each by itself: `value += 1` on two threads at once may
/// lose one of the two.
///
/// ## Topics
///
/// ### Creating a variable
/// - ``init(_:delay:leading:maximumDelay:clock:action:)``
///
/// ### Changing it
/// - ``value``
/// - ``touch()``
/// - ``cancel()``
/// - ``flush()``
///
/// ### Listening to it
/// - ``subscribe(bufferingPolicy:)``
/// - ``subscription(bufferingPolicy:)``
/// - ``subscriberCount``
final public actor DebouncerVar<Value> : Plexus.Broadcaster where Value : Equatable, Value : Sendable {

    /// What subscribers receive: the values that are fired.
    public typealias Element = Value

    /// Creates a variable with nothing pending.
    ///
    /// - Parameters:
    ///   - initial: The value at the beginning, which counts as fired.
    ///   - delay: How long the value must not change; zero or less fires every change.
    ///   - leading: Whether the first change after a quiet time fires at once.
    ///   - maximumDelay: How long a change waits at most for the next firing, however many follow;
    ///     `nil` is for ever.
    ///   - clock: What measures the time.
    ///   - action: What to do with a value that is fired. It runs off every actor and never overlaps
    ///     itself; of several values that are fired while it runs, it gets the last one.
    public init(_ initial: Value, delay: Duration, leading: Bool = false, maximumDelay: Duration? = nil, clock: any Clock<Duration> = ContinuousClock(), action: (@Sendable (Value) async -> Void)? = nil)

    deinit

    /// The value, as it was set last, fired or not.
    nonisolated public var value: Value

    /// Asks for a firing of the value, even if it has not changed.
    ///
    /// It postpones a pending one like a change does.
    nonisolated public func touch()

    /// Drops what is pending, and keeps the value.
    ///
    /// An action that has not been called by then will not be called for what came before; one that is
    /// running goes on to its end. With `leading`, the next change
    /// fires at once.
    nonisolated public func cancel()

    /// Fires what is pending now, and waits until no action runs that was asked for before.
    ///
    /// It waits for an action that is running even if nothing is pending, and returns at once if there
    /// is neither, if the action that was to come is cancelled, and when the calling task is cancelled;
    /// what was pending has fired even then. Called from inside the action it fires and does not wait,
    /// since it would wait for itself.
    public func flush() async

    /// Registers a subscriber and returns the values that are fired from now on.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Value> = .unbounded) -> AsyncStream<Value>

    /// Registers a subscriber and returns the values that are fired from now on.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscription(bufferingPolicy: Plexus.BufferingPolicy<Value> = .unbounded) -> Plexus.Subscription<Value>

    /// The number of subscribers at this moment, streams and handlers alike.
    nonisolated public var subscriberCount: Int { get }
}

/// Something that happens, told to whoever listens for events of its type.
///
/// Any `Sendable` type can be an event:
///
/// ```swift
/// struct LoggedIn: Event {
///   let name: String
/// }
///
/// let bus = EventBus()
/// bus.post(LoggedIn(name: "Ada"))
/// ```
///
/// An event reaches the subscribers of exactly its own type. Unless it says otherwise, it is gone when
/// those who are subscribed have had it.
public protocol Event : Sendable {

    /// Whether, how long and up to which number events are kept for those who subscribe later.
    ///
    /// The bus asks each event once, when it is posted. The default is ``EventPersistence/none``.
    var persistence: Plexus.EventPersistence { get }
}

extension Event {

    /// An event is not kept, unless its type says otherwise.
    public var persistence: Plexus.EventPersistence { get }
}

/// A place where events of any type are posted and observed, without either side knowing the other.
///
/// An event reaches the subscribers of exactly its type and scope. Posting is synchronous, takes no
/// hop and starts no task, from whatever thread or actor; how many subscribers there are of other
/// types and scopes does not matter.
///
/// ```swift
/// struct LoggedIn: Event {
///   let name: String
/// }
///
/// let bus = EventBus()
/// let token = bus.observe(LoggedIn.self) { event in
///   print("Hello, \(event.name)")
/// }
/// let outcome = await bus.postAndWait(LoggedIn(name: "Ada"))
/// print(outcome.handled)
/// token.cancel()
/// ```
///
/// ## Order
///
/// There is one order for each type and scope: all subscribers see it, and what one thread posts stays
/// in program order. An event that is posted while another one is being handled comes after it.
/// Nothing is said about the order of events of different types.
///
/// ## Slow handlers
///
/// Synchronous handlers that share an actor run one after another, in subscription order, event by
/// event. A handler that suspends sees every event in order and never overlaps itself. It delays no
/// events of other types or scopes and, as long as the events of its own type are not persistent, no
/// other subscriber.
///
/// ## Persistent events
///
/// An event may be kept for those who come later. It is then offered to one subscriber after the
/// other, in subscription order, each waiting for the result of the one before; what is posted
/// meanwhile with the same type and scope waits. <doc:persistent-events> tells the rules.
///
/// ## Lifetimes
///
/// A stream lives until it is dropped or its task is cancelled; a handler as long as its token, its
/// owner (which is held weakly), or until it is removed by its id. Releasing the last reference to the
/// bus ends every stream after what is in its buffer, and releases the handlers after what has been
/// posted; kept events are gone then. Streams, handlers and tokens never keep the bus alive.
///
/// ## Topics
///
/// ### Getting a bus
/// - ``shared``
/// - ``init(clock:)``
///
/// ### Posting
/// - ``post(_:scope:)``
/// - ``postAndWait(_:scope:)``
///
/// ### Reading events
/// - ``subscribe(to:scope:bufferingPolicy:)``
/// - ``subscription(to:scope:bufferingPolicy:)``
/// - ``subscriberCount(for:scope:)``
///
/// ### Removing handlers
/// - ``removeObserver(id:)``
/// - ``removeObserver(id:of:scope:)``
///
/// ### Kept events
/// - ``pendingEvents(of:scope:)``
/// - ``removePendingEvents(of:scope:)``
final public actor EventBus {

    /// The bus for events of the whole program.
    ///
    /// Parts that can be handed a bus are easier to test with one of their own.
    public static let shared: Plexus.EventBus

    /// Creates a bus without subscribers.
    ///
    /// - Parameter clock: What tells how old a kept event is.
    public init(clock: any Clock<Duration> = ContinuousClock())

    deinit

    /// Posts an event to the subscribers of its type and scope.
    ///
    /// When this returns the event has its place in the order: it is in the buffers of streams and in the
    /// queues of handlers, or behind a persistent event that is still being handled. If it is
    /// persistent, it is kept.
    ///
    /// - Parameters:
    ///   - event: What has happened.
    ///   - scope: Where; `nil` reaches those who have subscribed without a scope.
    nonisolated public func post<E>(_ event: E, scope: Plexus.EventScope? = nil) where E : Plexus.Event

    /// Posts an event and waits until every handler that gets it has ended.
    ///
    /// The event is posted before this suspends, in order with what the caller posts otherwise. Handlers
    /// run to their end even if the caller is cancelled, and the counts tell of all of them: cancellation
    /// does not end this wait. A handler that is removed before its turn is not waited for.
    ///
    /// Inside a handler, the wait might be one for the handler itself: if the event stands behind the one
    /// that is being handled, directly or because handlers of several types wait for each other, the call
    /// returns at once and ``PostOutcome/isDeferred`` is true. That is known of the task of an
    /// asynchronous handler and of those that it starts, detached ones excepted.
    ///
    /// - Parameters:
    ///   - event: What has happened.
    ///   - scope: Where; `nil` reaches those who have subscribed without a scope.
    /// - Returns: Whom the event has reached, and whether it is kept.
    @discardableResult
    public func postAndWait<E>(_ event: E, scope: Plexus.EventScope? = nil) async -> Plexus.PostOutcome where E : Plexus.Event

    /// Registers a subscriber and returns the events posted from now on, after those that are kept.
    ///
    /// A kept event counts as handled once it is in the buffer of the stream.
    ///
    /// - Parameters:
    ///   - type: The type of events, exactly.
    ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
    ///   - bufferingPolicy: What is kept for the subscriber while it is behind. An event for which there
    ///     is no room under `.bufferingOldest` does not count as handled.
    /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscribe<E>(to type: E.Type, scope: Plexus.EventScope? = nil, bufferingPolicy: Plexus.BufferingPolicy<E> = .unbounded) -> AsyncStream<E> where E : Plexus.Event

    /// Registers a subscriber and returns the events posted from now on, after those that are kept.
    ///
    /// A kept event counts as handled once it is in the buffer of the subscription.
    ///
    /// - Parameters:
    ///   - type: The type of events, exactly.
    ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
    ///   - bufferingPolicy: What is kept for the subscriber while it is behind. An event for which there
    ///     is no room under `.bufferingOldest` does not count as handled.
    /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscription<E>(to type: E.Type, scope: Plexus.EventScope? = nil, bufferingPolicy: Plexus.BufferingPolicy<E> = .unbounded) -> Plexus.Subscription<E> where E : Plexus.Event

    /// Returns the number of subscribers at this moment, streams and handlers alike.
    ///
    /// Handlers whose owner has gone are removed first.
    ///
    /// - Parameters:
    ///   - type: The type of events, exactly.
    ///   - scope: The scope, exactly; `nil` counts those who have subscribed without one.
    /// - Returns: Their number.
    nonisolated public func subscriberCount<E>(for type: E.Type, scope: Plexus.EventScope? = nil) -> Int where E : Plexus.Event

    /// Returns the events that are kept for later subscribers, in posting order.
    ///
    /// An event that is being delivered is among them until a success removes it.
    ///
    /// - Parameters:
    ///   - type: The type of events, exactly.
    ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
    /// - Returns: The events, oldest first.
    nonisolated public func pendingEvents<E>(of type: E.Type, scope: Plexus.EventScope? = nil) -> [E] where E : Plexus.Event

    /// Keeps the events posted so far no longer, whatever their rule.
    ///
    /// Those who were subscribed when they were posted still get them; later subscribers do not.
    ///
    /// - Parameters:
    ///   - type: The type of events, exactly.
    ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
    nonisolated public func removePendingEvents<E>(of type: E.Type, scope: Plexus.EventScope? = nil) where E : Plexus.Event

    /// Removes the handlers with an id, of whatever type and scope.
    ///
    /// None of them is started after this has returned; one that is running and suspended has its task
    /// cancelled.
    ///
    /// - Parameter id: What the handlers were registered with.
    nonisolated public func removeObserver(id: some Hashable & Sendable)

    /// Removes the handlers with an id, of one type and scope.
    ///
    /// None of them is started after this has returned; one that is running and suspended has its task
    /// cancelled.
    ///
    /// - Parameters:
    ///   - id: What the handlers were registered with.
    ///   - type: The type of events, exactly.
    ///   - scope: The scope, exactly; `nil` is for handlers without one.
    nonisolated public func removeObserver<E>(id: some Hashable & Sendable, of type: E.Type, scope: Plexus.EventScope? = nil) where E : Plexus.Event
}

/// Handlers that live until removed by an id.
extension EventBus {

    /// Calls a closure for every event of a type, until it is removed by its id.
    ///
    /// The synchronous handlers of one type and scope that share an actor run one after another, in
    /// subscription order, event by event.
    ///
    /// Returning counts as handled successfully, throwing as failed.
    ///
    /// - Parameters:
    ///   - id: What removes the handler: see ``EventBus/removeObserver(id:)``. Several handlers may have the
    ///     same.
    ///   - type: The type of events, exactly.
    ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
    ///   - replacing: Whether handlers of the same id, type and scope are removed in the same moment. The
    ///     new one takes its place at the end, and gets everything that is posted from then on.
    ///   - handler: What to call, on the actor that the closure belongs to.
    nonisolated public func observe<E>(id: some Hashable & Sendable, _ type: E.Type, scope: Plexus.EventScope? = nil, replacing: Bool = false, _ handler: @escaping @isolated(any) @Sendable (E) throws -> Void) where E : Plexus.Event

    /// Calls an asynchronous closure for every event of a type, until it is removed by its id.
    ///
    /// The handler has a task of its own. It sees every event in order, never overlaps itself, and holds
    /// up no other subscriber while it is suspended, unless the event is persistent. When the handler is
    /// removed while it runs, that task is cancelled.
    ///
    /// Returning counts as handled successfully, throwing as failed.
    ///
    /// - Parameters:
    ///   - id: What removes the handler: see ``EventBus/removeObserver(id:)``. Several handlers may have the
    ///     same.
    ///   - type: The type of events, exactly.
    ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
    ///   - replacing: Whether handlers of the same id, type and scope are removed in the same moment. The
    ///     new one takes its place at the end, and gets everything that is posted from then on.
    ///   - handler: What to call, on the actor that the closure belongs to.
    nonisolated public func observe<E>(id: some Hashable & Sendable, _ type: E.Type, scope: Plexus.EventScope? = nil, replacing: Bool = false, _ handler: @escaping @isolated(any) @Sendable (E) async throws -> Void) where E : Plexus.Event
}

/// Handlers that live as long as an owner lives.
extension EventBus {

    /// Calls a closure for every event of a type, as long as an owner lives.
    ///
    /// The synchronous handlers of one type and scope that share an actor run one after another, in
    /// subscription order, event by event.
    ///
    /// Returning counts as handled successfully, throwing as failed.
    ///
    /// - Parameters:
    ///   - owner: Whose life decides; it is held weakly. The closure must not capture it strongly: it is
    ///     handed in. Once it has gone, the handler is removed at the next event, or the next look at
    ///     ``EventBus/subscriberCount(for:scope:)``.
    ///   - type: The type of events, exactly.
    ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
    ///   - handler: What to call, with the owner and the event, on the actor that the closure belongs to.
    nonisolated public func observe<Owner, E>(as owner: Owner, _ type: E.Type, scope: Plexus.EventScope? = nil, _ handler: @escaping @isolated(any) @Sendable (Owner, E) throws -> Void) where Owner : AnyObject, Owner : Sendable, E : Plexus.Event

    /// Calls an asynchronous closure for every event of a type, as long as an owner lives.
    ///
    /// The handler has a task of its own. It sees every event in order, never overlaps itself, and holds
    /// up no other subscriber while it is suspended, unless the event is persistent. When the handler is
    /// removed while it runs, that task is cancelled.
    ///
    /// Returning counts as handled successfully, throwing as failed.
    ///
    /// - Parameters:
    ///   - owner: Whose life decides; it is held weakly. The closure must not capture it strongly: it is
    ///     handed in. Once it has gone, the handler is removed at the next event, or the next look at
    ///     ``EventBus/subscriberCount(for:scope:)``.
    ///   - type: The type of events, exactly.
    ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
    ///   - handler: What to call, with the owner and the event, on the actor that the closure belongs to.
    nonisolated public func observe<Owner, E>(as owner: Owner, _ type: E.Type, scope: Plexus.EventScope? = nil, _ handler: @escaping @isolated(any) @Sendable (Owner, E) async throws -> Void) where Owner : AnyObject, Owner : Sendable, E : Plexus.Event
}

/// Handlers that live as long as a token lives.
extension EventBus {

    /// Calls a closure for every event of a type, as long as a token lives.
    ///
    /// The synchronous handlers of one type and scope that share an actor run one after another, in
    /// subscription order, event by event.
    ///
    /// Returning counts as handled successfully, throwing as failed.
    ///
    /// - Parameters:
    ///   - type: The type of events, exactly.
    ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
    ///   - handler: What to call, on the actor that the closure belongs to.
    /// - Returns: The token that keeps the handler registered. Dropping it removes the handler.
    nonisolated public func observe<E>(_ type: E.Type, scope: Plexus.EventScope? = nil, _ handler: @escaping @isolated(any) @Sendable (E) throws -> Void) -> Plexus.ObservationToken where E : Plexus.Event

    /// Calls an asynchronous closure for every event of a type, as long as a token lives.
    ///
    /// The handler has a task of its own. It sees every event in order, never overlaps itself, and holds
    /// up no other subscriber while it is suspended, unless the event is persistent. When the handler is
    /// removed while it runs, that task is cancelled.
    ///
    /// Returning counts as handled successfully, throwing as failed.
    ///
    /// - Parameters:
    ///   - type: The type of events, exactly.
    ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
    ///   - handler: What to call, on the actor that the closure belongs to.
    /// - Returns: The token that keeps the handler registered. Dropping it removes the handler.
    nonisolated public func observe<E>(_ type: E.Type, scope: Plexus.EventScope? = nil, _ handler: @escaping @isolated(any) @Sendable (E) async throws -> Void) -> Plexus.ObservationToken where E : Plexus.Event
}

extension EventBus : Plexus.PersistentEventSource {
}

/// Whether, how long and up to which number events are kept for those who subscribe later.
///
/// ```swift
/// struct Position: Event {
///   let latitude, longitude: Double
///   var persistence: EventPersistence { .persistent(.neverClear, limit: 1, timeToLive: .seconds(60)) }
/// }
/// ```
///
/// Events are kept for each type and scope apart.
public struct EventPersistence : Sendable, Hashable {

    /// When the event is kept no longer; `nil` if it is not kept at all.
    public let rule: Plexus.PersistenceRule?

    /// The most events of this type and scope that are kept; the oldest give way.
    public let limit: Int?

    /// How long the event is kept, from the moment when it is posted.
    public let timeToLive: Duration?

    /// The event is gone when those who are subscribed have had it.
    public static let none: Plexus.EventPersistence

    /// The event is kept until its rule, a newer event or time ends that.
    ///
    /// - Parameters:
    ///   - rule: When it is kept no longer.
    ///   - limit: How many events of this type and scope may be kept once this one has been posted, the
    ///     newest ones; 1 keeps the latest only, and with 0 or less nothing is kept. `nil` is no limit.
    ///   - timeToLive: How long the event is kept; from exactly that age on it is not. With zero or less
    ///     it is not kept at all. `nil` is for ever.
    /// - Returns: The persistence.
    public static func persistent(_ rule: Plexus.PersistenceRule, limit: Int? = nil, timeToLive: Duration? = nil) -> Plexus.EventPersistence
}

/// A part of the program that has its events for itself.
///
/// Two windows of one program, say, post and observe the same types of events in a scope each. Who
/// subscribes in a scope gets the events that are posted in that scope, and no others; who subscribes
/// without one gets those that are posted without one.
///
/// ```swift
/// struct Scrolled: Event {
///   let position: Int
/// }
///
/// let bus = EventBus()
/// let positions = bus.subscribe(to: Scrolled.self, scope: "left")
/// bus.post(Scrolled(position: 7), scope: "left")
/// bus.post(Scrolled(position: 9), scope: EventScope(2))
/// ```
///
/// Scopes need not be registered, and cost nothing once nobody is subscribed and nothing is kept in
/// them. Two scopes are equal if they were made from equal values of one type.
public struct EventScope : Hashable, Sendable, ExpressibleByStringLiteral {

    /// Creates the scope that is known by a value.
    ///
    /// - Parameter id: The value: a name, a number, an enum or whatever else tells scopes apart.
    public init(_ id: some Hashable & Sendable)

    /// Creates the scope with a name.
    ///
    /// - Parameter value: The name; the scope equals `EventScope(value)`.
    public init(stringLiteral value: String)
}

/// What a fetch may want to know about the value that it renews.
public struct FetchContext<Value> : Sendable where Value : Sendable {

    /// The value that there was when the fetch began, fresh or stale.
    public let previousValue: Value?

    /// What came with that value to ask the origin whether it has changed, such as an entity tag.
    public let validator: String?

    /// The number of this attempt: 1, 2, ...
    public let attempt: Int

    /// Creates a context, for instance to call a fetch from a test.
    ///
    /// - Parameters:
    ///   - previousValue: The value that there is.
    ///   - validator: What came with that value.
    ///   - attempt: The number of the attempt.
    public init(previousValue: Value?, validator: String? = nil, attempt: Int = 1)
}

/// What a fetch has found out.
public enum FetchResult<Value> : Sendable where Value : Sendable {

    /// A new value.
    ///
    /// A time to live given here holds in place of the policy's, exactly and also after
    /// ``notModified(timeToLive:)``. The validator is handed to the next fetch.
    case value(_: Value, timeToLive: Duration? = nil, validator: String? = nil)

    /// The value that the context named is still the right one: it counts as fetched just now.
    ///
    /// It fails with ``MultiplexerError/notModifiedWithoutValue`` if the context named none. Without a time to
    /// live the one that the fetch of the value gave holds again, or else the policy's. Other directives that
    /// came with the value hold again, too.
    case notModified(timeToLive: Duration? = nil)

    /// A new value, with all that its origin says about keeping it.
    ///
    /// The directives hold in place of the policy, also after ``notModified(timeToLive:)``. The validator is
    /// handed to the next fetch.
    case fetched(_: Value, directives: Plexus.CacheDirectives, validator: String? = nil)

    /// The value that the context named is still the right one, with all that its origin says about keeping it
    /// from now on.
    ///
    /// The directives take the place of those that the value came with; a validator that is not given stays. It
    /// fails with ``MultiplexerError/notModifiedWithoutValue`` if the context named no value.
    case revalidated(directives: Plexus.CacheDirectives, validator: String? = nil)

    /// A value for those who wait for this fetch, which must not be kept.
    ///
    /// They get it, and subscribers are told that it was loaded; one that keeps the newest state only, as by
    /// default, may miss that. Then it is forgotten: no later request is answered with it, and no cacher gets
    /// it. It is newer than what was there before, which goes, too: the value in memory and the stored copy.
    case transient(_: Value)
}

/// What a handler could do with a persistent event.
public enum HandlerResult : Sendable, Hashable {

    /// The event has been dealt with: a clearing rule need not keep it.
    case handledSuccessfully

    /// The event has not been dealt with: somebody else should have it.
    case failed
}

/// The reasons why a load of a publisher cannot begin.
@nonexhaustive public enum LoadError : Error, Hashable, Sendable {

    /// The operation of a load asks, directly or by way of other loads and fetches, for what it is loading
    /// itself, and would wait for itself for ever.
    case recursiveLoad
}

extension LoadError : CustomStringConvertible {

    /// A sentence that says what happened and what to do about it.
    public var description: String { get }
}

/// What is known of a piece of data that has to be loaded.
///
/// The newest known value survives a reload and a failed one as the previous value.
public enum LoadState<Value> : Sendable where Value : Sendable {

    /// Nothing is known: it was never loaded, or has been reset.
    case unknown

    /// It is being loaded; the value known before, if any.
    case loading(previous: Value?)

    /// It has been loaded.
    case loaded(Value)

    /// Loading it has failed; the value known before, if any.
    case failed(any Error, previous: Value?)

    /// The newest known value, fresh or previous.
    public var value: Value? { get }

    /// Why loading has failed, in the failed state only.
    public var error: (any Error)? { get }

    /// Whether it is being loaded.
    public var isLoading: Bool { get }

    /// Returns the same state of a value derived from this one.
    ///
    /// - Parameter transform: What to make of the value; called if there is one, fresh or previous.
    /// - Returns: The state with the derived value.
    /// - Throws: What the closure throws.
    public func map<Mapped, Failure>(_ transform: (Value) throws(Failure) -> Mapped) throws(Failure) -> Plexus.LoadState<Mapped> where Mapped : Sendable, Failure : Error
}

/// A source of messages with any number of senders and observers.
///
/// A message reaches everybody who is subscribed when it is sent; nothing is replayed to those who
/// come later. Sending is synchronous, takes no hop and starts no task, from whatever thread or
/// actor.
///
/// ```swift
/// let messenger = Messenger<String>()
/// let greetings = messenger.subscribe()
/// messenger.send("hello")
/// for await greeting in greetings {
///   print(greeting)
///   break
/// }
/// ```
///
/// ## Order
///
/// All subscribers see the same order, and what one thread sends stays in program order. A message
/// that is sent while another one is being handled comes after it, for everybody.
///
/// ## Slow subscribers
///
/// By default nothing is lost: what a subscriber has not read yet is kept for it. Give
/// `.bufferingNewest` or `.bufferingOldest` to bound that.
///
/// ## Ending
///
/// ``finish()``, or the release of the last reference to the messenger, ends every stream after
/// what was sent before. Streams, handlers and tokens never keep the messenger alive.
final public actor Messenger<Message> : Plexus.Broadcaster where Message : Sendable {

    /// What subscribers receive.
    public typealias Element = Message

    /// Creates a messenger without subscribers.
    public init()

    deinit

    /// Sends a message to everybody who is subscribed.
    ///
    /// - Parameters:
    ///   - message: What to send.
    ///   - author: Who sends it; subscribers may ignore one author.
    @inlinable nonisolated public func send(_ message: Message, from author: Plexus.Author? = nil)

    /// Registers a subscriber and returns the messages sent from now on.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Message> = .unbounded) -> AsyncStream<Message>

    /// Registers a subscriber that does not hear one of the senders.
    ///
    /// - Parameters:
    ///   - author: Whose messages are left out. They take no room in the buffer.
    ///   - bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscribe(ignoring author: Plexus.Author, bufferingPolicy: Plexus.BufferingPolicy<Message> = .unbounded) -> AsyncStream<Message>

    /// Registers a subscriber and returns the messages sent from now on.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
    @inlinable nonisolated public func subscription(bufferingPolicy: Plexus.BufferingPolicy<Message> = .unbounded) -> Plexus.Subscription<Message>

    /// Registers a subscriber that does not hear one of the senders.
    ///
    /// - Parameters:
    ///   - author: Whose messages are left out. They take no room in the buffer.
    ///   - bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscription(ignoring author: Plexus.Author, bufferingPolicy: Plexus.BufferingPolicy<Message> = .unbounded) -> Plexus.Subscription<Message>

    /// Ends every stream after what has been sent.
    ///
    /// Later messages are ignored, and later streams end at once. The subscriber count is 0.
    nonisolated public func finish()

    /// The number of subscribers at this moment, streams and handlers alike.
    nonisolated public var subscriberCount: Int { get }
}

extension Messenger {

    /// Sends every element of a sequence as it arrives.
    ///
    /// The sequence is iterated by a task of its own. Neither its end nor an error ends the messenger; a
    /// messenger has no place for an error, so turn it into a message before if somebody has to know. Several
    /// sequences can be followed at once.
    ///
    /// ```swift
    /// let everywhere = Messenger<String>()
    /// let here = Messenger<String>()
    /// everywhere.follow(here.subscribe())
    /// ```
    ///
    /// The messenger is held weakly: the task is cancelled when the messenger finishes or is released, and
    /// what the sequence still yields is not sent.
    ///
    /// - Parameter sequence: What to follow.
    nonisolated public func follow<Source>(_ sequence: Source) where Message == Source.Element, Source : Sendable, Source : AsyncSequence
}

extension Messenger {

    /// Returns the number of subscribers at this moment and whenever it changes, each number in order.
    ///
    /// It is a look at the messenger from outside: it does not count as a subscriber. Nothing is skipped
    /// under the default policy, so that one who comes and goes is seen twice. The stream ends, after a
    /// last 0, when the messenger finishes or is released.
    ///
    /// - Parameter bufferingPolicy: What is kept while the reader is behind.
    /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscriberCounts(bufferingPolicy: Plexus.BufferingPolicy<Int> = .unbounded) -> AsyncStream<Int>

    /// Waits until somebody is subscribed, streams and handlers alike; returns at once if there is somebody.
    ///
    /// ```swift
    /// let messenger = Messenger<String>()
    /// let listener = Task {
    ///   for await greeting in messenger.subscribe() { print(greeting) }
    /// }
    /// try await messenger.waitForSubscriber()
    /// messenger.send("hello")
    /// listener.cancel()
    /// ```
    ///
    /// - Throws: A `CancellationError` if the calling task is cancelled, ``BroadcastError/finished`` if the
    ///   messenger has finished.
    public func waitForSubscriber() async throws
}

/// What stands between the dispatch of an action and the reducer.
///
/// Middleware is called in the order of the array given to the store, each wrapped around those that
/// follow. It hands an action on by calling `next`, which returns when the reducer and all that lies
/// between have done their work. So it may drop an action (by not calling `next`), replace it, hand on
/// several, or leave it to an effect to dispatch it later.
///
/// ```swift
/// struct Counter: Sendable, Equatable { var count = 0 }
/// let logger = Middleware<Counter, Int> { action, context, next in
///   let before = context.state.count
///   next(action)
///   print("\(action): \(before) -> \(context.state.count)")
/// }
/// let store = Store(Counter(), middleware: [logger]) { state, action in state.count += action }
/// store.dispatch(3)
/// ```
///
/// Middleware runs on the thread that dispatches, one action at a time, outside every lock.
///
/// ## Effects
///
/// ``Context/run(_:)`` starts asynchronous work, which tells its result by ``Context/dispatch(_:)``. It
/// is cancelled when the store is released.
///
/// ```swift
/// enum Search: Sendable { case begin(String), found([String]) }
/// let searching = Middleware<[String], Search> { action, context, next in
///   next(action)
///   guard case .begin(let text) = action else { return }
///   context.run {
///     let names = [try? await backend.fetchProfile().name]
///     context.dispatch(.found(names.compactMap { $0 }.filter { $0.contains(text) }))
///   }
/// }
/// ```
///
/// ## Topics
///
/// ### Creating middleware
/// - ``init(_:)``
///
/// ### Working with the store
/// - ``Context``
public struct Middleware<State, Action> : Sendable where State : Sendable, Action : Sendable {

    /// Creates middleware.
    ///
    /// - Parameter body: What to do with each action: `next` hands on an action, this one or another, and
    ///   returns when it has been reduced.
    @inlinable public init(_ body: @escaping @Sendable (_ action: Action, _ context: Plexus.Middleware<State, Action>.Context, _ next: (Action) -> Void) -> Void)

    /// The store as middleware and its effects see it.
    ///
    /// A context may be kept, by effects or anything else: it does not keep the store. Once the store
    /// has gone, its last state can still be read, and nothing else happens.
    public struct Context : Sendable {

        /// The newest state: before `next` the one before the action, afterwards the one after it.
        @inlinable public var state: State { get }

        /// Dispatches an action, which passes the whole middleware from the beginning.
        ///
        /// While an action is under way, as in the body of middleware, this one follows it; from an effect
        /// it is usually reduced when this returns. ``Store/dispatchAndWait(_:)`` waits for it as for a
        /// part of the action that this context belongs to.
        ///
        /// - Parameter action: The action. It is ignored when the store has gone.
        @inlinable public func dispatch(_ action: Action)

        /// Starts an effect: asynchronous work that an action causes.
        ///
        /// It runs in a task of its own, off every actor, apart from the task that dispatched the action:
        /// neither that task's cancellation nor its task-local values reach it. It is cancelled when the
        /// store is released, and not even started after that.
        ///
        /// - Parameter effect: The work. It may use the context, which does not keep the store.
        public func run(_ effect: @escaping @Sendable () async -> Void)
    }
}

/// A cache of one asynchronously fetched value that never fetches it twice at once.
///
/// Any number of tasks may ask for the value; while a fetch is under way they all wait for that one.
/// Afterwards the value is handed out from memory, without suspending, until it is older than its
/// time to live.
///
/// ```swift
/// let profile = Multiplexer {
///   try await Task.detached { "Ada" }.value
/// }
///
/// // A hundred views may ask at once; the fetch runs once.
/// let name = try await profile.request()
/// print(name)
/// ```
///
/// ## Fetching
///
/// The closure runs in a task of its own, off every actor. It has the highest priority of those who
/// wait, and none of their task-local values. A caller that comes while it runs joins it.
///
/// ## Failing
///
/// Everybody who waits gets the error, nothing is cached, and the next request fetches again. A value
/// that is there is never dropped because of an error: if the policy says so, callers get it in place
/// of the error; ``response()`` tells.
///
/// ## Cancellation
///
/// A caller that is cancelled while it waits leaves at once with a `CancellationError`; the fetch and
/// the other callers notice nothing. What happens to the fetch when the last caller has left, the
/// policy says. A task that is cancelled already still gets a value that is at hand, and an error
/// in place of a wait.
///
/// ## Refreshing, clearing, storing
///
/// ``refresh()`` says that the value has changed at its origin, ``clear()`` forgets it, and
/// ``store(_:)`` brings a new one. Whatever a fetch brings that began before is never stored after
/// `clear()` or `store(_:)`, and does not satisfy a `refresh()`.
///
/// ## Subscribing
///
/// A subscriber is told the state of the value: the current one at once, then every change. It does not
/// cause a fetch.
///
/// ## Release
///
/// The last reference ends the streams. A fetch that is under way ends in its own time; a caller that
/// waits holds a reference.
final public actor Multiplexer<Value> : Plexus.Broadcaster, Plexus.Requestable where Value : Sendable {

    /// What subscribers receive.
    public typealias Element = Plexus.LoadState<Value>

    /// Creates a multiplexer of what a closure fetches.
    ///
    /// - Parameters:
    ///   - id: The name by which it appears in errors, and the key of its stored copy; its type if there is
    ///     none. Give one with a cacher: two multiplexers of one type would share a copy.
    ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
    ///   - cacher: Where the value outlives the process, if it shall.
    ///   - clock: What measures the age of values, waits and timeouts.
    ///   - onFetch: What fetches the value. It is released with the multiplexer.
    /// - Precondition: The policy's expiry jitter lies between 0 and 1, and its fetch timeout is positive.
    @inlinable public convenience init(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), cacher: (any Plexus.Cacher<Value>)? = nil, clock: any Clock<Duration> = ContinuousClock(), onFetch: @escaping @Sendable () async throws -> Value)

    /// Creates a multiplexer of what a closure fetches that knows of the value it renews.
    ///
    /// The closure may ask the origin whether the value has changed at all, and may say how long the
    /// new one is fresh.
    ///
    /// ```swift
    /// let rates = Multiplexer { (context: FetchContext<[String]>) in
    ///   guard context.validator == nil else { return .notModified() }
    ///   return .value(["EUR"], timeToLive: .seconds(60), validator: "v1")
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - id: The name by which it appears in errors, and the key of its stored copy; its type if there is
    ///     none. Give one with a cacher: two multiplexers of one type would share a copy.
    ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
    ///   - cacher: Where the value outlives the process, if it shall.
    ///   - clock: What measures the age of values, waits and timeouts.
    ///   - onFetch: What fetches the value. It is released with the multiplexer.
    /// - Precondition: The policy's expiry jitter lies between 0 and 1, and its fetch timeout is positive.
    @inlinable public convenience init(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), cacher: (any Plexus.Cacher<Value>)? = nil, clock: any Clock<Duration> = ContinuousClock(), onFetch: @escaping @Sendable (Plexus.FetchContext<Value>) async throws -> Plexus.FetchResult<Value>)

    /// Returns the value: at once if it is fresh, else after the one fetch that everybody waits for.
    ///
    /// - Returns: The value.
    /// - Throws: The error of the fetch that this call waited for; a `CancellationError` if the calling
    ///   task is cancelled and there is no value at hand;
    ///   ``MultiplexerError/recursiveRequest(chain:)`` if the calling task belongs to a fetch that would
    ///   come to wait for itself.
    @inlinable public func request() async throws -> Value

    /// Returns the value, where it comes from and how old it is.
    ///
    /// - Returns: The value, and what is known of it.
    /// - Throws: As ``request()``.
    @inlinable public func response() async throws -> Plexus.Response<Value>

    /// The value in memory, fresh or stale; it is `nil` if there is none.
    ///
    /// Reading it fetches nothing and does not count in the statistics.
    @inlinable nonisolated public var cachedValue: Value? { get }

    /// Says that the value has changed at its origin.
    ///
    /// The next request fetches. If a fetch is under way, which began too early, one more runs right
    /// after it, however many refreshes come before that one begins. While it runs other requests keep
    /// getting the old value at once, for as long as it serves. A fetch that fails keeps the value, and the
    /// next request tries again. A remembered failure is forgotten.
    ///
    /// ```swift
    /// let profile = Multiplexer { "Ada" }
    /// let newest = try await profile.refresh().request()
    /// print(newest)
    /// ```
    ///
    /// - Returns: A reference to the same multiplexer whose requests are answered with what was fetched or
    ///   stored after this call only.
    @discardableResult
    @inlinable nonisolated public func refresh() -> Self

    /// Forgets the value.
    ///
    /// It is forgotten, and `.unknown` is published, before this call suspends. Those who wait for a fetch
    /// get its result, which is stored nowhere. A request made afterwards fetches anew, and no stored copy
    /// is used until it has been removed. When this call returns it is gone for good. It runs to its
    /// end when the calling task is cancelled.
    ///
    /// - Throws: The cacher's error if the stored copy may still be there. This multiplexer does not use it
    ///   any more, and tries again to remove it at the next ``flush()`` or `clear()`.
    public func clear() async throws

    /// Writes the value to the cacher, if it has changed since it was written.
    ///
    /// It runs to its end when the calling task is cancelled.
    ///
    /// - Throws: A ``CacherError`` that names the keys that failed. They are tried again at the next call.
    public func flush() async throws

    /// Forgets the value in memory, for instance when memory is short.
    ///
    /// `.unknown` is published. A fetch that is under way goes on, and its value will be kept. A value that
    /// the cacher does not have yet is written to it.
    nonisolated public func clearMemory()

    /// Brings a value, as fresh as one that was just fetched.
    ///
    /// It wins over every fetch under way, whose callers get it, too; it satisfies every refresh before
    /// and ends a remembered failure.
    ///
    /// - Parameter value: The value.
    @inlinable nonisolated public func store(_ value: Value)

    /// Registers a subscriber and returns the current state of the value and those that follow.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Value>> = .bufferingNewest(1)) -> AsyncStream<Plexus.LoadState<Value>>

    /// Registers a subscriber and returns the current state of the value and those that follow.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscription(bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Value>> = .bufferingNewest(1)) -> Plexus.Subscription<Plexus.LoadState<Value>>

    /// The number of subscribers at this moment, streams and handlers alike.
    nonisolated public var subscriberCount: Int { get }

    /// Registers somebody who keeps a log of what happens from now on.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The stream, which lives until it is dropped or its task is cancelled, or the multiplexer
    ///   is released.
    nonisolated public func events(bufferingPolicy: Plexus.BufferingPolicy<Plexus.CacheEvent> = .unbounded) -> AsyncStream<Plexus.CacheEvent>

    /// What has happened so far.
    nonisolated public var statistics: Plexus.CacheStatistics { get }

    /// Adds the multiplexer to a repository, which does not keep it alive.
    ///
    /// - Parameter repository: What clears its members together.
    /// - Returns: The multiplexer itself.
    @discardableResult
    nonisolated public func register(in repository: Plexus.MuxRepository = .shared) -> Self
}

/// The reasons of a multiplexer's own for which a request fails.
///
/// What a fetch throws is passed on as it is, and a cancelled caller gets a `CancellationError`.
@nonexhaustive public enum MultiplexerError : Error, Hashable, Sendable {

    /// A fetch asked, directly or through other fetches, for what it is fetching itself.
    ///
    /// The chain names the fetches in the order in which they would wait for each other; it begins and
    /// ends with the one that asked. A fetch is named by the id of its multiplexer, or its type if it
    /// has none, and by its key. Loads of publishers that stand in between are left out.
    case recursiveRequest(chain: [String])

    /// An attempt to fetch took longer than the policy allows.
    case fetchTimedOut(after: Duration)

    /// A fetch for several keys returned no value for this one.
    case missingKey(String)

    /// A fetch said that the value has not changed when there was none.
    case notModifiedWithoutValue
}

extension MultiplexerError : Plexus.OriginFailure {

    /// Whether the origin has failed: not if the fetch itself is wrong, which no stale value is to hide.
    public var isOriginFailure: Bool { get }
}

extension MultiplexerError : CustomStringConvertible {

    /// A sentence that says what happened and what to do about it.
    public var description: String { get }
}

/// A cache of asynchronously fetched values by key that never fetches a key twice at once.
///
/// Each key behaves as a ``Multiplexer`` does: any number of tasks may ask for it, they share one
/// fetch, and the value is handed out from memory until it is older than its time to live. Keys do
/// not hold each other up.
///
/// ```swift
/// let names = MultiplexerMap<Int, String> { id in "user \(id)" }
///
/// let name = try await names.request(7)
/// print(name)
/// ```
///
/// Failing, cancellation, refreshing, clearing, storing and release are described at ``Multiplexer``;
/// they hold here for each key.
///
/// ## Subscribing
///
/// A subscriber of a key is told the state of its value: the current one at once, then every change. It
/// does not cause a fetch. A key without value and subscribers, whose last fetch failed, is forgotten
/// at some time: it is `.unknown` then.
///
/// ## Keys
///
/// Any hashable type will do; integers and strings are the fastest. Their `==` must not use the map.
final public actor MultiplexerMap<Key, Value> where Key : Hashable, Key : Sendable, Value : Sendable {

    /// Returns the value of a key: at once if it is fresh, else after the one fetch that everybody waits
    /// for who asks for that key.
    ///
    /// - Parameter key: The key.
    /// - Returns: Its value.
    /// - Throws: The error of the fetch that this call waited for; a `CancellationError` if the calling
    ///   task is cancelled and there is no value at hand;
    ///   ``MultiplexerError/recursiveRequest(chain:)`` if the calling task belongs to a fetch that would
    ///   come to wait for itself.
    @inlinable public func request(_ key: Key) async throws -> Value

    /// Returns the value of a key, where it comes from and how old it is.
    ///
    /// - Parameter key: The key.
    /// - Returns: Its value, and what is known of it.
    /// - Throws: As ``request(_:)->Value``.
    @inlinable public func response(_ key: Key) async throws -> Plexus.Response<Value>

    /// Returns the value of a key in memory, fresh or stale.
    ///
    /// It fetches nothing and does not count in the statistics.
    ///
    /// - Parameter key: The key.
    /// - Returns: Its value; `nil` if there is none.
    @inlinable nonisolated public func cachedValue(_ key: Key) -> Value?

    /// Returns the values of several keys, as if each of them were requested at the same time.
    ///
    /// What is fresh is taken from memory, running fetches are joined, and only what is missing is fetched:
    /// all of it by one fetch if the map has one for several keys. One key's failure does not fail
    /// others. When the calling task is cancelled, every key that would still have to be waited for fails
    /// with a `CancellationError` at once.
    ///
    /// ```swift
    /// let users = MultiplexerMap<Int, String>.bulk { ids in
    ///   Dictionary(uniqueKeysWithValues: ids.map { ($0, "user \($0)") })
    /// }
    ///
    /// for (id, user) in await users.request([1, 2, 3]) {
    ///   print(id, try user.get())
    /// }
    /// ```
    ///
    /// - Parameter keys: The keys; one that occurs twice is asked for once.
    /// - Returns: The value of each key, or the error that ``request(_:)-(Key)`` would throw. A key that a
    ///   fetch for several keys returned nothing for fails with ``MultiplexerError/missingKey(_:)``.
    @inlinable public func request(_ keys: some Collection<Key> & Sendable) async -> [Key : Result<Value, any Error>]

    /// A request of one key, for instance for a ``Zipper``.
    ///
    /// It keeps the map alive.
    ///
    /// - Parameter key: The key.
    nonisolated public subscript(key: Key) -> Plexus.Request<Value> { get }

    /// Brings the value of a key, as fresh as one that was just fetched.
    ///
    /// It wins over every fetch of the key under way, whose callers get it, too; it satisfies every
    /// refresh before and ends a remembered failure.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - key: Its key.
    @inlinable nonisolated public func store(_ value: Value, for key: Key)

    /// Says that the value of a key has changed at its origin.
    ///
    /// What follows is described at ``Multiplexer/refresh()``.
    ///
    /// - Parameter key: The key.
    /// - Returns: A reference to the same map. Its requests are answered with what was fetched or stored
    ///   after the key's own newest refresh, of those up to this call.
    @discardableResult
    @inlinable nonisolated public func refresh(_ key: Key) -> Self

    /// Says that the values of all keys have changed at their origin.
    ///
    /// Nothing is fetched until it is asked for, apart from keys whose fetch is under way. The call takes
    /// time in proportion to the number of keys.
    ///
    /// - Returns: A reference to the same map. Its requests are answered with what was fetched or stored
    ///   after this call only.
    @discardableResult
    nonisolated public func refreshAll() -> Self

    /// Forgets the value of a key.
    ///
    /// It is forgotten, and `.unknown` is published, before this call suspends. Those who wait for a fetch
    /// get its result, which is stored nowhere. A request made afterwards fetches anew, and no stored copy
    /// is used until it has been removed. When this call returns it is gone for good. It runs to its
    /// end when the calling task is cancelled.
    ///
    /// - Parameter key: The key.
    /// - Throws: A ``CacherError`` if the stored copy may still be there. This map does not use it any more,
    ///   and tries again to remove it at the next ``flush()`` or `clear`.
    @inlinable public func clear(_ key: Key) async throws

    /// Forgets the values of all keys, as ``clear(_:)`` does, and removes everything that its cacher has.
    ///
    /// - Throws: The cacher's error if stored copies may still be there. This map does not use them any
    ///   more, and tries again to remove them at the next ``flush()`` or `clear`.
    public func clear() async throws

    /// Writes the values to the cacher that have changed since they were written.
    ///
    /// It runs to its end when the calling task is cancelled.
    ///
    /// - Throws: A ``CacherError`` that names the keys that failed. They are tried again at the next call,
    ///   except for values that had to make room in memory and could not be written, which are lost.
    public func flush() async throws

    /// Forgets the values in memory, for instance when memory is short.
    ///
    /// `.unknown` is published. Fetches that are under way go on, and their values will be kept. Values that
    /// the cacher does not have yet are written to it.
    nonisolated public func clearMemory()

    /// Registers a subscriber and returns the current state of a key's value and those that follow.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscribe(to key: Key, bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Value>> = .bufferingNewest(1)) -> AsyncStream<Plexus.LoadState<Value>>

    /// Registers a subscriber and returns the current state of a key's value and those that follow.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscription(to key: Key, bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Value>> = .bufferingNewest(1)) -> Plexus.Subscription<Plexus.LoadState<Value>>

    /// Returns the number of subscribers of a key at this moment.
    ///
    /// - Parameter key: The key.
    /// - Returns: The number.
    nonisolated public func subscriberCount(of key: Key) -> Int

    /// Registers somebody who keeps a log of what happens from now on, to all keys.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The stream, which lives until it is dropped or its task is cancelled, or the map is
    ///   released.
    nonisolated public func events(bufferingPolicy: Plexus.BufferingPolicy<Plexus.CacheEvent> = .unbounded) -> AsyncStream<Plexus.CacheEvent>

    /// What has happened so far, over all keys.
    nonisolated public var statistics: Plexus.CacheStatistics { get }

    /// Adds the map to a repository, which does not keep it alive.
    ///
    /// - Parameter repository: What clears its members together.
    /// - Returns: The map itself.
    @discardableResult
    nonisolated public func register(in repository: Plexus.MuxRepository = .shared) -> Self
}

extension MultiplexerMap {

    /// Creates a map of what a closure fetches.
    ///
    /// - Parameters:
    ///   - id: The name by which it appears in errors; its type if there is none.
    ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
    ///   - capacity: How much is kept in memory.
    ///   - clock: What measures the age of values, waits and timeouts.
    ///   - onKeyFetch: What fetches the value of a key. It is released with the map.
    /// - Precondition: The policy's expiry jitter lies between 0 and 1, its fetch timeout is positive, and the
    ///   capacity is not negative.
    @inlinable public convenience init(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), capacity: Plexus.CacheCapacity<Value> = .unbounded, clock: any Clock<Duration> = ContinuousClock(), onKeyFetch: @escaping @Sendable (Key) async throws -> Value)

    /// Creates a map of what a closure fetches that knows of the value it renews.
    ///
    /// The closure may ask the origin whether the value has changed at all, and may say how long the
    /// new one is fresh.
    ///
    /// - Parameters:
    ///   - id: The name by which it appears in errors; its type if there is none.
    ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
    ///   - capacity: How much is kept in memory.
    ///   - clock: What measures the age of values, waits and timeouts.
    ///   - onKeyFetch: What fetches the value of a key. It is released with the map.
    /// - Precondition: The policy's expiry jitter lies between 0 and 1, its fetch timeout is positive, and the
    ///   capacity is not negative.
    @inlinable public convenience init(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), capacity: Plexus.CacheCapacity<Value> = .unbounded, clock: any Clock<Duration> = ContinuousClock(), onKeyFetch: @escaping @Sendable (Key, Plexus.FetchContext<Value>) async throws -> Plexus.FetchResult<Value>)

    /// Creates a map of what a closure fetches for several keys at once.
    ///
    /// ``request(_:)->[Key:Result<Value,Error>]`` fetches all that is missing with one call; a request of a
    /// single key calls it with that key alone, or joins a call that fetches the key already.
    ///
    /// - Parameters:
    ///   - id: The name by which it appears in errors; its type if there is none.
    ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
    ///   - capacity: How much is kept in memory.
    ///   - clock: What measures the age of values, waits and timeouts.
    ///   - onFetch: What fetches the values of keys, each of them once; a key that it returns nothing for
    ///     fails with ``MultiplexerError/missingKey(_:)``. It is released with the map.
    /// - Returns: The map.
    /// - Precondition: The policy's expiry jitter lies between 0 and 1, its fetch timeout is positive, and the
    ///   capacity is not negative.
    @inlinable public static func bulk(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), capacity: Plexus.CacheCapacity<Value> = .unbounded, clock: any Clock<Duration> = ContinuousClock(), onFetch: @escaping @Sendable ([Key]) async throws -> [Key : Value]) -> Plexus.MultiplexerMap<Key, Value>
}

extension MultiplexerMap where Key : LosslessStringConvertible {

    /// Creates a map of what a closure fetches, with stored copies.
    ///
    /// - Parameters:
    ///   - id: The name by which it appears in errors; its type if there is none.
    ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
    ///   - capacity: How much is kept in memory.
    ///   - cacher: Where values outlive the process, if they shall; it knows keys by their description. Maps
    ///     that share one share their entries.
    ///   - clock: What measures the age of values, waits and timeouts.
    ///   - onKeyFetch: What fetches the value of a key. It is released with the map.
    /// - Precondition: The policy's expiry jitter lies between 0 and 1, its fetch timeout is positive, and the
    ///   capacity is not negative.
    @inlinable public convenience init(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), capacity: Plexus.CacheCapacity<Value> = .unbounded, cacher: (any Plexus.Cacher<Value>)?, clock: any Clock<Duration> = ContinuousClock(), onKeyFetch: @escaping @Sendable (Key) async throws -> Value)

    /// Creates a map of what a closure fetches that knows of the value it renews, with stored copies.
    ///
    /// The closure may ask the origin whether the value has changed at all, and may say how long the
    /// new one is fresh.
    ///
    /// - Parameters:
    ///   - id: The name by which it appears in errors; its type if there is none.
    ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
    ///   - capacity: How much is kept in memory.
    ///   - cacher: Where values outlive the process, if they shall; it knows keys by their description. Maps
    ///     that share one share their entries.
    ///   - clock: What measures the age of values, waits and timeouts.
    ///   - onKeyFetch: What fetches the value of a key. It is released with the map.
    /// - Precondition: The policy's expiry jitter lies between 0 and 1, its fetch timeout is positive, and the
    ///   capacity is not negative.
    @inlinable public convenience init(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), capacity: Plexus.CacheCapacity<Value> = .unbounded, cacher: (any Plexus.Cacher<Value>)?, clock: any Clock<Duration> = ContinuousClock(), onKeyFetch: @escaping @Sendable (Key, Plexus.FetchContext<Value>) async throws -> Plexus.FetchResult<Value>)

    /// Creates a map of what a closure fetches for several keys at once, with stored copies.
    ///
    /// ``request(_:)->[Key:Result<Value,Error>]`` fetches all that is missing with one call; a request of a
    /// single key calls it with that key alone, or joins a call that fetches the key already.
    ///
    /// - Parameters:
    ///   - id: The name by which it appears in errors; its type if there is none.
    ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
    ///   - capacity: How much is kept in memory.
    ///   - cacher: Where values outlive the process, if they shall; it knows keys by their description. Maps
    ///     that share one share their entries.
    ///   - clock: What measures the age of values, waits and timeouts.
    ///   - onFetch: What fetches the values of keys, each of them once; a key that it returns nothing for
    ///     fails with ``MultiplexerError/missingKey(_:)``. It is released with the map.
    /// - Returns: The map.
    /// - Precondition: The policy's expiry jitter lies between 0 and 1, its fetch timeout is positive, and the
    ///   capacity is not negative.
    @inlinable public static func bulk(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), capacity: Plexus.CacheCapacity<Value> = .unbounded, cacher: (any Plexus.Cacher<Value>)?, clock: any Clock<Duration> = ContinuousClock(), onFetch: @escaping @Sendable ([Key]) async throws -> [Key : Value]) -> Plexus.MultiplexerMap<Key, Value>
}

/// Multiplexers and the like that are cleared together, for instance when somebody signs out, and
/// written together before the process ends.
///
/// ```swift
/// let profile = Multiplexer { "Ada" }.register()
/// let photos = MultiplexerMap<String, [UInt8]> { _ in [] }.register()
///
/// try await MuxRepository.shared.clearAll()
/// ```
///
/// Members are held weakly: one that nobody else holds is gone by itself.
final public actor MuxRepository {

    /// A repository for the whole process.
    public static let shared: Plexus.MuxRepository

    /// Creates a repository without members.
    public init()

    /// Adds a multiplexer, unless it is there already.
    ///
    /// - Parameter multiplexer: The multiplexer. It is not kept alive.
    nonisolated public func register<Value>(_ multiplexer: Plexus.Multiplexer<Value>) where Value : Sendable

    /// Adds a map, unless it is there already.
    ///
    /// - Parameter map: The map. It is not kept alive.
    nonisolated public func register<Key, Value>(_ map: Plexus.MultiplexerMap<Key, Value>) where Key : Hashable, Key : Sendable, Value : Sendable

    /// Adds a member, unless it is there already.
    ///
    /// - Parameter member: The member. It is not kept alive.
    nonisolated public func register(_ member: any Plexus.RepositoryMember)

    /// Takes a multiplexer out.
    ///
    /// - Parameter multiplexer: The multiplexer; nothing happens if it is not there.
    nonisolated public func unregister<Value>(_ multiplexer: Plexus.Multiplexer<Value>) where Value : Sendable

    /// Takes a map out.
    ///
    /// - Parameter map: The map; nothing happens if it is not there.
    nonisolated public func unregister<Key, Value>(_ map: Plexus.MultiplexerMap<Key, Value>) where Key : Hashable, Key : Sendable, Value : Sendable

    /// Takes a member out.
    ///
    /// - Parameter member: The member; nothing happens if it is not there.
    nonisolated public func unregister(_ member: any Plexus.RepositoryMember)

    /// The number of living members.
    nonisolated public var count: Int { get }

    /// Forgets what the members hold, in memory and stored.
    ///
    /// All of them are cut off first, one after another and without suspending: fetches that are under
    /// way are not stored any more, nor are those that begin before the last member is cut off, since
    /// they may have read what it held. Then the stored copies are removed. A request that is made
    /// after this call has returned never gets a value whose fetch began before the call; those who
    /// already waited for such a fetch get its result.
    ///
    /// - Throws: ``MuxRepositoryError`` with the errors of the members that failed. The others are
    ///   cleared all the same.
    public func clearAll() async throws

    /// Writes what the members hold to where it outlives the process, as far as it has changed.
    ///
    /// Call it before the process ends or is put to sleep. A program on a server calls it from the task that
    /// handles the signal to end:
    ///
    /// ```swift
    /// func terminate() async {
    ///   do {
    ///     try await MuxRepository.shared.flushAll()
    ///   } catch {
    ///     print(error)
    ///   }
    /// }
    /// ```
    ///
    /// An app calls it when it enters the background, within the time that the system grants for that.
    ///
    /// All members are flushed at the same time, whether others fail or not. It runs to its end when the
    /// calling task is cancelled.
    ///
    /// - Throws: ``MuxRepositoryError`` with the ids of the members that failed; the error of each of them
    ///   names the keys.
    public func flushAll() async throws

    /// Forgets what the members hold in memory; fetches that are under way go on.
    nonisolated public func clearMemory()
}

/// What went wrong when a repository asked all of its members for something.
///
/// Members that are not named have done it.
public struct MuxRepositoryError : Error {

    /// A member that failed.
    public struct Failure : Sendable {

        /// The id of the multiplexer or map, or its type if it has none.
        public let id: String

        /// What it failed with: for stored copies a ``CacherError``, which names the keys.
        public let error: any Error

        /// Creates a failure.
        ///
        /// - Parameters:
        ///   - id: The id of the member.
        ///   - error: What it failed with.
        public init(id: String, error: any Error)
    }

    /// The members that failed.
    public let failures: [Plexus.MuxRepositoryError.Failure]

    /// Creates an error.
    ///
    /// - Parameter failures: The members that failed.
    public init(failures: [Plexus.MuxRepositoryError.Failure])

    /// The errors of the members that failed.
    public var errors: [any Error] { get }
}

extension MuxRepositoryError : CustomStringConvertible {

    /// A sentence that names all members that failed, and why.
    public var description: String { get }
}

/// Several tokens that are cancelled together.
///
/// Releasing the bag cancels what is in it. A bag that was emptied with ``cancelAll()`` can be used
/// again.
final public class ObservationBag : Sendable {

    /// Creates an empty bag.
    public init()

    deinit

    /// Adds a token; one that is in the bag already, or cancelled, is not added.
    ///
    /// - Parameter token: What to cancel with the others.
    public func insert(_ token: Plexus.ObservationToken)

    /// Cancels the tokens in the order in which they were inserted, and empties the bag.
    public func cancelAll()

    /// The number of tokens that have not been cancelled.
    public var count: Int { get }
}

/// What keeps a handler registered.
///
/// Cancelling the token, or releasing its last reference, removes the handler: none is started
/// after ``cancel()`` has returned. That is exact when it is called on the handler's own actor or from
/// inside the handler; from another thread a handler may be about to enter its first line. A
/// handler that is running and suspended has its task cancelled.
///
/// Two tokens are equal if they are the same object.
final public class ObservationToken : Sendable {

    /// Creates a token that calls a closure once: when it is cancelled or released.
    ///
    /// - Parameter onCancel: What to do. It is called on the thread that cancels, and released then.
    public init(onCancel: @escaping @Sendable () -> Void)

    deinit

    /// Removes the handler; later calls do nothing.
    public func cancel()

    /// Whether the token has been cancelled.
    public var isCancelled: Bool { get }

    /// Hands the token to a bag, which cancels it together with others.
    ///
    /// - Parameter bag: The bag, which keeps the token until it is cancelled.
    public func store(in bag: Plexus.ObservationBag)
}

extension ObservationToken : Hashable {

    /// Returns whether both are the same object.
    public static func == (left: Plexus.ObservationToken, right: Plexus.ObservationToken) -> Bool

    /// Feeds the identity of the token into a hasher.
    ///
    /// - Parameter hasher: The hasher.
    public func hash(into hasher: inout Hasher)
}

/// The newest element of a broadcaster, for views and whatever else observes objects.
///
/// ```swift
/// struct Counter: Sendable, Equatable { var count = 0 }
/// let store = Store<Counter, Int>(Counter()) { state, action in state.count += action }
/// let counter = await ObservedValue(store, initial: store.state)
/// print(await counter.value.count)
/// ```
///
/// The value is set on the main actor. An element that equals the value is not published, if the type can
/// tell; the pair of states of a ``PageStore`` cannot. Of elements that arrive faster than the main actor
/// takes them, all but the newest are skipped.
///
/// The broadcaster is followed as long as this object lives. It is not kept by it: when it has gone, the
/// value stays what it was last.
@MainActor final public class ObservedValue<Value> where Value : Sendable {

    /// The newest element, or what was given at the beginning.
    @MainActor public private(set) var value: Value

    /// Creates a value that follows a broadcaster.
    ///
    /// - Parameters:
    ///   - source: What to follow.
    ///   - initial: The value until the first element has arrived. A state arrives at the next turn of
    ///     the main actor.
    @MainActor public init(_ source: some Plexus.Broadcaster<Value>, initial: Value)
}

extension ObservedValue : nonisolated Observable {
}

/// An error that knows whether the origin has failed, or has answered that there is no such value for the one
/// who asks.
///
/// ``CacheDirectives/staleIfError`` lets a value stand in for the former only: what the origin has removed or
/// does not show any more must not come back from a cache. Errors that do not conform count as failures.
public protocol OriginFailure : Error {

    /// Whether the origin has failed; `false` for an answer such as 404 of HTTP.
    var isOriginFailure: Bool { get }
}

/// A part of a list that is loaded page by page.
public struct Page<Item, Cursor> : Sendable where Item : Sendable, Cursor : Sendable {

    /// What is on the page.
    public var items: [Item]

    /// Where the next page begins; `nil` on the last one.
    public var next: Cursor?

    /// Creates a page.
    ///
    /// - Parameters:
    ///   - items: What is on the page. It may be empty, even if it is not the last one.
    ///   - next: Where the next page begins; `nil` if there is none.
    public init(items: [Item], next: Cursor?)
}

extension Page : Equatable where Item : Equatable, Cursor : Equatable {
}

extension Page : Hashable where Item : Hashable, Cursor : Hashable {
}

/// The store of one screen, beside the store of the app.
///
/// It has a state, a reducer, middleware and a lifetime of its own. Whoever subscribes gets the app's
/// state and the page's together. Code of the page dispatches to the app through ``parent``.
///
/// ```swift
/// struct App: Sendable, Equatable { var names = ["Ada", "Grace"] }
/// struct Filter: Sendable, Equatable { var text = "" }
///
/// let app = Store<App, String>(App()) { state, name in state.names.append(name) }
/// let page = app.page({ _ in Filter() }) { (state: inout Filter, text: String) in
///   state.text = text
/// }
/// page.dispatch("Gr")
/// for await (app, page) in page.subscribe() {
///   print(app.names.filter { $0.hasPrefix(page.text) })
///   break
/// }
/// ```
///
/// ## Consistency
///
/// A combination of the two states is always one that there was: a change of either is told together with
/// what the other was at that moment, in one order for all subscribers.
///
/// ## Order
///
/// Actions of the page follow the rules of ``Store``, in an order of their own: the app and each of its
/// pages carry out one action at a time. An action that one of them dispatches to another one while
/// that has nothing to do has been reduced when `dispatch` returns.
///
/// ## Lifetime
///
/// A page store lives as long as its owner keeps it, and keeps its parent, which knows it by its state
/// only and does not count it as a subscriber. Several pages of one kind live side by side. When the
/// last reference to a page store is gone, its effects are cancelled and its streams end.
///
/// What captures the owner of the page strongly must not be kept by the page: observe with
/// `observe(as: self)` or `[weak self]`, and cancel tasks whose loops capture `self`. The article
/// <doc:stores-and-pages> lists the ways.
///
/// ## Topics
///
/// ### Dispatching
/// - ``dispatch(_:)``
/// - ``dispatchAndWait(_:)``
/// - ``parent``
///
/// ### Following
/// - ``state``
/// - ``snapshot``
/// - ``subscribe(bufferingPolicy:)``
/// - ``subscription(bufferingPolicy:)``
/// - ``subscriberCount``
final public actor PageStore<AppState, AppAction, PageState, PageAction> : Plexus.Broadcaster where AppState : Sendable, AppAction : Sendable, PageState : Sendable, PageAction : Sendable {

    /// What subscribers receive: both states at one moment.
    public typealias Element = (app: AppState, page: PageState)

    /// The store of the app.
    nonisolated public let parent: Plexus.Store<AppState, AppAction>

    deinit

    /// The newest state of the page.
    @inlinable nonisolated public var state: PageState { get }

    /// The newest states of the app and of the page, at one moment.
    nonisolated public var snapshot: (app: AppState, page: PageState) { get }

    /// Carries out an action of the page; see ``Store/dispatch(_:)``.
    ///
    /// - Parameter action: What is to happen.
    @inlinable nonisolated public func dispatch(_ action: PageAction)

    /// Carries out an action of the page and waits until its effects have ended; see
    /// ``Store/dispatchAndWait(_:)``.
    ///
    /// If the calling task is cancelled, this returns at once; the action and its effects go on.
    ///
    /// - Parameter action: What is to happen.
    public func dispatchAndWait(_ action: PageAction) async

    /// Registers a subscriber and returns both states, and those that follow a change of either.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Plexus.PageStore<AppState, AppAction, PageState, PageAction>.Element> = .bufferingNewest(1)) -> AsyncStream<Plexus.PageStore<AppState, AppAction, PageState, PageAction>.Element>

    /// Registers a subscriber and returns both states, and those that follow a change of either.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscription(bufferingPolicy: Plexus.BufferingPolicy<Plexus.PageStore<AppState, AppAction, PageState, PageAction>.Element> = .bufferingNewest(1)) -> Plexus.Subscription<Plexus.PageStore<AppState, AppAction, PageState, PageAction>.Element>

    /// The number of the page's subscribers at this moment: to states and to changes, of the app's state,
    /// too, streams and handlers alike.
    nonisolated public var subscriberCount: Int { get }
}

extension PageStore {

    /// Registers a subscriber to the changes of what a key path leads to in the page's state.
    ///
    /// The rules are those of ``Store/changes(of:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)``.
    ///
    /// - Parameters:
    ///   - path: What to look at.
    ///   - bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The stream, which ends with the page store and lives until it is dropped or its task is
    ///   cancelled.
    @inlinable nonisolated public func changes<V>(of path: any KeyPath<PageState, V> & Sendable, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> AsyncStream<Plexus.Change<V>> where V : Equatable, V : Sendable

    /// Registers a subscriber to the changes of a value that is made from the page's state.
    ///
    /// The rules are those of ``Store/changes(of:bufferingPolicy:)-((State)->V,_)``.
    ///
    /// - Parameters:
    ///   - select: What to look at. It is called on the thread that dispatches, outside every lock.
    ///   - bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The stream, which ends with the page store and lives until it is dropped or its task is
    ///   cancelled.
    @inlinable nonisolated public func changes<V>(of select: @escaping @Sendable (PageState) -> V, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> AsyncStream<Plexus.Change<V>> where V : Equatable, V : Sendable

    /// Registers a subscriber to the changes of what a key path leads to in the page's state.
    ///
    /// The rules are those of ``Store/changes(of:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)``.
    ///
    /// - Parameters:
    ///   - path: What to look at.
    ///   - bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The subscription, which ends with the page store and lives until it is dropped or its
    ///   task is cancelled.
    @inlinable nonisolated public func subscription<V>(toChangesOf path: any KeyPath<PageState, V> & Sendable, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> Plexus.Subscription<Plexus.Change<V>> where V : Equatable, V : Sendable

    /// Registers a subscriber to the changes of a value that is made from the page's state.
    ///
    /// The rules are those of ``Store/changes(of:bufferingPolicy:)-((State)->V,_)``.
    ///
    /// - Parameters:
    ///   - select: What to look at. It is called on the thread that dispatches, outside every lock.
    ///   - bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The subscription, which ends with the page store and lives until it is dropped or its
    ///   task is cancelled.
    @inlinable nonisolated public func subscription<V>(toChangesOf select: @escaping @Sendable (PageState) -> V, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> Plexus.Subscription<Plexus.Change<V>> where V : Equatable, V : Sendable

    /// Registers a subscriber to the changes of what a key path leads to in the app's state.
    ///
    /// The rules are those of ``Store/changes(of:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)``.
    ///
    /// - Parameters:
    ///   - path: What to look at.
    ///   - bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The stream, which ends with the page store and lives until it is dropped or its task is
    ///   cancelled.
    @inlinable nonisolated public func changes<V>(ofApp path: any KeyPath<AppState, V> & Sendable, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> AsyncStream<Plexus.Change<V>> where V : Equatable, V : Sendable

    /// Registers a subscriber to the changes of a value that is made from the app's state.
    ///
    /// The rules are those of ``Store/changes(of:bufferingPolicy:)-((State)->V,_)``.
    ///
    /// - Parameters:
    ///   - select: What to look at. It is called on the thread that dispatches, outside every lock.
    ///   - bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The stream, which ends with the page store and lives until it is dropped or its task is
    ///   cancelled.
    @inlinable nonisolated public func changes<V>(ofApp select: @escaping @Sendable (AppState) -> V, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> AsyncStream<Plexus.Change<V>> where V : Equatable, V : Sendable

    /// Registers a subscriber to the changes of what a key path leads to in the app's state.
    ///
    /// The rules are those of ``Store/changes(of:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)``.
    ///
    /// - Parameters:
    ///   - path: What to look at.
    ///   - bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The subscription, which ends with the page store and lives until it is dropped or its
    ///   task is cancelled.
    @inlinable nonisolated public func subscription<V>(toChangesOfApp path: any KeyPath<AppState, V> & Sendable, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> Plexus.Subscription<Plexus.Change<V>> where V : Equatable, V : Sendable

    /// Registers a subscriber to the changes of a value that is made from the app's state.
    ///
    /// The rules are those of ``Store/changes(of:bufferingPolicy:)-((State)->V,_)``.
    ///
    /// - Parameters:
    ///   - select: What to look at. It is called on the thread that dispatches, outside every lock.
    ///   - bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The subscription, which ends with the page store and lives until it is dropped or its
    ///   task is cancelled.
    @inlinable nonisolated public func subscription<V>(toChangesOfApp select: @escaping @Sendable (AppState) -> V, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> Plexus.Subscription<Plexus.Change<V>> where V : Equatable, V : Sendable
}

/// The state of a list that is loaded page by page, told to any number of subscribers.
///
/// The publisher is given what fetches one page, and keeps the pages that it has fetched. A new
/// subscriber gets the current state at once, `.unknown` included, and then every change. By default a
/// slow subscriber skips ahead to the newest state.
///
/// ```swift
/// let letters = PagedPublisher<String, Int> { cursor in
///   let page = cursor ?? 0
///   return Page(items: ["a\(page)", "b\(page)"], next: page < 2 ? page + 1 : nil)
/// }
/// try await letters.loadFirstPage()
/// try await letters.loadNextPage()
/// print(letters.state.value?.items ?? [])  // a0, b0, a1, b1
/// ```
///
/// ## What survives
///
/// The pages survive a load and its failure as the previous value; a failed page can be asked for again.
/// A new first page takes the place of them all. ``reset()`` drops them, before `.unknown` is
/// published.
///
/// ## Loading
///
/// Calls while a page is being loaded join that load, and so share its page and its error. With one
/// exception: whoever asks for the first page is not served by a later one. It begins anew, and the page
/// that was under way is not used any more when it arrives; those who wait for it return then. A page
/// that arrives after a reset is not used either.
///
/// ## Cancellation
///
/// A caller that is cancelled leaves at once with a `CancellationError`. When the last one has left,
/// the fetch is cancelled and the state goes back to what it was before.
///
/// ## Release
///
/// The last reference to a publisher ends its streams. A caller that waits for a page holds one.
final public actor PagedPublisher<Item, Cursor> : Plexus.Broadcaster where Item : Sendable, Cursor : Sendable {

    /// What subscribers receive.
    public typealias Element = Plexus.LoadState<Plexus.Pages<Item>>

    /// Creates a publisher of a list of which nothing is known.
    ///
    /// - Parameter fetch: What fetches the page at a cursor, and the first one without. One fetch runs at
    ///   a time, unless the first page is asked for during that of another. It runs off the caller's
    ///   actor and apart from the caller's task: neither its cancellation nor its task-local values
    ///   reach it.
    public init(fetch: @escaping @Sendable (Cursor?) async throws -> Plexus.Page<Item, Cursor>)

    deinit

    /// What is known at this moment.
    nonisolated public var state: Plexus.LoadState<Plexus.Pages<Item>> { get }

    /// The number of subscribers at this moment, streams and handlers alike.
    nonisolated public var subscriberCount: Int { get }

    /// Registers a subscriber and returns the current state and those that follow.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Plexus.Pages<Item>>> = .bufferingNewest(1)) -> AsyncStream<Plexus.LoadState<Plexus.Pages<Item>>>

    /// Registers a subscriber and returns the current state and those that follow.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscription(bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Plexus.Pages<Item>>> = .bufferingNewest(1)) -> Plexus.Subscription<Plexus.LoadState<Plexus.Pages<Item>>>

    /// Loads the first page, which takes the place of all that are known when it arrives.
    ///
    /// It joins a load of the first page that is under way.
    ///
    /// - Throws: The error of the fetch; a `CancellationError` if the calling task is cancelled, in which
    ///   case nothing has changed if it was so from the beginning; ``LoadError/recursiveLoad`` if called
    ///   by the fetch that it would join, or by one for which that fetch waits in turn.
    public func loadFirstPage() async throws

    /// Loads the page after those that are known, or the first one if there are none.
    ///
    /// It joins any load that is under way, also that of the first page, and does nothing if the last page
    /// is there.
    ///
    /// - Throws: As ``loadFirstPage()``.
    public func loadNextPage() async throws

    /// Forgets everything and publishes `.unknown`.
    ///
    /// What was known cannot be reached through ``state`` any more when subscribers learn of it, and a
    /// page that is under way will not be used.
    nonisolated public func reset()
}

extension PagedPublisher {

    /// Returns the number of subscribers at this moment and whenever it changes, each number in order.
    ///
    /// The rules are those of ``Messenger/subscriberCounts(bufferingPolicy:)``: it is not a subscriber, and
    /// ends with the publisher.
    ///
    /// - Parameter bufferingPolicy: What is kept while the reader is behind.
    /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscriberCounts(bufferingPolicy: Plexus.BufferingPolicy<Int> = .unbounded) -> AsyncStream<Int>

    /// Waits until somebody is subscribed, streams and handlers alike; returns at once if there is somebody.
    ///
    /// - Throws: A `CancellationError` if the calling task is cancelled.
    public func waitForSubscriber() async throws
}

/// The pages of a list that have been loaded so far.
public struct Pages<Item> : Sendable where Item : Sendable {

    /// What is on them, from the first page on.
    public var items: [Item]

    /// Whether the last page is among them.
    public var isComplete: Bool

    /// Creates a list of what has been loaded.
    ///
    /// - Parameters:
    ///   - items: What is on the pages, from the first one on.
    ///   - isComplete: Whether the last page is among them.
    public init(items: [Item], isComplete: Bool)
}

extension Pages : Equatable where Item : Equatable {
}

extension Pages : Hashable where Item : Hashable {
}

/// When an event that is kept for later subscribers is kept no longer.
///
/// Whatever the rule, an event that no subscriber has handled successfully stays, and is replayed to
/// each later subscriber.
public enum PersistenceRule : Sendable, Hashable {

    /// The first success ends it: the subscribers after that one do not get the event.
    case clearImmediately

    /// All subscribers of the moment get the event; one success among them is enough to end it.
    case clearAfterAllCurrentSubscribersNotified

    /// The event stays, whoever has handled it, and is replayed to every later subscriber.
    ///
    /// Without a limit in ``EventPersistence`` the kept events grow with every post.
    case neverClear
}

/// An event that is kept, if need be, until somebody has handled it.
///
/// ```swift
/// struct PaymentFailed: PersistentEvent {
///   let order: Int
///   var persistenceRule: PersistenceRule { .clearImmediately }
/// }
/// ```
///
/// Its handlers may return a ``HandlerResult`` to tell whether they could do anything with it.
/// <doc:persistent-events> tells what happens under which rule.
public protocol PersistentEvent : Plexus.Event {

    /// When an event is kept no longer.
    var persistenceRule: Plexus.PersistenceRule { get }
}

extension PersistentEvent {

    /// The event is kept as its rule says, without a limit of number or time.
    public var persistence: Plexus.EventPersistence { get }
}

/// A source of persistent events, whose handlers may return what they could do with an event.
///
/// ``EventBus`` is one. Its handlers that return a ``HandlerResult`` are listed here, those that return
/// nothing are its own members. Swift prefers those where a closure has no result at all, and both are
/// called in the same way:
///
/// ```swift
/// struct PaymentFailed: PersistentEvent {
///   let order: Int
///   var persistenceRule: PersistenceRule { .clearImmediately }
/// }
///
/// let bus = EventBus()
/// bus.observe(id: "log", PaymentFailed.self) { event in
///   print(event.order)
/// }
/// bus.observe(id: "screen", PaymentFailed.self) { event in
///   event.order > 0 ? .handledSuccessfully : .failed
/// }
/// ```
public protocol PersistentEventSource : Sendable {
}

/// Handlers with a result that live until removed by an id.
///
/// In the extension of a protocol these rank behind those that return nothing, so that a closure without a
/// result is taken for one of those.
extension PersistentEventSource where Self == Plexus.EventBus {

    /// Calls a closure for every event of a type, until it is removed by its id.
    ///
    /// The synchronous handlers of one type and scope that share an actor run one after another, in
    /// subscription order, event by event.
    ///
    /// What it returns decides whether a persistent event goes on to others, or is kept: see
    /// <doc:persistent-events>. Throwing counts as ``HandlerResult/failed``.
    ///
    /// - Parameters:
    ///   - id: What removes the handler: see ``EventBus/removeObserver(id:)``. Several handlers may have the
    ///     same.
    ///   - type: The type of events, exactly.
    ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
    ///   - replacing: Whether handlers of the same id, type and scope are removed in the same moment. The
    ///     new one takes its place at the end, and gets everything that is posted from then on.
    ///   - handler: What to call, on the actor that the closure belongs to.
    nonisolated public func observe<E>(id: some Hashable & Sendable, _ type: E.Type, scope: Plexus.EventScope? = nil, replacing: Bool = false, _ handler: @escaping @isolated(any) @Sendable (E) throws -> Plexus.HandlerResult) where E : Plexus.PersistentEvent

    /// Calls an asynchronous closure for every event of a type, until it is removed by its id.
    ///
    /// The handler has a task of its own. It sees every event in order, never overlaps itself, and holds
    /// up no other subscriber while it is suspended, unless the event is persistent. When the handler is
    /// removed while it runs, that task is cancelled.
    ///
    /// What it returns decides whether a persistent event goes on to others, or is kept: see
    /// <doc:persistent-events>. Throwing counts as ``HandlerResult/failed``.
    ///
    /// - Parameters:
    ///   - id: What removes the handler: see ``EventBus/removeObserver(id:)``. Several handlers may have the
    ///     same.
    ///   - type: The type of events, exactly.
    ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
    ///   - replacing: Whether handlers of the same id, type and scope are removed in the same moment. The
    ///     new one takes its place at the end, and gets everything that is posted from then on.
    ///   - handler: What to call, on the actor that the closure belongs to.
    nonisolated public func observe<E>(id: some Hashable & Sendable, _ type: E.Type, scope: Plexus.EventScope? = nil, replacing: Bool = false, _ handler: @escaping @isolated(any) @Sendable (E) async throws -> Plexus.HandlerResult) where E : Plexus.PersistentEvent
}

/// Handlers with a result that live as long as an owner lives.
///
/// In the extension of a protocol these rank behind those that return nothing, so that a closure without a
/// result is taken for one of those.
extension PersistentEventSource where Self == Plexus.EventBus {

    /// Calls a closure for every event of a type, as long as an owner lives.
    ///
    /// The synchronous handlers of one type and scope that share an actor run one after another, in
    /// subscription order, event by event.
    ///
    /// What it returns decides whether a persistent event goes on to others, or is kept: see
    /// <doc:persistent-events>. Throwing counts as ``HandlerResult/failed``.
    ///
    /// - Parameters:
    ///   - owner: Whose life decides; it is held weakly. The closure must not capture it strongly: it is
    ///     handed in. Once it has gone, the handler is removed at the next event, or the next look at
    ///     ``EventBus/subscriberCount(for:scope:)``.
    ///   - type: The type of events, exactly.
    ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
    ///   - handler: What to call, with the owner and the event, on the actor that the closure belongs to.
    nonisolated public func observe<Owner, E>(as owner: Owner, _ type: E.Type, scope: Plexus.EventScope? = nil, _ handler: @escaping @isolated(any) @Sendable (Owner, E) throws -> Plexus.HandlerResult) where Owner : AnyObject, Owner : Sendable, E : Plexus.PersistentEvent

    /// Calls an asynchronous closure for every event of a type, as long as an owner lives.
    ///
    /// The handler has a task of its own. It sees every event in order, never overlaps itself, and holds
    /// up no other subscriber while it is suspended, unless the event is persistent. When the handler is
    /// removed while it runs, that task is cancelled.
    ///
    /// What it returns decides whether a persistent event goes on to others, or is kept: see
    /// <doc:persistent-events>. Throwing counts as ``HandlerResult/failed``.
    ///
    /// - Parameters:
    ///   - owner: Whose life decides; it is held weakly. The closure must not capture it strongly: it is
    ///     handed in. Once it has gone, the handler is removed at the next event, or the next look at
    ///     ``EventBus/subscriberCount(for:scope:)``.
    ///   - type: The type of events, exactly.
    ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
    ///   - handler: What to call, with the owner and the event, on the actor that the closure belongs to.
    nonisolated public func observe<Owner, E>(as owner: Owner, _ type: E.Type, scope: Plexus.EventScope? = nil, _ handler: @escaping @isolated(any) @Sendable (Owner, E) async throws -> Plexus.HandlerResult) where Owner : AnyObject, Owner : Sendable, E : Plexus.PersistentEvent
}

/// Handlers with a result that live as long as a token lives.
///
/// In the extension of a protocol these rank behind those that return nothing, so that a closure without a
/// result is taken for one of those.
extension PersistentEventSource where Self == Plexus.EventBus {

    /// Calls a closure for every event of a type, as long as a token lives.
    ///
    /// The synchronous handlers of one type and scope that share an actor run one after another, in
    /// subscription order, event by event.
    ///
    /// What it returns decides whether a persistent event goes on to others, or is kept: see
    /// <doc:persistent-events>. Throwing counts as ``HandlerResult/failed``.
    ///
    /// - Parameters:
    ///   - type: The type of events, exactly.
    ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
    ///   - handler: What to call, on the actor that the closure belongs to.
    /// - Returns: The token that keeps the handler registered. Dropping it removes the handler.
    nonisolated public func observe<E>(_ type: E.Type, scope: Plexus.EventScope? = nil, _ handler: @escaping @isolated(any) @Sendable (E) throws -> Plexus.HandlerResult) -> Plexus.ObservationToken where E : Plexus.PersistentEvent

    /// Calls an asynchronous closure for every event of a type, as long as a token lives.
    ///
    /// The handler has a task of its own. It sees every event in order, never overlaps itself, and holds
    /// up no other subscriber while it is suspended, unless the event is persistent. When the handler is
    /// removed while it runs, that task is cancelled.
    ///
    /// What it returns decides whether a persistent event goes on to others, or is kept: see
    /// <doc:persistent-events>. Throwing counts as ``HandlerResult/failed``.
    ///
    /// - Parameters:
    ///   - type: The type of events, exactly.
    ///   - scope: The scope, exactly; `nil` is for events that are posted without one.
    ///   - handler: What to call, on the actor that the closure belongs to.
    /// - Returns: The token that keeps the handler registered. Dropping it removes the handler.
    nonisolated public func observe<E>(_ type: E.Type, scope: Plexus.EventScope? = nil, _ handler: @escaping @isolated(any) @Sendable (E) async throws -> Plexus.HandlerResult) -> Plexus.ObservationToken where E : Plexus.PersistentEvent
}

/// What has become of a posted event.
public struct PostOutcome : Sendable, Hashable {

    /// The number of subscribers that the event has reached, streams included.
    public let notified: Int

    /// The number of successes among them: handlers that returned ``HandlerResult/handledSuccessfully``
    /// or nothing, and streams that have the event in their buffer.
    public let handled: Int

    /// Whether the event is kept for later subscribers when the post ends.
    public let isPersisted: Bool

    /// Whether the event only stands in the queue.
    ///
    /// It was posted inside a handler that the post would have had to wait for: nobody has been notified
    /// yet.
    public let isDeferred: Bool
}

/// What an action does to a state.
///
/// A reducer is called for one action at a time, on the thread that dispatches, outside every lock. It
/// should depend on nothing but its arguments. Actions that it dispatches itself follow the one at hand.
public typealias Reducer<State, Action> = @Sendable (inout State, Action) -> Void

/// Something that a ``MuxRepository`` can clear together with others.
///
/// Multiplexers and maps need not be told about it: they are registered as they are. Conform a cache
/// of your own to it.
public protocol RepositoryMember : AnyObject, Sendable {

    /// Forgets everything in memory, and sees to it that nothing that began before will be kept.
    ///
    /// It must not wait.
    nonisolated func cutOff()

    /// The same, and from now on until ``release()`` nothing is kept of what begins.
    ///
    /// What begins now may still read what other members hold of before. It must not wait.
    nonisolated func hold()

    /// What begins from now on is kept again: nobody holds anything of before any more.
    ///
    /// Called once for each call of ``hold()``. It must not wait.
    nonisolated func release()

    /// The name by which the member appears in the errors of a repository.
    nonisolated var name: String { get }

    /// Writes what has changed to where it outlives the process.
    ///
    /// - Throws: What could not be written, and why.
    func flush() async throws

    /// Removes the stored copies; they are gone for good when it returns.
    ///
    /// - Throws: Why some of them are still there.
    func removeStored() async throws

    /// Forgets everything in memory. What is under way goes on.
    nonisolated func clearMemory()
}

extension RepositoryMember {

    /// Cuts off what there is.
    nonisolated public func hold()

    /// Cuts off what has begun since ``hold()``.
    nonisolated public func release()

    /// The name of the type.
    nonisolated public var name: String { get }

    /// Writes nothing: what is in memory only has no stored copies.
    public func flush() async throws

    /// Removes nothing: what is in memory only has no stored copies.
    public func removeStored() async throws
}

/// A request made of a closure.
///
/// It remembers nothing: every call of ``request()`` runs the closure again. It is what a key of a
/// ``MultiplexerMap`` becomes by subscript, and the way to bring any other work into a ``Zipper``.
///
/// ```swift
/// let dice = Request { Int.random(in: 1...6) }
/// let number = try await dice.request()
/// print(number)
/// ```
///
/// ## Cancellation
///
/// The closure runs as part of the calling task, off its actor. It is told of a cancellation as
/// every asynchronous function is.
public struct Request<Value> : Plexus.Requestable where Value : Sendable {

    /// Creates a request that runs a closure.
    ///
    /// - Parameter operation: What gets the value. It is released with the request.
    public init(_ operation: @escaping @Sendable () async throws -> Value)

    /// Runs the closure.
    ///
    /// - Returns: What the closure returns.
    /// - Throws: What the closure throws.
    public func request() async throws -> Value
}

/// Something that can be asked for a value.
///
/// Multiplexers and ``Request`` are requestable; a ``Zipper`` asks several of them at once.
public protocol Requestable<Value> : Sendable {

    /// What is asked for.
    associatedtype Value : Sendable

    /// Returns the value.
    ///
    /// - Returns: The value.
    /// - Throws: Why there is none; a `CancellationError` if the calling task is cancelled while it
    ///   waits.
    func request() async throws -> Self.Value
}

/// A value together with where it comes from and how old it is.
public struct Response<Value> : Sendable where Value : Sendable {

    /// The origin of a value.
    public typealias Source = Plexus.ResponseSource

    /// The value.
    public let value: Value

    /// Where the value comes from.
    public let source: Plexus.Response<Value>.Source

    /// The time since the value was fetched or stored; zero for one that was just fetched.
    public let age: Duration

    /// Whether the value is past its time to live, or stands in for one that could not be fetched.
    public let isStale: Bool

    /// Why the value could not be renewed, if that was tried.
    public let error: (any Error)?

    /// Creates a response, for instance in a test or in a ``Requestable`` of your own.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - source: Where it comes from.
    ///   - age: The time since it was fetched or stored.
    ///   - isStale: Whether it is past its time to live or stands in for a newer one.
    ///   - error: Why it could not be renewed.
    @inlinable public init(value: Value, source: Plexus.Response<Value>.Source, age: Duration = .zero, isStale: Bool = false, error: (any Error)? = nil)
}

/// The origin of the value in a response.
public enum ResponseSource : Hashable, Sendable {

    /// A fetch that the caller waited for.
    case fetch

    /// Memory.
    case memory

    /// The stored copy.
    case cacher
}

/// An error that knows when trying again makes sense, such as an HTTP response with a Retry-After
/// header.
///
/// A ``RetryPolicy`` waits at least that long, even beyond its cap. It does not try again more often.
public protocol RetryAdvice : Error {

    /// How long to wait before the next attempt; `nil` if the error cannot tell.
    var retryAfter: Duration? { get }
}

/// Whether and when a failed fetch is tried again.
public struct RetryPolicy : Hashable, Sendable {

    /// The number of tries, the first one included.
    public let attempts: Int

    /// How long to wait before the second try.
    ///
    /// Every later wait is twice as long as the one before.
    public let base: Duration

    /// The longest wait.
    public let cap: Duration

    /// The share by which every wait is made longer or shorter at random: 0.2 is up to 20 %.
    public let jitter: Double

    /// A failed fetch is not tried again.
    public static let never: Plexus.RetryPolicy

    /// A failed fetch is tried again after waits that double.
    ///
    /// The waits are measured by the clock of the multiplexer. A fetch that is cancelled, or that
    /// throws a `CancellationError`, is not tried again. After an error that gives a ``RetryAdvice`` the wait
    /// is at least as long as advised, also beyond the cap.
    ///
    /// - Parameters:
    ///   - attempts: The number of tries, the first one included.
    ///   - base: How long to wait before the second try.
    ///   - cap: The longest wait, before jitter.
    ///   - jitter: The share by which every wait is made longer or shorter at random, so that many
    ///     clients do not return at the same moment.
    /// - Returns: The policy.
    /// - Precondition: There is at least one try, no duration is negative, and the jitter lies between
    ///   0 and 1.
    public static func exponential(attempts: Int, base: Duration, cap: Duration, jitter: Double) -> Plexus.RetryPolicy
}

/// Another sequence, iterated once for any number of subscribers.
///
/// Make one with `broadcast(bufferingPolicy:)` of any sequence. It begins to iterate when the
/// first subscriber comes, stops when the last one has gone, and tells everybody the same elements in the
/// same order. Nothing is replayed: who comes later gets what arrives from then on.
///
/// ```swift
/// let (lines, modem) = AsyncStream.makeStream(of: String.self)
/// let shared = lines.broadcast()
/// let first = shared.subscribe()
/// let second = shared.subscribe()
/// modem.yield("ring")
/// for await line in first {
///   print(line)
///   break
/// }
/// ```
///
/// ## Failure
///
/// The elements of a sequence that may fail are results. The last of them is the failure: every
/// subscriber gets it, also one that comes afterwards, and then its stream ends.
///
/// ## Starting again
///
/// A subscriber that comes when the others have gone starts another iteration. What that yields depends
/// on the sequence: an `AsyncStream` has ended with the first one. What a stopped iteration still yields
/// reaches nobody. The sequence is never iterated twice at once: the other iteration begins when the
/// stopped one is over, which a sequence that does not care to be cancelled can put off until its next
/// element.
///
/// ## Ending
///
/// When the sequence has ended by itself, all streams end after what came before, later ones at once.
///
/// ## Release
///
/// The last reference to the broadcaster stops the iteration and ends its streams; they do not keep it.
final public actor SharedSequence<Element> : Plexus.Broadcaster where Element : Sendable {

    deinit

    /// The number of subscribers at this moment, streams and handlers alike.
    nonisolated public var subscriberCount: Int { get }

    /// Registers a subscriber with the buffering policy given at the beginning.
    ///
    /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscribe() -> AsyncStream<Element>

    /// Registers a subscriber with the buffering policy given at the beginning.
    ///
    /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscription() -> Plexus.Subscription<Element>

    /// Registers a subscriber and returns the elements that arrive from now on.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscription(bufferingPolicy: Plexus.BufferingPolicy<Element>) -> Plexus.Subscription<Element>
}

extension SharedSequence {

    /// Returns the number of subscribers at this moment and whenever it changes, each number in order.
    ///
    /// The rules are those of ``Messenger/subscriberCounts(bufferingPolicy:)``: it is not a subscriber, so
    /// that it starts no iteration, and ends with the sequence or with the broadcaster.
    ///
    /// - Parameter bufferingPolicy: What is kept while the reader is behind.
    /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscriberCounts(bufferingPolicy: Plexus.BufferingPolicy<Int> = .unbounded) -> AsyncStream<Int>

    /// Waits until somebody is subscribed, streams and handlers alike; returns at once if there is somebody.
    ///
    /// - Throws: A `CancellationError` if the calling task is cancelled, ``BroadcastError/finished`` if the
    ///   sequence has ended.
    public func waitForSubscriber() async throws
}

/// Parts of a state, and what to do when they change.
///
/// A consumer is fed with states, from wherever they come, and calls a closure for each selected value
/// that has changed, with the exact old and the new value.
///
/// ```swift
/// struct Profile: Sendable { var name = ""; var unread = 0 }
/// let consumer = StateConsumer<Profile>()
/// consumer.add(\.name) { old, new in print("hello", new) }
/// consumer.add({ $0.unread > 0 }) { _, isMarked in print(isMarked ? "*" : "") }
/// consumer.consume(Profile(name: "Ada", unread: 3))
/// ```
///
/// With ``follow(_:)`` it is fed by a ``Store``, a ``PageStore`` or any other broadcaster.
///
/// ## When closures are called
///
/// The first state of all is a change from nothing: closures that were added before it are called with
/// `nil` as the old value. A closure that is added later is called at the next change of its value,
/// unless it was added with `firesImmediately`. An initial state counts as a state that was there.
///
/// Every change is told, in the order of the states; nothing is coalesced. Closures without `await` that
/// belong to one actor are called one after another on it, state by state, in the order in which they
/// were added. One that suspends has a task of its own and holds up nobody else.
///
/// A selector is called once for each state, on the thread that feeds, outside every lock. A state that
/// arrives while another one is looked at, from a selector or another thread, follows it.
///
/// ## Removal
///
/// A closure lives as long as the consumer, or as the bag that was given if that is emptied or released
/// earlier. Once the bag is cancelled, ``removeAll()`` has returned or the consumer is released, none is
/// started: that is exact on the closure's own actor and inside it. A closure that is suspended has its
/// task cancelled.
///
/// ## Topics
///
/// ### Creating a consumer
/// - ``init(initialState:)``
///
/// ### Adding closures
/// - ``add(_:firesImmediately:in:_:)-dihh``
/// - ``add(_:firesImmediately:in:_:)-6ny9u``
/// - ``removeAll()``
///
/// ### Feeding
/// - ``consume(_:)``
/// - ``follow(_:)``
final public actor StateConsumer<State> where State : Sendable {

    /// Creates a consumer without closures.
    ///
    /// - Parameter initialState: The state that closures have seen; `nil` if the first one that is fed
    ///   is to be told as a change from nothing.
    public init(initialState: State? = nil)

    deinit

    /// Adds a closure that is called when a selected value changes, on the actor that it belongs to.
    ///
    /// - Parameters:
    ///   - select: What to look at.
    ///   - firesImmediately: Whether to call the closure with the present value, and `nil` as the old one,
    ///     even if a state is there already. Without a state it waits for the first.
    ///   - bag: What the closure ends with, if not with the consumer. It counts the closure.
    ///   - onChange: What to call, with the value before and after. It is released on removal.
    nonisolated public func add<V>(_ select: @escaping @Sendable (State) -> V, firesImmediately: Bool = false, in bag: Plexus.ObservationBag? = nil, _ onChange: @escaping @isolated(any) @Sendable (_ old: V?, _ new: V) -> Void) where V : Equatable, V : Sendable

    /// Adds an asynchronous closure that is called when a selected value changes, on the actor that it
    /// belongs to.
    ///
    /// It has a task of its own, sees every change in order, and never overlaps itself.
    ///
    /// - Parameters:
    ///   - select: What to look at.
    ///   - firesImmediately: Whether to call the closure with the present value, and `nil` as the old one,
    ///     even if a state is there already. Without a state it waits for the first.
    ///   - bag: What the closure ends with, if not with the consumer. It counts the closure.
    ///   - onChange: What to call, with the value before and after. On removal the task is cancelled,
    ///     and the closure released when it has returned.
    nonisolated public func add<V>(_ select: @escaping @Sendable (State) -> V, firesImmediately: Bool = false, in bag: Plexus.ObservationBag? = nil, _ onChange: @escaping @isolated(any) @Sendable (_ old: V?, _ new: V) async -> Void) where V : Equatable, V : Sendable

    /// Looks at a state and calls the closures whose value has changed.
    ///
    /// The calls are under way when this returns, each on its actor.
    ///
    /// - Parameter new: The newest state.
    nonisolated public func consume(_ new: State)

    /// Consumes every element of a broadcaster: the states of a store, from the present one on.
    ///
    /// The present state has been looked at when this returns, unless another one is being looked at: a
    /// closure that is added afterwards is late. What follows is looked at in a task, off every actor.
    /// Nothing that comes from what was followed before is looked at any more.
    ///
    /// It goes on until the broadcaster ends, the consumer is released, or another one is followed. The
    /// broadcaster is not kept alive. A ``PageStore`` is followed by a consumer of both states:
    /// `StateConsumer<(app: App, page: Page)>`.
    ///
    /// - Parameter source: What to follow, in place of what was followed before.
    nonisolated public func follow(_ source: some Plexus.Broadcaster<State>)

    /// Removes all closures, those in bags included.
    nonisolated public func removeAll()
}

/// A state that only actions change, and those who follow it.
///
/// A dispatched action passes the middleware, then the reducer, then it reaches whoever has subscribed:
/// completely, before the next one begins. Dispatching is synchronous, takes no hop and starts no
/// task, from whatever thread or actor.
///
/// ```swift
/// struct Counter: Sendable, Equatable { var count = 0 }
/// enum Step: Sendable { case up, down }
///
/// let store = Store<Counter, Step>(Counter()) { state, action in
///   switch action {
///   case .up: state.count += 1
///   case .down: state.count -= 1
///   }
/// }
/// let counts = store.changes(of: \.count)
/// store.dispatch(.up)
/// for await change in counts {
///   print(change.old ?? 0, "->", change.new)
///   if change.new == 1 { break }
/// }
/// ```
///
/// ## Order
///
/// There is one order of actions, which everybody sees. An action has been reduced when
/// ``dispatch(_:)`` returns, unless another one is under way: one dispatched from a reducer, from
/// middleware or from a selector, or while another thread dispatches, is carried out after those before
/// it by whoever is at it. Nothing is nested, however long the chain, and nobody waits. The same holds
/// while another thread begins or ends to follow changes, for the moment that this takes: it is not kept
/// there by others who go on dispatching. What they have left is carried out by the next who dispatches, or
/// by a task.
///
/// ## States and changes
///
/// ``subscribe(bufferingPolicy:)`` tells the state at once and after every action that reached the
/// reducer, whether it changed anything or not. ``changes(of:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)``
/// tells only of changes of a part of the state, with its exact previous value.
///
/// ## Effects
///
/// What takes time is started by ``Middleware`` and ends with the store.
///
/// ## Release
///
/// The last reference to a store cancels its effects, and ends its streams after what was sent before.
/// Actions that wait behind one that is under way are still carried out, without effects.
/// Streams, handlers, tokens and effects never keep it alive; a ``PageStore`` and a caller that waits
/// in ``dispatchAndWait(_:)`` do.
///
/// ## Topics
///
/// ### Creating a store
/// - ``init(_:middleware:reducer:)``
/// - ``page(_:middleware:reducer:)``
///
/// ### Dispatching
/// - ``dispatch(_:)``
/// - ``dispatchAndWait(_:)``
///
/// ### Following
/// - ``state``
/// - ``subscribe(bufferingPolicy:)``
/// - ``subscription(bufferingPolicy:)``
/// - ``changes(of:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)``
/// - ``changes(of:bufferingPolicy:)-((State)->V,_)``
/// - ``subscription(toChangesOf:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)``
/// - ``subscription(toChangesOf:bufferingPolicy:)-((State)->V,_)``
/// - ``subscriberCount``
final public actor Store<State, Action> : Plexus.Broadcaster where State : Sendable, Action : Sendable {

    /// What subscribers receive.
    public typealias Element = State

    /// Creates a store.
    ///
    /// - Parameters:
    ///   - initialState: The state before the first action.
    ///   - middleware: What every action passes before it comes to the reducer, in this order.
    ///   - reducer: What an action does to the state.
    @inlinable public init(_ initialState: State, middleware: [Plexus.Middleware<State, Action>] = [], reducer: @escaping Plexus.Reducer<State, Action>)

    deinit

    /// The newest state.
    @inlinable nonisolated public var state: State { get }

    /// Carries out an action.
    ///
    /// It has passed middleware, reducer and subscribers' buffers when this returns, unless another action
    /// is under way, on this thread (a reducer, middleware or a selector dispatches) or on another one, or
    /// another thread begins or ends to follow changes in this moment. Then it follows those dispatched
    /// before it, carried out by whoever is at it, or by a task. For the same reason this call may carry out
    /// actions that others dispatch meanwhile.
    ///
    /// - Parameter action: What is to happen.
    @inlinable nonisolated public func dispatch(_ action: Action)

    /// Carries out an action and waits until its effects have ended.
    ///
    /// Waited for are the action itself, the effects started with its context, the actions dispatched with
    /// that context, and so on: what an effect dispatched last has been reduced when this returns. An
    /// effect that never ends is waited for until the calling task is cancelled.
    ///
    /// If the calling task is cancelled, this returns at once; the action and its effects go on. An action
    /// of a task that was cancelled before is dispatched all the same.
    ///
    /// - Parameter action: What is to happen.
    public func dispatchAndWait(_ action: Action) async

    /// Registers a subscriber and returns the state and those that follow.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<State> = .bufferingNewest(1)) -> AsyncStream<State>

    /// Registers a subscriber and returns the state and those that follow.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
    @inlinable nonisolated public func subscription(bufferingPolicy: Plexus.BufferingPolicy<State> = .bufferingNewest(1)) -> Plexus.Subscription<State>

    /// The number of subscribers at this moment: to states and to changes, streams and handlers alike.
    nonisolated public var subscriberCount: Int { get }
}

extension Store {

    /// Registers a subscriber to the changes of what a key path leads to.
    ///
    /// The first element is the present value, with `nil` as the old one. Then comes every real change with
    /// the exact previous value, however many actions lie between; an action that leaves the value equal
    /// is not told. While an action is under way, the present value is the one after it.
    ///
    /// All who subscribe to the same key path share one evaluation an action.
    ///
    /// - Parameters:
    ///   - path: What to look at.
    ///   - bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The stream, which ends with the store and lives until it is dropped or its task is
    ///   cancelled.
    @inlinable nonisolated public func changes<V>(of path: any KeyPath<State, V> & Sendable, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> AsyncStream<Plexus.Change<V>> where V : Equatable, V : Sendable

    /// Registers a subscriber to the changes of a value that is made from the state.
    ///
    /// The first element is the present value, with `nil` as the old one. Then comes every real change with
    /// the exact previous value, however many actions lie between; an action that leaves the value equal
    /// is not told. While an action is under way, the present value is the one after it.
    ///
    /// - Parameters:
    ///   - select: What to look at. It is called once now, or after the action that is under way, and once
    ///     for each action, on the thread that dispatches, outside every lock.
    ///   - bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The stream, which ends with the store and lives until it is dropped or its task is
    ///   cancelled.
    @inlinable nonisolated public func changes<V>(of select: @escaping @Sendable (State) -> V, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> AsyncStream<Plexus.Change<V>> where V : Equatable, V : Sendable

    /// Registers a subscriber to the changes of what a key path leads to.
    ///
    /// The rules are those of ``changes(of:bufferingPolicy:)-(KeyPath<State,V>Sendable,_)``.
    ///
    /// - Parameters:
    ///   - path: What to look at.
    ///   - bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The subscription, which ends with the store and lives until it is dropped or its task is
    ///   cancelled.
    @inlinable nonisolated public func subscription<V>(toChangesOf path: any KeyPath<State, V> & Sendable, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> Plexus.Subscription<Plexus.Change<V>> where V : Equatable, V : Sendable

    /// Registers a subscriber to the changes of a value that is made from the state.
    ///
    /// The rules are those of ``changes(of:bufferingPolicy:)-((State)->V,_)``.
    ///
    /// - Parameters:
    ///   - select: What to look at.
    ///   - bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The subscription, which ends with the store and lives until it is dropped or its task is
    ///   cancelled.
    @inlinable nonisolated public func subscription<V>(toChangesOf select: @escaping @Sendable (State) -> V, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> Plexus.Subscription<Plexus.Change<V>> where V : Equatable, V : Sendable

    /// Creates a store for one screen beside this one, which holds this one.
    ///
    /// - Parameters:
    ///   - initial: What the page's state is made from. It is called once, before this returns.
    ///   - middleware: What every action of the page passes before it comes to the reducer, in this order.
    ///   - reducer: What an action of the page does to the page's state.
    /// - Returns: The page store, which lives as long as its owner keeps it.
    @inlinable nonisolated public func page<P, A>(_ initial: (State) -> P, middleware: [Plexus.Middleware<P, A>] = [], reducer: @escaping Plexus.Reducer<P, A>) -> Plexus.PageStore<State, Action, P, A> where P : Sendable, A : Sendable
}

/// The elements that one subscriber receives, from the moment of its registration on.
///
/// A subscription is registered when it is made: whatever is sent afterwards reaches it, even if
/// nobody iterates yet. It is the sequence that `subscribe()` wraps in an `AsyncStream`, with the
/// same rules, but it does not leave the caller's actor for an element that is already there, and
/// takes no lock to read one under the `.unbounded` policy.
///
/// ```swift
/// let messenger = Messenger<String>()
/// let greetings = messenger.subscription()
/// messenger.send("hello")
/// messenger.finish()
/// for await greeting in greetings {
///   print(greeting)
/// }
/// ```
///
/// ## Copies
///
/// Copies of a subscription, and iterators made from them, share one position. A loop that is left
/// with `break` can be continued by another one. Two tasks must not iterate at once: each task takes
/// a subscription of its own.
///
/// - Precondition: `next()` is not called while another task is suspended in it.
///
/// ## Ending
///
/// A subscription ends when its source has finished or was released, after the elements that were
/// sent before; when the task that iterates is cancelled; and when the last copy and the last
/// iterator are dropped. It then counts no longer in
/// ``Broadcaster/subscriberCount`` and keeps nothing alive.
///
/// ## Cancellation
///
/// A loop whose task is cancelled never waits again, and ends however much is buffered: after at most
/// 15 further elements under `.unbounded`, at once under the other policies.
///
/// ## Memory
///
/// Under `.unbounded` everything that a subscriber has not read is kept for it, in chunks of 16
/// elements that all subscribers of the source share. A chunk is released when the slowest
/// subscriber has passed it.
public struct Subscription<Element> : AsyncSequence, Sendable where Element : Sendable {

    /// A subscription does not throw.
    public typealias Failure = Never

    /// The number of elements that the buffering policy has cost this subscriber so far.
    ///
    /// A replayed state that was overwritten before it was read counts, too. It is always 0 under
    /// `.unbounded`.
    public var droppedCount: Int { get }

    /// Creates an iterator that goes on where the last one stopped.
    @inlinable public func makeAsyncIterator() -> Plexus.Subscription<Element>.Iterator

    /// The iterator of a subscription.
    public struct Iterator : AsyncIteratorProtocol {

        /// Returns the next element, waiting for it if there is none.
        ///
        /// - Returns: The element, or `nil` when the subscription has ended.
        @inlinable public mutating func next() async -> Element?

        /// Returns the next element, waiting for it if there is none.
        ///
        /// - Parameter actor: Where the caller runs; an element that is already there is returned
        ///   without leaving it.
        /// - Returns: The element, or `nil` when the subscription has ended.
        @inlinable public mutating func next(isolation actor: isolated (any Actor)?) async -> Element?
    }
}

/// The elements of another sequence, at most one an interval.
///
/// Make one with `throttled(for:leading:trailing:clock:)` on any sequence that is `Sendable`.
public struct ThrottledSequence<Base> : AsyncSequence, Sendable where Base : Sendable, Base : AsyncSequence, Base.Element : Sendable {

    /// What the base sequence yields.
    public typealias Element = Base.Element

    /// What the base sequence throws.
    public typealias Failure = Base.Failure

    /// Creates an iterator, which iterates the base sequence anew from its first `next()` on.
    public func makeAsyncIterator() -> Plexus.ThrottledSequence<Base>.Iterator

    /// The iterator of a throttled sequence.
    public struct Iterator : AsyncIteratorProtocol {

        /// Waits for the next element that may pass.
        ///
        /// - Returns: The element, or `nil` when the base sequence has ended or the task is cancelled.
        /// - Throws: The error of the base sequence, after what was pending.
        public mutating func next() async throws(Base.Failure) -> Base.Element?

        /// Waits for the next element that may pass.
        ///
        /// - Parameter actor: Where the caller runs.
        /// - Returns: The element, or `nil` when the base sequence has ended or the task is cancelled.
        /// - Throws: The error of the base sequence, after what was pending.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Base.Failure) -> Base.Element?
    }
}

/// A bell that rings at most once an interval, however often it is touched.
///
/// Touch it whenever something happens. The first touch fires at once: streams and handlers get an
/// element, and the action, if there is one, runs. What is touched before the interval has passed
/// fires once at its end.
///
/// ```swift
/// let throttler = Throttler(interval: .seconds(1)) {
///   print("the position has changed")
/// }
/// throttler.touch()  // fires
/// throttler.touch()  // fires a second later
/// throttler.touch()  // for both
/// ```
///
/// A touch is synchronous, may come from any thread or actor, and starts no task between the first
/// and the last of an interval: while a firing is pending, one task sleeps. Nothing sleeps while
/// nothing is pending.
///
/// ## When it fires
///
/// With `leading`, a touch fires at once unless it comes less than the interval after a firing.
/// With `trailing`, touches that do not fire at once fire together at the end of the interval, which
/// begins with the last firing or, without `leading`, with the first touch. Every firing begins a new
/// interval. With neither, it never fires. An interval of zero or less fires at every touch, before
/// `touch()` returns.
///
/// ## The action
///
/// Elements are sent first: when an action begins, its element is in every buffer. Actions never
/// overlap, even if one takes longer than the interval: a firing while one runs is followed by one
/// more run when it has ended, however many firings there were. It runs off every actor, in a task of
/// its own. It cannot throw: what may fail has to say what happens then.
///
/// An action that uses its throttler captures it weakly, or neither is ever released.
///
/// ## Cancellation
///
/// The task that makes or touches a throttler may be cancelled; nothing changes. ``cancel()`` drops
/// what is pending. Releasing the last reference drops it, too, cancels the task of an action that is
/// running, ends the streams and frees the action.
///
/// ## Clocks
///
/// All times are measured by the clock that is given at the beginning. One that jumps ahead makes
/// things due at the next touch or when it wakes the sleeping task; one that is set back makes the
/// interval begin anew with the next touch. If it throws instead of sleeping, what is pending fires
/// at once.
///
/// ## Topics
///
/// ### Creating a throttler
/// - ``init(interval:leading:trailing:clock:action:)``
///
/// ### Touching it
/// - ``touch()``
/// - ``cancel()``
/// - ``flush()``
///
/// ### Listening to it
/// - ``subscribe(bufferingPolicy:)``
/// - ``subscription(bufferingPolicy:)``
/// - ``subscriberCount``
final public actor Throttler : Plexus.Broadcaster {

    /// What subscribers receive: that it has fired, and nothing else.
    public typealias Element = Void

    /// Creates a throttler with nothing pending.
    ///
    /// - Parameters:
    ///   - interval: How long it is from one firing to the next, at least; zero or less fires at every
    ///     touch.
    ///   - leading: Whether a touch that comes late enough fires at once.
    ///   - trailing: Whether touches that come too early fire at the end of the interval.
    ///   - clock: What measures the time.
    ///   - action: What to do when it fires. It runs off every actor and never overlaps itself.
    public init(interval: Duration, leading: Bool = true, trailing: Bool = true, clock: any Clock<Duration> = ContinuousClock(), action: (@Sendable () async -> Void)? = nil)

    deinit

    /// Notes that something has happened.
    ///
    /// It returns at once, and may be called from anywhere.
    nonisolated public func touch()

    /// Drops what is pending.
    ///
    /// An action that has not been called by then will not be called for what came before; one that is
    /// running goes on to its end. The interval that began with the
    /// last firing goes on, too.
    nonisolated public func cancel()

    /// Fires what is pending now, and waits until no action runs that was asked for before.
    ///
    /// That is the one case in which two firings are closer than the interval; a new one begins. It
    /// waits for an action that is running even if nothing is pending, and returns at once if there is
    /// neither, if the action that was to come is cancelled, and when the calling task is cancelled;
    /// what was pending has fired even then. Called from inside the action it fires and does not wait,
    /// since it would wait for itself.
    public func flush() async

    /// Registers a subscriber and returns an element for every firing from now on.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Void> = .unbounded) -> AsyncStream<Void>

    /// Registers a subscriber and returns an element for every firing from now on.
    ///
    /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
    /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
    nonisolated public func subscription(bufferingPolicy: Plexus.BufferingPolicy<Void> = .unbounded) -> Plexus.Subscription<Void>

    /// The number of subscribers at this moment, streams and handlers alike.
    nonisolated public var subscriberCount: Int { get }
}

/// What happens to a fetch when the last caller that waited for it has left.
public enum UnobservedFetch : Hashable, Sendable {

    /// It goes on, and its value is kept for those who come later.
    case finishAndStore

    /// It is cancelled, and everything is as it was before it began.
    ///
    /// A fetch that began without a caller (behind a stale value, or for a refresh during a fetch)
    /// is not cancelled when somebody who joined it leaves.
    case cancel
}

/// Several requests that are made at once.
///
/// ```swift
/// let profile = Multiplexer { "Ada" }
/// let scores = MultiplexerMap<String, Int> { name in name.count }
///
/// let (name, score, number) = try await Zipper(profile, scores["Ada"], Request { 3.5 }).values()
/// print(name, score, number)
/// ```
///
/// For a list whose length is known at run time only, an array of requests has the same methods.
///
/// ## Cancellation
///
/// Cancelling the calling task cancels all requests.
public struct Zipper<each R> : Sendable where repeat each R : Plexus.Requestable {

    /// Creates a zipper of requests.
    ///
    /// - Parameter request: The requests; nothing is asked for yet.
    public init(_ request: repeat each R)

    /// Returns a zipper with one more request at the end.
    ///
    /// - Parameter request: The request to add.
    /// - Returns: The longer zipper. This one stays as it is.
    public func add<New>(_ request: New) -> Plexus.Zipper<repeat each R, New> where New : Plexus.Requestable

    /// Makes all requests at once and waits for every one of them.
    ///
    /// - Returns: Their results, in the order in which they were added. If the calling task is cancelled
    ///   those that had to wait have failed with a `CancellationError`.
    public func results() async -> (repeat Result<(each R).Value, any Error>)

    /// Makes all requests at once and waits until all have succeeded or one has failed.
    ///
    /// - Returns: Their values, in the order in which they were added.
    /// - Throws: The first error. The other requests are cancelled then.
    public func values() async throws -> (repeat (each R).Value)
}

extension AsyncSequence where Self : Sendable, Self.Element : Sendable, Self.Failure == Never {

    /// Returns a broadcaster that iterates this sequence once for all its subscribers.
    ///
    /// - Parameter bufferingPolicy: What is kept for a subscriber while it is behind, unless it asks for
    ///   another policy.
    /// - Returns: The broadcaster. It has not begun to iterate.
    public func broadcast(bufferingPolicy: Plexus.BufferingPolicy<Self.Element> = .unbounded) -> Plexus.SharedSequence<Self.Element>
}

extension AsyncSequence where Self : Sendable, Self.Element : Sendable {

    /// Returns a broadcaster that iterates this sequence, which may fail, once for all its subscribers.
    ///
    /// ```swift
    /// let numbers = AsyncThrowingStream<Int, any Error> { continuation in
    ///   continuation.yield(1)
    ///   continuation.finish(throwing: CancellationError())
    /// }
    /// let shared = numbers.broadcast()
    /// for await result in shared.subscribe() {
    ///   print(try result.get())
    /// }
    /// ```
    ///
    /// - Parameter bufferingPolicy: What is kept for a subscriber while it is behind, unless it asks for
    ///   another policy. A failure takes room like an element.
    /// - Returns: The broadcaster. It has not begun to iterate.
    public func broadcast(bufferingPolicy: Plexus.BufferingPolicy<Result<Self.Element, Self.Failure>> = .unbounded) -> Plexus.SharedSequence<Result<Self.Element, Self.Failure>>
}

extension Array where Element : Plexus.Requestable {

    /// Makes all requests at once and waits for every one of them.
    ///
    /// ```swift
    /// let names = MultiplexerMap<Int, String> { id in "user \(id)" }
    /// let results = await [1, 2, 3].map { names[$0] }.results()
    /// print(results.count)
    /// ```
    ///
    /// - Returns: Their results, in the order of the array. If the calling task is cancelled those that
    ///   had to wait have failed with a `CancellationError`.
    public func results() async -> [Result<Element.Value, any Error>]

    /// Makes all requests at once and waits until all have succeeded or one has failed.
    ///
    /// - Returns: Their values, in the order of the array.
    /// - Throws: The first error. The other requests are cancelled then.
    public func values() async throws -> [Element.Value]
}

extension AsyncSequence where Self : Sendable, Self.Element : Sendable {

    /// Returns the elements of this sequence after which it was quiet for a while.
    ///
    /// An element is passed on when the delay has passed without another one, which takes its place.
    ///
    /// ```swift
    /// let (keys, keyboard) = AsyncStream.makeStream(of: String.self)
    /// keyboard.yield("s")
    /// keyboard.yield("sw")
    /// keyboard.finish()
    /// for await text in keys.debounced(for: .milliseconds(300)) {
    ///   print(text)  // sw
    /// }
    /// ```
    ///
    /// The rules are those of a ``Debouncer`` that is touched by every element. This sequence is
    /// iterated by a task of its own from the first call of `next()` on, so that it is never held up.
    /// What has been passed on and not been read yet is kept, in order.
    ///
    /// When this sequence ends, what is pending is passed on at once. When it throws, so is that, and
    /// then the error is thrown. When the task that iterates the result is cancelled, `next()` returns
    /// `nil` at once, whatever this sequence does, and the task that iterates it is cancelled; likewise
    /// when the iterator is dropped.
    ///
    /// - Parameters:
    ///   - delay: How long it has to be quiet; zero or less passes on every element.
    ///   - leading: Whether the first element after a quiet time is passed on at once.
    ///   - maximumDelay: How long it takes at most until something is passed on, however many elements
    ///     follow; `nil` is for ever.
    ///   - clock: What measures the time.
    /// - Returns: The sequence of what is left.
    public func debounced(for delay: Duration, leading: Bool = false, maximumDelay: Duration? = nil, clock: any Clock<Duration> = ContinuousClock()) -> Plexus.DebouncedSequence<Self>
}

extension AsyncSequence where Self : Sendable, Self.Element : Sendable {

    /// Returns the elements of this sequence, at most one an interval.
    ///
    /// The first element is passed on at once; of those that come before the interval has passed, the
    /// last one is passed on at its end.
    ///
    /// ```swift
    /// let (positions, sensor) = AsyncStream.makeStream(of: Int.self)
    /// for position in 1...100 { sensor.yield(position) }
    /// sensor.finish()
    /// for await position in positions.throttled(for: .seconds(1)) {
    ///   print(position)  // 1 and, at the end, 100
    /// }
    /// ```
    ///
    /// The rules are those of a ``Throttler`` that is touched by every element. This sequence is
    /// iterated by a task of its own from the first call of `next()` on, so that it is never held up.
    /// What has been passed on and not been read yet is kept, in order.
    ///
    /// When this sequence ends, what is pending is passed on at once. When it throws, so is that, and
    /// then the error is thrown. When the task that iterates the result is cancelled, `next()` returns
    /// `nil` at once, whatever this sequence does, and the task that iterates it is cancelled; likewise
    /// when the iterator is dropped.
    ///
    /// - Parameters:
    ///   - interval: How long it is from one element to the next, at least; zero or less passes on
    ///     every element.
    ///   - leading: Whether an element that comes late enough is passed on at once.
    ///   - trailing: Whether the last of those that come too early is passed on at the end of the
    ///     interval.
    ///   - clock: What measures the time.
    /// - Returns: The sequence of what is left.
    public func throttled(for interval: Duration, leading: Bool = true, trailing: Bool = true, clock: any Clock<Duration> = ContinuousClock()) -> Plexus.ThrottledSequence<Self>
}

