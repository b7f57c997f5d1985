import TestSupport
import Testing

@testable import Plexus

/// Every sequence of events up to a length, against what an outsider would believe.
@Suite(.fewAtOnce) struct `A model of saving` {
  private enum Event: CaseIterable {
    case change, wait, write, succeed, fail, clear, end, release
  }

  private struct World {
    var state = SavingState(delay: 2_000_000_000)
    var now: Nanoseconds = 0
    /// The number of changes, and the numbers of the last ones saved, written and cleared.
    var changes = 0
    var saved = 0
    var written: Int?
    var cleared = 0
    var failures = 0
    var isReleased = false
    var history: [Event] = []

    /// Whether a change is to be written sooner or later.
    var isUnsaved: Bool { changes > max(saved, cleared) }

    func allows(_ event: Event) -> Bool {
      switch event {
      case .succeed, .fail: written != nil
      case .write: written == nil
      case .change, .end: !isReleased
      case .release: !isReleased
      default: true
      }
    }

    mutating func apply(_ event: Event) {
      history.append(event)
      switch event {
      case .change:
        changes += 1
        state.noteChange(at: now)
      case .wait:
        now += 1_000_000_000
      case .write:
        _ = state.takeDue(at: now)
        if isUnsaved, !hasGivenUp {
          written = changes
          state.begin(at: now)
        } else {
          state.giveUp()
        }
      case .succeed, .fail:
        let isSaved = event == .succeed
        state.finish(isSaved: isSaved, at: now)
        if let written, written > cleared {
          if isSaved { saved = max(saved, written) }
          failures = isSaved ? 0 : failures + 1
          if hasGivenUp { saved = written }
        }
        written = nil
      case .clear:
        cleared = changes
        failures = 0
        state.clear()
      case .end:
        state.endSource()
      case .release:
        isReleased = true
        failures = 0
        state.release()
      }
    }

    var hasGivenUp: Bool { isReleased && failures >= SavingState.patience }

    var brokenPromise: String? {
      if !isUnsaved, written == nil, state.deadline != nil { return "a write is due without need" }
      if written == nil, isUnsaved, !hasGivenUp, state.deadline == nil {
        return "a change is never written"
      }
      if written != nil, state.deadline != nil { return "two writes are due at once" }
      if let deadline = state.deadline, deadline > now.addingSaturating(60_000_000_000) {
        return "a write is more than a minute away"
      }
      return nil
    }
  }

  @Test(.guarantee(.statesAreSavedOncePerDelay))
  func `every sequence of changes, writes, failures, clears and ends keeps the promises`() throws {
    try walk(World(), depth: Effort.isFull ? 7 : 6)
  }

  private func walk(_ world: World, depth: Int) throws {
    guard depth > 0 else { return }
    for event in Event.allCases where world.allows(event) {
      var next = world
      next.apply(event)
      if let promise = next.brokenPromise {
        Issue.record("\(promise), after \(next.history)")
        return
      }
      try walk(next, depth: depth - 1)
    }
  }
}
