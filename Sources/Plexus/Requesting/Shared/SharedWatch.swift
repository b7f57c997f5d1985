/// The observation of changes of a flight's key, from before its first look until its value is in memory.
///
/// A change that arrives during a look marks it: the reply can come before the announcement on the wire and be
/// processed after it.
final class SharedWatch: Sendable {
  private struct State {
    var hasChanged = false
    var waiting: OneShot<Void>?
  }

  let name: String
  /// The number of ends of the trust before the first look.
  let generation: UInt64
  private let state = Locked(State())

  init(_ name: String, generation: UInt64) {
    self.name = name
    self.generation = generation
  }

  /// Whether the key has changed since the last look began.
  var hasChanged: Bool { state.withLock { $0.hasChanged } }

  /// Records that a look begins.
  func begin() {
    state.withLock { $0.hasChanged = false }
  }

  /// Records a change of the key, and resumes the waiting flight.
  func note() {
    let waiting = state.withLock { state in
      state.hasChanged = true
      return state.waiting.take()
    }
    waiting?.set(())
  }

  /// Waits for a change since the last look began, for a limited time.
  func wait(atMost limit: Duration, on clock: any Clock<Duration>) async {
    let change = OneShot<Void>()
    let isOver = state.withLock { state in
      if !state.hasChanged { state.waiting = change }
      return state.hasChanged
    }
    guard !isOver else { return }
    let timer = clock.timer(limit) { change.set(()) }
    await withTaskCancellationHandler {
      await change.value()
    } onCancel: {
      change.set(())
    }
    timer.cancel()
  }
}
