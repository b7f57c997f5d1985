import Foundation
import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Timing stress` {
  @Test(.guarantee(.sendingStartsNoTask), arguments: TimedKind.allCases)
  func `a million touches from several threads sleep once and fire once`(kind: TimedKind) async {
    let clock = CountingClock()
    let subject = kind.make(clock: clock)
    let firings = subject.recorder()
    await onThreads(4) { _ in
      for _ in 0..<250_000 { subject.touch() }
    }
    await clock.manual.passSecond()
    #expect(await firings.first(1).count == 1)
    #expect(clock.sleeps.withLock { $0 } == 1)
    #expect(clock.manual.sleeperCount == 0)
    await subject.flush()
    #expect(firings.elements.count == 1)
  }

  @Test func `values that many threads set fire in one order, ending with the last one`() async {
    let clock = ManualClock()
    let variable = DebouncerVar(-1, delay: .zero, clock: clock)
    let readers = (0..<2).map { _ in variable.subscription() }
    await onThreads(4) { thread in
      for number in 0..<5_000 { variable.value = thread * 10_000 + number }
    }
    let last = variable.value
    var lists: [[Int]] = []
    for reader in readers { lists.append(await reader.first(20_000)) }
    #expect(lists[0] == lists[1])
    #expect(lists[0].last == last)
    for thread in 0..<4 {
      let own = lists[0].filter { $0 / 10_000 == thread }
      #expect(own == (0..<5_000).map { thread * 10_000 + $0 })
    }
  }

  @Test(arguments: TimedKind.allCases)
  func `touch, time, cancel and flush from several threads leave no caller waiting`(
    kind: TimedKind
  ) async {
    let clock = ManualClock()
    let running = Guarded(0)
    let most = Guarded(0)
    let subject = kind.make(clock: clock) {
      let count = running.countUp()
      most.withLock { $0 = max($0, count) }
      running.countDown()
    }
    let firings = subject.recorder()
    async let flushes: Void = withTaskGroup { group in
      for _ in 0..<200 { group.addTask { await subject.flush() } }
    }
    await onThreads(4) { thread in
      var random = SeededRandom(seed: UInt64(thread))
      for _ in 0..<5_000 {
        switch Int.random(in: 0..<10, using: &random) {
        case 0: clock.advance(by: .milliseconds(700))
        case 1: subject.cancel()
        default: subject.touch()
        }
      }
    }
    await flushes
    subject.touch()
    let count = firings.elements.count
    await subject.flush()
    _ = await firings.first(count + 1)
    #expect(most.withLock { $0 } <= 1)
    #expect(running.withLock { $0 } == 0)
    #expect(clock.sleeperCount == 0)
  }

  private func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) async {
    let done = Log<Int>()
    for number in 0..<count {
      Thread.detachNewThread {
        body(number)
        done.append(number)
      }
    }
    await done.first(count)
  }
}
