import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `The state of writing behind` {
  @Test func `writing behind has one timer, which ends when nothing is left`() {
    var state = WriteBehindTimer.State(delay: 3)
    let step1 = state.noteChange(at: 0)
    #expect(step1)
    let step2 = state.noteChange(at: 1)
    #expect(!step2)
    let step3 = state.wake(at: 0)
    #expect(step3 == .sleeps(until: 3))
    let step4 = state.wake(at: 3)
    #expect(step4 == .flushes)
    state.beginFlush()
    let step5 = state.wake(at: 3)
    #expect(step5 == .ends)
    let step6 = state.noteChange(at: 4)
    #expect(step6)
  }

  @Test func `writing behind counts from the first change since the last flush`() {
    var state = WriteBehindTimer.State(delay: 3)
    let step7 = state.noteChange(at: 0)
    #expect(step7)
    state.beginFlush()
    let step8 = state.noteChange(at: 2)
    #expect(!step8)
    let step9 = state.wake(at: 3)
    #expect(step9 == .sleeps(until: 5))
  }

  @Test func `writing behind counts its time from a failure, unless there is an older change`() {
    var state = WriteBehindTimer.State(delay: 300_000_000)
    let step10 = state.noteChange(at: 0)
    #expect(step10)
    state.beginFlush()
    state.noteFailure(at: 4)
    let step12 = state.wake(at: 4)
    #expect(step12 == .sleeps(until: 300_000_004))
    let step13 = state.noteChange(at: 6)
    #expect(!step13)
    let step14 = state.wake(at: 6)
    #expect(step14 == .sleeps(until: 300_000_004))
  }

  @Test func `writing behind lets some time pass between attempts, however short the delay`() {
    var state = WriteBehindTimer.State(delay: 0)
    _ = state.noteChange(at: 5)
    let step20 = state.wake(at: 5)
    #expect(step20 == .flushes)
    state.beginFlush()
    state.noteFailure(at: 6)
    let step21 = state.wake(at: 6)
    #expect(step21 == .sleeps(until: 100_000_006))
    _ = state.noteChange(at: 7)
    let step22 = state.wake(at: 7)
    #expect(step22 == .sleeps(until: 100_000_006))
    let step23 = state.wake(at: 100_000_006)
    #expect(step23 == .flushes)
  }

  @Test func `writing behind bears every delay`() {
    var state = WriteBehindTimer.State(delay: .max)
    let step15 = state.noteChange(at: 5)
    #expect(step15)
    let step16 = state.wake(at: 5)
    #expect(step16 == .sleeps(until: .max))
  }
}
