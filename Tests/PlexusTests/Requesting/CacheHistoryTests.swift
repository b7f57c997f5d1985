import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Any history of a cache` {
  @Test(.guarantee(.callersAgreeWithASequentialModel), arguments: CacheKind.allCases, 0..<40)
  func `any history of a cache answers every caller as a simple sequential model does`(
    kind: CacheKind,
    seed: UInt64
  ) async throws {
    var random = SeededRandom(seed: seed)
    var policy = CachePolicy()
    // Callers wait for a soft timeout only if values are often stale, and are no answer then.
    let isSoft = seed / 4 % 2 == 1
    policy.timeToLive = .seconds(isSoft ? 20 : 60)
    policy.softTimeout = isSoft ? .seconds(5) : nil
    policy.staleWhileRevalidate = .seconds(isSoft ? 0 : seed % 3 * 15)
    policy.failureTimeToLive = .seconds(seed % 2 * 20)
    policy.whenUnobserved = seed % 4 < 2 ? .cancel : .finishAndStore
    policy.refreshAhead = .seconds(isSoft ? 0 : seed % 5 * 10)
    let run = HistoryRun(kind: kind, policy: policy)

    for _ in 0..<250 {
      try await run.step(&random)
      let isRight = await run.isAsPredicted()
      try #require(isRight, "\(run.history.suffix(30))")
    }
    try await run.end()
    let isRight = await run.isAsPredicted()
    try #require(isRight, "\(run.history.suffix(30))")
  }
}

/// A cache, and the model that predicts its behavior.
private final class HistoryRun {
  private(set) var history: [String] = []
  private var model: HistoryModel
  private let cache: CacheUnderTest<Int>
  private let clock = ManualClock()
  private let gates: [Gate]
  private let arrived = Gate()
  private let completed = Tally()
  /// The gates of the calls that bring the value of the key, by the keys that they fetch.
  private let arrivals = Guarded<[String: Gate]>([:])
  private let states: Recorder<LoadState<Int>>
  private var references: [(cache: CacheUnderTest<Int>, moment: Int?)] = []
  private var callers: [Task<Int, any Error>] = []
  private var commits: [Int: (gate: Gate, task: Task<Void, any Error>)] = [:]
  private var calls: [Int: (gate: Gate, task: Task<Void, any Error>)] = [:]

  init(kind: CacheKind, policy: CachePolicy) {
    let gates = (0..<600).map { _ in Gate() }
    let tally = Tally()
    let arrived = arrived
    arrived.open()
    cache = kind.makeTagged(policy: policy, clock: clock, bringing: arrivals) {
      let number = tally.increment()
      try await arrived.wait()
      await waitUnmoved(gates[number])
      if let error = HistoryModel.error(of: number) { throw error }
      return number
    }
    self.gates = gates
    model = HistoryModel(policy: policy)
    states = Recorder(cache.subscribe())
    references = [(cache, nil)]
  }

  func step(_ random: inout SeededRandom) async throws {
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<30:
      let recent =
        references.count - 1 - Int.random(in: 0..<min(3, references.count), using: &random)
      request(with: Bool.random(using: &random) ? recent : 0)
    case 30..<36:
      beginUpdate()
    case 36..<38:
      await beginBringing()
    case 38..<41:
      if Bool.random(using: &random) {
        guard let number = calls.keys.sorted().randomElement(using: &random) else { return }
        return await endBringing(number)
      }
      guard let number = model.uncommitted.randomElement(using: &random) else { return }
      await endUpdate(number)
    case 41..<49:
      let isByTag = Bool.random(using: &random)
      history.append(isByTag ? "refresh the tag" : "refresh")
      references.append((isByTag ? cache.refreshTag() : cache.refresh(), model.refresh()))
    case 49..<70:
      let flying = model.flying
      guard let number = flying.randomElement(using: &random) else { return }
      history.append("end \(number)")
      model.end(number)
      gates[number].open()
    case 70..<80:
      guard let caller = model.waiting.randomElement(using: &random) else { return }
      history.append("leave \(caller)")
      model.leave(caller)
      callers[caller].cancel()
    case 80..<82:
      history.append("store")
      cache.store(model.store())
    case 82..<83:
      history.append("prefetch")
      model.prefetch()
      cache.prefetch()
    case 83..<84:
      // With more of them, an update goes below the changes.
      guard model.uncommitted.count <= 8 else { return }
      history.append("update")
      let content = model.update()
      let updated = cache.update { $0 = content ?? 0 }
      if updated != content { history.append("updated to \(updated ?? 0)") }
      try #require(updated == content, "\(history.suffix(30))")
    case 84..<87:
      let isByTag = Bool.random(using: &random)
      history.append(isByTag ? "clear the tag" : "clear")
      model.clear()
      if isByTag { try await cache.clearTag() } else { try await cache.clear() }
    case 87..<89:
      history.append("clear memory")
      model.clearMemory()
      cache.clearMemory()
    default:
      let seconds = [5, 15, 40].randomElement(using: &random) ?? 5
      guard model.advance(by: seconds) else { return }
      history.append("advance \(seconds)")
      clock.advance(by: .seconds(seconds))
    }
  }

  /// Lets all work end.
  func end() async throws {
    while let number = model.flying.first {
      history.append("end \(number)")
      model.end(number)
      gates[number].open()
      guard await isAsPredicted() else { return }
    }
    while let number = model.uncommitted.first {
      await endUpdate(number)
      guard await isAsPredicted() else { return }
    }
    while let number = calls.keys.min() {
      await endBringing(number)
      guard await isAsPredicted() else { return }
    }
  }

  /// Begins a call for another key, which brings the value of the key; a multiplexer has only one key.
  private func beginBringing() async {
    guard case .map(let map) = cache else { return }
    let number = model.beginBringing()
    history.append("begin bringing \(number)")
    let gate = Gate()
    arrivals.withLock { $0["other \(number)"] = gate }
    calls[number] = (gate, begin { _ = try await map.request("other \(number)") })
    await gate.arrivals(1)
  }

  private func endBringing(_ number: Int) async {
    history.append("end bringing \(number)")
    model.endBringing(number)
    guard let call = calls.removeValue(forKey: number) else { return }
    call.gate.open()
    _ = await call.task.result
  }

  private func beginUpdate() {
    let number = model.beginUpdate()
    history.append("begin update \(number)")
    let gate = Gate()
    let task = begin { [cache] in
      try await cache.update(
        optimistically: { $0 = ChangesModel.result(of: number, on: $0) },
        commit: {
          await waitUnmoved(gate)
          if ChangesModel.fails(number) { throw Broken() }
        }
      )
    }
    commits[number] = (gate, task)
  }

  private func endUpdate(_ number: Int) async {
    history.append("end update \(number)")
    model.endUpdate(number)
    guard let commit = commits.removeValue(forKey: number) else { return }
    commit.gate.open()
    _ = await commit.task.result
  }

  private func request(with index: Int) {
    let (reference, moment) = references[index]
    history.append("request \(callers.count) insisting on \(moment.map { "\($0)" } ?? "nothing")")
    model.request(caller: callers.count, insistsOn: moment)
    callers.append(
      begin { [completed] in
        defer { completed.increment() }
        return try await reference.request()
      }
    )
  }

  /// Whether the cache has done exactly what the model has predicted.
  func isAsPredicted() async -> Bool {
    let told = await states.first(model.states.count).map(\.name)
    guard told == model.states else {
      history.append("told \(told.suffix(6)), not \(model.states.suffix(6))")
      return false
    }
    await arrived.arrivals(model.fetches)
    for (caller, expected) in model.takeNewResults() {
      let result = await callers[caller].result
      let name =
        switch result {
        case .success(let value): "\(value)"
        case .failure(let error): "\(type(of: error))"
        }
      guard name == expected else {
        history.append("caller \(caller) got \(name), not \(expected)")
        return false
      }
    }
    guard completed.value == model.resultCount, cache.cachedValue == model.cachedValue else {
      history.append("\(completed.value) callers have ended, not \(model.resultCount)")
      return false
    }
    let statistics = cache.statistics
    let requests = statistics.hits + statistics.staleHits + statistics.misses + statistics.joins
    return requests == callers.count + model.broughtCount
      && statistics.fetches == model.fetches + model.broughtCount
  }
}

extension CacheKind {
  /// Creates a cache of this kind, whose key has a tag if it is a map.
  ///
  /// The fetches of other keys bring the value of that key, too.
  fileprivate func makeTagged(
    policy: CachePolicy,
    clock: ManualClock,
    bringing gates: Guarded<[String: Gate]>,
    onFetch: @escaping @concurrent @Sendable () async throws -> Int
  ) -> CacheUnderTest<Int> {
    guard self == .map else { return make(policy: policy, clock: clock, onFetch: onFetch) }
    return .map(
      MultiplexerMap.bulk(
        policy: policy,
        tagging: { $0 == "key" ? ["tag", "other"] : ["other"] },
        clock: clock
      ) { keys in
        guard let gate = gates.withLock({ $0[keys[0]] }) else {
          return [keys[0]: try await onFetch()]
        }
        await waitUnmoved(gate)
        let number = Int(keys[0].dropFirst(6)) ?? 0
        return [keys[0]: 0, "key": HistoryModel.broughtValue(of: number)]
      }
    )
  }
}

extension CacheUnderTest {
  /// Clears the tag of the key; a multiplexer has no tags and clears its value.
  fileprivate func clearTag() async throws {
    guard case .map(let map) = self else { return try await clear() }
    try await map.clear(tags: ["tag"])
  }

  /// Refreshes the tag of the key; a multiplexer has no tags and refreshes its value.
  fileprivate func refreshTag() -> Self {
    guard case .map(let map) = self else { return refresh() }
    return .map(map.refresh(tags: ["tag"]))
  }
}
