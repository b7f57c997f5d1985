import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Any history of a cache with a limit` {
  @Test(.guarantee(.fetchesStayWithinTheirLimit), arguments: 0..<40)
  func `any history of a limited cache runs the fetches that a model with a queue does`(
    seed: UInt64
  ) async throws {
    var random = SeededRandom(seed: seed)
    let run = LimitRun(
      maximum: Int(seed % 3) + 1,
      waiting: [nil, 0, 2, 5][Int(seed / 3 % 4)],
      whenUnobserved: seed % 2 == 0 ? .cancel : .finishAndStore,
      cacher: seed / 2 % 2 == 0 ? nil : SimpleCacher()
    )
    for _ in 0..<200 {
      await run.step(&random)
      let isRight = await run.isAsPredicted()
      try #require(isRight, "\(run.history.suffix(20))")
    }
    while await run.endOne() {
      let isRight = await run.isAsPredicted()
      try #require(isRight, "\(run.history.suffix(20))")
    }
  }
}

/// A map with a limit, and a model of the fetches of its keys. A key is requested again only after it was cleared.
private final class LimitRun {
  private struct Fetch {
    var number: Int
    let key: Int
    /// Its callers; without any, it waits behind the ones that have some.
    var callers: Set<Int>
    var isPrefetch = false
    /// Whether its key was cleared since it was requested, or its callers have left.
    var isDetached = false
  }

  private(set) var history: [String] = []
  private let maximum: Int
  private let room: Int?
  private let cancels: Bool
  private let map: MultiplexerMap<Int, Int>
  private let begun = Guarded<[Int: Gate]>([:])
  private let arrivals = Gate()
  private let events: Recorder<CacheEvent>
  private var running: [Fetch] = []
  private var waiting: [Fetch] = []
  private var stored: Set<Int> = []
  private var callers: [Int: Task<Int, any Error>] = [:]
  private var lastCaller = 0
  private var lastFetch = 0
  private var lastPrefetch = 100
  /// The number of events of the map.
  private var eventCount = 0
  private var isRight = true

  init(
    maximum: Int,
    waiting: Int?,
    whenUnobserved: CachePolicy.UnobservedFetch,
    cacher: SimpleCacher?
  ) {
    self.maximum = maximum
    room = waiting
    cancels = whenUnobserved == .cancel
    arrivals.open()
    let tally = Tally()
    map = MultiplexerMap(
      policy: LimitedOrigin.policy(maximum, waiting: waiting) {
        $0.whenUnobserved = whenUnobserved
      },
      cacher: cacher
    ) { [begun, arrivals] key in
      let gate = Gate()
      let number = tally.increment()
      begun.withLock { $0[number] = gate }
      try? await arrivals.wait()
      await waitUnmoved(gate)
      return key
    }
    events = Recorder(map.events())
  }

  func step(_ random: inout SeededRandom) async {
    let key = Int.random(in: 0..<8, using: &random)
    switch Int.random(in: 0..<20, using: &random) {
    case 0..<8: await request(key)
    case 8..<9:
      guard let fetch = waiting.filter(\.isPrefetch).randomElement(using: &random) else { return }
      await request(fetch.key)
    case 9..<10: prefetch()
    case 10..<11:
      // It serves the refresh, since it has not begun.
      guard let fetch = waiting.filter({ !$0.isDetached }).randomElement(using: &random) else {
        return
      }
      history.append("refresh \(fetch.key)")
      await request(fetch.key, of: map.refresh(fetch.key))
    case 11..<13:
      guard let caller = callers.keys.sorted().randomElement(using: &random) else { return }
      await leave(caller)
    case 13..<15: await clear(key)
    default:
      guard let index = running.indices.randomElement(using: &random) else { return }
      await end(running[index].number)
    }
  }

  /// Ends a running fetch, if there is one.
  func endOne() async -> Bool {
    guard let number = running.first?.number else { return false }
    await end(number)
    return true
  }

  private func request(
    _ key: Int,
    of refreshed: MultiplexerMap<Int, Int>? = nil
  ) async {
    lastCaller += 1
    let (caller, map) = (lastCaller, refreshed ?? map)
    history.append("\(caller) requests \(key)")
    callers[caller] = begin { try await map.request(key) }
    if stored.contains(key) {
      callers[caller] = nil
    } else if let index = running.firstIndex(where: { $0.key == key && !$0.isDetached }) {
      running[index].callers.insert(caller)
    } else if let index = waiting.firstIndex(where: { $0.key == key && !$0.isDetached }) {
      waiting[index].callers.insert(caller)
    } else if !enter(Fetch(number: 0, key: key, callers: [caller])) {
      let result = await callers.removeValue(forKey: caller)?.result
      isRight = isRight && result?.error as? MultiplexerError == .overloaded
    }
  }

  /// Prefetches a key that was never requested: when a caller can join the fetch is known only until it makes room.
  private func prefetch() {
    lastPrefetch += 1
    let (key, map) = (lastPrefetch, map)
    history.append("prefetch \(key)")
    // With the priority of the callers.
    _ = begin { map.prefetch([key]) }
    _ = enter(Fetch(number: 0, key: key, callers: [], isPrefetch: true))
  }

  /// Returns whether there is room for a fetch.
  private func enter(_ fetch: Fetch) -> Bool {
    guard running.count >= maximum else {
      start(fetch)
      return true
    }
    if let room, waiting.count >= room {
      let last = waiting.lastIndex(where: \.callers.isEmpty)
      guard !fetch.callers.isEmpty, let last else { return false }
      waiting.remove(at: last)
    }
    waiting.append(fetch)
    return true
  }

  private func start(_ fetch: Fetch) {
    lastFetch += 1
    running.append(fetch)
    running[running.count - 1].number = lastFetch
  }

  private func leave(_ caller: Int) async {
    history.append("\(caller) leaves")
    guard let task = callers.removeValue(forKey: caller) else { return }
    task.cancel()
    let value = try? await task.value
    isRight = isRight && value == nil
    if let index = waiting.firstIndex(where: { $0.callers.contains(caller) }) {
      waiting[index].callers.remove(caller)
      let isGone = waiting[index].callers.isEmpty
      if isGone, !waiting[index].isPrefetch || waiting[index].isDetached {
        waiting.remove(at: index)
      }
    } else if let index = running.firstIndex(where: { $0.callers.contains(caller) }) {
      running[index].callers.remove(caller)
      guard cancels, running[index].callers.isEmpty, !running[index].isPrefetch else { return }
      running[index].isDetached = true
    }
  }

  private func clear(_ key: Int) async {
    history.append("clear \(key)")
    try? await map.clear(key)
    eventCount += 1
    stored.remove(key)
    for index in running.indices where running[index].key == key {
      running[index].isDetached = true
    }
    for index in waiting.indices where waiting[index].key == key {
      waiting[index].isDetached = true
    }
    waiting.removeAll { $0.isDetached && $0.callers.isEmpty }
  }

  private func end(_ number: Int) async {
    guard let index = running.firstIndex(where: { $0.number == number }) else { return }
    let fetch = running.remove(at: index)
    history.append("end \(number) of \(fetch.key)")
    begun.withLock { $0[number] }?.open()
    for caller in fetch.callers {
      let value = try? await callers.removeValue(forKey: caller)?.value
      if value != fetch.key { isRight = false }
    }
    eventCount += 1
    if !fetch.isDetached { stored.insert(fetch.key) }
    guard let index = waiting.firstIndex(where: { !$0.callers.isEmpty }) ?? waiting.indices.first
    else {
      return
    }
    start(waiting.remove(at: index))
  }

  /// Whether the map has done exactly what the model has predicted.
  func isAsPredicted() async -> Bool {
    await arrivals.arrivals(lastFetch)
    _ = await events.first(eventCount)
    let statistics = map.statistics
    guard statistics.running == running.count, statistics.waiting == waiting.count,
      statistics.fetches == lastFetch
    else {
      history.append("\(statistics.waiting) wait, not \(waiting.count); \(statistics)")
      return false
    }
    return isRight && Set(map.keys) == stored
  }
}

extension Result {
  fileprivate var error: Failure? {
    if case .failure(let error) = self { error } else { nil }
  }
}
