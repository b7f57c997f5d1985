/// The running effects of a store, which end with it.
@usableFromInline
final class EffectPool: Sendable {
  /// A running effect.
  private struct Effect: Sendable {
    let number: Int
    let task = TaskSlot()
    /// The hash of its id, if it has one.
    let bucket: Int?
  }

  /// The id of an effect.
  struct Name: Sendable {
    let id: AnyID
    /// Whether earlier effects with the id are cancelled.
    let cancelsInFlight: Bool
  }

  private struct State: Sendable {
    var effects: [Int: Effect] = [:]
    /// The numbers of the effects with an id, by the hash of the id.
    ///
    /// Ids are user types: they are hashed and compared without the lock.
    var named: [Int: [(id: AnyID, number: Int)]] = [:]
    var lastNumber = 0
    var isClosed = false

    mutating func add(_ id: AnyID?, bucket: Int?) -> Effect? {
      guard !isClosed else { return nil }
      lastNumber += 1
      let effect = Effect(number: lastNumber, bucket: bucket)
      effects[lastNumber] = effect
      if let id, let bucket { named[bucket, default: []].append((id, lastNumber)) }
      return effect
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
  ///   - name: Its id, if it has one.
  ///   - scope: The action that it belongs to, if a caller waits for it.
  ///   - priority: The priority of the task; `nil` for that of the caller.
  ///   - body: The work.
  func run(
    _ name: Name? = nil,
    in scope: Dispatch?,
    priority: TaskPriority? = nil,
    _ body: @escaping @concurrent @Sendable () async -> Void
  ) {
    let bucket = name?.id.hashValue
    guard let effect = state.withLock({ $0.add(name?.id, bucket: bucket) }) else { return }
    if let name, name.cancelsInFlight { cancel(id: name.id, before: effect.number) }
    scope?.enter()
    effect.task.start {
      Task.detached(priority: priority ?? Task.currentPriority) {
        if let scope {
          await WaitScope.local.withValue(scope.flight, operation: body)
        } else {
          await body()
        }
        self.end(effect.number)
        scope?.leave()
      }
    }
  }

  /// Cancels the effects with an id.
  ///
  /// - Parameters:
  ///   - id: The id.
  ///   - limit: The number of the first effect that is not cancelled.
  func cancel(id: AnyID, before limit: Int = .max) {
    let bucket = id.hashValue
    let candidates = state.withLock { $0.named[bucket] ?? [] }
    for (other, number) in candidates where number < limit && other == id {
      state.withLock { $0.effects[number]?.task }?.cancel()
    }
  }

  /// Cancels all effects; later ones are not started.
  func close() {
    let former = state.withLock { state in
      let former = state
      state = State(lastNumber: former.lastNumber, isClosed: true)
      return former
    }
    for effect in former.effects.values { effect.task.cancel() }
  }

  private func end(_ number: Int) {
    state.release { $0.remove(number) }
  }
}
