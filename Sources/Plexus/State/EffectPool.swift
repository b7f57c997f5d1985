/// The running effects of a store, which end with it.
@usableFromInline
final class EffectPool: Sendable {
  /// A running effect.
  private struct Effect: Sendable {
    /// The task, once it is known.
    var task: Task<Void, Never>?
    var isCancelled = false
    /// The hash of its id, if it has one.
    var bucket: Int?
  }

  private struct State: Sendable {
    var effects: [Int: Effect] = [:]
    /// The numbers of the effects with an id, by the hash of the id.
    ///
    /// Ids are user types: they are hashed and compared without the lock.
    var named: [Int: [(id: AnyID, number: Int)]] = [:]
    var lastNumber = 0
    var isClosed = false

    mutating func add(_ name: (id: AnyID, bucket: Int)?) -> Int? {
      guard !isClosed else { return nil }
      lastNumber += 1
      effects[lastNumber] = Effect(bucket: name?.bucket)
      if let name { named[name.bucket, default: []].append((name.id, lastNumber)) }
      return lastNumber
    }

    /// - Returns: The objects to release with no lock held.
    mutating func remove(_ number: Int) -> (Effect?, AnyID?) {
      let effect = effects.removeValue(forKey: number)
      guard let bucket = effect?.bucket,
        let index = named[bucket]?.firstIndex(where: { $0.number == number })
      else { return (effect, nil) }
      let name = named[bucket]?.remove(at: index)
      if named[bucket]?.isEmpty == true { named[bucket] = nil }
      return (effect, name?.id)
    }
  }

  private let state = Locked(State())

  @usableFromInline
  init() {}

  /// Starts an effect in its own task, unless the store was released.
  ///
  /// - Parameters:
  ///   - scope: The action that it belongs to, if a caller waits for it.
  ///   - priority: The priority of the task; `nil` for that of the caller.
  ///   - effect: The effect.
  @usableFromInline
  func run(
    in scope: Scope?,
    priority: TaskPriority? = nil,
    _ effect: @escaping @concurrent @Sendable () async -> Void
  ) {
    guard let number = state.withLock({ $0.add(nil) }) else { return }
    start(number, in: scope, priority: priority, effect)
  }

  /// Starts an effect with an id, and cancels earlier ones with that id if requested.
  func run(
    id: AnyID,
    cancelsInFlight: Bool,
    in scope: Scope?,
    priority: TaskPriority?,
    _ effect: @escaping @concurrent @Sendable () async -> Void
  ) {
    let bucket = id.hashValue
    guard let number = state.withLock({ $0.add((id, bucket)) }) else { return }
    if cancelsInFlight { cancel(id, bucket: bucket, before: number) }
    start(number, in: scope, priority: priority, effect)
  }

  /// Cancels the effects with an id.
  func cancel(id: AnyID) {
    cancel(id, bucket: id.hashValue, before: .max)
  }

  private func cancel(_ id: AnyID, bucket: Int, before limit: Int) {
    let candidates = state.withLock { $0.named[bucket] ?? [] }
    for (other, number) in candidates where number < limit && other == id {
      let task = state.withLock { state in
        state.effects[number]?.isCancelled = true
        return state.effects[number]?.task
      }
      task?.cancel()
    }
  }

  private func start(
    _ number: Int,
    in scope: Scope?,
    priority: TaskPriority?,
    _ effect: @escaping @concurrent @Sendable () async -> Void
  ) {
    scope?.enter()
    let task = Task.detached(priority: priority ?? Task.currentPriority) {
      if let scope {
        await WaitScope.local.withValue(scope.flight, operation: effect)
      } else {
        await effect()
      }
      self.end(number)
      scope?.leave()
    }
    let isCancelled = state.withLock { state in
      state.effects[number]?.task = task
      return state.isClosed || state.effects[number]?.isCancelled == true
    }
    if isCancelled { task.cancel() }
  }

  /// Cancels all effects; later ones are not started.
  func close() {
    let (effects, named) = state.withLock { state in
      state.isClosed = true
      defer { (state.effects, state.named) = ([:], [:]) }
      return (state.effects, state.named)
    }
    for effect in effects.values { effect.task?.cancel() }
    withExtendedLifetime(named) {}
  }

  private func end(_ number: Int) {
    state.release { $0.remove(number) }
  }
}
