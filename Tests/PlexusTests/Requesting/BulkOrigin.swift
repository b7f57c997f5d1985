import Plexus
import PlexusTesting
import TestSupport

/// An origin that fetches several keys at once, and records them.
///
/// The value of a key is a hundred times the number of the call, plus the key.
final class BulkOrigin: Sendable {
  let gate = Gate()
  private let keysOfCalls = Guarded<[[Int]]>([])

  /// - Parameter isOpen: Whether fetches end immediately.
  init(isOpen: Bool = false) {
    if isOpen { gate.open() }
  }

  /// The keys of each call so far, in order.
  var calls: [[Int]] { keysOfCalls.withLock { $0 } }

  func fetch(_ keys: [Int]) async throws -> [Int: Int] {
    let number = keysOfCalls.withLock { calls in
      calls.append(keys.sorted())
      return calls.count
    }
    try await gate.wait()
    return Dictionary(uniqueKeysWithValues: keys.map { ($0, 100 * number + $0) })
  }

  /// Creates a map that fetches several keys at once from this origin.
  func makeMap(
    policy: CachePolicy = CachePolicy(),
    capacity: CacheCapacity<Int> = .unbounded,
    clock: ManualClock = ManualClock()
  ) -> MultiplexerMap<Int, Int> {
    MultiplexerMap<Int, Int>.bulk(id: "map", policy: policy, capacity: capacity, clock: clock) {
      try await self.fetch($0)
    }
  }
}

/// The values of results, and the types of the errors in their places.
func outcomes(_ results: [Int: Result<Int, any Error>]) -> [Int: String] {
  results.mapValues { result in
    switch result {
    case .success(let value): "\(value)"
    case .failure(let error): "\(type(of: error))"
    }
  }
}
