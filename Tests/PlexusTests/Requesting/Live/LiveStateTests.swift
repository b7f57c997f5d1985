import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `The state of live subscriptions` {
  typealias Sight = LiveState.Sight

  private let missing = Sight()
  private let fetching = Sight(isFetching: true)
  private func value(until deadline: Nanoseconds) -> Sight {
    Sight(hasValue: true, deadline: deadline)
  }

  @Test(.guarantee(.signalsFetchFreshValues))
  func `live data has one fetch at a time, and ignores the late ends of others`() {
    var state = LiveState()
    let first = state.join(1, isWhenStale: true, interval: nil, missing, at: 0).fetch
    #expect(first?.isFresh == false)
    #expect(state.join(2, isWhenStale: true, interval: 5, fetching, at: 0).fetch == nil)
    #expect(state.signal(fetching, at: 1).fetch == nil)
    let cleared = state.clear(isSignedOut: false)
    #expect(cleared.leavesFetch)
    #expect(cleared.fetch != first)
    state.finish(first?.number ?? 0, missing, at: 2)
    #expect(state.signal(fetching, at: 2).fetch == nil, "the second fetch is still under way")
    state.finish(cleared.fetch?.number ?? 0, value(until: 10), at: 3)
    #expect(state.signal(value(until: 10), at: 3).fetch?.isFresh == true)
  }

  @Test(.guarantee(.shortestIntervalCounts))
  func `live data wakes at the deadline if requested, and at the end of the shortest interval`() {
    var state = LiveState()
    let fetch = state.join(1, isWhenStale: false, interval: 30, missing, at: 2).fetch
    state.finish(fetch?.number ?? 0, value(until: 20), at: 4)
    #expect(state.nextWake == 32)
    _ = state.join(2, isWhenStale: true, interval: nil, value(until: 20), at: 4)
    #expect(state.nextWake == 20)
    _ = state.join(3, isWhenStale: false, interval: 10, value(until: 20), at: 5)
    #expect(state.nextWake == 15)
    _ = state.leave(3, at: 6)
    _ = state.leave(2, at: 6)
    #expect(state.nextWake == 32)
    #expect(state.leave(1, at: 6) == LiveState.Effects())
    #expect(state.nextWake == nil)
  }

  @Test(.guarantee(.signalsFetchFreshValues))
  func `live data loses no signal, refresh or tick between the end of a fetch and its report`() {
    let failed = Sight(hasFailed: true)
    let events: [(inout LiveState) -> LiveState.Effects] = [
      { $0.signal(failed, at: 1) }, { $0.refresh(failed) }, { $0.wake(failed, at: 10) },
    ]
    for event in events {
      var state = LiveState()
      let first = state.join(1, isWhenStale: true, interval: 10, missing, at: 0).fetch
      let second = event(&state).fetch
      #expect(second != nil)
      state.finish(first?.number ?? 0, failed, at: 2)
      #expect(state.signal(fetching, at: 3).fetch == nil, "the second one is under way")
      state.finish(second?.number ?? 0, failed, at: 4)
      #expect(state.signal(fetching, at: 5).fetch != nil)
    }
  }

  @Test(.guarantee(.shortestIntervalCounts))
  func `live data does not wake for what is stale when it arrives, or after a failure`() {
    var state = LiveState()
    let fetch = state.join(1, isWhenStale: true, interval: nil, missing, at: 0).fetch
    state.finish(fetch?.number ?? 0, value(until: 5), at: 5)
    #expect(state.nextWake == nil)
    state.note(value(until: 9), at: 6)
    #expect(state.nextWake == 9)
    state.note(Sight(hasValue: true, deadline: 9, hasFailed: true), at: 7)
    #expect(state.nextWake == nil)
  }

  @Test(.guarantee(.shortestIntervalCounts))
  func `live data loses no deadline to a change that is noted before the timer wakes`() {
    var state = LiveState()
    _ = state.join(1, isWhenStale: true, interval: nil, value(until: 10), at: 0)
    state.note(value(until: 10), at: 12)
    #expect(state.nextWake == 10)
    #expect(state.wake(value(until: 10), at: 12).fetch != nil)
    #expect(state.nextWake == nil)
    state.note(value(until: 10), at: 13)
    #expect(state.nextWake == nil, "it is handled once")
    state.note(value(until: 20), at: 14)
    state.note(value(until: 15), at: 16)
    #expect(state.nextWake == nil, "another value, which was stale when it arrived")
  }

  @Test(.guarantee(.shortestIntervalCounts))
  func `live data fetches once if a deadline and an interval are due at the same time`() {
    var state = LiveState()
    _ = state.join(1, isWhenStale: true, interval: 10, value(until: 10), at: 0)
    let effects = state.wake(value(until: 10), at: 10)
    #expect(effects.fetch?.isFresh == true)
    #expect(state.nextWake == 20)
    #expect(state.wake(value(until: 10), at: 10) == LiveState.Effects())
  }

  @Test(.guarantee(.clearsCauseLiveFetches))
  func `live data at rest reacts only to a signal, a subscription or a value`() {
    var state = LiveState()
    _ = state.join(1, isWhenStale: true, interval: 10, value(until: 100), at: 0)
    #expect(state.clear(isSignedOut: true).fetch == nil)
    #expect(state.nextWake == nil)
    #expect(state.wake(missing, at: 50) == LiveState.Effects())
    #expect(state.refresh(missing) == LiveState.Effects())
    #expect(state.clear(isSignedOut: false) == LiveState.Effects())
    state.note(missing, at: 51)
    #expect(state.nextWake == nil)
    state.note(Sight(isFetching: true), at: 52)
    #expect(state.nextWake == 60)
    _ = state.clear(isSignedOut: true)
    #expect(state.signal(missing, at: 70).fetch != nil)
    #expect(state.nextWake == 80)
  }

  @Test(.guarantee(.nothingRunsWithoutLiveSubscriptions))
  func `live data ends everything with the last subscription`() {
    var state = LiveState()
    _ = state.join(1, isWhenStale: true, interval: 10, missing, at: 0)
    #expect(state.leave(1, at: 1).leavesFetch)
    #expect(state.signal(missing, at: 2) == LiveState.Effects())
    #expect(state.refresh(missing) == LiveState.Effects())
    #expect(state.clear(isSignedOut: false) == LiveState.Effects())
    #expect(state.nextWake == nil)
  }
}
