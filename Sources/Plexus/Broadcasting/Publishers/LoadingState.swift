/// The pure state of a publisher: the value, its time of arrival, and the current load.
///
/// Invariants:
///
/// - At most one load is current. Its result is used only if there was no update, failure or reset since it started.
/// - Only a reset drops a value, before the reset is visible. A load replaces it by its result.
@usableFromInline
struct LoadingState<Value: Sendable>: LoadingModel {
  /// The load whose result will be used, unless a newer change comes first.
  @usableFromInline
  struct CurrentLoad: Sendable {
    @usableFromInline let flight: Flight
    /// The state before the load, which is restored if it is abandoned.
    @usableFromInline let previousState: LoadState<Value>

    @inlinable
    init(flight: Flight, previousState: LoadState<Value>) {
      self.flight = flight
      self.previousState = previousState
    }
  }

  /// The value that is requested.
  @usableFromInline
  enum Request: Sendable {
    /// A value that a load brings.
    case new
    /// Any loaded value that is not stale.
    case fresh
  }

  /// The parts that a change has replaced.
  @usableFromInline
  struct Former: Sendable {
    @usableFromInline var current = LoadState<Value>.unknown
    @usableFromInline var load: CurrentLoad?

    @inlinable
    init() {}
  }

  @usableFromInline private(set) var current = LoadState<Value>.unknown
  /// The time at which the loaded value arrived, since the creation of the publisher.
  @usableFromInline var loadedAt = Duration.zero
  @usableFromInline private(set) var load: CurrentLoad?
  /// The parts that the last change has replaced, until they are taken.
  @usableFromInline var former = Former()

  @inlinable
  init() {}

  @inlinable
  mutating func takeFormer() -> Former {
    var former = Former()
    swap(&former, &self.former)
    return former
  }

  /// Replaces the state, and ends the current load unless another one is given.
  @inlinable
  mutating func replace(
    by new: consuming LoadState<Value>,
    load newLoad: consuming CurrentLoad? = nil
  ) {
    // Exchanged, since copies would be counted.
    swap(&former.current, &current)
    swap(&former.load, &load)
    current = new
    load = newLoad
  }

  @inlinable
  func isCurrent(_ flight: Flight) -> Bool {
    load?.flight === flight
  }

  @inlinable
  func isStale(after age: Duration?, at now: Duration) -> Bool {
    guard let age, case .loaded = current else { return false }
    return now - loadedAt >= age
  }

  @usableFromInline
  func timeUntilStale(after age: Duration?, at now: Duration) -> Duration? {
    guard let age, case .loaded = current, now - loadedAt < age else { return nil }
    return age - (now - loadedAt)
  }

  // MARK: - Changes from elsewhere

  /// Records that a load has started elsewhere.
  @inlinable
  mutating func startLoading() {
    replace(by: .loading(previous: current.value), load: load)
  }

  /// Records a new value.
  @inlinable
  mutating func update(_ value: Value, at now: Duration) {
    replace(by: .loaded(value))
    loadedAt = now
  }

  /// Records a failure.
  @inlinable
  mutating func fail(_ error: any Error) {
    replace(by: .failed(error, previous: current.value))
  }

  /// Drops everything.
  mutating func reset() {
    replace(by: .unknown)
  }

  // MARK: - Loads

  @inlinable
  func answer(to request: Request, isStale: Bool) -> LoadingAnswer<Value> {
    if request == .fresh, !isStale, case .loaded(let value) = current { return .known(value) }
    return load.map { .joins($0.flight) } ?? .begins
  }

  @inlinable
  mutating func begin(_ flight: Flight, for request: Request) {
    replace(
      by: .loading(previous: current.value),
      load: CurrentLoad(flight: flight, previousState: current)
    )
  }

  /// Ends a load.
  ///
  /// - Parameters:
  ///   - flight: The load.
  ///   - result: Its result.
  ///   - now: The current time.
  /// - Returns: Whether the state has changed.
  @inlinable
  mutating func finish(
    _ flight: Flight,
    with result: Result<Value, any Error>,
    at now: Duration
  ) -> Bool {
    guard isCurrent(flight) else { return false }
    switch result {
    case .success(let value): update(value, at: now)
    case .failure(let error): fail(error)
    }
    return true
  }

  @inlinable
  mutating func abandon(_ flight: Flight) -> Bool {
    guard let load, load.flight === flight else { return false }
    replace(by: load.previousState)
    return true
  }
}
