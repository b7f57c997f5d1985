/// What is known of one key: its value, and the flight that fetches it.
///
/// Everything that happens to a key is one call, which takes names and instants and returns what
/// has to be done about it. What a key at rest needs is stored in place; all the rest is in
/// ``FlightDetails``, for which there is no room as long as they have nothing to say.
///
/// Invariants:
///
/// - At most one flight is under way, and at most one is queued behind it.
/// - The result of any other flight than the one under way changes nothing: that one was cut off.
/// - A refresh that no successful flight has served yet is noted in one of three places: in
///   ``unserved`` while no flight is under way, as served by the one under way, or as a reason for the
///   queued one. Of several refreshes noted in one place only the first matters.
@usableFromInline
struct FlightState<Value: Sendable>: Sendable {
  @usableFromInline var value: Value?
  /// When the value was fetched or stored.
  var storedAt: Nanoseconds = .min
  /// From when on the value is stale; in the past if there is none.
  @usableFromInline var deadline: Nanoseconds = .min
  /// The first refresh that the value does not satisfy and that no flight is about to serve.
  @usableFromInline var unserved = RefreshTicket.none
  @usableFromInline var box = FlightDetails.Box.empty

  /// What is rarely there.
  var details: FlightDetails {
    get { box.details }
    set { box = newValue.isEmpty ? .empty : .full(newValue) }
  }

  /// Whether a request is answered with the value at once, whatever else is going on.
  @inlinable
  func isFresh(at now: Nanoseconds) -> Bool {
    now < deadline && unserved.isNone
  }

  /// Whether the value is past its time to live.
  func isExpired(at now: Nanoseconds) -> Bool {
    now >= deadline
  }

  /// Whether no flight is under way.
  @inlinable var isAtRest: Bool {
    if case .full(let details) = box { details.running == nil } else { true }
  }

  /// Whether nothing is known.
  var isEmpty: Bool {
    if case .empty = box { value == nil } else { false }
  }

  /// Whether nothing is left that a request could tell from a key never asked for.
  func isForgettable(at now: Nanoseconds) -> Bool {
    guard value == nil else { return false }
    let details = details
    return details.running == nil && now >= (details.failure?.until ?? .min)
  }

  /// The flight that a request of a value that is not there at all waits for.
  @inlinable var onlyHope: FlightID? {
    guard value == nil, case .full(let details) = box else { return nil }
    return details.running?.id
  }

  /// The flight under way.
  var running: FlightID? {
    if case .full(let details) = box { details.running?.id } else { nil }
  }

  /// The flight that begins when the one under way has ended.
  var queued: FlightID? { details.running?.queued }

  /// Whether the flight under way has to serve a refresh, for which nothing older will do.
  var servesRefresh: Bool { details.running.map { !$0.serves.isNone } ?? false }

  /// The value with what belongs to it.
  var copy: StoredCopy<Value>? {
    guard let value else { return nil }
    let details = details
    return StoredCopy(
      value: value,
      validator: details.validator,
      storedAt: storedAt,
      // A copy that stands in is asked about at once, though its own time may not be over.
      deadline: details.ownDeadline ?? deadline,
      terms: details.terms
    )
  }
}

extension FlightState {
  /// What subscribers are told.
  var loadState: LoadState<Value> {
    details.running == nil ? restingState : .loading(previous: value)
  }

  /// What subscribers are told once no flight is under way.
  var restingState: LoadState<Value> {
    if let failure = details.failure { return .failed(failure.error, previous: value) }
    return value.map { .loaded($0) } ?? .unknown
  }
}
