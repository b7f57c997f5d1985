import TestSupport
import Testing

@testable import Plexus

/// The budget after which a loop that never suspends yields its actor to other tasks.
@Suite(.fewAtOnce) struct `A cooperative budget` {
  /// Processes elements of a given duration, and returns the number after which the loop yields.
  private func elements(
    until budget: inout CooperativeBudget,
    each duration: Nanoseconds,
    time: inout Nanoseconds
  ) -> Int {
    let tick: Nanoseconds = 4_000_000
    for count in 0... {
      if budget.isDue, budget.isSpent(at: time / tick * tick) { return count }
      budget.spend(1, now: time / tick * tick)
      time += duration
    }
    return 0
  }

  @Test(.guarantee(.loopsYieldTheirActor)) func `a cooperative budget lasts until the clock ticks`()
  {
    var (budget, time) = (CooperativeBudget(), Nanoseconds(0))
    for _ in 0..<10 {
      let begin = time
      _ = elements(until: &budget, each: 1_000, time: &time)
      #expect(time - begin <= 4_000_000 + 64 * 1_000)
    }
  }

  @Test func `a cooperative budget reads the clock after each element if elements are slow`() {
    var (budget, time) = (CooperativeBudget(), Nanoseconds(0))
    let first = elements(until: &budget, each: 1_000_000, time: &time)
    #expect(first == 16)
    for _ in 0..<10 {
      let count = elements(until: &budget, each: 1_000_000, time: &time)
      #expect(count <= 5)
    }
  }

  @Test func `a cooperative budget does not read the clock for a single element`() {
    var (budget, readings) = (CooperativeBudget(), 0)
    func now() -> Nanoseconds {
      readings += 1
      return 0
    }
    for _ in 0..<100 {
      #expect(!budget.isDue)
      budget.spend(1, now: now())
      budget.restart()
    }
    #expect(readings == 0)
  }

  @Test func `a cooperative budget reads the clock every 64 elements if they are fast`() {
    var (budget, readings) = (CooperativeBudget(), 0)
    func now() -> Nanoseconds {
      readings += 1
      return 0
    }
    for _ in 0..<6_400 {
      if budget.isDue {
        let isSpent = budget.isSpent(at: now())
        #expect(!isSpent)
      }
      budget.spend(1, now: now())
    }
    #expect(readings <= 120)
  }
}

/// Loops over subscriptions whose hub has a test clock.
@Suite(.fewAtOnce) struct `A loop over a subscription` {
  @Test(
    .guarantee(.loopsYieldTheirActor),
    arguments: [Policy.unbounded, .oldest(100), .newest(64)]
  )
  func `a loop over a subscription yields its actor to other tasks when the clock has ticked`(
    policy: Policy
  ) async {
    let time = Guarded(Nanoseconds(0))
    let hub = BroadcastHub<Int>(time: {
      time.withLock { time in
        time += 4_000_000
        return time
      }
    })
    let (reader, log) = (SteppedReader(), Log<Int>())
    let subscription = hub.subscription(bufferingPolicy: policy())
    for number in 0..<64 { hub.send(number) }
    hub.finish()
    let task = Task { await reader.read(subscription, into: log) }
    await reader.executor.step(atMost: 1)
    #expect(log.entries == Array(0..<16))
    let stepper = Task {
      while !Task.isCancelled { await reader.executor.step(atMost: 1) }
    }
    await task.value
    stepper.cancel()
    await stepper.value
    #expect(log.entries == Array(0..<64))
  }

  @Test(arguments: [Policy.unbounded, .oldest(100), .newest(64)])
  func `a loop over a subscription keeps its actor until the clock ticks`(policy: Policy) async {
    let hub = BroadcastHub<Int>(time: { 0 })
    let (reader, log) = (SteppedReader(), Log<Int>())
    let subscription = hub.subscription(bufferingPolicy: policy())
    for number in 0..<64 { hub.send(number) }
    hub.finish()
    let task = Task { await reader.read(subscription, into: log) }
    await reader.executor.step(atMost: 1)
    #expect(log.entries == Array(0..<64))
    await task.value
  }
}
