import Plexus
import PlexusTesting
import TestSupport

/// An origin whose fetches wait at a gate for each key, and are recorded in the order in which they begin.
///
/// The value of a key is a hundred times the number of its fetches so far, plus the key.
final class LimitedOrigin: Sendable {
  private struct State {
    var gates: [Int: Gate] = [:]
    var begun: [Int] = []
  }

  private let state = Guarded(State())
  private let total = Gate()

  init() { total.open() }

  /// The keys of the fetches that have begun, in order.
  var begun: [Int] { state.withLock { $0.begun } }

  /// The gate of a key.
  func gate(_ key: Int) -> Gate {
    state.withLock { state in
      if let gate = state.gates[key] { return gate }
      let gate = Gate()
      state.gates[key] = gate
      return gate
    }
  }

  /// Waits until a number of fetches have begun.
  func begins(_ count: Int) async { await total.arrivals(count) }

  func fetch(_ key: Int, isStubborn: Bool = false) async throws -> Int {
    let (gate, count) = (
      gate(key),
      state.withLock { state in
        state.begun.append(key)
        return state.begun.count { $0 == key }
      }
    )
    try? await total.wait()
    if isStubborn { await waitUnmoved(gate) } else { try await gate.wait() }
    return 100 * count + key
  }

  /// Creates a map that fetches from this origin, with a limit.
  func makeMap(
    _ maximum: Int?,
    waiting: Int? = nil,
    capacity: CacheCapacity<Int> = .unbounded,
    cacher: (any Cacher<Int>)? = nil,
    clock: ManualClock = ManualClock(),
    isStubborn: Bool = false,
    _ change: (inout CachePolicy) -> Void = { _ in }
  ) -> MultiplexerMap<Int, Int> {
    MultiplexerMap(
      policy: Self.policy(maximum, waiting: waiting, change),
      capacity: capacity,
      cacher: cacher,
      clock: clock
    ) {
      try await self.fetch($0, isStubborn: isStubborn)
    }
  }

  static func policy(
    _ maximum: Int?,
    waiting: Int? = nil,
    _ change: (inout CachePolicy) -> Void = { _ in }
  ) -> CachePolicy {
    var policy = CachePolicy()
    policy.maximumConcurrentFetches = maximum
    policy.maximumWaitingFetches = waiting
    change(&policy)
    return policy
  }
}
