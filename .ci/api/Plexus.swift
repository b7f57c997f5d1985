import Glibc
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

    /// Creates an entry.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - storedAt: The time at which it was fetched or stored, since 1970-01-01T00:00Z.
    ///   - validator: What came with it to ask the origin whether it has changed.
    public init(value: Value, storedAt: Duration, validator: String? = nil)
}

extension CacheEntry : Equatable where Value : Equatable {
}

extension CacheEntry : Hashable where Value : Hashable {
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
public struct CachePolicy : Sendable {

    /// How long a value is fresh, from the end of its fetch.
    ///
    /// A value is stale at exactly that age. With zero or less a value is never fresh: it serves only where a stale one does.
    public var timeToLive: Duration

    /// How long after its time to live a stale value is still handed out at once, while one fetch
    /// renews it in the background.
    public var staleWhileRevalidate: Duration

    /// Whether the value that there is, however old, is handed out after a fetch failed with this error.
    ///
    /// By default after a ``ConnectivityFailure`` that says it is one. It is asked once a failed fetch.
    public var usesCachedValue: @Sendable (any Error) -> Bool

    /// How long a failure is remembered: requests get it at once instead of a new fetch.
    public var failureTimeToLive: Duration

    /// Whether and when a failed fetch is tried again before it counts as failed.
    public var retry: Plexus.RetryPolicy

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
    /// One that is tried again counts once.
    public var fetches: Int

    /// The fetches that failed in the end; cancelled ones do not count.
    public var failures: Int

    /// The values that had to make room for others.
    public var evictions: Int

    /// The errors of the storage behind the multiplexer.
    public var cacherErrors: Int

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
    @inlinable public init(hits: Int = 0, staleHits: Int = 0, misses: Int = 0, joins: Int = 0, fetches: Int = 0, failures: Int = 0, evictions: Int = 0, cacherErrors: Int = 0)

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

/// An error that can say whether it came about because the other side could not be reached.
///
/// After such a failure a multiplexer hands out the value that it has, by default: see
/// ``CachePolicy/usesCachedValue``. The `PlexusNetworking` module makes `URLError` one. An answer
/// that was received, even a bad one, is none.
public protocol ConnectivityFailure : Error {

    /// Whether the other side could not be reached.
    var isConnectivityFailure: Bool { get }
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
    ///   - clock: What measures the age.
    public init(staleAfter: Duration? = nil, clock: any Clock<Duration> = ContinuousClock())

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
    ///   ``LoadError/recursiveLoad`` if called by the operation of the load that it would join.
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
    /// It fails with ``MultiplexerError/notModifiedWithoutValue`` if the context named none. Without a
    /// time to live the one that the fetch of the value gave holds again, or else the policy's.
    case notModified(timeToLive: Duration? = nil)
}

/// The reasons why a load of a publisher cannot begin.
public enum LoadError : Error, Hashable, Sendable {

    /// The operation of a load asks the same publisher to load, and would wait for itself for ever.
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
    ///   - id: The name by which it appears in errors; its type if there is none.
    ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
    ///   - clock: What measures the age of values, waits and timeouts.
    ///   - onFetch: What fetches the value. It is released with the multiplexer.
    /// - Precondition: The policy's expiry jitter lies between 0 and 1, and its fetch timeout is positive.
    public convenience init(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), clock: any Clock<Duration> = ContinuousClock(), onFetch: @escaping @Sendable () async throws -> Value)

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
    ///   - id: The name by which it appears in errors; its type if there is none.
    ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
    ///   - clock: What measures the age of values, waits and timeouts.
    ///   - onFetch: What fetches the value. It is released with the multiplexer.
    /// - Precondition: The policy's expiry jitter lies between 0 and 1, and its fetch timeout is positive.
    public convenience init(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), clock: any Clock<Duration> = ContinuousClock(), onFetch: @escaping @Sendable (Plexus.FetchContext<Value>) async throws -> Plexus.FetchResult<Value>)

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
    public func response() async throws -> Plexus.Response<Value>

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
    nonisolated public func refresh() -> Self

    /// Forgets the value.
    ///
    /// It is forgotten, and `.unknown` is published, before this call suspends. Those who wait for a fetch
    /// get its result, which is stored nowhere. A request made afterwards fetches anew.
    ///
    /// - Throws: Nothing as long as there is no stored copy.
    public func clear() async throws

    /// Forgets the value in memory, for instance when memory is short.
    ///
    /// `.unknown` is published. A fetch that is under way goes on, and its value will be kept.
    nonisolated public func clearMemory()

    /// Brings a value, as fresh as one that was just fetched.
    ///
    /// It wins over every fetch under way, whose callers get it, too; it satisfies every refresh before
    /// and ends a remembered failure.
    ///
    /// - Parameter value: The value.
    nonisolated public func store(_ value: Value)

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
public enum MultiplexerError : Error, Hashable, Sendable {

