
public struct ActionRecord<State, Action> : Sendable where State : Sendable, Action : Sendable {

    public let action: Action

    public let before: State

    public let after: State

    public let number: Int

    @inlinable public init(action: Action, before: State, after: State, number: Int = 1)
}

extension ActionRecord : Equatable where State : Equatable, Action : Equatable {
}

extension ActionRecord : Hashable where State : Hashable, Action : Hashable {
}

public struct Author : Hashable, Sendable {

    public init()
}

public protocol BatchReadingCacher<Value> : Plexus.Cacher {

    func entries(forKeys keys: Set<String>) async throws -> [String : Plexus.CacheEntry<Self.Value>]
}

@nonexhaustive public enum BroadcastError : Error, Hashable, Sendable {

    case finished
}

extension BroadcastError : CustomStringConvertible {

    public var description: String { get }
}

public protocol Broadcaster<Element> : Sendable {

    associatedtype Element : Sendable

    nonisolated func subscription(bufferingPolicy: Plexus.BufferingPolicy<Self.Element>) -> Plexus.Subscription<Self.Element>

    nonisolated func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Self.Element>) -> AsyncStream<Self.Element>

    nonisolated func subscribe() -> AsyncStream<Self.Element>

    nonisolated var subscriberCount: Int { get }
}

extension Broadcaster {

    @inlinable nonisolated public func observe(bufferingPolicy: Plexus.BufferingPolicy<Self.Element> = .unbounded, _ handler: @escaping @isolated(any) @Sendable (Self.Element) -> Void) -> Plexus.ObservationToken

    @inlinable nonisolated public func observe(bufferingPolicy: Plexus.BufferingPolicy<Self.Element> = .unbounded, _ handler: @escaping @isolated(any) @Sendable (Self.Element) async -> Void) -> Plexus.ObservationToken

    @inlinable nonisolated public func observe<Owner>(as owner: Owner, bufferingPolicy: Plexus.BufferingPolicy<Self.Element> = .unbounded, _ handler: @escaping @isolated(any) @Sendable (Owner, Self.Element) -> Void) where Owner : AnyObject, Owner : Sendable

    @inlinable nonisolated public func observe<Owner>(as owner: Owner, bufferingPolicy: Plexus.BufferingPolicy<Self.Element> = .unbounded, _ handler: @escaping @isolated(any) @Sendable (Owner, Self.Element) async -> Void) where Owner : AnyObject, Owner : Sendable
}

extension Broadcaster {

    nonisolated public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Self.Element>) -> AsyncStream<Self.Element>

    nonisolated public func subscribe() -> AsyncStream<Self.Element>
}

extension Broadcaster {

    nonisolated public func map<Output>(_ transform: @escaping @Sendable (Self.Element) -> Output) -> some Plexus.Broadcaster<Output> where Output : Sendable

    nonisolated public func filter(_ isIncluded: @escaping @Sendable (Self.Element) -> Bool) -> some Plexus.Broadcaster<Self.Element>

    nonisolated public func removeDuplicates() -> some Plexus.Broadcaster<Self.Element> where Self.Element : Equatable

}

extension Broadcaster {

    nonisolated public func subscriberSnapshots(limit: Int = 1_000) -> [Plexus.SubscriberSnapshot]

    nonisolated public var sentCount: Int? { get }
}

public typealias BufferingPolicy<Element> = AsyncStream<Element>.Continuation.BufferingPolicy

public enum CacheCapacity<Value> : Sendable where Value : Sendable {

    case unbounded

    case count(Int)

    case cost(Int, of: @Sendable (Value) -> Int)
}

public struct CacheDirectives : Hashable, Sendable {

    public var timeToLive: Duration?

    public var staleWhileRevalidate: Duration?

    public var staleIfError: Duration?

    public var requiresRevalidation: Bool

    public init(timeToLive: Duration? = nil, staleWhileRevalidate: Duration? = nil, staleIfError: Duration? = nil, requiresRevalidation: Bool = false)
}

extension CacheDirectives : Codable {

    public init(from decoder: any Decoder) throws
}

public struct CacheEntry<Value> : Sendable where Value : Sendable {

    public var value: Value

    public var storedAt: Duration

    public var validator: String?

    public var directives: Plexus.CacheDirectives

    public var generation: Plexus.CacheGeneration?

    public var tags: [Plexus.CacheTag]

    public init(value: Value, storedAt: Duration, validator: String? = nil, timeToLive: Duration? = nil)

    public init(value: Value, storedAt: Duration, validator: String? = nil, directives: Plexus.CacheDirectives)

    public var timeToLive: Duration?
}

extension CacheEntry : Equatable where Value : Equatable {
}

extension CacheEntry : Hashable where Value : Hashable {
}

public enum CacheEntryState : Hashable, Sendable {

    case fresh

    case stale

    case failed
}

@nonexhaustive public enum CacheEvent : Sendable {

    case fetched(key: String, outcome: Plexus.CacheEvent.FetchOutcome, duration: Duration)

    case fetchFailed(key: String, error: any Error, duration: Duration)

    case joined(key: String, count: Int)

    case expired(key: String)

    case removed(key: String?, cause: Plexus.CacheEvent.RemovalCause)

    case stored(key: String)

    case restored(key: String)

    case flushed(count: Int)

    case cacherFailed(key: String?, error: any Error)
}

extension CacheEvent {

    @nonexhaustive public enum FetchOutcome : Hashable, Sendable {

        case value

        case notModified

        case transient
    }

    @nonexhaustive public enum RemovalCause : Hashable, Sendable {

        case capacity

        case cleared

        case memoryCleared

        case transient

        case expired
    }
}

extension CacheEvent : CustomStringConvertible {

    public var description: String { get }
}

public struct CacheGeneration : Hashable, Sendable {

    public var epoch: UInt64

    public var number: UInt64

    public init(epoch: UInt64 = 0, number: UInt64 = 0)
}

public struct CachePolicy : Sendable {

    public var timeToLive: Duration

    public var staleWhileRevalidate: Duration

    public var usesCachedValue: @Sendable (any Error) -> Bool

    public var failureTimeToLive: Duration

    public var retry: Plexus.RetryPolicy

    public var fetchTimeout: Duration?

    public var whenUnobserved: Plexus.CachePolicy.UnobservedFetch

    public var cacherRead: Plexus.CachePolicy.CacherRead

    public var expiryJitter: Double

    public var timeToIdle: Duration?

    public var refreshAhead: Duration

    public var softTimeout: Duration?

    public var storageTimeout: Duration

    public var writeBehind: Duration?

    public var maximumRetryAfter: Duration

    public var inheritsTaskLocals: Bool

    public var staleTimeToLive: Duration?

    public var maximumConcurrentFetches: Int?

    public var maximumWaitingFetches: Int?

    public init(timeToLive: Duration = .seconds(30 * 60), staleWhileRevalidate: Duration = .zero, usesCachedValue: @escaping @Sendable (any Error) -> Bool = { error in
      (error as? any ConnectivityFailure)?.isConnectivityFailure == true
    }, failureTimeToLive: Duration = .zero, retry: Plexus.RetryPolicy = .never, fetchTimeout: Duration? = nil, whenUnobserved: Plexus.CachePolicy.UnobservedFetch = .finishAndStore, cacherRead: Plexus.CachePolicy.CacherRead = .afterConnectivityError, expiryJitter: Double = 0, timeToIdle: Duration? = nil, refreshAhead: Duration = .zero, softTimeout: Duration? = nil, storageTimeout: Duration = .seconds(5), writeBehind: Duration? = nil, maximumRetryAfter: Duration = .seconds(60), inheritsTaskLocals: Bool = false, staleTimeToLive: Duration? = nil, maximumConcurrentFetches: Int? = nil, maximumWaitingFetches: Int? = nil)
}

extension CachePolicy {

    public enum CacherRead : Hashable, Sendable {

        case afterConnectivityError

        case beforeFetch
    }

    public enum UnobservedFetch : Hashable, Sendable {

        case finishAndStore

        case cancel
    }
}

public struct CacheStatistics : Hashable, Sendable {

    public var hits: Int

    public var staleHits: Int

    public var misses: Int

    public var joins: Int

    public var fetches: Int

    public var failures: Int

    public var evictions: Int

    public var cacherErrors: Int

    public var restorations: Int

    public var revalidations: Int

    public var fetchTime: Duration

    public var longestFetch: Duration

    public var abandoned: Int

    public var running: Int

    public var waiting: Int

    public var hitRate: Double { get }

    @inlinable public init(hits: Int = 0, staleHits: Int = 0, misses: Int = 0, joins: Int = 0, fetches: Int = 0, failures: Int = 0, evictions: Int = 0, cacherErrors: Int = 0, restorations: Int = 0, revalidations: Int = 0, fetchTime: Duration = .zero, longestFetch: Duration = .zero, abandoned: Int = 0, running: Int = 0, waiting: Int = 0)

    public static func + (left: Plexus.CacheStatistics, right: Plexus.CacheStatistics) -> Plexus.CacheStatistics
}

public struct CacheTag : Hashable, Sendable {

    public let name: String

    public init(_ name: String)
}

extension CacheTag : ExpressibleByStringLiteral {

    public init(stringLiteral value: String)
}

extension CacheTag : CustomStringConvertible {

    public var description: String { get }
}

public protocol Cacher<Value> : Sendable {

    associatedtype Value : Sendable

    var generation: Plexus.CacheGeneration? { get }

