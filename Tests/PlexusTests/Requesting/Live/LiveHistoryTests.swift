import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Any history of live subscriptions` {
  /// Each part has 500 histories: 4,000 in all.
  @Test(.guarantee(.liveDataAgreesWithASequentialModel), arguments: 0..<8)
  func `live subscriptions behave as in a sequential model, with failures and clears, stress`(
    part: Int
  ) async throws {
    for seed in stride(from: part, to: 4_000, by: 8) {
      var random = SeededRandom(seed: UInt64(seed))
      let run = LiveRun(&random)
      for _ in 0..<Int.random(in: 4...16, using: &random) {
        try await run.step(&random)
        await run.compare()
        try #require(run.difference == nil, "\(seed): \(run.events), \(run.difference ?? "")")
      }
    }
  }
}

/// A cached value with live subscriptions, and the model that predicts its behavior.
private final class LiveRun {
  private let clock = ManualClock()
  private let origin = HeldOrigin()
  private let map: MultiplexerMap<Int, Int>
  private var model: LiveHistoryModel
  private let told = Log<String>()
  private let reader: Task<Void, Never>
  private var references: [(map: MultiplexerMap<Int, Int>, moment: Int?)] = []
  private var callers: [Task<Int, any Error>] = []
  private var live: [Int: (subscription: Subscription<LoadState<Int>>, signals: LiveSignals)] = [:]
  private(set) var events: [String] = []
  private(set) var difference: String?

  init(_ random: inout SeededRandom) {
    let cancels = Bool.random(using: &random)
    let failureTimeToLive = Bool.random(using: &random) ? 15 : 0
    let policy = CachePolicy(
      timeToLive: .seconds(LiveHistoryModel.timeToLive),
      failureTimeToLive: .seconds(failureTimeToLive),
      whenUnobserved: cancels ? .cancel : .finishAndStore
    )
    model = LiveHistoryModel(cancelsUnobserved: cancels, failureTimeToLive: failureTimeToLive)
    events = ["cancels: \(cancels), remembers: \(failureTimeToLive)"]
    map = MultiplexerMap(
      policy: policy,
      tagging: { _ in ["account"] },
      clock: clock,
      onKeyFetch: { [origin] (_: Int) in try await origin.fetch() }
    )
    references = [(map, nil)]
    let states = map.subscription(to: 7, bufferingPolicy: .unbounded)
    reader = Task.detached { [told] in
      for await state in states {
        switch state {
        case .loaded(let value): told.append("loaded \(value)")
        case .failed(let error, _): told.append("failed \((error as? Broken)?.reason ?? "?")")
        case .unknown, .loading: break
        }
      }
    }
  }

  deinit {
    reader.cancel()
    origin.endAll()
  }

  func step(_ random: inout SeededRandom) async throws {
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<22: request(&random)
    case 22..<32:
      events.append("refresh")
      references.append((map.refresh(7), model.refresh()))
    case 32..<52: await end(&random)
    case 52..<60:
      guard let caller = model.waiting.randomElement(using: &random) else { return }
      events.append("leave \(caller)")
      model.leave(caller)
      callers[caller].cancel()
    case 60..<72: await join(&random)
    case 72..<77:
      guard let id = live.keys.sorted().randomElement(using: &random) else { return }
      events.append("end subscription \(id)")
      model.endMember(id)
      live[id] = nil
    case 77..<84:
      let signalled = live.keys.sorted().filter { model.members[$0]?.hasSignals == true }
      guard let id = signalled.randomElement(using: &random) else { return }
      events.append("signal \(id)")
      model.signal()
      await live[id]?.signals.send()
    case 84..<86:
      events.append("store")
      map.store(model.store(), for: 7)
    case 86..<91: try await clear(&random)
    default:
      let seconds = [4, 11, 40].randomElement(using: &random) ?? 4
      events.append("advance \(seconds)")
      model.advance(by: seconds)
      clock.advance(by: .seconds(seconds))
    }
  }

  private func request(_ random: inout SeededRandom) {
    let index = Bool.random(using: &random) ? references.count - 1 : 0
    let (map, moment) = references[index]
    let isCancelled = Int.random(in: 0..<6, using: &random) == 0
    events.append(
      "request \(callers.count) insisting on \(moment ?? 0)\(isCancelled ? ", cancelled" : "")"
    )
    model.request(caller: callers.count, insistsOn: moment, isCancelled: isCancelled)
    callers.append(
      begin {
        if isCancelled { withUnsafeCurrentTask { $0?.cancel() } }
        return try await map.request(7)
      }
    )
  }

  private func end(_ random: inout SeededRandom) async {
    let flying = model.flying.filter(model.isObservable)
    guard let number = flying.randomElement(using: &random) else { return }
    let fails = Bool.random(using: &random)
    events.append("end \(number)\(fails ? ", failing" : "")")
    let isCurrent = model.isRunning(number)
    model.end(number, fails: fails)
    origin.end(number, fails: fails)
    if isCurrent { await told.contains(fails ? "failed \(number)" : "loaded \(number)") }
  }

  private func join(_ random: inout SeededRandom) async {
    var member = LiveHistoryModel.Member()
    switch Int.random(in: 0..<4, using: &random) {
    case 0: member.isWhenStale = true
    case 1: member.interval = [7, 10].randomElement(using: &random)
    case 2: member.hasSignals = true
    default: (member.isWhenStale, member.hasSignals) = (true, true)
    }
    let signals = LiveSignals()
    var reasons: [Refetching] = []
    if member.isWhenStale { reasons.append(.whenStale) }
    if let interval = member.interval { reasons.append(.every(.seconds(interval))) }
    if member.hasSignals { reasons.append(.on(signals)) }
    guard let first = reasons.first else { return }
    let id = events.count
    events.append("subscription \(id) of \(member)")
    model.join(id, member)
    let refetching = reasons.dropFirst().reduce(first) { $0.and($1) }
    live[id] = (map[7].subscription(refetching: refetching), signals)
    if member.hasSignals { await signals.areHandled() }
  }

  private func clear(_ random: inout SeededRandom) async throws {
    // Otherwise two fetches begin at once, in any order.
    guard !model.hasQueuedCallers else { return }
    switch Int.random(in: 0..<3, using: &random) {
    case 0:
      events.append("clear")
      model.clear(isSignedOut: false)
      try await map.clear(7)
    case 1:
      events.append("sign out")
      model.clear(isSignedOut: true)
      try await map.clear(tags: ["account"])
    default:
      events.append("clear memory")
      model.clearMemory()
      map.clearMemory(7)
    }
  }

  /// Waits for all that the model has predicted, and looks for anything else.
  func compare() async {
    await origin.begun.first(model.fetches)
    await origin.cancelled.first(model.cancelled.count)
    for (caller, expected) in model.takeResults() {
      let result = await callers[caller].result
      let name =
        switch result {
        case .success(let value): "\(value)"
        case .failure(let error): "\(type(of: error))"
        }
      if name != expected { difference = "caller \(caller) got \(name), not \(expected)" }
    }
    // A timer can be about to be replaced by an earlier one.
    let wake: Duration? = model.nextWake.map { .seconds($0) }
    var attempts = 0
    while clock.nextDeadline?.offset != wake, attempts < 100_000 {
      await Task.detached {}.value
      attempts += 1
    }
    if clock.nextDeadline?.offset != wake { difference = "does not wake at \(model.nextWake ?? 0)" }
    let statistics = map.statistics.counts
    let expected = CacheStatistics(
      hits: model.hits,
      misses: model.misses,
      joins: model.joins,
      fetches: model.fetches,
      failures: model.failures
    )
    if statistics != expected { difference = "\(statistics), not \(expected)" }
    if origin.begun.count != model.fetches { difference = "\(origin.begun.count) fetches began" }
    if Set(origin.cancelled.entries) != model.cancelled {
      difference = "\(origin.cancelled.entries) were cancelled, not \(model.cancelled)"
    }
    if map.cachedValue(7) != model.cachedValue {
      difference = "\(map.cachedValue(7) ?? 0) is cached, not \(model.cachedValue ?? 0)"
    }
  }
}

/// An origin whose fetches end on command; the value of a fetch is its number.
private final class HeldOrigin: Sendable {
  private struct State {
    var count = 0
    var gates: [Int: Gate] = [:]
    var failures: Set<Int> = []
  }

  /// The numbers of the fetches.
  let begun = Log<Int>()
  /// The numbers of the fetches that were cancelled before their end.
  let cancelled = Log<Int>()
  private let state = Guarded(State())

  func fetch() async throws -> Int {
    let (number, gate) = state.withLock { state in
      state.count += 1
      let gate = Gate()
      state.gates[state.count] = gate
      return (state.count, gate)
    }
    begun.append(number)
    do {
      try await gate.wait()
    } catch {
      cancelled.append(number)
      throw error
    }
    if state.withLock({ $0.failures.contains(number) }) { throw Broken(reason: "\(number)") }
    return number
  }

  func endAll() {
    for gate in state.withLock({ $0.gates.values }) { gate.open() }
  }

  func end(_ number: Int, fails: Bool) {
    let gate = state.withLock { state in
      if fails { state.failures.insert(number) }
      return state.gates[number]
    }
    gate?.open()
  }
}
