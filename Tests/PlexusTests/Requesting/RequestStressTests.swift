import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Requests from many threads` {
  /// The source of the fetched values: a number that only grows.
  private final class Origin: Sendable {
    private let version = Tally()

    var current: Int { version.value }

    func change() -> Int { version.increment() }
  }

  /// All calls of callers, in an order that depends on the seed.
  private struct Visitor {
    let cache: CacheUnderTest<Int>
    let origin: Origin
    let clock: ManualClock
    var random: SeededRandom

    mutating func visit() async {
      switch Int.random(in: 0..<12, using: &random) {
      case 0...2:
        _ = try? await cache.request()
      case 3...5:
        let caller = Task.detached { [cache] in try await cache.request() }
        if Bool.random(using: &random) { await Task.detached {}.value }
        caller.cancel()
        _ = await caller.result
      case 6...7:
        let newest = origin.change()
        if let value = try? await cache.refresh().request() {
          #expect(value >= newest, "R9: older than the refresh")
        }
      case 8:
        let newest = origin.change()
        try? await cache.clear()
        if let value = try? await cache.request() {
          #expect(value >= newest, "R7: older than the clear")
        }
      case 9...10:
        clock.advance(by: .seconds(40))
      default:
        cache.clearMemory()
      }
    }
  }

  @Test(arguments: CacheKind.allCases, [CachePolicy.UnobservedFetch.finishAndStore, .cancel])
  func `requests from many threads lose no caller and never see what is too old`(
    kind: CacheKind,
    whenUnobserved: CachePolicy.UnobservedFetch
  ) async throws {
    for seed in UInt64(0)..<3 {
      let clock = ManualClock()
      let origin = Origin()
      var policy = CachePolicy()
      policy.timeToLive = .seconds(60)
      policy.staleWhileRevalidate = .seconds(60)
      policy.whenUnobserved = whenUnobserved
      policy.failureTimeToLive = .seconds(seed == 1 ? 20 : 0)
      let cache = kind.make(policy: policy, clock: clock) {
        let value = origin.current
        await Task.detached {}.value
        if value % 7 == 3 { throw Broken() }
        return value
      }
      await withTaskGroup { group in
        for number in UInt64(0)..<8 {
          group.addTask {
            var visitor = Visitor(
              cache: cache,
              origin: origin,
              clock: clock,
              random: SeededRandom(seed: seed << 8 | number)
            )
            for _ in 0..<150 { await visitor.visit() }
          }
        }
      }
      let stillThere = begin { try? await cache.request() }
      _ = await stillThere.result
    }
  }

  @Test(arguments: [CachePolicy.UnobservedFetch.finishAndStore, .cancel])
  func `requests that all leave at once and come back lose no caller`(
    whenUnobserved: CachePolicy.UnobservedFetch
  ) async throws {
    var policy = CachePolicy()
    policy.whenUnobserved = whenUnobserved
    policy.timeToLive = .zero
    let cache = Multiplexer(policy: policy) {
      await Task.detached {}.value
      return 1
    }
    for _ in 0..<100 {
      let callers = (0..<20).map { _ in Task.detached { try await cache.request() } }
      let other = Task.detached { try await cache.request() }
      for caller in callers { caller.cancel() }
      for caller in callers { _ = await caller.result }
      #expect(try await other.value == 1)
    }
  }

  @Test(.guarantee(.requestsCountOnce)) func `requests from many threads are counted once each`()
    async throws
  {
    let clock = ManualClock()
    var policy = CachePolicy()
    policy.timeToLive = .seconds(60)
    policy.staleWhileRevalidate = .seconds(60)
    let map = MultiplexerMap<Int, Int>(policy: policy, clock: clock) { key in
      await Task.detached {}.value
      if key == 3 { throw Broken() }
      return key
    }
    await withTaskGroup { group in
      for number in 0..<8 {
        group.addTask {
          var random = SeededRandom(seed: UInt64(number))
          for _ in 0..<500 {
            let key = Int.random(in: 0..<5, using: &random)
            switch Int.random(in: 0..<20, using: &random) {
            case 0: clock.advance(by: .seconds(30))
            case 1: map.refresh(key)
            case 2: try? await map.clear(key)
            default: break
            }
            _ = try? await map.request(key)
          }
        }
      }
    }
    let counts = map.statistics
    #expect(counts.hits + counts.staleHits + counts.misses + counts.joins == 4_000)
    #expect(counts.failures <= counts.fetches)
  }
}