    func entry(forKey key: String) async throws -> Plexus.CacheEntry<Self.Value>?

    func store(_ entries: [String : Plexus.CacheEntry<Self.Value>]) async throws

    func removeEntries(forKeys keys: Set<String>) async throws

    func removeAllEntries() async throws

    func removeEntries(withPrefix prefix: String) async throws
}

extension Cacher {

    public var generation: Plexus.CacheGeneration? { get }

    public func removeEntries(withPrefix prefix: String) async throws
}

public struct CacherError : Error {

    public let failures: [String : any Error]

    public init(failures: [String : any Error])

    public var keys: Set<String> { get }
}

extension CacherError : CustomStringConvertible {

    public var description: String { get }
}

public struct Change<Value> : Sendable where Value : Sendable {

    public let old: Value?

    public let new: Value

    @inlinable public init(old: Value?, new: Value)
}

extension Change : Equatable where Value : Equatable {
}

extension Change : Hashable where Value : Hashable {
}

public enum ClearReach : Hashable, Sendable {

    case here

    case shared

    case everywhere
}

public protocol ConnectivityFailure : Error {

    var isConnectivityFailure: Bool { get }
}

final public actor CurrentValue<Value> : Plexus.StatefulBroadcaster where Value : Sendable {

    public typealias Element = Value

    @inlinable public convenience init(_ value: Value)

    @inlinable public convenience init(_ value: Value, removesDuplicates: Bool) where Value : Equatable

    deinit

    @inlinable nonisolated public var value: Value

    @inlinable nonisolated public var current: Value { get }

    @discardableResult
    @inlinable nonisolated public func update<Result>(_ body: @Sendable (inout Value) throws -> Result) rethrows -> Result where Result : Sendable

    nonisolated public func finish()

    nonisolated public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Value> = .bufferingNewest(1)) -> AsyncStream<Value>

    nonisolated public func subscription(bufferingPolicy: Plexus.BufferingPolicy<Value> = .bufferingNewest(1)) -> Plexus.Subscription<Value>

    nonisolated public var subscriberCount: Int { get }
}

extension CurrentValue {

    nonisolated public func subscriberCounts(bufferingPolicy: Plexus.BufferingPolicy<Int> = .unbounded) -> AsyncStream<Int>

    public func waitForSubscriber() async throws
}

public protocol DataManager<Value> : Sendable {

    associatedtype Value : Sendable

    var publisher: Plexus.DataPublisher<Self.Value> { get }

    func fetch() async throws -> Self.Value
}

extension DataManager {

    nonisolated public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Self.Value>> = .bufferingNewest(1)) -> AsyncStream<Plexus.LoadState<Self.Value>>

    @discardableResult
    public func refresh() async throws -> Self.Value

    @discardableResult
    public func refreshIfNeeded() async throws -> Self.Value

    nonisolated public func logOut()
}

final public actor DataPublisher<Value> : Plexus.StatefulBroadcaster where Value : Sendable {

    public typealias Element = Plexus.LoadState<Value>

    public init(staleAfter: Duration? = nil, publishesStaleness: Bool = false, clock: any Clock<Duration> = ContinuousClock())

    deinit

    @inlinable nonisolated public var state: Plexus.LoadState<Value> { get }

    @inlinable nonisolated public var current: Plexus.LoadState<Value> { get }

    nonisolated public var isStale: Bool { get }

    nonisolated public var subscriberCount: Int { get }

    nonisolated public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Value>> = .bufferingNewest(1)) -> AsyncStream<Plexus.LoadState<Value>>

    nonisolated public func subscription(bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Value>> = .bufferingNewest(1)) -> Plexus.Subscription<Plexus.LoadState<Value>>

    nonisolated public func startLoading()

    @inlinable nonisolated public func update(_ value: Value)

    nonisolated public func fail(_ error: any Error)

    nonisolated public func reset()

    @discardableResult
    @inlinable public func load(_ operation: @escaping @Sendable () async throws -> Value) async throws -> Value

    @discardableResult
    @inlinable public func loadIfNeeded(_ operation: @escaping @Sendable () async throws -> Value) async throws -> Value
}

extension DataPublisher {

    nonisolated public func follow<Source>(_ sequence: Source) where Value == Source.Element, Source : Sendable, Source : AsyncSequence
}

extension DataPublisher {

    nonisolated public func subscriberCounts(bufferingPolicy: Plexus.BufferingPolicy<Int> = .unbounded) -> AsyncStream<Int>

    public func waitForSubscriber() async throws
}

public struct DebouncedSequence<Base> : AsyncSequence, Sendable where Base : Sendable, Base : AsyncSequence, Base.Element : Sendable {

    public typealias Element = Base.Element

    public typealias Failure = Base.Failure

    public func makeAsyncIterator() -> Plexus.DebouncedSequence<Base>.Iterator

    public struct Iterator : AsyncIteratorProtocol {

        public mutating func next() async throws(Base.Failure) -> Base.Element?

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Base.Failure) -> Base.Element?
    }
}

final public actor Debouncer : Plexus.Broadcaster {

    public typealias Element = Void

    public init(delay: Duration, leading: Bool = false, maximumDelay: Duration? = nil, clock: any Clock<Duration> = ContinuousClock(), action: (@Sendable () async -> Void)? = nil)

    deinit

    nonisolated public func touch()

    nonisolated public func cancel()

    public func flush() async

    nonisolated public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Void> = .unbounded) -> AsyncStream<Void>

    nonisolated public func subscription(bufferingPolicy: Plexus.BufferingPolicy<Void> = .unbounded) -> Plexus.Subscription<Void>

    nonisolated public var subscriberCount: Int { get }
}

final public actor DebouncerVar<Value> : Plexus.Broadcaster where Value : Equatable, Value : Sendable {

    public typealias Element = Value

    public init(_ initial: Value, delay: Duration, leading: Bool = false, maximumDelay: Duration? = nil, clock: any Clock<Duration> = ContinuousClock(), action: (@Sendable (Value) async -> Void)? = nil)

    deinit

    nonisolated public var value: Value

    nonisolated public func touch()

    nonisolated public func cancel()

    public func flush() async

    nonisolated public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Value> = .unbounded) -> AsyncStream<Value>

    nonisolated public func subscription(bufferingPolicy: Plexus.BufferingPolicy<Value> = .unbounded) -> Plexus.Subscription<Value>

    nonisolated public var subscriberCount: Int { get }
}

public protocol Event : Sendable {

    var persistence: Plexus.EventPersistence { get }
}

extension Event {

    public var persistence: Plexus.EventPersistence { get }
}

final public actor EventBus {

    public static let shared: Plexus.EventBus

    public init(clock: any Clock<Duration> = ContinuousClock())

    deinit

    @inlinable nonisolated public func post<E>(_ event: E, scope: Plexus.EventScope? = nil) where E : Plexus.Event

    @discardableResult
    @inlinable public func postAndWait<E>(_ event: E, scope: Plexus.EventScope? = nil) async -> Plexus.PostOutcome where E : Plexus.Event

    @inlinable nonisolated public func subscribe<E>(to type: E.Type, scope: Plexus.EventScope? = nil, bufferingPolicy: Plexus.BufferingPolicy<E> = .unbounded) -> AsyncStream<E> where E : Plexus.Event

    @inlinable nonisolated public func subscription<E>(to type: E.Type, scope: Plexus.EventScope? = nil, bufferingPolicy: Plexus.BufferingPolicy<E> = .unbounded) -> Plexus.Subscription<E> where E : Plexus.Event

    @inlinable nonisolated public func subscriberCount<E>(for type: E.Type, scope: Plexus.EventScope? = nil) -> Int where E : Plexus.Event

    @inlinable nonisolated public func pendingEvents<E>(of type: E.Type, scope: Plexus.EventScope? = nil) -> [E] where E : Plexus.Event

    nonisolated public func removePendingEvents<E>(of type: E.Type, scope: Plexus.EventScope? = nil) where E : Plexus.Event

    nonisolated public func removeObserver(id: some Hashable & Sendable)

    nonisolated public func removeObserver<E>(id: some Hashable & Sendable, of type: E.Type, scope: Plexus.EventScope? = nil) where E : Plexus.Event
}

extension EventBus {

    @inlinable nonisolated public func observe<E>(_ type: E.Type, scope: Plexus.EventScope? = nil, bufferingPolicy: Plexus.BufferingPolicy<E> = .unbounded, _ handler: @escaping @isolated(any) @Sendable (E) throws -> Void) -> Plexus.ObservationToken where E : Plexus.Event

    @inlinable nonisolated public func observe<E>(_ type: E.Type, scope: Plexus.EventScope? = nil, bufferingPolicy: Plexus.BufferingPolicy<E> = .unbounded, _ handler: @escaping @isolated(any) @Sendable (E) async throws -> Void) -> Plexus.ObservationToken where E : Plexus.Event

    @inlinable nonisolated public func observe<Owner, E>(as owner: Owner, _ type: E.Type, scope: Plexus.EventScope? = nil, bufferingPolicy: Plexus.BufferingPolicy<E> = .unbounded, _ handler: @escaping @isolated(any) @Sendable (Owner, E) throws -> Void) where Owner : AnyObject, Owner : Sendable, E : Plexus.Event

