/// The pure state of a publisher: the value, its time of arrival, the place at which it continues, and the current load.
///
/// Invariants:
///
/// - At most one load is current. Its result is used only if there was no update, failure or reset since it started,
///   and no load that starts again from the beginning.
/// - Only a reset drops a value, before the reset is visible. A load that starts again replaces it by its result.
@usableFromInline
struct LoadingState<Value: Sendable, Cursor: Sendable>: Sendable {
  /// The load whose result will be used, unless a newer change comes first.
  @usableFromInline
  struct CurrentLoad: Sendable {
    @usableFromInline let flight: Flight
    /// Whether its result follows the value instead of replacing it.
    @usableFromInline let continues: Bool
    /// The state before all loads, which is restored if the load is abandoned.
    @usableFromInline let previousState: LoadState<Value>

    @inlinable
    init(flight: Flight, continues: Bool, previousState: LoadState<Value>) {
      self.flight = flight
      self.continues = continues
      self.previousState = previousState
    }
  }

  /// The value that is requested.
  @usableFromInline
  enum Request: Sendable {
    /// The value from its beginning.
    case first
    /// The part that follows the known value.
    case next
    /// Any loaded value that is not stale.
    case fresh
  }

  /// The answer to a request.
  @usableFromInline
  enum Answer: Sendable {
    /// There is nothing to load.
    case known(Value)
    /// The request waits for the current load.
    case joins(Flight)
    /// The request starts a load, which follows the known value or replaces it.
    case begins(continuing: Bool)
  }

  /// The parts that a change has replaced.
  @usableFromInline
  struct Former: Sendable {
    @usableFromInline var current = LoadState<Value>.unknown
    @usableFromInline var load: CurrentLoad?
    @usableFromInline var next: Cursor?

    @inlinable
    init() {}
  }

  @usableFromInline private(set) var current = LoadState<Value>.unknown
  /// The time at which the loaded value arrived, since the creation of the publisher.
  @usableFromInline var loadedAt = Duration.zero
  /// The place at which the value continues; `nil` before its beginning and after its end.
  @usableFromInline private(set) var next: Cursor?
  @usableFromInline private(set) var load: CurrentLoad?
  /// The parts that the last change has replaced, until they are taken: their release can run other code.
  @usableFromInline var former = Former()

  @inlinable
  init() {}

  /// Returns the parts that the last change has replaced.
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

  mutating func replaceNext(by new: Cursor?) {
    swap(&former.next, &next)
    next = new
  }

  /// Returns whether the result of a load will be used.
  @inlinable
  func isCurrent(_ flight: Flight) -> Bool {
    load?.flight === flight
  }

  /// Returns whether the loaded value has reached an age.
  @inlinable
  func isStale(after age: Duration?, at now: Duration) -> Bool {
    guard let age, case .loaded = current else { return false }
    return now - loadedAt >= age
  }

  /// Returns the time until the loaded value reaches an age, if it has not yet.
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
    replaceNext(by: nil)
  }

  // MARK: - Loads

  /// Returns the answer to a request.
  ///
  /// - Parameters:
  ///   - request: The requested value.
  ///   - isStale: Whether the loaded value is stale.
  /// - Returns: The answer.
  @inlinable
  func answer(to request: Request, isStale: Bool = false) -> Answer {
    if request == .fresh, !isStale, case .loaded(let value) = current { return .known(value) }
    if let load {
      // A request to start again is not served by a load that continues the old value.
      if !load.continues || request == .next { return .joins(load.flight) }
    } else if request == .next, next == nil, let value = current.value {
      return .known(value)
    }
    return .begins(continuing: request == .next && current.value != nil)
  }

  /// Starts a load, in place of the current one if there is one.
  ///
  /// - Parameters:
  ///   - flight: The load.
  ///   - continues: Whether its result follows the value.
  /// - Returns: The place at which it starts; `nil` for the beginning.
  @inlinable
  mutating func begin(_ flight: Flight, continuing continues: Bool) -> Cursor? {
    let previousState = load?.previousState ?? current
    replace(
      by: .loading(previous: current.value),
      load: CurrentLoad(flight: flight, continues: continues, previousState: previousState)
    )
    return continues ? next : nil
  }

  /// Ends a load.
  ///
  /// - Parameters:
  ///   - flight: The load.
  ///   - result: Its result.
  ///   - accept: Records the result if the load has succeeded.
  /// - Returns: Whether the state has changed.
  @inlinable
  mutating func finish<Output>(
    _ flight: Flight,
    with result: Result<Output, any Error>,
    _ accept: (inout Self, Output) -> Void
  ) -> Bool {
    guard isCurrent(flight) else { return false }
    switch result {
    case .success(let output): accept(&self, output)
    case .failure(let error): fail(error)
    }
    return true
  }

  /// Abandons a load after its last caller has left.
  ///
  /// - Returns: Whether the state has changed.
  @inlinable
  mutating func abandon(_ flight: Flight) -> Bool {
    guard let load, load.flight === flight else { return false }
    replace(by: load.previousState)
    return true
  }
}
