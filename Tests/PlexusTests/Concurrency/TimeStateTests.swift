import PlexusTesting
import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `A number of nanoseconds` {
  private static let pairs: [(Duration, Nanoseconds)] = [
    (.zero, 0), (.nanoseconds(1), 1), (.seconds(-3), -3_000_000_000),
    (.seconds(9_223_372_036) + .nanoseconds(854_775_807), .max),
    (.seconds(9_223_372_036) + .nanoseconds(854_775_808), .max),
    (.seconds(Int64.max), .max), (.seconds(Int64.min), .min), (.milliseconds(1_500), 1_500_000_000),
  ]

  @Test(arguments: pairs)
  func `a number of nanoseconds represents a duration, or the nearest one in its range`(
    duration: Duration,
    expected: Nanoseconds
  ) {
    #expect(Nanoseconds(saturating: duration) == expected)
  }

  @Test func `a number of nanoseconds adds up to the longest time at most`() {
    #expect(Nanoseconds(5).addingSaturating(7) == 12)
    #expect(Nanoseconds.max.addingSaturating(1) == .max)
    #expect(Nanoseconds.min.addingSaturating(-1) == .min)
    #expect(Nanoseconds.min.addingSaturating(.max) == -1)
  }

  @Test func `a number of nanoseconds is scaled to the longest time at most`() {
    #expect(Nanoseconds(1_000).scaled(by: 1.1) == 1_100)
    #expect(Nanoseconds.max.scaled(by: 1) == .max)
    #expect(Nanoseconds.max.scaled(by: 2) == .max)
    #expect(Nanoseconds.min.scaled(by: 2) == .min)
    #expect(Nanoseconds(1_000).scaled(by: 0) == 0)
  }
}

@Suite(.fewAtOnce) struct `A time source` {
  @Test func `a time source measures durations that are shorter than a tick of the coarse clock`() {
    let time = TimeSource(ContinuousClock())
    var hasMeasured = false
    for _ in 0..<100_000 where !hasMeasured {
      let tick = time.now()
      let start = time.exactNow()
      let end = time.exactNow()
      hasMeasured = end > start && time.now() == tick
    }
    #expect(hasMeasured)
  }

  @Test func `a time source reads the clock that it was given`() {
    let clock = ManualClock()
    clock.advance(by: .seconds(5))
    let source = TimeSource(clock)
    #expect(source.now() == 0)
    clock.advance(by: .nanoseconds(7))
    #expect(source.now() == 7)
  }

  @Test func `a time source of the continuous clock never goes back`() {
    let source = TimeSource(ContinuousClock())
    var last = source.now()
    for _ in 0..<100_000 {
      let now = source.now()
      #expect(now >= last)
      last = now
    }
    #expect(source.clock == nil)
  }

  @Test func `a time source of any other clock reads that clock`() {
    #expect(TimeSource(SuspendingClock()).clock != nil)
  }
}