    @inlinable nonisolated public func observe<Owner, E>(as owner: Owner, _ type: E.Type, scope: Plexus.EventScope? = nil, bufferingPolicy: Plexus.BufferingPolicy<E> = .unbounded, _ handler: @escaping @isolated(any) @Sendable (Owner, E) async throws -> Void) where Owner : AnyObject, Owner : Sendable, E : Plexus.Event

    @inlinable nonisolated public func observe<E>(id: some Hashable & Sendable, _ type: E.Type, scope: Plexus.EventScope? = nil, replacing: Bool = false, bufferingPolicy: Plexus.BufferingPolicy<E> = .unbounded, _ handler: @escaping @isolated(any) @Sendable (E) throws -> Void) where E : Plexus.Event

    @inlinable nonisolated public func observe<E>(id: some Hashable & Sendable, _ type: E.Type, scope: Plexus.EventScope? = nil, replacing: Bool = false, bufferingPolicy: Plexus.BufferingPolicy<E> = .unbounded, _ handler: @escaping @isolated(any) @Sendable (E) async throws -> Void) where E : Plexus.Event
}

extension EventBus {

    nonisolated public func connect<E>(_ type: E.Type, as name: String, version: Int = 1, scope: Plexus.EventScope? = nil, over link: any Plexus.EventLink, _ mode: Plexus.LinkMode) -> Plexus.ObservationToken where E : Plexus.Event, E : Decodable, E : Encodable

    public func publish<E>(_ event: E, scope: Plexus.EventScope? = nil) async throws where E : Plexus.Event, E : Decodable, E : Encodable
}

extension EventBus {

    public struct ChannelSnapshot : Sendable {

        public let type: any Plexus.Event.Type

        public let scope: Plexus.EventScope?

        public let subscriberCount: Int

        public let handlerCount: Int

        public let pendingCount: Int

        public let pendingEvents: [any Plexus.Event]

        public var typeName: String { get }
    }

    nonisolated public func snapshot(pendingLimit: Int = 100) -> [Plexus.EventBus.ChannelSnapshot]
}

extension EventBus {

    nonisolated public func posts(bufferingPolicy: Plexus.BufferingPolicy<Plexus.EventPost> = .bufferingNewest(1_000)) -> AsyncStream<Plexus.EventPost>
}

public protocol EventLink : AnyObject, Sendable {

    var codec: any Plexus.LinkCodec { get }

    func publish(_ message: Plexus.LinkMessage, to topic: String) async throws -> Plexus.LinkPosition

    func deliveries(of topic: String, _ mode: Plexus.LinkMode) -> AsyncThrowingStream<Plexus.LinkDelivery, any Error>

    func batches(of topic: String, _ mode: Plexus.LinkMode) -> AsyncThrowingStream<[Plexus.LinkDelivery], any Error>?

    func acknowledge(_ position: Plexus.LinkPosition, of topic: String, group: String) async throws

    func acknowledge(_ position: Plexus.LinkPosition, of topic: String, group: String, onFailure: @escaping @Sendable (any Error) -> Void) async

    func reject(_ position: Plexus.LinkPosition, of topic: String, group: String, because reason: String) async throws
}

extension EventLink {

    public func batches(of topic: String, _ mode: Plexus.LinkMode) -> AsyncThrowingStream<[Plexus.LinkDelivery], any Error>?

    public func acknowledge(_ position: Plexus.LinkPosition, of topic: String, group: String, onFailure: @escaping @Sendable (any Error) -> Void) async

    public func deadLetterTopic(of topic: String, group: String) -> String
}

public struct EventPersistence : Sendable, Hashable {

    public let rule: Plexus.PersistenceRule?

    public let limit: Int?

    public let timeToLive: Duration?

    public static let none: Plexus.EventPersistence

    public static func persistent(_ rule: Plexus.PersistenceRule, limit: Int? = nil, timeToLive: Duration? = nil) -> Plexus.EventPersistence
}

public struct EventPost : Sendable {

    public var event: any Plexus.Event { get }

    public var scope: Plexus.EventScope? { get }

    public var time: Duration { get }

    public var number: Int { get }

    public var subscriberCount: Int { get }

    public var isRetained: Bool { get }

    public var typeName: String { get }

    public var outcome: Plexus.PostOutcome? { get }
}

public struct EventScope : Hashable, Sendable, ExpressibleByStringLiteral {

    public init(_ id: some Hashable & Sendable)

    public init(stringLiteral value: String)
}

extension EventScope : CustomStringConvertible {

    public var description: String { get }
}

public struct FetchContext<Value> : Sendable where Value : Sendable {

    public let previousValue: Value?

    public let validator: String?

    public let attempt: Int

    public init(previousValue: Value?, validator: String? = nil, attempt: Int = 1)
}

public enum FetchResult<Value> : Sendable where Value : Sendable {

    case value(_: Value, directives: Plexus.CacheDirectives, validator: String? = nil)

    case notModified(timeToLive: Duration? = nil, directives: Plexus.CacheDirectives? = nil, validator: String? = nil)

    case confirmed(_: Value, directives: Plexus.CacheDirectives, validator: String? = nil)

    case transient(_: Value)

    @inlinable public static func value(_ value: Value, timeToLive: Duration? = nil, validator: String? = nil) -> Plexus.FetchResult<Value>
}

public enum HandlerResult : Sendable, Hashable {

    case handledSuccessfully

    case failed
}

public protocol LinkCodec : Sendable {

    func encode(_ value: some Encodable) throws -> [UInt8]

    func decode<Value>(_ type: Value.Type, from bytes: [UInt8]) throws -> Value where Value : Decodable
}

public enum LinkDelivery : Hashable, Sendable {

    case connected(at: Plexus.LinkPosition)

    case message(Plexus.LinkMessage, at: Plexus.LinkPosition, attempt: Int)

    case gap(lost: ClosedRange<Plexus.LinkPosition>?)
}

public struct LinkMessage : Hashable, Sendable {

    public var id: String

    public var type: String

    public var version: Int

    public var origin: String

    public var body: [UInt8]

    public init(id: String, type: String, version: Int, origin: String, body: [UInt8])
}

public enum LinkMode : Hashable, Sendable {

    case ephemeral

    case everyNode(from: Plexus.LinkPosition? = nil)

    case oneNode(group: String, retryAfter: Duration = .seconds(30), attempts: Int = 5)

    case publishOnly
}

public struct LinkPosition : Hashable, Sendable {

    public let epoch: UInt64

    public let number: UInt64

    public init(epoch: UInt64, number: UInt64)

    public static let start: Plexus.LinkPosition

    public func isFollowed(by next: Plexus.LinkPosition) -> Bool

    public func positions(before next: Plexus.LinkPosition) -> ClosedRange<Plexus.LinkPosition>?
}

extension LinkPosition : Comparable {

    public static func < (left: Plexus.LinkPosition, right: Plexus.LinkPosition) -> Bool
}

extension LinkPosition : LosslessStringConvertible {

    public var description: String { get }

    public init?(_ description: String)
}

@nonexhaustive public enum LinkPublishError : Error {

    case notConnected(type: String)

    case failed([String : any Error])
}

extension LinkPublishError : CustomStringConvertible {

    public var description: String { get }
}

@nonexhaustive public enum LinkRejection : Error, Hashable, Sendable {

    case foreignType(String)

    case foreignVersion(Int)

    case undecodable(reason: String)

    case unhandled(notified: Int, handled: Int)

    case tooManyAttempts
}

extension LinkRejection : CustomStringConvertible {

    public var description: String { get }
}

public struct LinkReport : Plexus.Event {

    @nonexhaustive public enum Content : Sendable {

        case connected(at: Plexus.LinkPosition)

        case interrupted(any Error)

        case ended

        case gap(lost: ClosedRange<Plexus.LinkPosition>?)

        case skipped(Plexus.LinkMessage, at: Plexus.LinkPosition, Plexus.LinkRejection)

        case postponed(Plexus.LinkMessage, at: Plexus.LinkPosition, attempt: Int, Plexus.LinkRejection)

        case rejected(Plexus.LinkMessage, at: Plexus.LinkPosition, attempt: Int, Plexus.LinkRejection)

        case unconfirmed(Plexus.LinkMessage, at: Plexus.LinkPosition, any Error)

        case unsent(any Error)

        case dropped(count: Int)
    }

    public let topic: String

    public let content: Plexus.LinkReport.Content
}

@nonexhaustive public enum LoadError : Error, Hashable, Sendable {

    case recursiveLoad

    case repeatedCursor
}

extension LoadError : CustomStringConvertible {

    public var description: String { get }
}

public enum LoadState<Value> : Sendable where Value : Sendable {

    case unknown

    case loading(previous: Value?)

    case loaded(Value)

    case failed(any Error, previous: Value?)

    @inlinable public var value: Value? { get }

    @inlinable public var error: (any Error)? { get }

    @inlinable public var isLoading: Bool { get }

    @inlinable public func map<Mapped, Failure>(_ transform: (Value) throws(Failure) -> Mapped) throws(Failure) -> Plexus.LoadState<Mapped> where Mapped : Sendable, Failure : Error
}

