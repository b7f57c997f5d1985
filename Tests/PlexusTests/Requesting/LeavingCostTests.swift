import Plexus
import PlexusTesting
import Testing

@Suite(.timeLimit(.minutes(5))) struct `Leaving a fetch` {
  /// The shortest time in which so many callers leave, of several rounds, so that what else the machine
  /// does at the time does not count.
  private func shortestTime(
    for count: Int,
    of callers: [Task<Int, any Error>]
  ) async -> Duration {
    var shortest = Duration.seconds(1_000_000)
    for round in 0..<10 {
      let step = callers.count / (10 * count)
      let leavers = (0..<count).map { callers[(round * count + $0) * step] }
      let start = ContinuousClock.now
      for leaver in leavers { leaver.cancel() }
      shortest = min(shortest, start.duration(to: .now))
      for leaver in leavers {
        await #expect(throws: CancellationError.self) { try await leaver.value }
      }
    }
    return shortest
  }

  /// What takes as long as there are callers would take a hundred times longer.
  @Test(arguments: CacheKind.allCases)
  func `R5: costs no more among 100,000 callers than among 1,000`(kind: CacheKind) async throws {
    var times: [Duration] = []
    for count in [1_000, 100_000] {
      let gate = Gate()
      let origin = ScriptedFetcher<Int>([.success(1)], gate: gate)
      let cache = kind.make { try await origin.fetch() }
      let callers = (0..<count).map { _ in begin { try await cache.request() } }
      await gate.arrivals(1)
      times.append(await shortestTime(for: 50, of: callers))
      gate.open()
      var sum = 0
      for caller in callers { sum += (try? await caller.value) ?? 0 }
      #expect(sum == count - 500, "The others have got the value")
      #expect(origin.count == 1)
    }
    #expect(times[1] < times[0] * 20)
  }
}
