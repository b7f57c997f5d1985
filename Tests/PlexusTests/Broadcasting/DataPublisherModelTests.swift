import TestSupport
import Testing

@testable import Plexus

/// All sequences of events up to a length, compared with a model.
@Suite(.fewAtOnce) struct `Data publisher model` {
  /// An event of a publisher.
  enum Event: Hashable {
    case startLoading
    case update
    case fail
    case reset
    case beginLoad
    case succeed(Int)
    case breakDown(Int)
    case abandon(Int)
    case wait
  }

  /// The state, and the belief of an observer that sees only the events.
  struct World {
    var state = LoadingState<Int>()
    var history: [Event] = []
    var brokenPromise: String?

    var now = Duration.zero
    var lastValue = 0
    /// The believed state: the case and the known value.
    var belief = "unknown"
    var value: Int?
    var valueAge: Duration?
    /// All loads so far.
    var loads: [Flight] = []
    /// The numbers of the loads that are still running, and of the current one.
    var running: [Int] = []
    var current: Int?
    /// The state before the current load began.
    var before: (belief: String, value: Int?)?

    var possibleEvents: [Event] {
      var events: [Event] = [.startLoading, .update, .fail, .reset, .wait]
      if current == nil { events.append(.beginLoad) }
      for load in running { events += [.succeed(load), .breakDown(load), .abandon(load)] }
      return events
    }

    mutating func apply(_ event: Event) {
      history.append(event)
      switch event {
      case .wait:
        now += .seconds(1)
      case .startLoading:
        state.startLoading()
        belief = "loading"
      case .update:
        lastValue += 1
        state.update(lastValue, at: now)
        learn(lastValue)
      case .fail:
        state.fail(LoadingFailure.first)
        belief = "failed"
        current = nil
      case .reset:
        state.reset()
        (belief, value, current) = ("unknown", nil, nil)
      case .beginLoad:
        before = (belief, value)
        current = loads.count
        running.append(loads.count)
        loads.append(state.beginLoad())
        belief = "loading"
      case .succeed(let load):
        running.removeAll { $0 == load }
        lastValue += 1
        let isPublished = state.finish(loads[load], with: .success(lastValue), at: now)
        if isPublished != (load == current) { brokenPromise = "a late result was used, or none" }
        if load == current { learn(lastValue) }
      case .breakDown(let load):
        running.removeAll { $0 == load }
        let isPublished = state.finish(
          loads[load],
          with: .failure(LoadingFailure.first),
          at: now
        )
        if isPublished != (load == current) { brokenPromise = "a late failure was used, or none" }
        if load == current { (belief, current) = ("failed", nil) }
      case .abandon(let load):
        let hasChanged = state.abandon(loads[load])
        if hasChanged != (load == current) { brokenPromise = "a late departure changed the state" }
        if load == current, let before {
          (belief, value, current) = (before.belief, before.value, nil)
        }
      }
      check()
    }

    private mutating func learn(_ newValue: Int) {
      (belief, value, current, valueAge) = ("loaded", newValue, nil, now)
    }

    private mutating func check() {
      if !words(state.current).hasPrefix(belief) {
        brokenPromise = "\(words(state.current)) instead of \(belief)"
      }
      if state.current.value != value {
        brokenPromise = "the known value was lost, or is a wrong one"
      }
      if loads.indices.contains(where: { state.isCurrent(loads[$0]) != ($0 == current) }) {
        brokenPromise = "callers would join the wrong load"
      }
      let age = belief == "loaded" ? valueAge.map { now - $0 } : nil
      for limit in [Duration.seconds(1), .seconds(2)] {
        let isStale = age.map { $0 >= limit } ?? false
        if state.isStale(after: limit, at: now) != isStale { brokenPromise = "wrong age" }
      }
      if state.isStale(after: nil, at: now) { brokenPromise = "stale without a limit" }
    }
  }

  @Test(.guarantee(.publishersHoldInEveryOrder))
  func `every sequence of six events keeps every promise of a data publisher`() throws {
    var count = 0
    try walk(World(), depth: 6, &count)
    #expect(count > 50_000)
  }

  private func walk(_ world: World, depth: Int, _ count: inout Int) throws {
    count += 1
    guard depth > 0 else { return }
    for event in world.possibleEvents {
      var next = world
      next.apply(event)
      try #require(next.brokenPromise == nil, "after \(next.history)")
      try walk(next, depth: depth - 1, &count)
    }
  }
}