final public actor Messenger<Message> : Plexus.Broadcaster where Message : Sendable {

    public typealias Element = Message

    @inlinable public init()

    deinit

    @inlinable nonisolated public func send(_ message: Message, from author: Plexus.Author? = nil)

    nonisolated public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Message> = .unbounded) -> AsyncStream<Message>

    nonisolated public func subscribe(ignoring author: Plexus.Author, bufferingPolicy: Plexus.BufferingPolicy<Message> = .unbounded) -> AsyncStream<Message>

    @inlinable nonisolated public func subscription(bufferingPolicy: Plexus.BufferingPolicy<Message> = .unbounded) -> Plexus.Subscription<Message>

    nonisolated public func subscription(ignoring author: Plexus.Author, bufferingPolicy: Plexus.BufferingPolicy<Message> = .unbounded) -> Plexus.Subscription<Message>

    nonisolated public func finish()

    nonisolated public var subscriberCount: Int { get }
}

extension Messenger {

    nonisolated public func follow<Source>(_ sequence: Source) where Message == Source.Element, Source : Sendable, Source : AsyncSequence
}

extension Messenger where Message == () {

    @inlinable nonisolated public func send(from author: Plexus.Author? = nil)
}

extension Messenger {

    nonisolated public func subscriberCounts(bufferingPolicy: Plexus.BufferingPolicy<Int> = .unbounded) -> AsyncStream<Int>

    public func waitForSubscriber() async throws
}

extension Messenger where Message : Decodable, Message : Encodable {

    nonisolated public func connect(as name: String, version: Int = 1, over link: any Plexus.EventLink, _ mode: Plexus.LinkMode, reportingTo bus: Plexus.EventBus = .shared) -> Plexus.ObservationToken
}

public struct Middleware<State, Action> : Sendable where State : Sendable, Action : Sendable {

    @inlinable public init(_ body: @escaping @Sendable (_ action: Action, _ context: Plexus.Middleware<State, Action>.Context, _ next: (Action) -> Void) -> Void)

    public struct Context : Sendable {

        @inlinable public var state: State { get }

        @inlinable public func dispatch(_ action: Action)

        public func run(_ effect: @escaping @Sendable () async -> Void)

        public func run(id: some Hashable & Sendable, cancelsInFlight: Bool = true, priority: TaskPriority? = nil, _ effect: @escaping @Sendable () async -> Void)

        public func cancel(id: some Hashable & Sendable)
    }
}

final public actor Multiplexer<Value> : Plexus.StatefulBroadcaster, Plexus.Requestable where Value : Sendable {

    public typealias Element = Plexus.LoadState<Value>

    @inlinable public convenience init(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), cacher: (any Plexus.Cacher<Value>)? = nil, clock: any Clock<Duration> = ContinuousClock(), onFetch: @escaping @Sendable () async throws -> Value)

    @inlinable public convenience init(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), cacher: (any Plexus.Cacher<Value>)? = nil, clock: any Clock<Duration> = ContinuousClock(), onFetch: @escaping @Sendable (Plexus.FetchContext<Value>) async throws -> Plexus.FetchResult<Value>)

    @inlinable public func request() async throws -> Value

    @inlinable nonisolated public func requestImmediately() -> Value?

    @inlinable public func response() async throws -> Plexus.Response<Value>

    @inlinable nonisolated public var cachedValue: Value? { get }

    @discardableResult
    @inlinable nonisolated public func refresh() -> Self

    public func clear() async throws

    public func flush() async throws

    nonisolated public func clearMemory()

    @inlinable nonisolated public func store(_ value: Value)

    nonisolated public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Value>> = .bufferingNewest(1)) -> AsyncStream<Plexus.LoadState<Value>>

    nonisolated public func subscription(bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Value>> = .bufferingNewest(1)) -> Plexus.Subscription<Plexus.LoadState<Value>>

    nonisolated public var current: Plexus.LoadState<Value> { get }

    nonisolated public var subscriberCount: Int { get }

    nonisolated public func events(bufferingPolicy: Plexus.BufferingPolicy<Plexus.CacheEvent> = .unbounded) -> AsyncStream<Plexus.CacheEvent>

    nonisolated public var statistics: Plexus.CacheStatistics { get }

    @discardableResult
    nonisolated public func register(in repository: Plexus.MuxRepository = .shared) -> Self
}

extension Multiplexer {

    public struct EntrySnapshot : Sendable {

        public typealias State = Plexus.CacheEntryState

        public let value: Value?

        public let state: Plexus.Multiplexer<Value>.EntrySnapshot.State

        public let error: (any Error)?

        public let age: Duration

        public let timeLeft: Duration?

        public var isFresh: Bool { get }
    }

    public struct FlightSnapshot : Sendable {

        public let age: Duration

        public let callerCount: Int

        public let isWaiting: Bool
    }

    nonisolated public var entry: Plexus.Multiplexer<Value>.EntrySnapshot? { get }

    nonisolated public var flight: Plexus.Multiplexer<Value>.FlightSnapshot? { get }

    nonisolated public func detailedEvents(bufferingPolicy: Plexus.BufferingPolicy<Plexus.CacheEvent> = .unbounded) -> AsyncStream<Plexus.CacheEvent>
}

extension Multiplexer {

    nonisolated public func subscribe(refetching: Plexus.Refetching, bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Value>> = .bufferingNewest(1)) -> AsyncStream<Plexus.LoadState<Value>>

    nonisolated public func subscription(refetching: Plexus.Refetching, bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Value>> = .bufferingNewest(1)) -> Plexus.Subscription<Plexus.LoadState<Value>>
}

extension Multiplexer {

    @discardableResult
    public func update<Result>(optimistically change: @escaping @Sendable (inout Value) -> Void, commit: @Sendable () async throws -> Result) async throws -> Result where Result : Sendable

    @discardableResult
    nonisolated public func update(_ body: @Sendable (inout Value) throws -> Void) rethrows -> Value?

    nonisolated public func prefetch()
}

@nonexhaustive public enum MultiplexerError : Error, Hashable, Sendable {

    case recursiveRequest(chain: [String])

    case fetchTimedOut(after: Duration)

    case missingKey(String)

    case notModifiedWithoutValue

    case storageTimedOut(after: Duration)

    case storageOverloaded

    case overloaded
}

extension MultiplexerError : Plexus.OriginFailure {

    public var isOriginFailure: Bool { get }
}

extension MultiplexerError : CustomStringConvertible {

    public var description: String { get }
}

final public actor MultiplexerMap<Key, Value> where Key : Hashable, Key : Sendable, Value : Sendable {

    @inlinable public func request(_ key: Key) async throws -> Value

    @inlinable public func response(_ key: Key) async throws -> Plexus.Response<Value>

    @inlinable nonisolated public func cachedValue(_ key: Key) -> Value?

    @inlinable public func request(_ keys: some Collection<Key> & Sendable) async -> [Key : Result<Value, any Error>]

    @inlinable nonisolated public subscript(key: Key) -> Plexus.MultiplexerMap<Key, Value>.Entry { get }

    @inlinable nonisolated public func store(_ value: Value, for key: Key)

    @discardableResult
    @inlinable nonisolated public func refresh(_ key: Key) -> Self

    @discardableResult
    nonisolated public func refreshAll() -> Self

    @inlinable public func clear(_ key: Key) async throws

    public func clear() async throws

    public func flush() async throws

    nonisolated public func clearMemory()

    nonisolated public func subscribe(to key: Key, bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Value>> = .bufferingNewest(1)) -> AsyncStream<Plexus.LoadState<Value>>

    @inlinable nonisolated public func subscription(to key: Key, bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Value>> = .bufferingNewest(1)) -> Plexus.Subscription<Plexus.LoadState<Value>>

    nonisolated public func subscriberCount(of key: Key) -> Int

    nonisolated public func events(bufferingPolicy: Plexus.BufferingPolicy<Plexus.CacheEvent> = .unbounded) -> AsyncStream<Plexus.CacheEvent>

    nonisolated public var statistics: Plexus.CacheStatistics { get }

    @discardableResult
    nonisolated public func register(in repository: Plexus.MuxRepository = .shared) -> Self
}

extension MultiplexerMap {

    public struct EntrySnapshot : Sendable {

        public typealias State = Plexus.CacheEntryState

        public let key: Key

        public let value: Value?

        public let state: Plexus.MultiplexerMap<Key, Value>.EntrySnapshot.State

        public let error: (any Error)?

        public let age: Duration

        public let timeLeft: Duration?

        public let tags: [Plexus.CacheTag]

        public let cost: Int

        public var isFresh: Bool { get }
    }

    public struct FlightSnapshot : Sendable {

        public let key: Key

        public let age: Duration

        public let callerCount: Int

        public let isWaiting: Bool
    }

    @inlinable nonisolated public func entries(limit: Int, where isIncluded: (Key) -> Bool = { _ in true }) -> [Plexus.MultiplexerMap<Key, Value>.EntrySnapshot]

    nonisolated public func flights(limit: Int) -> [Plexus.MultiplexerMap<Key, Value>.FlightSnapshot]

    nonisolated public func detailedEvents(bufferingPolicy: Plexus.BufferingPolicy<Plexus.CacheEvent> = .unbounded) -> AsyncStream<Plexus.CacheEvent>
}

extension MultiplexerMap {

    public struct Entry : Plexus.StatefulBroadcaster, Plexus.Requestable {

        public typealias Element = Plexus.LoadState<Value>

        public let key: Key

        @inlinable public func request() async throws -> Value

        @inlinable public func requestImmediately() -> Value?

        @inlinable public func response() async throws -> Plexus.Response<Value>

        @inlinable public var cachedValue: Value? { get }

        @inlinable public func store(_ value: Value)

        @discardableResult
        @inlinable public func refresh() -> Plexus.MultiplexerMap<Key, Value>.Entry

        public func clear() async throws