    /// A fetch asked, directly or through other fetches, for what it is fetching itself.
    ///
    /// The chain names the fetches in the order in which they would wait for each other; it begins and
    /// ends with the one that asked. A fetch is named by the id of its multiplexer, or its type if it
    /// has none, and by its key.
    case recursiveRequest(chain: [String])

    /// An attempt to fetch took longer than the policy allows.
    case fetchTimedOut(after: Duration)

    /// A fetch for several keys returned no value for this one.
    case missingKey(String)

    /// A fetch said that the value has not changed when there was none.
    case notModifiedWithoutValue
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

    /// Creates a map of what a closure fetches.
    ///
    /// - Parameters:
    ///   - id: The name by which it appears in errors; its type if there is none.
    ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
    ///   - clock: What measures the age of values, waits and timeouts.
    ///   - onKeyFetch: What fetches the value of a key. It is released with the map.
    /// - Precondition: The policy's expiry jitter lies between 0 and 1, and its fetch timeout is positive.
    public convenience init(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), clock: any Clock<Duration> = ContinuousClock(), onKeyFetch: @escaping @Sendable (Key) async throws -> Value)

    /// Creates a map of what a closure fetches that knows of the value it renews.
    ///
    /// The closure may ask the origin whether the value has changed at all, and may say how long the
    /// new one is fresh.
    ///
    /// - Parameters:
    ///   - id: The name by which it appears in errors; its type if there is none.
    ///   - policy: How long values are kept, and what happens when fetching is slow or fails.
    ///   - clock: What measures the age of values, waits and timeouts.
    ///   - onKeyFetch: What fetches the value of a key. It is released with the map.
    /// - Precondition: The policy's expiry jitter lies between 0 and 1, and its fetch timeout is positive.
    public convenience init(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), clock: any Clock<Duration> = ContinuousClock(), onKeyFetch: @escaping @Sendable (Key, Plexus.FetchContext<Value>) async throws -> Plexus.FetchResult<Value>)

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
    /// - Throws: As ``request(_:)``.
    public func response(_ key: Key) async throws -> Plexus.Response<Value>

    /// Returns the value of a key in memory, fresh or stale.
    ///
    /// It fetches nothing and does not count in the statistics.
    ///
    /// - Parameter key: The key.
    /// - Returns: Its value; `nil` if there is none.
    @inlinable nonisolated public func cachedValue(_ key: Key) -> Value?

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
    nonisolated public func store(_ value: Value, for key: Key)

    /// Says that the value of a key has changed at its origin.
    ///
    /// What follows is described at ``Multiplexer/refresh()``.
    ///
    /// - Parameter key: The key.
    /// - Returns: A reference to the same map. Its requests are answered with what was fetched or stored
    ///   after the key's own newest refresh, of those up to this call.
    @discardableResult
    nonisolated public func refresh(_ key: Key) -> Self

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
    /// get its result, which is stored nowhere. A request made afterwards fetches anew.
    ///
    /// - Parameter key: The key.
    /// - Throws: Nothing as long as there is no stored copy.
    public func clear(_ key: Key) async throws

    /// Forgets the values of all keys, as ``clear(_:)`` does.
    ///
    /// - Throws: Nothing as long as there is no stored copy.
    public func clear() async throws

    /// Forgets the values in memory, for instance when memory is short.
    ///
    /// `.unknown` is published. Fetches that are under way go on, and their values will be kept.
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

    /// What has happened so far, over all keys.
    nonisolated public var statistics: Plexus.CacheStatistics { get }

    /// Adds the map to a repository, which does not keep it alive.
    ///
    /// - Parameter repository: What clears its members together.
    /// - Returns: The map itself.
    @discardableResult
    nonisolated public func register(in repository: Plexus.MuxRepository = .shared) -> Self
}

/// Multiplexers and the like that are cleared together, for instance when somebody signs out.
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

    /// Forgets what the members hold in memory; fetches that are under way go on.
    nonisolated public func clearMemory()
}

/// What went wrong when a repository asked all of its members for something.
///
/// Members that are not named have done it.
public struct MuxRepositoryError : Error {

    /// The errors of the members that failed.
    public let errors: [any Error]

    /// Creates an error.
    ///
    /// - Parameter errors: The errors of the members that failed.
    public init(errors: [any Error])
}

extension MuxRepositoryError : CustomStringConvertible {

    /// A sentence that names all errors.
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

    /// Where a value comes from.
    public enum Source : Hashable, Sendable {

        /// From a fetch that the caller waited for.
        case fetch

        /// From memory.
        case memory

        /// From the stored copy.
        case cacher
    }

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
    public init(value: Value, source: Plexus.Response<Value>.Source, age: Duration = .zero, isStale: Bool = false, error: (any Error)? = nil)
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
    /// throws a `CancellationError`, is not tried again.
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

