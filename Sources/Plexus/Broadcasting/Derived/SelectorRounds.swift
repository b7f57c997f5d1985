internal import Synchronization

/// The rounds in which a source evaluates selectors for a state that it publishes.
///
/// A value that was evaluated before a round is outdated while that runs. Only one thread at a time
/// begins and ends rounds.
@usableFromInline
final class SelectorRounds: Sendable {
  /// The number of beginnings and ends: odd while a round runs.
  private let count = Atomic<Int>(0)
  /// The thread of the newest round.
  private let thread = Atomic<UInt>(0)

  @usableFromInline
  init() {}

  /// Begins a round: a state is about to be published.
  @usableFromInline
  func begin() {
    thread.store(ThreadID.current.rawValue, ordering: .relaxed)
    count.store(count.load(ordering: .relaxed) &+ 1, ordering: .releasing)
  }

  /// Ends the round: all selectors have looked at the state.
  @usableFromInline
  func end() {
    count.store(count.load(ordering: .relaxed) &+ 1, ordering: .releasing)
  }

  /// The number of the round that runs, if one does.
  var running: Int? {
    let count = count.load(ordering: .acquiring)
    return count & 1 == 1 ? count : nil
  }

  /// The number of the round that the calling thread runs, if it does.
  var runningHere: Int? {
    guard let running, thread.load(ordering: .relaxed) == ThreadID.current.rawValue else {
      return nil
    }
    return running
  }
}
