import Foundation
import Plexus
import PlexusTesting
import TestSupport

/// A cacher in memory that records its calls, fails on demand, and can be suspended at any operation.
final class ControlledCacher<Value: Sendable>: Cacher {
  enum Operation: Hashable, Sendable, CaseIterable {
    case read, store, remove, removeAll, removePrefix
  }

  struct Call: Hashable, Sendable {
    let operation: Operation
    var keys: Set<String> = []
  }

  private struct Failure: Sendable {
    let keys: Set<String>?
    let error: any Error
  }

  private struct State: Sendable {
    var entries: [String: CacheEntry<Value>] = [:]
    var calls: [Call] = []
    var failures: [Operation: Failure] = [:]
    var gates: [Operation: Gate] = [:]
    var onCall: @Sendable (Call) async throws -> Void = { _ in }
    var generation: CacheGeneration?
    var generationReads = 0
  }

  private let state = Guarded(State())

  // MARK: - For tests

  /// The stored entries.
  var entries: [String: CacheEntry<Value>] {
    get { state.withLock { $0.entries } }
    set { state.withLock { $0.entries = newValue } }
  }

  var calls: [Call] { state.withLock { $0.calls } }

  func count(of operation: Operation) -> Int {
    calls.count { $0.operation == operation }
  }

  func value(_ key: String = "key") -> Value? { entries[key]?.value }

  /// Makes an operation fail for some keys, or completely, until it is repaired.
  func fail(_ operation: Operation, with keys: Set<String>? = nil, error: any Error = Broken()) {
    state.withLock { $0.failures[operation] = Failure(keys: keys, error: error) }
  }

  func mend() {
    state.withLock { $0.failures = [:] }
  }

  /// Suspends an operation before it has any effect, until the gate is open.
  func hold(_ operation: Operation) -> Gate {
    let gate = Gate()
    state.withLock { $0.gates[operation] = gate }
    return gate
  }

  /// Suspends no further operations; suspended ones stay so until their gate is open.
  func release() {
    state.withLock { $0.gates = [:] }
  }

  /// Calls a closure at each call.
  func onCall(_ body: @escaping @Sendable (Call) async throws -> Void) {
    state.withLock { $0.onCall = body }
  }

  /// Sets the generation that the cacher reports.
  func setGeneration(_ number: UInt64) {
    state.withLock { $0.generation = CacheGeneration(epoch: 1, number: number) }
  }

  var generationReads: Int { state.withLock { $0.generationReads } }

  // MARK: - Cacher

  var generation: CacheGeneration? {
    state.withLock { state in
      state.generationReads += 1
      return state.generation
    }
  }

  func entry(forKey key: String) async throws -> CacheEntry<Value>? {
    try await begin(Call(operation: .read, keys: [key]))
    try check(.read, [key])
    return entries[key]
  }

  func store(_ new: [String: CacheEntry<Value>]) async throws {
    try await begin(Call(operation: .store, keys: Set(new.keys)))
    let failed = failures(.store, Set(new.keys))
    state.withLock { state in
      for (key, entry) in new where failed[key] == nil { state.entries[key] = entry }
    }
    if !failed.isEmpty { throw CacherError(failures: failed) }
  }

  func removeEntries(forKeys keys: Set<String>) async throws {
    try await begin(Call(operation: .remove, keys: keys))
    let failed = failures(.remove, keys)
    state.withLock { state in
      for key in keys where failed[key] == nil { state.entries[key] = nil }
    }
    if !failed.isEmpty { throw CacherError(failures: failed) }
  }

  func removeAllEntries() async throws {
    try await begin(Call(operation: .removeAll))
    try check(.removeAll, [])
    state.withLock { $0.entries = [:] }
  }

  func removeEntries(withPrefix prefix: String) async throws {
    try await begin(Call(operation: .removePrefix, keys: [prefix]))
    try check(.removePrefix, [])
    state.withLock { state in
      state.entries = state.entries.filter { !$0.key.hasPrefix(prefix) }
    }
  }

  private func begin(_ call: Call) async throws {
    let (gate, onCall) = state.withLock { state in
      state.calls.append(call)
      return (state.gates[call.operation], state.onCall)
    }
    try await onCall(call)
    if let gate { await waitUnmoved(gate) }
  }

