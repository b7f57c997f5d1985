/// What a fetch is known by to the other fetches that it may come to wait for.
@usableFromInline
protocol FlightNode: AnyObject, Sendable {
  /// The name of what is fetched, for people.
  var label: String { get }
  /// The flight that has to end before this one begins.
  var predecessor: (any FlightNode)? { get }
  /// Whether nobody waits for it any more, and nobody will.
  var isSettled: Bool { get }
}

/// For which flight a task works.
@usableFromInline
enum FlightScope: Sendable {
  /// The flight whose fetch the current task belongs to.
  @TaskLocal static var current: (any FlightNode)?

  /// Whether the current task works for no flight.
  @usableFromInline static var isEmpty: Bool { current == nil }
}

/// One fetch of one key for any number of callers: who waits for it, what works for it, and in the
/// end its outcome.
///
/// Whether the outcome may be stored is not its affair: ``FlightState`` knows which flight counts.
@usableFromInline
final class Flight<Key: Hashable & Sendable, Value: Sendable>: FlightNode {
  @usableFromInline typealias Outcome = Result<Answer<Value>, any Error>

  @usableFromInline
  struct State: Sendable {
    @usableFromInline var outcome: Outcome?
    var predecessor: (any FlightNode)?
  }

  let id: FlightID
  let key: Key
  let hash: UInt64
  /// The name of the multiplexer, for people.
  let source: FlightSource
  @usableFromInline let waiters = WaitList()
  @usableFromInline let work = FlightWork()
  @usableFromInline let state: Locked<State>

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

  @usableFromInline var label: String { source.label(of: key) }

  @usableFromInline var predecessor: (any FlightNode)? {
    state.withLock { $0.predecessor }
  }

  @usableFromInline var isSettled: Bool { waiters.isFinished }

  /// The flight need not wait for another one any more.
  func forgetPredecessor() {
    let predecessor = state.withLock { state in
      let predecessor = state.predecessor
      state.predecessor = nil
      return predecessor
    }
    withExtendedLifetime(predecessor) {}
  }

  /// The outcome for one of those who have waited for it.
  ///
  /// - Returns: The value, and what is known of it.
  /// - Throws: The error of the fetch.
  @inlinable
  func answer() throws -> Answer<Value> {
    guard let outcome = state.withLock({ $0.outcome }) else { throw CancellationError() }
    return try outcome.get()
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
