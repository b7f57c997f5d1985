import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `The state of saving` {
  static let second: Nanoseconds = 1_000_000_000

  @Test func `a change is due after the delay, and later changes do not postpone it`() {
    var state = SavingState(delay: 10)
    #expect(state.deadline == nil)
    state.noteChange(at: 5, in: 0)
    state.noteChange(at: 14, in: 0)
    #expect(state.deadline == 15)
    let isEarly = state.takeDue(at: 14)
    #expect(!isEarly)
    let isDue = state.takeDue(at: 15)
    #expect(isDue)
    #expect(state.deadline == nil, "a write is queued")
    let begins = state.begin(in: 0)
    #expect(begins)
    state.noteChange(at: 20, in: 0)
    #expect(state.deadline == nil, "a write is running")
    state.finish(isSaved: true, at: 40, in: 0)
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
    state.noteChange(at: 0, in: 0)
    var now = delay * Self.second
    for pause in pauses {
      let isDue = state.takeDue(at: now)
      #expect(isDue)
      _ = state.begin(in: 0)
      state.finish(isSaved: false, at: now, in: 0)
      #expect(state.isPausing)
      now += pause * Self.second
      #expect(state.deadline == now)
    }
    _ = state.begin(in: 0)
    state.finish(isSaved: true, at: now, in: 0)
    #expect(!state.isPausing)
    #expect(state.isIdle)
  }

  @Test func `a clear drops the change before it, and not the one after it`() {
    var state = SavingState(delay: 10)
    state.noteChange(at: 0, in: 0)
    state.clear(1)
    #expect(state.deadline == nil)
    state.noteChange(at: 1, in: 1)
    state.clear(1)
    #expect(state.deadline == 11)
    // A clear of another saved state of the key is seen when the write begins.
    let begins = state.begin(in: 2)
    #expect(!begins)
    #expect(state.isIdle)
    state.noteChange(at: 2, in: 1)
    state.noteChange(at: 9, in: 2)
    #expect(state.deadline == 19, "the change of an earlier period is forgotten")
  }

  @Test func `a write that fails after a clear is not tried again`() {
    var state = SavingState(delay: 0)
    state.noteChange(at: 0, in: 0)
    _ = state.begin(in: 0)
    state.clear(1)
    state.finish(isSaved: false, at: 1, in: 1)
    #expect(state.isIdle)
    #expect(!state.isPausing)
  }

  @Test func `the end of the source makes a change due, but does not end a pause`() {
    var state = SavingState(delay: .max)
    state.noteChange(at: 5, in: 0)
    #expect(state.deadline == .max)
    state.endSource()
    let isDue = state.takeDue(at: 5)
    #expect(isDue)
    _ = state.begin(in: 0)
    state.finish(isSaved: false, at: 5, in: 0)
    #expect(state.deadline == 5 + 60 * Self.second)
    state.release()
    #expect(state.deadline ?? 0 <= 5)
  }

  @Test func `a released state is given up after eight failures`() {
    var state = SavingState(delay: 0)
    state.noteChange(at: 0, in: 0)
    state.release()
    for failure in 1...SavingState.patience {
      #expect(!state.isIdle)
      _ = state.begin(in: 0)
      state.finish(isSaved: false, at: 0, in: 0)
      #expect(state.isIdle == (failure == SavingState.patience))
    }
  }

  @Test func `a queued write finds nothing if a flush has written before it`() {
    var state = SavingState(delay: 0)
    state.noteChange(at: 0, in: 0)
    _ = state.takeDue(at: 0)
    let flushes = state.begin(in: 0)
    #expect(flushes)
    state.finish(isSaved: true, at: 0, in: 0)
    let begins = state.begin(in: 0)
    #expect(!begins)
    #expect(state.isIdle)
  }
}
