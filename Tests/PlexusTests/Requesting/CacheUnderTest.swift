import Plexus
import PlexusTesting
import Synchronization
import TestSupport
import Testing

/// The two kinds of cache, which share most guarantees.
enum CacheKind: String, CaseIterable, Sendable, CustomTestStringConvertible {
  case multiplexer = "a multiplexer"
  case map = "a key of a map"

  var testDescription: String { rawValue }

  /// Creates a cache of this kind.
  func make<Value>(
    _ type: Value.Type = Value.self,
    id: String? = nil,
    policy: CachePolicy = CachePolicy(),
    clock: any Clock<Duration> = ManualClock(),
    onFetch: @escaping @concurrent @Sendable () async throws -> Value
  ) -> CacheUnderTest<Value> {
    switch self {
    case .multiplexer:
      .multiplexer(Multiplexer(id: id, policy: policy, clock: clock, onFetch: onFetch))
    case .map:
      .map(MultiplexerMap(id: id, policy: policy, clock: clock) { _ in try await onFetch() })
    }
  }

  /// Creates a cache of this kind whose fetch receives its context.
  func makeInformed<Value>(
    _ type: Value.Type = Value.self,
    policy: CachePolicy = CachePolicy(),
    clock: any Clock<Duration> = ManualClock(),
    onFetch:
      @escaping @concurrent @Sendable (FetchContext<Value>) async throws -> FetchResult<Value>
  ) -> CacheUnderTest<Value> {
    switch self {
    case .multiplexer:
      .multiplexer(Multiplexer(policy: policy, clock: clock, onFetch: onFetch))
    case .map:
      .map(
        MultiplexerMap(policy: policy, clock: clock) { (_: String, context: FetchContext<Value>) in
          try await onFetch(context)
        }
      )
    }
  }
}

extension CacheKind {
  /// Creates a cache of this kind that has an empty list, and fetches another one.
  func makeList(policy: CachePolicy, clock: any Clock<Duration>) -> CacheUnderTest<[Int]> {
    let cache = make([Int].self, policy: policy, clock: clock) { [99] }
    cache.store([])
    return cache
  }
}

/// A multiplexer, or one key of a map, with the same methods.
enum CacheUnderTest<Value: Sendable>: Requestable {
  case multiplexer(Multiplexer<Value>)
  case map(MultiplexerMap<String, Value>)

  private static var key: String { "key" }

  func request() async throws -> Value {
    switch self {
    case .multiplexer(let cache): try await cache.request()
    case .map(let cache): try await cache.request(Self.key)
    }
  }

  func response() async throws -> Response<Value> {
    switch self {
    case .multiplexer(let cache): try await cache.response()
    case .map(let cache): try await cache.response(Self.key)
    }
  }

  /// The value as the result of a request of several keys, if the cache has several.
  func requestTogether() async -> Value? {
    switch self {
    case .multiplexer(let cache): try? await cache.request()
    case .map(let cache): try? await cache.request([Self.key])[Self.key]?.get()
    }
  }

  var cachedValue: Value? {
    switch self {
    case .multiplexer(let cache): cache.cachedValue
    case .map(let cache): cache.cachedValue(Self.key)
    }
  }

  @discardableResult
  func refresh() -> Self {
    switch self {
    case .multiplexer(let cache): .multiplexer(cache.refresh())
    case .map(let cache): .map(cache.refresh(Self.key))
    }
  }

  func clear() async throws {
    switch self {
    case .multiplexer(let cache): try await cache.clear()
    case .map(let cache): try await cache.clear(Self.key)
    }
  }

  func clearMemory() {
    switch self {
    case .multiplexer(let cache): cache.clearMemory()
    case .map(let cache): cache.clearMemory()
    }
  }

  func store(_ value: Value) {
    switch self {
    case .multiplexer(let cache): cache.store(value)
    case .map(let cache): cache.store(value, for: Self.key)
    }
  }

  @discardableResult
  func update(_ body: @Sendable (inout Value) throws -> Void) rethrows -> Value? {
    switch self {
    case .multiplexer(let cache): try cache.update(body)
    case .map(let cache): try cache.update(Self.key, body)
    }
  }

  @discardableResult
  func update<Result: Sendable>(
    optimistically change: @escaping @Sendable (inout Value) -> Void,
    commit: @concurrent @Sendable () async throws -> Result
  ) async throws -> Result {
    switch self {
    case .multiplexer(let cache):
      try await cache.update(optimistically: change, commit: commit)
    case .map(let cache):
      try await cache.update(Self.key, optimistically: change, commit: commit)
    }
  }

  func prefetch() {
    switch self {
    case .multiplexer(let cache): cache.prefetch()
    case .map(let cache): cache.prefetch([Self.key])
    }
  }

