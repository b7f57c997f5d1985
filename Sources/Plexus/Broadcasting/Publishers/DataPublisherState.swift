/// The pure state of ``DataPublisher``: the value, its time of arrival, and the current load.
///
/// Invariants:
///
/// - At most one load is current. Its result is published only if there was no update, failure or reset since it
///   started.
/// - Only a reset drops a value, before the reset is visible.
@usableFromInline
struct DataPublisherState<Value: Sendable>: Sendable {
  /// The load whose result will be published, unless a newer change comes first.
  @usableFromInline
  struct CurrentLoad: Sendable {
    @usableFromInline let id: PublisherLoad.ID
    /// The state before it started, which is restored if the load is abandoned.
    @usableFromInline let previousState: LoadState<Value>

    @inlinable
    init(id: PublisherLoad.ID, previousState: LoadState<Value>) {
      self.id = id
      self.previousState = previousState
    }
  }

  @usableFromInline var current = LoadState<Value>.unknown
  /// The time at which the loaded value arrived, since the creation of the publisher.
  @usableFromInline var loadedAt = Duration.zero
  @usableFromInline var load: CurrentLoad?
  @usableFromInline var lastID = PublisherLoad.ID(rawValue: 0)

  @inlinable
  init() {}

  /// The load that further callers join.
  @inlinable var currentLoad: PublisherLoad.ID? { load?.id }

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

  /// Records that a load has started elsewhere.
  @inlinable
  mutating func startLoading() {
    current = .loading(previous: current.value)
  }

  /// Records a new value from elsewhere.
  @inlinable
  mutating func update(_ value: Value, at now: Duration) {
    load = nil
    current = .loaded(value)
    loadedAt = now
  }

  /// Records that a load has failed elsewhere.
  @inlinable
  mutating func fail(_ error: any Error) {
    load = nil
    current = .failed(error, previous: current.value)
  }

  /// Drops everything.
  @inlinable
  mutating func reset() {
    load = nil
    current = .unknown
  }

  /// Starts a load; there is no current one.
  @inlinable
  mutating func beginLoad() -> PublisherLoad.ID {
    lastID = PublisherLoad.ID(rawValue: lastID.rawValue + 1)
    load = CurrentLoad(id: lastID, previousState: current)
    startLoading()
    return lastID
  }

  /// Ends a load.
  ///
  /// - Returns: Whether the state has changed.
  @inlinable
  mutating func finishLoad(
    _ id: PublisherLoad.ID,
    with result: Result<Value, any Error>,
    at now: Duration
  ) -> Bool {
    guard load?.id == id else { return false }
    switch result {
    case .success(let value): update(value, at: now)
    case .failure(let error): fail(error)
    }
    return true
  }

  /// Abandons a load after its last caller has left.
  ///
  /// - Returns: Whether the state has changed.
  @inlinable
  mutating func abandonLoad(_ id: PublisherLoad.ID) -> Bool {
    guard let load, load.id == id else { return false }
    current = load.previousState
    self.load = nil
    return true
  }
}

extension PublisherLoad {
  /// The number of a load.
  @usableFromInline
  struct ID: Hashable, Sendable {
    @usableFromInline let rawValue: Int

    @inlinable
    init(rawValue: Int) {
      self.rawValue = rawValue
    }
  }
}
