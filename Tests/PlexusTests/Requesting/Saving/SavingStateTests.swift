import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `The state of saving` {
  static let second: Nanoseconds = 1_000_000_000

  @Test func `a change is due after the delay, and later changes do not postpone it`() {
    var state = SavingState(delay: 10)
    #expect(state.deadline == nil)
    state.noteChange(at: 5)
    state.noteChange(at: 14)
    #expect(state.deadline == 15)
    let isEarly = state.takeDue(at: 14)
    #expect(!isEarly)
    let isDue = state.takeDue(at: 15)
    #expect(isDue)
    #expect(state.deadline == nil, "a write is queued")
    state.begin(at: 15)
    state.noteChange(at: 20)
    #expect(state.deadline == nil, "a write is running")
    state.finish(isSaved: true, at: 40)
    #expect(state.deadline == 30)
  }

  @Test(
    arguments: [
      (0, [1, 2, 4, 8, 16, 32, 60, 60]), (3, [3, 6, 12, 24, 48, 60, 60]), (100, [60, 60]),
    ] as [(Nanoseconds, [Nanoseconds])]
  )
  func `the pauses after failures grow up to a minute`(
    delay: Nanoseconds,
    pauses: [Nanoseconds]
  ) {
    var state = SavingState(delay: delay * Self.second)
    state.noteChange(at: 0)
    var now = delay * Self.second
    for pause in pauses {
      let isDue = state.takeDue(at: now)
      #expect(isDue)
      state.begin(at: now)
      state.finish(isSaved: false, at: now)
      #expect(state.isPausing)
      now += pause * Self.second
      #expect(state.deadline == now)
    }
    state.begin(at: now)
    state.finish(isSaved: true, at: now)
    #expect(!state.isPausing)
    #expect(state.isIdle)
  }

  @Test func `a clear drops the change before it, and not the one after it`() {
    var state = SavingState(delay: 10)
    state.noteChange(at: 0)
    state.clear()
    #expect(state.deadline == nil)
    state.noteChange(at: 1)
    #expect(state.deadline == 11)
  }

  @Test func `a write that fails after a clear is not tried again`() {
    var state = SavingState(delay: 0)
    state.noteChange(at: 0)
    state.begin(at: 0)
    state.clear()
    state.finish(isSaved: false, at: 1)
    #expect(state.isIdle)
    #expect(!state.isPausing)
  }

  @Test func `the end of the source makes a change due, but does not end a pause`() {
    var state = SavingState(delay: .max)
    state.noteChange(at: 5)
    #expect(state.deadline == .max)
    state.endSource()
    let isDue = state.takeDue(at: 5)
    #expect(isDue)
    state.begin(at: 5)
    state.finish(isSaved: false, at: 5)
    #expect(state.deadline == 5 + 60 * Self.second)
    state.release()
    #expect(state.deadline ?? 0 <= 5)
  }

  @Test func `a released state is given up after eight failures`() {
    var state = SavingState(delay: 0)
    state.noteChange(at: 0)
    state.release()
    for failure in 1...SavingState.patience {
      #expect(!state.isIdle)
      state.begin(at: 0)
      state.finish(isSaved: false, at: 0)
      #expect(state.isIdle == (failure == SavingState.patience))
    }
  }

  @Test func `a queued write finds nothing if a flush has written before it`() {
    var state = SavingState(delay: 0)
    state.noteChange(at: 0)
    _ = state.takeDue(at: 0)
    state.begin(at: 0)
    state.finish(isSaved: true, at: 0)
    state.giveUp()
    #expect(state.isIdle)
    state.noteChange(at: 3)
    #expect(state.deadline == 3)
  }
}
