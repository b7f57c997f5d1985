/// The observation of changes of a flight's key, from before its first look until its value is in memory.
///
/// A change that arrives during a look marks it: the reply can come before the announcement on the wire and be
/// processed after it.
final class SharedWatch: Sendable {
  private struct State {
    /// Whether the entry or the lease of the key has changed since the last look began.
    var hasChanged = false
    var entryHasChanged = false
    /// Whether nothing is announced since the last look began.
    var isInterrupted = false
    /// Whether the flight fetches, or has its answer: a change is no longer followed by a look.
    var isSettled = false
    var waiting: OneShot<Void>?

    var isOver: Bool { hasChanged || isInterrupted }
  }

  let name: String
  let flight: ObjectIdentifier
  /// The number of ends of the trust before the first look.
  let generation: UInt64
  private let state = Locked(State())

  init(_ name: String, of flight: Flight, generation: UInt64) {
    self.name = name
    self.flight = ObjectIdentifier(flight)
    self.generation = generation
  }

  /// Whether the entry or the lease of the key has changed since the last look began.
  var hasChanged: Bool { state.withLock { $0.hasChanged } }

  /// Whether the entry of the key has changed since the last look began.
  var entryHasChanged: Bool { state.withLock { $0.entryHasChanged } }

  /// Whether a flight that waits has to look again.
  var isOver: Bool { state.withLock { $0.isOver } }

  /// Records that a look begins.
  func begin() {
    state.withLock { state in
      state.hasChanged = false
      state.entryHasChanged = false
      state.isInterrupted = false
      state.isSettled = false
    }
  }

  /// Records that the flight fetches, or has its answer: a change from now on detaches it.
  ///
  /// - Returns: Whether the key has changed since the last look began.
  func settle() -> Bool {
    state.withLock { state in
      state.isSettled = true
      return state.hasChanged
    }
  }

  /// Whether the flight fetches, or has its answer.
  var isSettled: Bool { state.withLock { $0.isSettled } }

  /// Records a change of the key, and resumes the waiting flight.
  func note() {
    noteChange()?.set(())
  }

  /// Records a change of the key.
  ///
  /// - Parameter isLease: Whether only its lease has changed.
  /// - Returns: The waiting flight, which has to be resumed.
  func noteChange(ofLease isLease: Bool = false) -> OneShot<Void>? {
    state.withLock { state in
      state.hasChanged = true
      if !isLease { state.entryHasChanged = true }
      return state.waiting.take()
    }
  }

  /// Records that changes are no longer announced.
  ///
  /// - Returns: The waiting flight, which has to be resumed.
  func noteInterruption() -> OneShot<Void>? {
    state.withLock { state in
      state.isInterrupted = true
      return state.waiting.take()
    }
  }

  /// Waits for a change since the last look began, for a limited time.
  func wait(atMost limit: Duration, on clock: any Clock<Duration>) async {
    await Self.wait(for: [self], atMost: limit, on: clock)
  }

  /// Waits for a change of one of several keys, for a limited time.
  static func wait(
    for watches: [SharedWatch],
    atMost limit: Duration,
    on clock: any Clock<Duration>
  ) async {
    let change = OneShot<Void>()
    for watch in watches {
      let isOver = watch.state.withLock { state in
        if !state.isOver { state.waiting = change }
        return state.isOver
      }
      guard !isOver else { return }
    }
    let timer = clock.timer(limit) { change.set(()) }
    await withTaskCancellationHandler {
      await change.value()
    } onCancel: {
      change.set(())
    }
    timer.cancel()
  }
}
