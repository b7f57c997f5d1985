import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `Debounce state` {
  let second = Duration.seconds(1)

  func state(
    delay: Duration = .seconds(1),
    maximum: Duration? = nil,
    leading: Bool = false
  ) -> Debouncer.ScheduleState {
    Debouncer.ScheduleState(delay: delay, maximumDelay: maximum, leading: leading)
  }

  @Test func `a debouncer is due after its delay`() {
    var state = state()
    #expect(state.deadline == nil)
    #expect(state.touch(at: .zero) == false)
    #expect(state.deadline == second)
  }

  @Test(arguments: [(999, false), (1000, true), (1001, true)])
  func `a debouncer fires from the deadline on and not before`(milliseconds: Int, fires: Bool) {
    var state = state()
    _ = state.touch(at: .zero)
    #expect(state.isDue(at: .milliseconds(milliseconds)) == fires)
    #expect(state.elapse(at: .milliseconds(milliseconds)) == fires)
    #expect((state.deadline == nil) == fires)
  }

  @Test func `every touch of a debouncer postpones it, by either way`() {
    var state = state()
    #expect(state.postpone(at: .zero) == false, "nothing is pending yet")
    _ = state.touch(at: .zero)
    #expect(state.postpone(at: .milliseconds(500)) == true)
    #expect(state.deadline == .milliseconds(1500))
    #expect(state.touch(at: .milliseconds(1400)) == false)
    #expect(state.deadline == .milliseconds(2400))
    #expect(state.postpone(at: .milliseconds(2400)) == false, "it is due")
    #expect(state.deadline == .milliseconds(2400))
  }

  @Test func `the maximum delay counts from the first touch`() {
    var state = state(maximum: .milliseconds(2500))
    for time in [0, 900, 1800] { _ = state.touch(at: .milliseconds(time)) }
    #expect(state.deadline == .milliseconds(2500))
    #expect(state.postpone(at: .milliseconds(2400)) == true)
    #expect(state.deadline == .milliseconds(2500))
    #expect(state.elapse(at: .milliseconds(2500)) == true)
    _ = state.touch(at: .milliseconds(2600))
    #expect(state.deadline == .milliseconds(3600))
  }

  @Test func `a maximum delay below the delay limits it`() {
    var state = state(delay: .seconds(5), maximum: .seconds(2))
    _ = state.touch(at: .zero)
    #expect(state.deadline == .seconds(2))
    #expect(state.postpone(at: second) == true)
    #expect(state.deadline == .seconds(2))
  }

  @Test(arguments: [Duration.zero, .seconds(-1), .seconds(Int64.min)], [false, true])
  func `a delay of zero or less fires at every touch`(delay: Duration, leading: Bool) {
    var state = state(delay: delay, leading: leading)
    for _ in 0..<3 {
      #expect(state.touch(at: second) == true)
      #expect(state.deadline == nil)
    }
  }

  @Test(arguments: [Duration.zero, .seconds(-1)])
  func `a maximum delay of zero or less fires at every touch`(maximum: Duration) {
    var state = state(maximum: maximum)
    #expect(state.touch(at: .zero) == true)
    #expect(state.touch(at: second) == true)
  }

  @Test func `the longest delays never elapse`() {
    var state = state(delay: .seconds(Int64.max), maximum: .seconds(Int64.max))
    _ = state.touch(at: .seconds(Int64.max))
    #expect(state.elapse(at: .seconds(Int64.max) + .seconds(3_999_999_999)) == false)
  }

  @Test func `a leading debouncer fires at the first touch, and again only after another one`() {
    var state = state(leading: true)
    #expect(state.touch(at: .zero) == true)
    #expect(state.deadline == nil)
    #expect(state.touch(at: .milliseconds(600)) == false)
    #expect(state.deadline == .milliseconds(1600))
    #expect(state.elapse(at: .milliseconds(1600)) == true)
    #expect(state.touch(at: .milliseconds(1600)) == true, "it has been quiet for the delay")
  }

  @Test(arguments: [(999, false), (1000, true)])
  func `the quiet time of a leading debouncer is the delay since the last touch`(
    milliseconds: Int,
    fires: Bool
  ) {
    var state = state(leading: true)
    _ = state.touch(at: .zero)
    #expect(state.touch(at: .milliseconds(milliseconds)) == fires)
  }

  @Test func `the maximum delay of a leading debouncer does not make a quiet time`() {
    var state = state(maximum: .milliseconds(1500), leading: true)
    _ = state.touch(at: .zero)
    for time in [500, 1000, 1500] { #expect(state.touch(at: .milliseconds(time)) == false) }
    #expect(state.deadline == .milliseconds(2000))
    #expect(state.elapse(at: .milliseconds(2000)) == true)
    #expect(state.touch(at: .milliseconds(2100)) == false, "the last touch was 600 ms ago")
  }

  @Test func `cancelling a debouncer drops the pending firing and all touches`() {
    var state = state(leading: true)
    _ = state.touch(at: .zero)
    _ = state.touch(at: .milliseconds(1))
    state.cancel()
    #expect(state.deadline == nil)
    #expect(state.elapse(at: .seconds(9)) == false)
    state.cancel()
    #expect(state.touch(at: .milliseconds(2)) == true, "like the first one")
  }

  @Test func `withdrawing a touch drops the pending firing and counts as a touch`() {
    var state = state(leading: true)
    _ = state.touch(at: .zero)
    _ = state.touch(at: .milliseconds(500))
    state.withdraw(at: .milliseconds(900))
    #expect(state.deadline == nil)
    #expect(state.touch(at: .milliseconds(1800)) == false)
    #expect(state.deadline == .milliseconds(2800))
  }

  @Test func `an explicit expiry of a debouncer fires once`() {
    var state = state()
    #expect(state.expire(at: .zero) == false)
    _ = state.touch(at: .zero)
    #expect(state.expire(at: .milliseconds(1)) == true)
    #expect(state.deadline == nil)
    #expect(state.expire(at: .milliseconds(1)) == false)
  }

  @Test func `a pending firing waits for the full delay again when the clock is set back`() {
    var state = state(maximum: .seconds(3))
    state.restart(at: .seconds(-5))
    #expect(state.deadline == nil)
    _ = state.touch(at: .seconds(100))
    state.restart(at: .seconds(50))
    #expect(state.deadline == .seconds(51))
    _ = state.touch(at: .milliseconds(50_900))
    #expect(state.deadline == .milliseconds(51_900))
  }
}
