
public enum EngineHealth : Hashable, Sendable {

    case connecting

    case connected

    case degraded(reason: String)

    case isolated(reason: String)

    case closed
}

public struct EngineStatus : Hashable, Sendable {

    public struct Connection : Hashable, Sendable {

        public let health: PlexusRedis.EngineHealth?

        public let outboxBytes: Int

        public let unansweredCommands: Int
    }

    public struct RoundTrips : Hashable, Sendable {

        public let count: Int

        public let total: Duration

        public let longest: Duration
    }

    public let caches: PlexusRedis.EngineStatus.Connection

    public let events: PlexusRedis.EngineStatus.Connection

    public let reconnections: Int

    public let lastAnsweredBeat: ContinuousClock.Instant?

    public let trustAge: Duration?

    public let registeredNodes: Int?

    public let owedRemovals: Int

    public let timedOutLooks: Int

    public let timedOutFills: Int

    public let unconfirmedEvents: Int

    public let unacknowledgedEvents: Int

    public let unannouncedEvents: Int

    public let bytesIn: Int

    public let bytesOut: Int

    public let roundTrips: PlexusRedis.EngineStatus.RoundTrips

    public let errors: [PlexusRedis.RedisEngineError.Kind : Int]
}

public enum RedisAddress : Sendable, Hashable {

    case tcp(host: String, port: UInt16)

    case tls(host: String, port: UInt16, ca: String?, certificate: String? = nil, key: String? = nil)

    case unix(path: String)

    case sentinel(name: String, [PlexusRedis.RedisAddress])

    case cluster([PlexusRedis.RedisAddress])
}

extension RedisAddress : CustomStringConvertible {

    public var description: String { get }
}

public struct RedisCredentials : Hashable, Sendable {

    public var user: String?

    public var password: String

    public var expires: ContinuousClock.Instant?

    public init(user: String? = nil, password: String, expires: ContinuousClock.Instant? = nil)
}

extension RedisCredentials : CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {

    public var description: String { get }

    public var debugDescription: String { get }

    public var customMirror: Mirror { get }
}

final public actor RedisEngine {

    public init(_ address: PlexusRedis.RedisAddress, options: PlexusRedis.RedisOptions = RedisOptions()) throws

    public init(url: String, options: PlexusRedis.RedisOptions = RedisOptions()) throws

    public func connect(within limit: Duration) async throws

    nonisolated public func cacher<Value>(_ type: Value.Type = Value.self, space: String, schema: String, retention: Duration? = nil) -> any Plexus.SharedCacher<Value> where Value : Decodable, Value : Encodable, Value : Sendable

    nonisolated public var events: any Plexus.EventLink { get }

    nonisolated public func health() -> Plexus.Subscription<PlexusRedis.EngineHealth>

    nonisolated public func eventHealth() -> Plexus.Subscription<PlexusRedis.EngineHealth?>

    nonisolated public var status: PlexusRedis.EngineStatus { get }

    public func close() async throws
}

public struct RedisEngineError : Error, Hashable, Sendable, CustomStringConvertible {

    public enum Kind : Hashable, Sendable, CaseIterable {

        case authentication

        case permission

        case certificate

        case configuration

        case notMaster

        case cluster

        case unreachable

        case timedOut

        case tooLarge

        case outOfMemory

        case refused

        case broken

        case closed
    }

    public let kind: PlexusRedis.RedisEngineError.Kind

    public let description: String
}

public struct RedisOptions : Sendable {

    public enum WhileIsolated : Hashable, Sendable {

        case fetch

        case keep(Duration)
    }

    public enum WhenGroupIsBehind : Hashable, Sendable {

        case refuse

        case trim
    }

    public var credentials: (@Sendable () async throws -> PlexusRedis.RedisCredentials)?

    public var sentinelCredentials: (@Sendable () async throws -> PlexusRedis.RedisCredentials)?

    public var database: Int

    public var commandTimeout: Duration

    public var nearLease: Duration

    public var whileIsolated: PlexusRedis.RedisOptions.WhileIsolated

    public var fetchLease: Duration

    public var retention: Duration

    public var clearReplicas: Int

    public var eventTimeout: Duration

    public var eventLimit: Int

    public var whenGroupIsBehind: PlexusRedis.RedisOptions.WhenGroupIsBehind

    public var outboxBytes: Int

    public var clientName: String

    public init(credentials: (@Sendable () async throws -> PlexusRedis.RedisCredentials)? = nil, sentinelCredentials: (@Sendable () async throws -> PlexusRedis.RedisCredentials)? = nil, database: Int = 0, commandTimeout: Duration = .milliseconds(250), nearLease: Duration = .seconds(2), whileIsolated: PlexusRedis.RedisOptions.WhileIsolated = .fetch, fetchLease: Duration = .seconds(3), retention: Duration = .seconds(7 * 86_400), clearReplicas: Int = 0, eventTimeout: Duration = .seconds(5), eventLimit: Int = 100_000, whenGroupIsBehind: PlexusRedis.RedisOptions.WhenGroupIsBehind = .refuse, outboxBytes: Int = 16 << 20, clientName: String = "plexus")
}

