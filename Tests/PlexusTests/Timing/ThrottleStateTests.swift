import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `Throttle state` {
  func state(
    interval: Duration = .seconds(1),
    leading: Bool = true,
    trailing: Bool = true
  ) -> Throttler.ScheduleState {
    Throttler.ScheduleState(interval: interval, leading: leading, trailing: trailing)
  }

  @Test
  func `the first touch of a throttler fires, the others together at the end of the interval`() {
    var state = state()
    #expect(state.touch(at: .zero) == true)
    #expect(state.deadline == nil)
    for time in [1, 500, 999] { #expect(state.touch(at: .milliseconds(time)) == false) }
    #expect(state.deadline == .seconds(1))
    #expect(state.elapse(at: .milliseconds(999)) == false)
    #expect(state.elapse(at: .seconds(1)) == true)
    #expect(state.elapse(at: .seconds(1)) == false)
    #expect(state.touch(at: .milliseconds(1_500)) == false, "a firing begins an interval")
    #expect(state.deadline == .seconds(2))
  }

  @Test(arguments: [(999, false), (1000, true)])
  func `a touch of a throttler fires at once from the end of the interval on`(
    milliseconds: Int,
    fires: Bool
  ) {
    var state = state(trailing: false)
    _ = state.touch(at: .zero)
    #expect(state.touch(at: .milliseconds(milliseconds)) == fires)
    #expect(state.deadline == nil)
  }

  @Test func `the interval of a throttler that is not leading begins with the first touch`() {
    var state = state(leading: false)
    #expect(state.touch(at: .zero) == false)
    #expect(state.touch(at: .milliseconds(500)) == false)
    #expect(state.deadline == .seconds(1))
    #expect(state.elapse(at: .seconds(1)) == true)
    #expect(state.touch(at: .seconds(5)) == false)
    #expect(state.deadline == .seconds(6))
  }

  @Test func `a late firing of a throttler begins an interval of full length`() {
    var state = state()
    _ = state.touch(at: .zero)
    _ = state.touch(at: .milliseconds(500))
    #expect(state.elapse(at: .milliseconds(1900)) == true)
    #expect(state.touch(at: .milliseconds(2100)) == false)
    #expect(state.deadline == .milliseconds(2900))
  }

  @Test(
    arguments: [Duration.zero, .seconds(-1), .seconds(Int64.min)],
    [(true, true), (false, true), (true, false)]
  )
  func `an interval of zero or less fires at every touch`(
    interval: Duration,
    edges: (leading: Bool, trailing: Bool)
  ) {
    var state = state(interval: interval, leading: edges.leading, trailing: edges.trailing)
    for _ in 0..<3 {
      #expect(state.touch(at: .seconds(1)) == true)
      #expect(state.deadline == nil)
    }
  }

  @Test func `the fast path of a throttler handles touches without an effect`() {
    var state = state()
    #expect(state.postpone(at: .zero) == false)
    _ = state.touch(at: .zero)
    #expect(state.postpone(at: .milliseconds(1)) == false, "nothing is pending yet")
    _ = state.touch(at: .milliseconds(1))
    #expect(state.postpone(at: .milliseconds(2)) == true)
    #expect(state.deadline == .seconds(1))
    #expect(state.postpone(at: .seconds(1)) == false, "it is due")
    var leading = self.state(trailing: false)
    _ = leading.touch(at: .zero)
    #expect(leading.postpone(at: .milliseconds(1)) == true)
    #expect(leading.deadline == nil)
  }

  @Test func `cancelling a throttler before the first firing discards the touch`() {
    var state = state(leading: false)
    _ = state.touch(at: .zero)
    state.cancel()
    _ = state.touch(at: .milliseconds(900))
    #expect(state.deadline == .milliseconds(1900))
  }

  @Test func `an explicit expiry of a throttler fires once and begins an interval`() {
    var state = state()
    #expect(state.expire(at: .zero) == false)
    _ = state.touch(at: .zero)
    #expect(state.expire(at: .milliseconds(1)) == false)
    _ = state.touch(at: .milliseconds(500))
    #expect(state.expire(at: .milliseconds(600)) == true)
    #expect(state.expire(at: .milliseconds(600)) == false)
    #expect(state.touch(at: .milliseconds(1500)) == false)
    #expect(state.deadline == .milliseconds(1600))
  }

  @Test func `the interval of a throttler begins again when the clock is set back`() {
    var state = state()
    _ = state.touch(at: .seconds(100))
    _ = state.touch(at: .milliseconds(100_500))
    state.restart(at: .seconds(50))
    #expect(state.deadline == .seconds(51))
    #expect(state.elapse(at: .seconds(51)) == true)
  }
}
