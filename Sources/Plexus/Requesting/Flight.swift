/// One fetch of one key for any number of callers: who waits for it, what works for it, and in the
/// end its outcome.
///
/// Whether the outcome may be stored is not its affair: ``FlightState`` knows which flight counts.
@usableFromInline
final class Flight<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  @usableFromInline typealias Outcome = Result<Answer<Value>, any Error>

  let id: FlightID
  let hash: UInt64
  @usableFromInline let mark: FlightMark<Key>
  @usableFromInline let waiters: WaitList
  @usableFromInline let work: FlightWork
  @usableFromInline let outcome = SetOnce<Outcome>()

  init(
    id: FlightID,
    key: Key,
    hash: UInt64,
    source: FlightSource,
    predecessor: (any FlightNode)? = nil
  ) {
    self.id = id
    self.hash = hash
    let work = FlightWork()
    self.work = work
    waiters = WaitList(raising: work)
    mark = FlightMark(key: key, source: source, predecessor: predecessor)
  }

  var key: Key { mark.key }

  /// The outcome for one of those who have waited for it.
  ///
  /// - Returns: The value, and what is known of it.
  /// - Throws: The error of the fetch.
  @inlinable
  func answer() throws -> Answer<Value> {
    guard let outcome = outcome.value else { throw CancellationError() }
    return try outcome.get()
  }

  /// Hands the outcome to everybody who waits; the first outcome counts.
  func settle(_ result: Outcome) {
    guard outcome.set(result) else { return }
    withExtendedLifetime(mark.settle()) {}
    waiters.finish()
  }
}

/// What the tasks of a fetch carry with them to tell which flight they work for.
///
/// A task that a fetch leaves behind may carry it for ever, so it knows nothing of the outcome.
@usableFromInline
final class FlightMark<Key: Hashable & Sendable>: FlightNode {
  private struct State {
    var predecessor: (any FlightNode)?
    var isSettled = false
  }

  let key: Key
  /// The name of the multiplexer, for people.
  let source: FlightSource
  private let state: Locked<State>

  init(key: Key, source: FlightSource, predecessor: (any FlightNode)?) {
    self.key = key
    self.source = source
    state = Locked(State(predecessor: predecessor))
  }

  @usableFromInline var label: String? { source.label(of: key) }

  @usableFromInline var predecessor: (any FlightNode)? {
    state.withLock { $0.predecessor }
  }

  @usableFromInline var isSettled: Bool {
    state.withLock { $0.isSettled }
  }

  /// Nobody need wait for the flight any more.
  ///
  /// It is called before anybody can see what the flight has come to: whoever has seen that may be asked for
  /// something by those who have not been resumed yet, and does not wait for itself then.
  ///
  /// - Returns: What came before, to be released with no lock held.
  func settle() -> (any FlightNode)? {
    state.withLock { state in
      state.isSettled = true
      return state.predecessor.take()
    }
  }

  /// The flight need not wait any more for the one before it.
  ///
  /// - Parameter batch: What it is part of now, if anything: it waits for what that waits for.
  func begin(in batch: (any FlightNode)? = nil) {
    let predecessor = state.withLock { state in
      let predecessor = state.predecessor
      // A flight that a stored value has settled waits for nothing, and would never let go of the batch.
      state.predecessor = state.isSettled ? nil : batch
      return predecessor
    }
    withExtendedLifetime(predecessor) {}
  }
}

/// Where flights come from.
final class FlightSource: Sendable {
  /// The id of the multiplexer, or its type.
  let name: String
  private let namesKeys: Bool

  init(name: String, namesKeys: Bool) {
    self.name = name
    self.namesKeys = namesKeys
  }

  /// The name of a key for people.
  func name<Key>(of key: Key) -> String {
    namesKeys ? "\(key)" : name
  }

  func label<Key>(of key: Key) -> String {
    namesKeys ? "\(name)[\(key)]" : name
  }
}
