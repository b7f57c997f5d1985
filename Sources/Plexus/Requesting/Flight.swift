/// What a fetch is known by to the other fetches that it may come to wait for.
protocol FlightNode: AnyObject, Sendable {
  /// The name of what is fetched, for people.
  var label: String { get }
  /// The flight that has to end before this one begins.
  var predecessor: (any FlightNode)? { get }
  /// Whether nobody waits for it any more, and nobody will.
  var isSettled: Bool { get }
}

/// For which flight a task works.
enum FlightScope {
  /// The flight whose fetch the current task belongs to.
  @TaskLocal static var current: (any FlightNode)?
}

/// One fetch of one key for any number of callers: who waits for it, what works for it, and in the
/// end its outcome.
///
/// Whether the outcome may be stored is not its affair: ``FlightState`` knows which flight counts.
final class Flight<Key: Hashable & Sendable, Value: Sendable>: FlightNode {
  typealias Outcome = Result<Settled<Value>, any Error>

  private struct State {
    var outcome: Outcome?
    var predecessor: (any FlightNode)?
  }

  let id: FlightID
  let key: Key
  let hash: UInt64
  /// The name of the multiplexer, for people.
  let source: FlightSource
  let waiters = WaitList()
  let work = FlightWork()
  private let state: Locked<State>

  init(
    id: FlightID,
    key: Key,
    hash: UInt64,
    source: FlightSource,
    predecessor: (any FlightNode)? = nil
  ) {
    self.id = id
    self.key = key
    self.hash = hash
    self.source = source
    state = Locked(State(predecessor: predecessor))
  }

  var label: String { source.label(of: key) }

  var predecessor: (any FlightNode)? {
    state.withLock { $0.predecessor }
  }

  var isSettled: Bool { waiters.isFinished }

  /// The flight need not wait for another one any more.
  func forgetPredecessor() {
    let predecessor = state.withLock { state in
      let predecessor = state.predecessor
      state.predecessor = nil
      return predecessor
    }
    withExtendedLifetime(predecessor) {}
  }

  /// The outcome, once there is one.
  var outcome: Outcome? {
    state.withLock { $0.outcome }
  }

  /// Hands the outcome to everybody who waits; the first outcome counts.
  func settle(_ outcome: Outcome) {
    let isFirst = state.withLock { state in
      guard state.outcome == nil else { return false }
      state.outcome = outcome
      return true
    }
    if isFirst { waiters.finish() }
  }
}

/// Where flights come from.
final class FlightSource: Sendable {
  /// The id of the multiplexer, or its type.
  private let name: String
  private let namesKeys: Bool

  init(name: String, namesKeys: Bool) {
    self.name = name
    self.namesKeys = namesKeys
  }

  func label<Key>(of key: Key) -> String {
    namesKeys ? "\(name)[\(key)]" : name
  }
}

/// A value on its way to a caller.
struct Settled<Value: Sendable>: Sendable {
  let value: Value
  let source: Response<Value>.Source
  let storedAt: Nanoseconds
  var isStale = false
  var error: (any Error)?
}