        public var current: Plexus.LoadState<Value> { get }

        public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Value>> = .bufferingNewest(1)) -> AsyncStream<Plexus.LoadState<Value>>

        @inlinable public func subscription(bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Value>> = .bufferingNewest(1)) -> Plexus.Subscription<Plexus.LoadState<Value>>

        public var subscriberCount: Int { get }
    }
}

extension MultiplexerMap {

    @inlinable public static func bulk(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), capacity: Plexus.CacheCapacity<Value> = .unbounded, tagging: (@Sendable (Key) -> [Plexus.CacheTag])? = nil, valueTagging: (@Sendable (Key, Value) -> [Plexus.CacheTag])? = nil, clock: any Clock<Duration> = ContinuousClock(), window: Duration = .zero, maximumBatchSize: Int? = nil, onFetch: @escaping @Sendable ([Key]) async throws -> [Key : Value]) -> Plexus.MultiplexerMap<Key, Value>

    @inlinable public static func bulk(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), capacity: Plexus.CacheCapacity<Value> = .unbounded, tagging: (@Sendable (Key) -> [Plexus.CacheTag])? = nil, valueTagging: (@Sendable (Key, Value) -> [Plexus.CacheTag])? = nil, clock: any Clock<Duration> = ContinuousClock(), window: Duration = .zero, maximumBatchSize: Int? = nil, onFetch: @escaping @Sendable ([Key]) async throws -> [Key : Result<Plexus.FetchResult<Value>, any Error>]) -> Plexus.MultiplexerMap<Key, Value>

    @inlinable public static func bulk(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), capacity: Plexus.CacheCapacity<Value> = .unbounded, cacher: (any Plexus.Cacher<Value>)?, keyName: @escaping @Sendable (Key) -> String, tagging: (@Sendable (Key) -> [Plexus.CacheTag])? = nil, valueTagging: (@Sendable (Key, Value) -> [Plexus.CacheTag])? = nil, clock: any Clock<Duration> = ContinuousClock(), window: Duration = .zero, maximumBatchSize: Int? = nil, onFetch: @escaping @Sendable ([Key]) async throws -> [Key : Value]) -> Plexus.MultiplexerMap<Key, Value>

    @inlinable public static func bulk(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), capacity: Plexus.CacheCapacity<Value> = .unbounded, cacher: (any Plexus.Cacher<Value>)?, keyName: @escaping @Sendable (Key) -> String, tagging: (@Sendable (Key) -> [Plexus.CacheTag])? = nil, valueTagging: (@Sendable (Key, Value) -> [Plexus.CacheTag])? = nil, clock: any Clock<Duration> = ContinuousClock(), window: Duration = .zero, maximumBatchSize: Int? = nil, onFetch: @escaping @Sendable ([Key]) async throws -> [Key : Result<Plexus.FetchResult<Value>, any Error>]) -> Plexus.MultiplexerMap<Key, Value>
}

extension MultiplexerMap where Key : LosslessStringConvertible {

    @inlinable public static func bulk(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), capacity: Plexus.CacheCapacity<Value> = .unbounded, cacher: (any Plexus.Cacher<Value>)?, tagging: (@Sendable (Key) -> [Plexus.CacheTag])? = nil, valueTagging: (@Sendable (Key, Value) -> [Plexus.CacheTag])? = nil, clock: any Clock<Duration> = ContinuousClock(), window: Duration = .zero, maximumBatchSize: Int? = nil, onFetch: @escaping @Sendable ([Key]) async throws -> [Key : Value]) -> Plexus.MultiplexerMap<Key, Value>

    @inlinable public static func bulk(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), capacity: Plexus.CacheCapacity<Value> = .unbounded, cacher: (any Plexus.Cacher<Value>)?, tagging: (@Sendable (Key) -> [Plexus.CacheTag])? = nil, valueTagging: (@Sendable (Key, Value) -> [Plexus.CacheTag])? = nil, clock: any Clock<Duration> = ContinuousClock(), window: Duration = .zero, maximumBatchSize: Int? = nil, onFetch: @escaping @Sendable ([Key]) async throws -> [Key : Result<Plexus.FetchResult<Value>, any Error>]) -> Plexus.MultiplexerMap<Key, Value>
}

extension MultiplexerMap {

    @inlinable public convenience init(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), capacity: Plexus.CacheCapacity<Value> = .unbounded, tagging: (@Sendable (Key) -> [Plexus.CacheTag])? = nil, valueTagging: (@Sendable (Key, Value) -> [Plexus.CacheTag])? = nil, clock: any Clock<Duration> = ContinuousClock(), onKeyFetch: @escaping @Sendable (Key) async throws -> Value)

    @inlinable public convenience init(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), capacity: Plexus.CacheCapacity<Value> = .unbounded, tagging: (@Sendable (Key) -> [Plexus.CacheTag])? = nil, valueTagging: (@Sendable (Key, Value) -> [Plexus.CacheTag])? = nil, clock: any Clock<Duration> = ContinuousClock(), onKeyFetch: @escaping @Sendable (Key, Plexus.FetchContext<Value>) async throws -> Plexus.FetchResult<Value>)

    @inlinable public convenience init(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), capacity: Plexus.CacheCapacity<Value> = .unbounded, cacher: (any Plexus.Cacher<Value>)?, keyName: @escaping @Sendable (Key) -> String, tagging: (@Sendable (Key) -> [Plexus.CacheTag])? = nil, valueTagging: (@Sendable (Key, Value) -> [Plexus.CacheTag])? = nil, clock: any Clock<Duration> = ContinuousClock(), onKeyFetch: @escaping @Sendable (Key) async throws -> Value)

    @inlinable public convenience init(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), capacity: Plexus.CacheCapacity<Value> = .unbounded, cacher: (any Plexus.Cacher<Value>)?, keyName: @escaping @Sendable (Key) -> String, tagging: (@Sendable (Key) -> [Plexus.CacheTag])? = nil, valueTagging: (@Sendable (Key, Value) -> [Plexus.CacheTag])? = nil, clock: any Clock<Duration> = ContinuousClock(), onKeyFetch: @escaping @Sendable (Key, Plexus.FetchContext<Value>) async throws -> Plexus.FetchResult<Value>)
}

extension MultiplexerMap where Key : LosslessStringConvertible {

    @inlinable public convenience init(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), capacity: Plexus.CacheCapacity<Value> = .unbounded, cacher: (any Plexus.Cacher<Value>)?, tagging: (@Sendable (Key) -> [Plexus.CacheTag])? = nil, valueTagging: (@Sendable (Key, Value) -> [Plexus.CacheTag])? = nil, clock: any Clock<Duration> = ContinuousClock(), onKeyFetch: @escaping @Sendable (Key) async throws -> Value)

    @inlinable public convenience init(id: String? = nil, policy: Plexus.CachePolicy = CachePolicy(), capacity: Plexus.CacheCapacity<Value> = .unbounded, cacher: (any Plexus.Cacher<Value>)?, tagging: (@Sendable (Key) -> [Plexus.CacheTag])? = nil, valueTagging: (@Sendable (Key, Value) -> [Plexus.CacheTag])? = nil, clock: any Clock<Duration> = ContinuousClock(), onKeyFetch: @escaping @Sendable (Key, Plexus.FetchContext<Value>) async throws -> Plexus.FetchResult<Value>)
}

extension MultiplexerMap {

    nonisolated public var count: Int { get }

    nonisolated public var keys: [Key] { get }

    @inlinable nonisolated public func store(_ values: [Key : Value])

    nonisolated public func prefetch(_ keys: some Collection<Key> & Sendable)

    @discardableResult
    nonisolated public func refresh(_ keys: some Collection<Key>) -> Self

    @discardableResult
    nonisolated public func refresh(where isWanted: @Sendable (Key) -> Bool) -> Self

    public func clear(_ keys: some Collection<Key> & Sendable) async throws

    public func clear(where isWanted: @Sendable (Key) -> Bool) async throws

    nonisolated public func clearMemory(_ key: Key)
}

extension MultiplexerMap {

    public func clear(tags: Set<Plexus.CacheTag>) async throws

    @discardableResult
    nonisolated public func refresh(tags: Set<Plexus.CacheTag>) -> Self
}

extension MultiplexerMap {

    @discardableResult
    nonisolated public func update(_ key: Key, _ body: @Sendable (inout Value) throws -> Void) rethrows -> Value?
}

extension MultiplexerMap {

    @discardableResult
    public func update<Result>(_ key: Key, optimistically change: @escaping @Sendable (inout Value) -> Void, commit: @Sendable () async throws -> Result) async throws -> Result where Result : Sendable
}

extension MultiplexerMap.Entry {

    public func subscribe(refetching: Plexus.Refetching, bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Value>> = .bufferingNewest(1)) -> AsyncStream<Plexus.LoadState<Value>>

    public func subscription(refetching: Plexus.Refetching, bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Value>> = .bufferingNewest(1)) -> Plexus.Subscription<Plexus.LoadState<Value>>
}

extension MultiplexerMap.Entry {

    @discardableResult
    public func update(_ body: @Sendable (inout Value) throws -> Void) rethrows -> Value?

    @discardableResult
    public func update<Result>(optimistically change: @escaping @Sendable (inout Value) -> Void, commit: @Sendable () async throws -> Result) async throws -> Result where Result : Sendable

    public func prefetch()

    public func clearMemory()
}

