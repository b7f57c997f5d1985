
public struct JSONFileCacher<Value> : Plexus.BatchReadingCacher where Value : Decodable, Value : Encodable, Value : Sendable {

    public init(directory: URL? = nil, byteLimit: Int? = nil, schema: String? = nil)

    public var generation: Plexus.CacheGeneration? { get }

    @concurrent public func entry(forKey key: String) async throws -> Plexus.CacheEntry<Value>?

    @concurrent public func entries(forKeys keys: Set<String>) async throws -> [String : Plexus.CacheEntry<Value>]

    @concurrent public func store(_ entries: [String : Plexus.CacheEntry<Value>]) async throws

    @concurrent public func removeEntries(forKeys keys: Set<String>) async throws

    @concurrent public func removeAllEntries() async throws

    @concurrent public func removeEntries(withPrefix prefix: String) async throws
}

extension JSONFileCacher : Hashable {

    public static func == (left: PlexusStorage.JSONFileCacher<Value>, right: PlexusStorage.JSONFileCacher<Value>) -> Bool

    public func hash(into hasher: inout Hasher)
}

final public actor JSONLogCacher<Value> : Plexus.BatchReadingCacher where Value : Decodable, Value : Encodable, Value : Sendable {

    public convenience init(directory: URL? = nil, byteLimit: Int? = nil, schema: String? = nil) throws

    nonisolated public var generation: Plexus.CacheGeneration? { get }

    @concurrent nonisolated public func entry(forKey key: String) async throws -> Plexus.CacheEntry<Value>?

    @concurrent nonisolated public func entries(forKeys keys: Set<String>) async throws -> [String : Plexus.CacheEntry<Value>]

    @concurrent nonisolated public func store(_ entries: [String : Plexus.CacheEntry<Value>]) async throws

    @concurrent nonisolated public func removeEntries(forKeys keys: Set<String>) async throws

    @concurrent nonisolated public func removeAllEntries() async throws

    @concurrent nonisolated public func removeEntries(withPrefix prefix: String) async throws
}

extension JSONLogCacher : Hashable {

    public static func == (left: PlexusStorage.JSONLogCacher<Value>, right: PlexusStorage.JSONLogCacher<Value>) -> Bool

    nonisolated public func hash(into hasher: inout Hasher)
}

@nonexhaustive public enum StorageError : Error, Hashable, Sendable {

    case system(operation: String, path: String, code: Int32)

    case entryTooLarge(byteCount: Int, limit: Int)

    case locked(path: String)
}

extension StorageError : CustomStringConvertible {

    public var description: String { get }
}

