import Plexus
import PlexusTesting
import TestSupport
import Testing

/// An origin whose fetches are counted, and can be suspended and fail.
///
/// The value of a fetch is its number.
final class LiveOrigin: Sendable {
  let clock = ManualClock()
  let gate = Gate()
  /// The numbers of the fetches.
  let fetches = Log<Int>()
  /// The keys of the fetches of a map.
  let keys = Log<Int>()
  private let failures = Guarded<Set<Int>>([])

  init(isHeldUp: Bool = false) {
    if !isHeldUp { gate.open() }
  }

  func fail(_ numbers: Int...) {
    failures.withLock { $0.formUnion(numbers) }
  }

  func fetch() async throws -> Int {
    let number = fetches.count + 1
    fetches.append(number)
    try await gate.wait()
    if failures.withLock({ $0.contains(number) }) { throw Broken() }
    return number
  }

  /// Waits until the next sleep ends at a time, since a timer can be about to be replaced by an earlier one.
  func sleeps(until seconds: Int) async {
    while clock.nextDeadline?.offset != .seconds(seconds) { await Task.detached {}.value }
  }

  func multiplexer(
    _ policy: CachePolicy = CachePolicy(timeToLive: .seconds(60))
  ) -> Multiplexer<Int> {
    Multiplexer(policy: policy, clock: clock) { try await self.fetch() }
  }

  /// A map whose keys all have the tag "all".
  func map(
    _ policy: CachePolicy = CachePolicy(timeToLive: .seconds(60))
  ) -> MultiplexerMap<Int, Int> {
    MultiplexerMap(
      policy: policy,
      tagging: { _ in ["all"] },
      clock: clock,
      onKeyFetch: { key in
        self.keys.append(key)
        return try await self.fetch()
      }
    )
  }
}

extension AsyncSequence where Self: Sendable, Element == LoadState<Int>, Failure == Never {
  /// Reads until a value is loaded.
  func loaded(_ value: Int) async {
    for await state in self {
      if case .loaded(value) = state { return }
    }
    Issue.record("The stream has ended")
  }

  /// Reads until a fetch has failed.
  func failed() async {
    for await state in self {
      if case .failed = state { return }
    }
    Issue.record("The stream has ended")
  }
}

/// A multiplexer, or an entry of a map, with live subscriptions.
enum LiveCache: Sendable {
  case multiplexer(Multiplexer<Int>)
  case entry(MultiplexerMap<Int, Int>.Entry, MultiplexerMap<Int, Int>)

  init(_ kind: CacheKind, _ origin: LiveOrigin, _ policy: CachePolicy? = nil) {
    let policy = policy ?? CachePolicy(timeToLive: .seconds(60))
    switch kind {
    case .multiplexer:
      self = .multiplexer(origin.multiplexer(policy))
    case .map:
      let map = origin.map(policy)
      self = .entry(map[7], map)
    }
  }

  func subscription(
    refetching: Refetching,
    bufferingPolicy: BufferingPolicy<LoadState<Int>> = .bufferingNewest(1)
  ) -> Subscription<LoadState<Int>> {
    switch self {
    case .multiplexer(let cache):
      cache.subscription(refetching: refetching, bufferingPolicy: bufferingPolicy)
    case .entry(let entry, _):
      entry.subscription(refetching: refetching, bufferingPolicy: bufferingPolicy)
    }
  }

  func request() async throws -> Int {
    switch self {
    case .multiplexer(let cache): try await cache.request()
    case .entry(let entry, _): try await entry.request()
    }
  }

  func refresh() {
    switch self {
    case .multiplexer(let cache): cache.refresh()
    case .entry(let entry, _): entry.refresh()
    }
  }

  func clear() async throws {
    switch self {
    case .multiplexer(let cache): try await cache.clear()
    case .entry(let entry, _): try await entry.clear()
    }
  }

  var current: LoadState<Int> {
    switch self {
    case .multiplexer(let cache): cache.current
    case .entry(let entry, _): entry.current
    }
  }

  var statistics: CacheStatistics {
    switch self {
    case .multiplexer(let cache): cache.statistics
    case .entry(_, let map): map.statistics
    }
  }

  func register(in repository: MuxRepository) {
    switch self {
    case .multiplexer(let cache): cache.register(in: repository)
    case .entry(_, let map): map.register(in: repository)
    }
  }
}