final public actor MuxRepository {

    public static let shared: Plexus.MuxRepository

    public init()

    nonisolated public func register<Value>(_ multiplexer: Plexus.Multiplexer<Value>) where Value : Sendable

    nonisolated public func register<Key, Value>(_ map: Plexus.MultiplexerMap<Key, Value>) where Key : Hashable, Key : Sendable, Value : Sendable

    nonisolated public func register(_ member: any Plexus.RepositoryMember)

    nonisolated public func unregister<Value>(_ multiplexer: Plexus.Multiplexer<Value>) where Value : Sendable

    nonisolated public func unregister<Key, Value>(_ map: Plexus.MultiplexerMap<Key, Value>) where Key : Hashable, Key : Sendable, Value : Sendable

    nonisolated public func unregister(_ member: any Plexus.RepositoryMember)

    nonisolated public var count: Int { get }

    nonisolated public var statistics: [String : Plexus.CacheStatistics] { get }

    public func clearAll() async throws

    public func clearAll(_ reach: Plexus.ClearReach) async throws

    public func clear(tags: Set<Plexus.CacheTag>) async throws

    public func clear(tags: Set<Plexus.CacheTag>, _ reach: Plexus.ClearReach) async throws

    public func flushAll() async throws

    nonisolated public func clearMemory()
}

public struct MuxRepositoryError : Error {

    public struct Failure : Sendable {

        public let id: String

        public let error: any Error

        public init(id: String, error: any Error)
    }

    public let failures: [Plexus.MuxRepositoryError.Failure]

    public init(failures: [Plexus.MuxRepositoryError.Failure])

    public var errors: [any Error] { get }
}

extension MuxRepositoryError : CustomStringConvertible {

    public var description: String { get }
}

final public class NearTrust : Sendable {

    public struct Moment : Hashable, Sendable {

        public func advanced(by duration: Duration) -> Plexus.NearTrust.Moment
    }

    public let timeToKeep: Duration

    public init(clock: any Clock<Duration> = ContinuousClock(), keeping timeToKeep: Duration = .zero)

    public var now: Plexus.NearTrust.Moment { get }

    public var holds: Bool { get }

    public func extend(until moment: Plexus.NearTrust.Moment)

    public func end()
}

final public class ObservationBag : Sendable {

    public init()

    deinit

    public func insert(_ token: Plexus.ObservationToken)

    public func cancelAll()

    public var count: Int { get }
}

final public class ObservationToken : Sendable {

    public init(onCancel: @escaping @Sendable () -> Void)

    deinit

    public func cancel()

    public var isCancelled: Bool { get }

    public func store(in bag: Plexus.ObservationBag)
}

extension ObservationToken : Hashable {

    public static func == (left: Plexus.ObservationToken, right: Plexus.ObservationToken) -> Bool

    public func hash(into hasher: inout Hasher)
}

@MainActor final public class ObservedValue<Value> where Value : Sendable {

    @MainActor public convenience init(_ source: some Plexus.StatefulBroadcaster<Value>)

    @MainActor public convenience init(_ source: some Plexus.Broadcaster<Value>, initial: Value)

    @MainActor public var value: Value { get }
}

extension ObservedValue : nonisolated Observable {
}

public protocol OriginFailure : Error {

    var isOriginFailure: Bool { get }
}

public struct Page<Item, Cursor> : Sendable where Item : Sendable, Cursor : Equatable, Cursor : Sendable {

    public var items: [Item]

    public var previous: Cursor?

    public var next: Cursor?

    public init(items: [Item], previous: Cursor? = nil, next: Cursor?)
}

extension Page : Equatable where Item : Equatable {
}

extension Page : Hashable where Item : Hashable, Cursor : Hashable {
}

final public actor PageStore<AppState, AppAction, PageState, PageAction> : Plexus.StatefulBroadcaster where AppState : Sendable, AppAction : Sendable, PageState : Sendable, PageAction : Sendable {

    public typealias Element = (app: AppState, page: PageState)

    nonisolated public let parent: Plexus.Store<AppState, AppAction>

    deinit

    @inlinable nonisolated public var state: PageState { get }

    nonisolated public var snapshot: (app: AppState, page: PageState) { get }

    nonisolated public var current: Plexus.PageStore<AppState, AppAction, PageState, PageAction>.Element { get }

    @inlinable nonisolated public func dispatch(_ action: PageAction)

    public func dispatchAndWait(_ action: PageAction) async

    nonisolated public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Plexus.PageStore<AppState, AppAction, PageState, PageAction>.Element> = .bufferingNewest(1)) -> AsyncStream<Plexus.PageStore<AppState, AppAction, PageState, PageAction>.Element>

    nonisolated public func subscription(bufferingPolicy: Plexus.BufferingPolicy<Plexus.PageStore<AppState, AppAction, PageState, PageAction>.Element> = .bufferingNewest(1)) -> Plexus.Subscription<Plexus.PageStore<AppState, AppAction, PageState, PageAction>.Element>

    nonisolated public var subscriberCount: Int { get }
}

extension PageStore {