  func subscribe(
    bufferingPolicy: BufferingPolicy<LoadState<Value>> = .unbounded
  ) -> AsyncStream<LoadState<Value>> {
    switch self {
    case .multiplexer(let cache): cache.subscribe(bufferingPolicy: bufferingPolicy)
    case .map(let cache): cache.subscribe(to: Self.key, bufferingPolicy: bufferingPolicy)
    }
  }

  var subscriberCount: Int {
    switch self {
    case .multiplexer(let cache): cache.subscriberCount
    case .map(let cache): cache.subscriberCount(of: Self.key)
    }
  }

  var statistics: CacheStatistics {
    switch self {
    case .multiplexer(let cache): cache.statistics
    case .map(let cache): cache.statistics
    }
  }

  func register(in repository: MuxRepository) {
    switch self {
    case .multiplexer(let cache): cache.register(in: repository)
    case .map(let cache): cache.register(in: repository)
    }
  }
}

extension CacheUnderTest<[Int]> {
  /// Starts an optimistic update that adds a number, and whose commit waits at a gate and can fail.
  func update(adding number: Int, _ gate: Gate, fails: Bool = false) -> Task<Void, any Error> {
    begin {
      try await update(optimistically: { $0.append(number) }) {
        try await gate.wait()
        if fails { throw Broken() }
      }
    }
  }
}

/// Runs a task immediately, on the thread that enqueues it, before that thread continues.
final class SpotExecutor: TaskExecutor {
  static let shared = SpotExecutor()

  func enqueue(_ job: consuming ExecutorJob) {
    job.runSynchronously(on: asUnownedTaskExecutor())
  }
}

/// Starts a task that has ended, or waits, when this function returns.
///
/// When it is resumed, it continues inside the call that resumes it. It must have no child tasks that are cancelled
/// with it: they would end, and be released, inside the call that cancels them.
func begin<Value: Sendable>(
  priority: TaskPriority? = nil,
  _ operation: @escaping @Sendable () async throws -> Value
) -> Task<Value, any Error> {
  Task.detached(executorPreference: SpotExecutor.shared, priority: priority, operation: operation)
}

/// Waits at a gate and ignores cancellation.
func waitUnmoved(_ gate: Gate) async {
  _ = await Task.detached { try await gate.wait() }.result
}

/// A failure after which a cached value can be used.
struct Offline: ConnectivityFailure, Equatable {
  var isConnectivityFailure = true
}

extension CacheStatistics {
  /// The statistics without times.
  var counts: Self {
    var counts = self
    counts.fetchTime = .zero
    counts.longestFetch = .zero
    return counts
  }
}

/// A counter that tasks can share.
final class Tally: Sendable {
  private let count = Atomic(0)

  var value: Int { count.load(ordering: .sequentiallyConsistent) }

  /// Increments the counter.
  ///
  /// - Returns: The new count.
  @discardableResult
  func increment() -> Int {
    count.add(1, ordering: .sequentiallyConsistent).newValue
  }

  /// Decrements the counter.
  func decrement() {
    count.subtract(1, ordering: .sequentiallyConsistent)
  }
}

/// A recorder with a way to send to it.
struct RecordedChannel<Element: Sendable>: Sendable {
  let recorder: Recorder<Element>
  private let continuation: AsyncStream<Element>.Continuation

  init() {
    let (stream, continuation) = AsyncStream.makeStream(of: Element.self)
    recorder = Recorder(stream)
    self.continuation = continuation
  }

  func send(_ element: Element) {
    continuation.yield(element)
  }
}

/// A reference from a fetch to its cache, which does not keep the cache alive: otherwise it would never be released.
struct OwnCache<Element: Sendable>: Sendable {
  private let channel = RecordedChannel<@Sendable () -> Element?>()

  /// Waits until the cache exists.
  func first() async -> Element? {
    await channel.recorder.first(1).first?()
  }

  /// The caches that exist.
  var elements: [Element] { channel.recorder.elements.compactMap { $0() } }

  func send(_ cache: Element) where Element: AnyObject {
    weak let cache = cache
    channel.send { cache }
  }

  func send<Value>(_ cache: Element) where Element == CacheUnderTest<Value> {
    switch cache {
    case .multiplexer(let cache):
      weak let cache = cache
      channel.send { cache.map { .multiplexer($0) } }
    case .map(let cache):
      weak let cache = cache
      channel.send { cache.map { .map($0) } }
    }
  }
}

extension LoadState {
  /// The state in words, such as "loading 1" or "failed Broken".
  var name: String {
    let value = value.map { " \($0)" } ?? ""
    return switch self {
    case .unknown: "unknown"
    case .loading: "loading\(value)"
    case .loaded: "loaded\(value)"
    case .failed(let error, _): "failed \(type(of: error))\(value)"
    }
  }
}
