import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce, .timeLimit(.minutes(20))) struct `Any history of a cache` {
  @Test(arguments: CacheKind.allCases, 0..<40)
  func `answers every caller as a simple sequential model does`(
    kind: CacheKind,
    seed: UInt64
  ) async throws {
    var random = SeededHistory(seed: seed)
    var policy = CachePolicy()
    policy.timeToLive = .seconds(60)
    policy.staleWhileRevalidate = .seconds(seed % 3 * 15)
    policy.failureTimeToLive = .seconds(seed % 2 * 20)
    policy.whenUnobserved = seed % 4 < 2 ? .cancel : .finishAndStore
    policy.refreshAhead = .seconds(seed % 5 * 10)
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
  private let states: Recorder<LoadState<Int>>
  private var references: [(cache: CacheUnderTest<Int>, moment: Int?)] = []
  private var callers: [Task<Int, any Error>] = []

  init(kind: CacheKind, policy: CachePolicy) {
    let gates = (0..<600).map { _ in Gate() }
    let tally = Tally()
    let arrived = arrived
    arrived.open()
    cache = kind.make(policy: policy, clock: clock) {
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

  func step(_ random: inout SeededHistory) async throws {
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<35:
      request(
        with: references.count - 1 - Int.random(in: 0..<min(3, references.count), using: &random)
      )
    case 35..<45:
      history.append("refresh")
      references.append((cache.refresh(), model.refresh()))
    case 45..<70:
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
      history.append("update")
      let content = model.update()
      let updated = cache.update { $0 = content ?? 0 }
      if updated != content { history.append("updated to \(updated ?? 0)") }
      try #require(updated == content, "\(history.suffix(30))")
    case 84..<87:
      history.append("clear")
      model.clear()
      try await cache.clear()
    case 87..<89:
      history.append("clear memory")
      model.clearMemory()
      cache.clearMemory()
    default:
      let seconds = [5, 15, 40].randomElement(using: &random) ?? 5
      history.append("advance \(seconds)")
      model.now += seconds
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
    return requests == callers.count && statistics.fetches == model.fetches
  }
}

private struct SeededHistory: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) {
    state = seed &* 0x9E37_79B9_7F4A_7C15 &+ 99
  }

  mutating func next() -> UInt64 {
    state ^= state << 13
    state ^= state >> 7
    state ^= state << 17
    return state &* 0x2545_F491_4F6C_DD1D
  }
}
