import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `Wake-ups before a deadline` {
  /// A clock whose sleeps return at once.
  private struct RestlessClock: Clock {
    struct Instant: InstantProtocol {
      var offset: Duration

      func advanced(by duration: Duration) -> Self { Self(offset: offset + duration) }
      func duration(to other: Self) -> Duration { other.offset - offset }
      static func < (first: Self, second: Self) -> Bool { first.offset < second.offset }
    }

    /// The time by which a sleep moves the clock.
    var step = Duration.zero
    let time = Guarded(Duration.zero)
    let sleeps = Guarded(0)

    var now: Instant { Instant(offset: time.withLock { $0 }) }
    var minimumResolution: Duration { .nanoseconds(1) }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
      sleeps.withLock { $0 += 1 }
      time.withLock { $0 += step }
    }
  }

  @Test func `early wake-ups of a clock that moves are never too many`() {
    var wakes = EarlyWakes()
    for now in 0..<10 * EarlyWakes.limit {
      let isTooOften = wakes.isTooOften(at: .nanoseconds(now))
      #expect(!isTooOften)
    }
  }

  @Test func `early wake-ups of a clock that stands still are counted since it moved last`() {
    var wakes = EarlyWakes()
    for now in 1...3 {
      for _ in 1..<EarlyWakes.limit {
        let isTooOften = wakes.isTooOften(at: .seconds(now))
        #expect(!isTooOften)
      }
    }
    let isTooOften = wakes.isTooOften(at: .seconds(3))
    #expect(isTooOften)
  }

  @Test func `early wake-ups lead to a deadline that is reached in small steps`() async {
    let clock = RestlessClock(step: .milliseconds(1))
    let stops = Guarded(0)
    let hasSlept = await clock.erased().hasSlept(until: .seconds(1)) {
      stops.withLock { $0 += 1 }
    }
    #expect(hasSlept)
    #expect(clock.sleeps.withLock { $0 } == 1_000)
    #expect(stops.withLock { $0 } == 0)
  }

  @Test func `early wake-ups end when the clock stands still, so that what is pending happens`()
    async
  {
    let clock = RestlessClock()
    let stops = Guarded(0)
    let hasSlept = await clock.erased().hasSlept(until: .nanoseconds(1)) {
      stops.withLock { $0 += 1 }
    }
    #expect(!hasSlept)
    #expect(clock.sleeps.withLock { $0 } == EarlyWakes.limit)
    #expect(stops.withLock { $0 } == 1)
  }

  @Test func `early wake-ups end when the task is cancelled, although the clock ignores it`() async
  {
    let clock = RestlessClock()
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await clock.erased().hasSlept(until: .seconds(1))
    }
    #expect(await task.value == false)
    #expect(clock.sleeps.withLock { $0 } == 1)
  }
}