  private func failures(_ operation: Operation, _ keys: Set<String>) -> [String: any Error] {
    guard let failure = state.withLock({ $0.failures[operation] }) else { return [:] }
    let failing = failure.keys.map { $0.intersection(keys) } ?? keys
    return Dictionary(uniqueKeysWithValues: failing.map { ($0, failure.error) })
  }

  private func check(_ operation: Operation, _ keys: Set<String>) throws {
    guard let failure = state.withLock({ $0.failures[operation] }) else { return }
    if failure.keys.map({ !$0.isDisjoint(with: keys) }) ?? true { throw failure.error }
  }
}

/// The time since 1970, as cachers store it; never later than now.
func wallTime() -> Duration {
  // Seconds as a floating-point number are rounded, by less than a microsecond.
  .microseconds(Int64(Date().timeIntervalSince1970 * 1_000_000) - 1)
}

/// Waits until the wall clock shows another time, for every way to read it.
func clockMovesOn() async {
  let start = wallTime()
  while start..<start + .microseconds(10) ~= wallTime() { await Task.detached {}.value }
}

/// The real time since a test began.
///
/// Ages by the wall clock differ by up to that time, however slow a busy machine is.
struct RealTime {
  private let start = wallTime()

  /// Whether an age at the start of the test, or during it, can be that age now.
  func allows(_ age: Duration, for expected: Duration) -> Bool {
    // The clock can be set back.
    let elapsed = wallTime() - start
    let tolerance = Duration.milliseconds(1)
    return age >= expected + min(elapsed, .zero) - tolerance
      && age <= expected + max(elapsed, .zero) + tolerance
  }
}

extension CacheEntry {
  /// Creates an entry of a given age.
  init(_ value: Value, age: Duration, validator: String? = nil, timeToLive: Duration? = nil) {
    self.init(
      value: value,
      storedAt: wallTime() - age,
      validator: validator,
      timeToLive: timeToLive
    )
  }
}

extension CachePolicy {
  /// A policy that reads stored copies first.
  static func readingFirst(staleFor staleTime: Duration = .zero) -> CachePolicy {
    var policy = CachePolicy()
    policy.cacherRead = .beforeFetch
    policy.staleWhileRevalidate = staleTime
    return policy
  }
}

extension CacheKind {
  /// Creates a cache whose value has the name "key" in its cacher.
  func make<Value>(
    storedIn cacher: any Cacher<Value>,
    policy: CachePolicy = CachePolicy(),
    clock: any Clock<Duration> = ManualClock(),
    onFetch: @escaping @concurrent @Sendable () async throws -> Value
  ) -> CacheUnderTest<Value> {
    makeInformed(storedIn: cacher, policy: policy, clock: clock) { _ in .value(try await onFetch())
    }
  }

  /// Creates a cache whose value has the name "key" in its cacher, and whose fetch receives its context.
  func makeInformed<Value>(
    storedIn cacher: any Cacher<Value>,
    policy: CachePolicy = CachePolicy(),
    clock: any Clock<Duration> = ManualClock(),
    onFetch:
      @escaping @concurrent @Sendable (FetchContext<Value>) async throws -> FetchResult<Value>
  ) -> CacheUnderTest<Value> {
    switch self {
    case .multiplexer:
      .multiplexer(
        Multiplexer(id: "key", policy: policy, cacher: cacher, clock: clock, onFetch: onFetch)
      )
    case .map:
      .map(
        MultiplexerMap(policy: policy, cacher: cacher, clock: clock) {
          (_: String, context: FetchContext<Value>) in try await onFetch(context)
        }
      )
    }
  }
}

extension CacheUnderTest {
  func flush() async throws {
    switch self {
    case .multiplexer(let cache): try await cache.flush()
    case .map(let cache): try await cache.flush()
    }
  }

  func clearAll() async throws {
    switch self {
    case .multiplexer(let cache): try await cache.clear()
    case .map(let cache): try await cache.clear()
    }
  }

  func refreshAll() {
    switch self {
    case .multiplexer(let cache): cache.refresh()
    case .map(let cache): cache.refreshAll()
    }
  }

  func occurrences() -> AsyncStream<CacheEvent> {
    switch self {
    case .multiplexer(let cache): cache.events()
    case .map(let cache): cache.events()
    }
  }
}
