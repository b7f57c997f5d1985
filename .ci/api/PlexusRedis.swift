
public enum EngineHealth : Hashable, Sendable {

    case connecting

    case connected

    case isolated(reason: String)

    case closed
}

public struct EngineStatus : Hashable, Sendable {

    public struct Connection : Hashable, Sendable {

        public let health: PlexusRedis.EngineHealth?

        public let outboxBytes: Int

        public let unansweredCommands: Int
    }

    public let caches: PlexusRedis.EngineStatus.Connection

    public let events: PlexusRedis.EngineStatus.Connection

    public let unconfirmedEvents: Int

    public let unacknowledgedEvents: Int

    public let unannouncedEvents: Int
}

public enum RedisAddress : Sendable, Hashable {

    case tcp(host: String, port: UInt16)

    case tls(host: String, port: UInt16, ca: String?)

    case unix(path: String)
}

extension RedisAddress : CustomStringConvertible {

    public var description: String { get }
}

final public actor RedisEngine {

    public init(_ address: PlexusRedis.RedisAddress, options: PlexusRedis.RedisOptions = RedisOptions()) throws

    nonisolated public func cacher<Value>(_ type: Value.Type = Value.self, space: String, schema: String) -> any Plexus.SharedCacher<Value> where Value : Decodable, Value : Encodable, Value : Sendable

    nonisolated public var events: any Plexus.EventLink { get }

    nonisolated public func health() -> Plexus.Subscription<PlexusRedis.EngineHealth>

    nonisolated public func eventHealth() -> Plexus.Subscription<PlexusRedis.EngineHealth?>

    nonisolated public var status: PlexusRedis.EngineStatus { get }

    public func close() async
}

public struct RedisOptions : Sendable {

    public var user: String?

    public var password: String?

    public var database: Int

    public var commandTimeout: Duration

    public var nearLease: Duration

    public var fetchLease: Duration

    public var retention: Duration

    public var clearReplicas: Int

    public var eventTimeout: Duration

    public var eventLimit: Int

    public var outboxBytes: Int

    public init()
}

