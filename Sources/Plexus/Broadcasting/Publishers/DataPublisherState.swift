/// The synchronous heart of ``DataPublisher``: what is known, since when, and which load may say more.
///
/// Invariants:
///
/// - At most one load is current. Its result is published only if nothing newer than its beginning
///   has been said: an update, a failure or a reset makes it a late result.
/// - A value is dropped by a reset only, and before the reset can be seen.
@usableFromInline
struct DataPublisherState<Value: Sendable>: Sendable {
  /// The load whose result will be published, unless something newer comes first.
  @usableFromInline
  struct CurrentLoad: Sendable {
    @usableFromInline let id: PublisherLoad.ID
    /// What was known before it began, which an abandoned load leaves behind.
    @usableFromInline let previousState: LoadState<Value>

    @inlinable
    init(id: PublisherLoad.ID, previousState: LoadState<Value>) {
      self.id = id
      self.previousState = previousState
    }
  }

  @usableFromInline var current = LoadState<Value>.unknown
  /// When the loaded value arrived, since the publisher was made.
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

  /// Returns how long it takes until the loaded value reaches an age, if it has not yet.
  func timeUntilStale(after age: Duration?, at now: Duration) -> Duration? {
    guard let age, case .loaded = current, now - loadedAt < age else { return nil }
    return age - (now - loadedAt)
  }

  /// Loading has begun somewhere else.
  @inlinable
  mutating func startLoading() {
    current = .loading(previous: current.value)
  }

  /// A new value has arrived from somewhere else.
  @inlinable
  mutating func update(_ value: Value, at now: Duration) {
    load = nil
    current = .loaded(value)
    loadedAt = now
  }

  /// Loading has failed somewhere else.
  @inlinable
  mutating func fail(_ error: any Error) {
    load = nil
    current = .failed(error, previous: current.value)
  }

  /// Everything known is to be forgotten.
  @inlinable
  mutating func reset() {
    load = nil
    current = .unknown
  }

  /// A load of our own begins; there is no current one.
  @inlinable
  mutating func beginLoad() -> PublisherLoad.ID {
    lastID = PublisherLoad.ID(rawValue: lastID.rawValue + 1)
    load = CurrentLoad(id: lastID, previousState: current)
    startLoading()
    return lastID
  }

  /// A load has ended.
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

  /// The last caller of a load has left.
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
