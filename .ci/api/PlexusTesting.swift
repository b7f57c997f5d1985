
final public class Gate : Sendable {

    public init()

    public var isOpen: Bool { get }

    public var arrivalCount: Int { get }

    public var waiterCount: Int { get }

    public func wait() async throws

    public func open()

    public func close()

    public func admit(_ count: Int = 1)

    public func arrivals(_ count: Int) async
}

final public class InterleavedExecutor : SerialExecutor {

    public init()

    public func enqueue(_ job: consuming ExecutorJob)
}

public struct InterleavingFailure : Error {

    public enum Reason : Sendable {

        case threw(any Error)

        case neverFinished

        case tooManyJobs(Int)

        case notRepeatable

        case unsupported(String)
    }

    public let schedule: [Int]

    public let reason: PlexusTesting.InterleavingFailure.Reason

    public init(schedule: [Int], reason: PlexusTesting.InterleavingFailure.Reason)
}

extension InterleavingFailure : CustomStringConvertible {

    public var description: String { get }
}

final public class ManualClock : Clock, Sendable {

    public init()

    public var now: PlexusTesting.ManualClock.Instant { get }

    public var minimumResolution: Duration { get }

    public var sleeperCount: Int { get }

    public var nextDeadline: PlexusTesting.ManualClock.Instant? { get }

    public func sleep(until deadline: PlexusTesting.ManualClock.Instant, tolerance: Duration? = nil) async throws

    public func advance(by duration: Duration)

    public func advance(to instant: PlexusTesting.ManualClock.Instant)

    public func run()

    public func run<Value, Failure>(_ operation: nonisolated(nonsending) () async throws(Failure) -> Value) async throws(Failure) -> Value where Failure : Error

    public func sleepers(_ count: Int) async
}

extension ManualClock {

    public struct Instant : InstantProtocol, Hashable, Sendable {

        public let offset: Duration

        public init(offset: Duration = .zero)

        public func advanced(by duration: Duration) -> PlexusTesting.ManualClock.Instant

        public func duration(to other: PlexusTesting.ManualClock.Instant) -> Duration

        public static func < (lhs: PlexusTesting.ManualClock.Instant, rhs: PlexusTesting.ManualClock.Instant) -> Bool
    }
}

extension ManualClock.Instant : CustomStringConvertible {

    public var description: String { get }
}

final public class Recorder<Element> : Sendable where Element : Sendable {

    public init<S>(_ sequence: S) where Element == S.Element, S : Sendable, S : AsyncSequence

    deinit

    public var elements: [Element] { get }

    public var isFinished: Bool { get }

    public var error: (any Error)? { get }

    public func first(_ count: Int) async -> [Element]

    public func finished() async -> [Element]

    public func cancel()
}

final public class ScriptedFetcher<Value> : Sendable where Value : Sendable {

    public init(_ steps: [Result<Value, any Error>], gate: PlexusTesting.Gate? = nil)

    public var count: Int { get }

    public func fetch() async throws -> Value
}

@discardableResult
public func forEveryInterleaving(deviations: Int = 6, jobLimit: Int = 10_000, _ scenario: nonisolated(nonsending) @escaping @Sendable () async throws -> Void) throws -> Int

public func hop() async

public func replayInterleaving(_ schedule: [Int], jobLimit: Int = 10_000, _ scenario: nonisolated(nonsending) @escaping @Sendable () async throws -> Void) throws

