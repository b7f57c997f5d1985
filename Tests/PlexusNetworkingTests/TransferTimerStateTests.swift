import PlexusTesting
import TestSupport
import Testing

@testable import PlexusNetworking

@Suite(.fewAtOnce) struct `The timer of transfers` {
  private let clock = ManualClock()
  private let checks = Guarded<[String]>([])

  /// Adds a transfer that is checked once.
  private func add(_ name: String, at seconds: Int, to timer: TransferTimer) -> Int {
    timer.add(deadline: .seconds(seconds)) { [checks] _ in
      checks.withLock { $0.append(name) }
      return nil
    }
  }

  @Test(.guarantee(.transfersShareOneTimer))
  func `the timer of transfers sleeps once for all, until the first deadline`()
    async
  {
    let timer = TransferTimer(clock: clock)
    var ids = [add("c", at: 3, to: timer), add("a", at: 1, to: timer)]
    for _ in 0..<100 { ids.append(add("b", at: 2, to: timer)) }
    await clock.sleepers(1)
    #expect(clock.sleeperCount == 1)
    for (count, name) in [(1, "a"), (100, "b"), (1, "c")] {
      clock.advance(by: .seconds(1))
      while checks.withLock({ $0.count { $0 == name } }) < count { await Task.detached {}.value }
      if name != "c" { await clock.sleepers(1) }
    }
    #expect(checks.withLock { $0 } == ["a"] + Array(repeating: "b", count: 100) + ["c"])
    for id in ids { timer.remove(id) }
    #expect(clock.sleeperCount == 0)
  }

  @Test(.guarantee(.transfersShareOneTimer))
  func `the timer of transfers ends with the last transfer, and begins again with the next`() async
  {
    let timer = TransferTimer(clock: clock)
    let ids = [add("a", at: 1, to: timer), add("b", at: 2, to: timer)]
    await clock.sleepers(1)
    timer.remove(ids[0])
    #expect(clock.sleeperCount == 1)
    timer.remove(ids[1])
    #expect(clock.sleeperCount == 0)
    let next = add("c", at: 3, to: timer)
    await clock.sleepers(1)
    clock.advance(by: .seconds(3))
    while checks.withLock({ $0.isEmpty }) { await Task.detached {}.value }
    #expect(checks.withLock { $0 } == ["c"])
    timer.remove(next)
  }

  @Test(.guarantee(.transfersShareOneTimer))
  func `the timer of transfers checks again when a check says so`() async {
    let timer = TransferTimer(clock: clock)
    let id = timer.add(deadline: .seconds(1)) { [checks] now in
      checks.withLock { $0.append("\(now.components.seconds)") }
      return now < .seconds(3) ? now + .seconds(1) : nil
    }
    for count in 1...3 {
      await clock.sleepers(1)
      clock.advance(by: .seconds(1))
      while checks.withLock({ $0.count }) < count { await Task.detached {}.value }
    }
    #expect(checks.withLock { $0 } == ["1", "2", "3"])
    timer.remove(id)
    #expect(clock.sleeperCount == 0)
  }
}
