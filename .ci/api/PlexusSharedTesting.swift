
public struct CacherConformance : Sendable {

    public enum Rule : Hashable, CaseIterable, Sendable {

        case missing

        case wholeEntries

        case exactDates

        case exactDirectives

        case replaces

        case batches

        case anyKey

        case anySize

        case removesKeys

        case removesEverything

        case removesPrefixes

        case keepsOtherPrefixes

        case order

        case bulkReads

        case concurrentUse

        case fencedByRemovals

        case cancelledStore

        case cancelledRemoval

        case failingValues
    }

    public struct Violation : Error, Hashable, CustomStringConvertible {

        public let rule: PlexusSharedTesting.CacherConformance.Rule

        public let description: String
    }

    public struct Value : Codable, Hashable, Sendable {

        public struct Refusal : Error, Hashable {

            public init()
        }

        public var text: String

        public var refusesEncoding: Bool

        public init(_ text: String, refusesEncoding: Bool = false)

        public init(from decoder: any Decoder) throws

        public func encode(to encoder: any Encoder) throws
    }

    public init(instances: nonisolated(nonsending) @escaping @Sendable (_ count: Int) async throws -> [any Plexus.Cacher<PlexusSharedTesting.CacherConformance.Value>])

    public func check(_ rule: PlexusSharedTesting.CacherConformance.Rule) async throws
}

public struct EventLinkConformance : Sendable {

    public enum Rule : Hashable, CaseIterable, Sendable {

        case codec

        case everyNode

        case positions

        case wholeMessages

        case anyTopic

        case replay

        case ephemeral

        case oneNode

        case groupFromOldest

        case separateGroups

        case redelivery

        case acknowledgement

        case progress

        case release

        case rejection

        case cancellation
    }

    public struct Violation : Error, Hashable, CustomStringConvertible {

        public let rule: PlexusSharedTesting.EventLinkConformance.Rule

        public let description: String
    }

    public init(nodes: nonisolated(nonsending) @escaping @Sendable (_ count: Int) async throws -> [any Plexus.EventLink])

    public func check(_ rule: PlexusSharedTesting.EventLinkConformance.Rule) async throws
}

final public class EventMemory : Sendable {

    public init(clock: any Clock<Duration> = ContinuousClock(), codec: any Plexus.LinkCodec = JSONLinkCodec())

    public func node() -> PlexusSharedTesting.EventMemoryNode

    public func messages(of topic: String) -> [Plexus.LinkMessage]

    public func insert(_ message: Plexus.LinkMessage, into topic: String)

    public func duplicateLatest(of topic: String)

    public func trim(_ topic: String, keeping count: Int = 0)

    public func lose()
}

final public class EventMemoryNode : Plexus.EventLink {

    public struct Unreachable : Error, Hashable, CustomStringConvertible {

        public var description: String { get }
    }

    public var codec: any Plexus.LinkCodec { get }

    public func cutOff()

    public func reconnect()

    public func loseConfirmations(_ isLossy: Bool)

    public func close()

    public func publish(_ message: Plexus.LinkMessage, to topic: String) async throws -> Plexus.LinkPosition

    public func deliveries(of topic: String, _ mode: Plexus.LinkMode) -> AsyncThrowingStream<Plexus.LinkDelivery, any Error>

    public func acknowledge(_ position: Plexus.LinkPosition, of topic: String, group: String) async throws

    public func reject(_ position: Plexus.LinkPosition, of topic: String, group: String, because reason: String) async throws
}

public struct JSONLinkCodec : Plexus.LinkCodec {

    public init()

    public func encode(_ value: some Encodable) throws -> [UInt8]

    public func decode<Value>(_ type: Value.Type, from bytes: [UInt8]) throws -> Value where Value : Decodable
}

public struct SharedCacherConformance : Sendable {

    public enum Rule : Hashable, CaseIterable, Sendable {

        case oneLease

        case manyKeys

        case fencedByRemoval

        case fencedByCompleteRemoval

        case fencedByTagRemoval

        case fencedByOutdating

        case fencedByStore

        case fencedByOwnLease

        case fencedStore

        case comparedStore

        case outdatedIsFallback

        case removesByTag

        case announcesTagRemoval

        case newerThan

        case failureElsewhere

        case releasedLease

        case lostLease

        case lookOnly

        case announcesLeases

        case announcesToReaders

        case announcesToWriters

        case noEcho

        case announcesCompleteRemoval

        case anyKey

        case wholeEntries
    }

    public struct Violation : Error, Hashable, CustomStringConvertible {

        public let rule: PlexusSharedTesting.SharedCacherConformance.Rule

        public let description: String
    }

    public init(nodes: nonisolated(nonsending) @escaping @Sendable (_ count: Int) async throws -> [any Plexus.SharedCacher<String>])

    public func check(_ rule: PlexusSharedTesting.SharedCacherConformance.Rule) async throws
}

final public class SharedMemory<Value> : Sendable where Value : Sendable {

    public struct Snapshot : Sendable {
    }

    public init(_ type: Value.Type = Value.self, clock: any Clock<Duration> = ContinuousClock(), fetchLease: Duration = .seconds(3), nearLease: Duration = .seconds(2), keeping timeToKeep: Duration = .zero)

    public func node() -> PlexusSharedTesting.SharedMemoryNode<Value>

    public var snapshot: PlexusSharedTesting.SharedMemory<Value>.Snapshot { get }

    public func restore(_ snapshot: PlexusSharedTesting.SharedMemory<Value>.Snapshot? = nil)
}

final public class SharedMemoryNode<Value> : Plexus.SharedCacher where Value : Sendable {

    public let trust: Plexus.NearTrust
}

extension SharedMemoryNode {

    public var isConnected: Bool { get }

    public var lookCount: Int { get }

    public func cutOff()

    public func reconnect()

    public func delayAnnouncements()

    public func hearAnnouncements()

    public func delayCalls(by duration: Duration)
}

extension SharedMemoryNode {

    public struct Unreachable : Error, Hashable, CustomStringConvertible {

        public var description: String { get }
    }

    public func look(for wishes: [String : Plexus.SharedCache.Wish]) async throws -> [String : Plexus.SharedCache.Finding<Value>]

    public func fill(_ entry: Plexus.CacheEntry<Value>, under lease: Plexus.SharedCache.Lease) async throws -> Plexus.SharedCache.Fill

    public func release(_ leases: [Plexus.SharedCache.Lease], because failure: Plexus.SharedCache.Failure?) async

    public func outdate(_ keys: Set<String>) async throws

    public func remove(_ what: Plexus.SharedCache.Removal, reach: Plexus.ClearReach) async throws

    public var generation: Plexus.CacheGeneration? { get }

    public func store(_ entries: [String : Plexus.CacheEntry<Value>]) async throws

    public func observeChanges(_ handler: @escaping @Sendable (Plexus.SharedCache.Change) -> Void)
}

