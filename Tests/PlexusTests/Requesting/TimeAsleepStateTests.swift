import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `The time that the machine has slept` {
  private let second: Nanoseconds = 1_000_000_000
  private let tick: Nanoseconds = 4_000_000

  @Test(.guarantee(.timeToLiveContinuesDuringSleep))
  func `the time asleep is added to the coarse clock, which stood still meanwhile`() {
    let time = TimeSource.Asleep()
    #expect(time.value(at: 0) { 0 } == 0)
    #expect(time.value(at: tick) { tick + 100 * second } == 100 * second)
    #expect(time.value(at: 2 * tick) { 2 * tick + 250 * second } == 250 * second)
    #expect(time.value(at: 3 * tick) { 3 * tick + 250 * second } == 250 * second)
  }

  @Test(.guarantee(.timeToLiveContinuesDuringSleep))
  func `the lag of the coarse clock does not count as time asleep`() {
    let time = TimeSource.Asleep()
    for number in 0..<100 {
      let now = tick * Nanoseconds(number)
      #expect(time.value(at: now) { now + Nanoseconds(number) * 100_000 } == 0)
    }
    #expect(time.value(at: 100 * tick) { 110 * tick + second } == 10 * tick + second)
    #expect(time.value(at: 101 * tick) { 101 * tick + second } == 10 * tick + second, "Never less")
  }

  @Test func `the time asleep is looked at once a tick`() {
    let time = TimeSource.Asleep()
    var looks = 0
    for now in [0, 0, 0, tick, tick, 2 * tick, 2 * tick] {
      _ = time.value(at: now) {
        looks += 1
        return now
      }
    }
    #expect(looks == 3)
  }

  @Test(.guarantee(.timeToLiveContinuesDuringSleep), arguments: [1, 199])
  func `a short time to live is measured exactly`(milliseconds: Int) async throws {
    let policy = CachePolicy(timeToLive: .milliseconds(milliseconds))
    let cache = KeyedCache<Int, Int>(
      id: "",
      type: Int.self,
      namesKeys: true,
      policy: policy,
      clock: ContinuousClock(),
      fetch: KeyedCache.fetch { (key: Int) in key }
    )
    #expect(cache.time.clock != nil)
    // A busy machine can suspend the thread between two readings, but not every time.
    let differences = (0..<1_000).lazy.map { _ in
      let reading = cache.time.now()
      while cache.time.now() == reading {}
      return cache.time.now() - reading
    }
    #expect(differences.contains { $0 < 1_000_000 })
  }
}