    @inlinable nonisolated public func changes<V>(of path: any KeyPath<PageState, V> & Sendable, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> AsyncStream<Plexus.Change<V>> where V : Equatable, V : Sendable

    @inlinable nonisolated public func changes<V>(of select: @escaping @Sendable (PageState) -> V, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> AsyncStream<Plexus.Change<V>> where V : Equatable, V : Sendable

    @inlinable nonisolated public func subscription<V>(toChangesOf path: any KeyPath<PageState, V> & Sendable, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> Plexus.Subscription<Plexus.Change<V>> where V : Equatable, V : Sendable

    @inlinable nonisolated public func subscription<V>(toChangesOf select: @escaping @Sendable (PageState) -> V, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> Plexus.Subscription<Plexus.Change<V>> where V : Equatable, V : Sendable

    @inlinable nonisolated public func changes<V>(ofApp path: any KeyPath<AppState, V> & Sendable, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> AsyncStream<Plexus.Change<V>> where V : Equatable, V : Sendable

    @inlinable nonisolated public func changes<V>(ofApp select: @escaping @Sendable (AppState) -> V, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> AsyncStream<Plexus.Change<V>> where V : Equatable, V : Sendable

    @inlinable nonisolated public func subscription<V>(toChangesOfApp path: any KeyPath<AppState, V> & Sendable, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> Plexus.Subscription<Plexus.Change<V>> where V : Equatable, V : Sendable

    @inlinable nonisolated public func subscription<V>(toChangesOfApp select: @escaping @Sendable (AppState) -> V, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> Plexus.Subscription<Plexus.Change<V>> where V : Equatable, V : Sendable
}

final public actor PagedMap<Key, Item, Cursor> where Key : Hashable, Key : Sendable, Item : Sendable, Cursor : Equatable, Cursor : Sendable {

    public init(capacity: Int, maximumPageCount: Int? = nil, fetch: @escaping @Sendable (Key, Cursor?) async throws -> Plexus.Page<Item, Cursor>)

    nonisolated public subscript(key: Key) -> Plexus.PagedPublisher<Item, Cursor> { get }

    nonisolated public var count: Int { get }

    public func clear() async throws

    @discardableResult
    nonisolated public func register(in repository: Plexus.MuxRepository = .shared) -> Self
}

extension PagedMap : Plexus.RepositoryMember {

    nonisolated public func invalidate()

    nonisolated public func clearMemory()
}

final public actor PagedPublisher<Item, Cursor> : Plexus.StatefulBroadcaster where Item : Sendable, Cursor : Equatable, Cursor : Sendable {

    public typealias Element = Plexus.LoadState<Plexus.Pages<Item>>

    public init(maximumPageCount: Int? = nil, fetch: @escaping @Sendable (Cursor?) async throws -> Plexus.Page<Item, Cursor>)

    deinit

    nonisolated public var state: Plexus.LoadState<Plexus.Pages<Item>> { get }

    nonisolated public var current: Plexus.LoadState<Plexus.Pages<Item>> { get }

    nonisolated public var subscriberCount: Int { get }

    nonisolated public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Plexus.Pages<Item>>> = .bufferingNewest(1)) -> AsyncStream<Plexus.LoadState<Plexus.Pages<Item>>>

    nonisolated public func subscription(bufferingPolicy: Plexus.BufferingPolicy<Plexus.LoadState<Plexus.Pages<Item>>> = .bufferingNewest(1)) -> Plexus.Subscription<Plexus.LoadState<Plexus.Pages<Item>>>

    public func loadFirstPage() async throws

    public func loadNextPage() async throws

    public func loadPreviousPage() async throws

    public func refresh() async throws

    nonisolated public func edit(_ body: @escaping @Sendable (inout [Item]) -> Void)

    nonisolated public func reset()
}

extension PagedPublisher {

    nonisolated public func subscriberCounts(bufferingPolicy: Plexus.BufferingPolicy<Int> = .unbounded) -> AsyncStream<Int>

    public func waitForSubscriber() async throws
}

public struct Pages<Item> : Sendable where Item : Sendable {

    public var items: [Item]

    public var isComplete: Bool

    public var isCompleteAtStart: Bool

    public var pageCount: Int

    public init(items: [Item], isComplete: Bool, isCompleteAtStart: Bool = true, pageCount: Int = 1)
}

extension Pages : Equatable where Item : Equatable {
}

extension Pages : Hashable where Item : Hashable {
}

public enum PersistenceRule : Sendable, Hashable {

    case clearImmediately

    case clearAfterAllCurrentSubscribersNotified

    case neverClear
}

public protocol PersistentEvent : Plexus.Event {

    var persistenceRule: Plexus.PersistenceRule { get }
}

extension PersistentEvent {

    public var persistence: Plexus.EventPersistence { get }
}

public struct PostOutcome : Sendable, Hashable {

    public let notified: Int

    public let handled: Int

    public let isPersisted: Bool

    public let isDeferred: Bool

    public let isIncomplete: Bool
}

public typealias Reducer<State, Action> = @Sendable (inout State, Action) -> Void

public struct Refetching : Sendable {

    public static var whenStale: Plexus.Refetching { get }

    public static func every(_ interval: Duration) -> Plexus.Refetching

    public static func on<S>(_ signals: S) -> Plexus.Refetching where S : Sendable, S : AsyncSequence

    public func and(_ other: Plexus.Refetching) -> Plexus.Refetching
}

public protocol RepositoryMember : AnyObject, Sendable {

    nonisolated func invalidate()

    nonisolated func pause()

    nonisolated func resume()

    nonisolated var name: String { get }

    nonisolated var statistics: Plexus.CacheStatistics? { get }

    func flush() async throws

    func removeStored() async throws

    nonisolated func clearMemory()

    nonisolated func forget(tags: Set<Plexus.CacheTag>)

    func clear(tags: Set<Plexus.CacheTag>) async throws
}

extension RepositoryMember {

    nonisolated public func forget(tags: Set<Plexus.CacheTag>)

    public func clear(tags: Set<Plexus.CacheTag>) async throws

    nonisolated public func pause()

    nonisolated public func resume()

    nonisolated public var name: String { get }

    nonisolated public var statistics: Plexus.CacheStatistics? { get }

    public func flush() async throws

    public func removeStored() async throws
}

public struct Request<Value> : Plexus.Requestable where Value : Sendable {

    public init(_ operation: @escaping @Sendable () async throws -> Value)

    @inlinable public init(_ requestable: some Plexus.Requestable<Value>)

    public func request() async throws -> Value

    @inlinable public func requestImmediately() -> Value?
}

public protocol Requestable<Value> : Sendable {

    associatedtype Value : Sendable

    func request() async throws -> Self.Value

    func requestImmediately() -> Self.Value?
}

extension Requestable {

    @inlinable public func requestImmediately() -> Self.Value?
}

public struct Response<Value> : Sendable where Value : Sendable {

    public typealias Source = Plexus.ResponseSource

    public let value: Value

    public let source: Plexus.Response<Value>.Source

    public let age: Duration

    public let isStale: Bool

    public let isRevalidated: Bool

    public let error: (any Error)?

    @inlinable public init(value: Value, source: Plexus.Response<Value>.Source, age: Duration = .zero, isStale: Bool = false, isRevalidated: Bool = false, error: (any Error)? = nil)
}

public enum ResponseSource : Hashable, Sendable {

    case fetch

    case memory

    case cacher
}

public protocol RetryAdvice : Error {

    var retryAfter: Duration? { get }
}

public struct RetryPolicy : Hashable, Sendable {

    public let attempts: Int

    public let base: Duration

    public let cap: Duration

    public let jitter: Double

    public static let never: Plexus.RetryPolicy

    public static func exponential(attempts: Int, base: Duration, cap: Duration, jitter: Double) -> Plexus.RetryPolicy
}

final public actor SavedState {

    deinit

    public func clear() async throws

    nonisolated public func events(bufferingPolicy: Plexus.BufferingPolicy<Plexus.CacheEvent> = .unbounded) -> AsyncStream<Plexus.CacheEvent>

    @discardableResult
    nonisolated public func register(in repository: Plexus.MuxRepository = .shared) -> Self
}

extension SavedState : Plexus.RepositoryMember {

    public func flush() async throws

    nonisolated public func invalidate()

    nonisolated public func pause()

    nonisolated public func resume()

    public func removeStored() async throws

    nonisolated public func clearMemory()

    nonisolated public var name: String { get }

    nonisolated public var statistics: Plexus.CacheStatistics? { get }
}

public enum SharedCache : Sendable {

    public struct Wish : Hashable, Sendable {

        public var newerThan: Plexus.SharedCache.Version?

        public var takesLease: Bool

        public var awaited: Plexus.SharedCache.Version?

        public var tags: [Plexus.CacheTag]

        public init()
    }

    public enum Finding<Value> : Sendable where Value : Sendable {

        case entry(Plexus.CacheEntry<Value>, age: Duration, Plexus.SharedCache.Version)

        case granted(Plexus.SharedCache.Lease, previous: Plexus.CacheEntry<Value>?)

        case busy(Plexus.SharedCache.Version, previous: Plexus.CacheEntry<Value>?, holderUntil: Duration)

        case failedElsewhere(Plexus.SharedCache.Failure)

        case missing(previous: Plexus.CacheEntry<Value>?)
    }

    public struct Lease : Hashable, Sendable {

        public let key: String

        public let version: Plexus.SharedCache.Version

        public init(key: String, version: Plexus.SharedCache.Version)
    }

    public struct Version : Hashable, Comparable, Sendable {

        public let epoch: UInt64

        public let nonce: UInt64

        public let token: UInt64

        public init(epoch: UInt64, nonce: UInt64, token: UInt64)

        public static func < (left: Plexus.SharedCache.Version, right: Plexus.SharedCache.Version) -> Bool
    }

    public enum Fill : Hashable, Sendable {

        case stored

        case cleared

        case superseded

        case refused(Plexus.SharedCache.Failure?)
    }

    public struct Failure : Hashable, Plexus.ConnectivityFailure, Plexus.OriginFailure, CustomStringConvertible {

        public var description: String

        public var isConnectivityFailure: Bool

        public var isOriginFailure: Bool

        public init(description: String, isConnectivityFailure: Bool, isOriginFailure: Bool)

        public init(_ error: any Error)
    }

    public enum Removal : Hashable, Sendable {

        case keys(Set<String>)

        case tags(Set<Plexus.CacheTag>)

        case all
    }

    public enum Change : Hashable, Sendable {

        case changed(Set<String>)

        case leased(Set<String>)

        case tagged(Set<Plexus.CacheTag>)

        case everything

        case interrupted
    }
}

public protocol SharedCacher<Value> : Plexus.Cacher {

    var trust: Plexus.NearTrust { get }

    func look(for wishes: [String : Plexus.SharedCache.Wish]) async throws -> [String : Plexus.SharedCache.Finding<Self.Value>]

    func fill(_ entry: Plexus.CacheEntry<Self.Value>, under lease: Plexus.SharedCache.Lease) async throws -> Plexus.SharedCache.Fill

    func release(_ leases: [Plexus.SharedCache.Lease], because failure: Plexus.SharedCache.Failure?) async

    func outdate(_ keys: Set<String>) async throws

    func remove(_ what: Plexus.SharedCache.Removal, reach: Plexus.ClearReach) async throws

    func observeChanges(_ handler: @escaping @Sendable (Plexus.SharedCache.Change) -> Void)
}

extension SharedCacher {

    public func entry(forKey key: String) async throws -> Plexus.CacheEntry<Self.Value>?

    public func removeEntries(forKeys keys: Set<String>) async throws

    public func removeAllEntries() async throws

    public func removeEntries(withPrefix prefix: String) async throws
}

final public actor SharedSequence<Element> : Plexus.Broadcaster where Element : Sendable {

    deinit

    nonisolated public var subscriberCount: Int { get }

    nonisolated public func subscribe() -> AsyncStream<Element>

    nonisolated public func subscription() -> Plexus.Subscription<Element>

    nonisolated public func subscription(bufferingPolicy: Plexus.BufferingPolicy<Element>) -> Plexus.Subscription<Element>
}

extension SharedSequence {

    nonisolated public func subscriberCounts(bufferingPolicy: Plexus.BufferingPolicy<Int> = .unbounded) -> AsyncStream<Int>

    public func waitForSubscriber() async throws
}

final public actor StateConsumer<State> where State : Sendable {

    public init(initialState: State? = nil)

    deinit

    nonisolated public func add<V>(_ select: @escaping @Sendable (State) -> V, firesImmediately: Bool = false, in bag: Plexus.ObservationBag? = nil, _ onChange: @escaping @isolated(any) @Sendable (_ old: V?, _ new: V) -> Void) where V : Equatable, V : Sendable

    nonisolated public func add<V>(_ select: @escaping @Sendable (State) -> V, firesImmediately: Bool = false, in bag: Plexus.ObservationBag? = nil, _ onChange: @escaping @isolated(any) @Sendable (_ old: V?, _ new: V) async -> Void) where V : Equatable, V : Sendable

    nonisolated public func consume(_ new: State)

    nonisolated public func follow(_ source: some Plexus.Broadcaster<State>)

    nonisolated public func removeAll()
}

public protocol StatefulBroadcaster<Element> : Plexus.Broadcaster {

    nonisolated var current: Self.Element { get }
}

extension StatefulBroadcaster {

    nonisolated public func map<Output>(_ transform: @escaping @Sendable (Self.Element) -> Output) -> some Plexus.StatefulBroadcaster<Output> where Output : Sendable

    nonisolated public func removeDuplicates() -> some Plexus.StatefulBroadcaster<Self.Element> where Self.Element : Equatable

    nonisolated public func select<V>(_ path: any KeyPath<Self.Element, V> & Sendable) -> some Plexus.StatefulBroadcaster<V> where V : Equatable, V : Sendable

    nonisolated public func select<V>(_ select: @escaping @Sendable (Self.Element) -> V) -> some Plexus.StatefulBroadcaster<V> where V : Equatable, V : Sendable

}

extension StatefulBroadcaster {

    nonisolated public func subscribe() -> AsyncStream<Self.Element>
}

extension StatefulBroadcaster {

    nonisolated public func persist(in cacher: any Plexus.Cacher<Self.Element>, as key: String, delay: Duration = .milliseconds(500), clock: any Clock<Duration> = ContinuousClock()) -> Plexus.SavedState
}

final public actor Store<State, Action> : Plexus.StatefulBroadcaster where State : Sendable, Action : Sendable {

    public typealias Element = State

    @inlinable public init(_ initialState: State, middleware: [Plexus.Middleware<State, Action>] = [], reducer: @escaping Plexus.Reducer<State, Action>)

    deinit

    @inlinable nonisolated public var state: State { get }

    @inlinable nonisolated public var current: State { get }

    @inlinable nonisolated public func dispatch(_ action: Action)

    public func dispatchAndWait(_ action: Action) async

    nonisolated public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<State> = .bufferingNewest(1)) -> AsyncStream<State>

    @inlinable nonisolated public func subscription(bufferingPolicy: Plexus.BufferingPolicy<State> = .bufferingNewest(1)) -> Plexus.Subscription<State>

    nonisolated public var subscriberCount: Int { get }
}

extension Store {

    nonisolated public func actions(bufferingPolicy: Plexus.BufferingPolicy<Plexus.ActionRecord<State, Action>> = .bufferingNewest(100)) -> AsyncStream<Plexus.ActionRecord<State, Action>>
}

extension Store {

    @inlinable nonisolated public func changes<V>(of path: any KeyPath<State, V> & Sendable, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> AsyncStream<Plexus.Change<V>> where V : Equatable, V : Sendable

    @inlinable nonisolated public func changes<V>(of select: @escaping @Sendable (State) -> V, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> AsyncStream<Plexus.Change<V>> where V : Equatable, V : Sendable

    @inlinable nonisolated public func subscription<V>(toChangesOf path: any KeyPath<State, V> & Sendable, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> Plexus.Subscription<Plexus.Change<V>> where V : Equatable, V : Sendable

    @inlinable nonisolated public func subscription<V>(toChangesOf select: @escaping @Sendable (State) -> V, bufferingPolicy: Plexus.BufferingPolicy<Plexus.Change<V>> = .unbounded) -> Plexus.Subscription<Plexus.Change<V>> where V : Equatable, V : Sendable

    @inlinable nonisolated public func page<P, A>(_ initial: (State) -> P, middleware: [Plexus.Middleware<P, A>] = [], reducer: @escaping Plexus.Reducer<P, A>) -> Plexus.PageStore<State, Action, P, A> where P : Sendable, A : Sendable
}

public struct SubscriberSnapshot : Hashable, Identifiable, Sendable {

    public enum Kind : Hashable, Sendable {

        case stream

        case handler
    }

    public let id: Int

    public let kind: Plexus.SubscriberSnapshot.Kind

    public let bufferedCount: Int?

    public let droppedCount: Int?
}

public struct Subscription<Element> : AsyncSequence, Sendable where Element : Sendable {

    public typealias Failure = Never

    public var droppedCount: Int { get }

    @inlinable public func makeAsyncIterator() -> Plexus.Subscription<Element>.Iterator

    public struct Iterator : AsyncIteratorProtocol {

        @inlinable public mutating func next() async -> Element?

        @inlinable public mutating func next(isolation actor: isolated (any Actor)?) async -> Element?
    }
}

public struct ThrottledSequence<Base> : AsyncSequence, Sendable where Base : Sendable, Base : AsyncSequence, Base.Element : Sendable {

    public typealias Element = Base.Element

    public typealias Failure = Base.Failure

    public func makeAsyncIterator() -> Plexus.ThrottledSequence<Base>.Iterator

    public struct Iterator : AsyncIteratorProtocol {

        public mutating func next() async throws(Base.Failure) -> Base.Element?

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Base.Failure) -> Base.Element?
    }
}

final public actor Throttler : Plexus.Broadcaster {

    public typealias Element = Void

    public init(interval: Duration, leading: Bool = true, trailing: Bool = true, clock: any Clock<Duration> = ContinuousClock(), action: (@Sendable () async -> Void)? = nil)

    deinit

    nonisolated public func touch()

    nonisolated public func cancel()

    public func flush() async

    nonisolated public func subscribe(bufferingPolicy: Plexus.BufferingPolicy<Void> = .unbounded) -> AsyncStream<Void>

    nonisolated public func subscription(bufferingPolicy: Plexus.BufferingPolicy<Void> = .unbounded) -> Plexus.Subscription<Void>

    nonisolated public var subscriberCount: Int { get }
}

public struct Zipper<each R> : Sendable where repeat each R : Plexus.Requestable {

    @inlinable public init(_ request: repeat each R)

    public func add<New>(_ request: New) -> Plexus.Zipper<repeat each R, New> where New : Plexus.Requestable

    @inlinable public func results() async -> (repeat Result<(each R).Value, any Error>)

    @inlinable public func values() async throws -> (repeat (each R).Value)
}

nonisolated public func combine<each Source, Output>(_ source: repeat each Source, transform: @escaping @Sendable (repeat (each Source).Element) -> Output) -> some Plexus.StatefulBroadcaster<Output> where repeat each Source : Plexus.StatefulBroadcaster, Output : Sendable

extension AsyncSequence where Self : Sendable, Self.Element : Sendable, Self.Failure == Never {

    public func broadcast(bufferingPolicy: Plexus.BufferingPolicy<Self.Element> = .unbounded, replaying: Int = 0, lingering: Duration = .zero, clock: any Clock<Duration> = ContinuousClock()) -> Plexus.SharedSequence<Self.Element>
}

extension AsyncSequence where Self : Sendable, Self.Element : Sendable {

    public func broadcast(bufferingPolicy: Plexus.BufferingPolicy<Result<Self.Element, Self.Failure>> = .unbounded, replaying: Int = 0, lingering: Duration = .zero, clock: any Clock<Duration> = ContinuousClock()) -> Plexus.SharedSequence<Result<Self.Element, Self.Failure>>
}

extension Actor where Self == Plexus.EventBus {

    @inlinable nonisolated public func observe<E>(_ type: E.Type, scope: Plexus.EventScope? = nil, bufferingPolicy: Plexus.BufferingPolicy<E> = .unbounded, _ handler: @escaping @isolated(any) @Sendable (E) throws -> Plexus.HandlerResult) -> Plexus.ObservationToken where E : Plexus.PersistentEvent

    @inlinable nonisolated public func observe<E>(_ type: E.Type, scope: Plexus.EventScope? = nil, bufferingPolicy: Plexus.BufferingPolicy<E> = .unbounded, _ handler: @escaping @isolated(any) @Sendable (E) async throws -> Plexus.HandlerResult) -> Plexus.ObservationToken where E : Plexus.PersistentEvent

    @inlinable nonisolated public func observe<Owner, E>(as owner: Owner, _ type: E.Type, scope: Plexus.EventScope? = nil, bufferingPolicy: Plexus.BufferingPolicy<E> = .unbounded, _ handler: @escaping @isolated(any) @Sendable (Owner, E) throws -> Plexus.HandlerResult) where Owner : AnyObject, Owner : Sendable, E : Plexus.PersistentEvent

    @inlinable nonisolated public func observe<Owner, E>(as owner: Owner, _ type: E.Type, scope: Plexus.EventScope? = nil, bufferingPolicy: Plexus.BufferingPolicy<E> = .unbounded, _ handler: @escaping @isolated(any) @Sendable (Owner, E) async throws -> Plexus.HandlerResult) where Owner : AnyObject, Owner : Sendable, E : Plexus.PersistentEvent

    @inlinable nonisolated public func observe<E>(id: some Hashable & Sendable, _ type: E.Type, scope: Plexus.EventScope? = nil, replacing: Bool = false, bufferingPolicy: Plexus.BufferingPolicy<E> = .unbounded, _ handler: @escaping @isolated(any) @Sendable (E) throws -> Plexus.HandlerResult) where E : Plexus.PersistentEvent

    @inlinable nonisolated public func observe<E>(id: some Hashable & Sendable, _ type: E.Type, scope: Plexus.EventScope? = nil, replacing: Bool = false, bufferingPolicy: Plexus.BufferingPolicy<E> = .unbounded, _ handler: @escaping @isolated(any) @Sendable (E) async throws -> Plexus.HandlerResult) where E : Plexus.PersistentEvent
}

extension Array where Element : Plexus.Requestable {

    public func results() async -> [Result<Element.Value, any Error>]

    public func values() async throws -> [Element.Value]
}

extension AsyncSequence where Self : Sendable, Self.Element : Sendable {

    public func debounced(for delay: Duration, leading: Bool = false, maximumDelay: Duration? = nil, clock: any Clock<Duration> = ContinuousClock()) -> Plexus.DebouncedSequence<Self>
}

extension AsyncSequence where Self : Sendable, Self.Element : Sendable {

    public func throttled(for interval: Duration, leading: Bool = true, trailing: Bool = true, clock: any Clock<Duration> = ContinuousClock()) -> Plexus.ThrottledSequence<Self>
}

