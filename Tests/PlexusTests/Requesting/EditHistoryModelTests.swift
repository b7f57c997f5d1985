import PlexusTesting
import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `Any history of changes to a value` {
  @Test(.guarantee(.updatesAgreeWithASimpleModel), arguments: 0..<8)
  func `a value behaves as in a simple model, without flicker, and its costs are counted once`(
    part: Int
  ) async throws {
    for seed in stride(from: part, to: 2_400, by: 8) {
      var random = SeededRandom(seed: UInt64(seed))
      let run = EditRun(seed: seed)
      for _ in 0..<Int.random(in: 3...24, using: &random) { try await run.step(&random) }
      try await run.end()
    }
  }
}

/// A model of one key: a value from the origin or the caller, and a list of changes on top of it.
private struct EditModel {
  private struct Change {
    let number: Int
    /// Whether its commit has not ended; updates are never open.
    var isOpen: Bool
    let isUpdate: Bool
    /// Whether it was committed during the running fetch, which can lack it.
    var isLate = false
    /// Whether only the running fetch can lack it: there is no value, and no open change below it.
    var isForFetch = false
    /// Whether the value below it was replaced or removed since.
    var isOvertaken = false
  }

  private(set) var history: [String] = []
  private(set) var shownValues: [[Int]?] = [nil]
  private(set) var fetches = 0
  /// Whether the last fetch has begun for the callers of a cleared value alone, and is counted when it runs.
  var isCountedLate = false
  private(set) var running: Int?
  /// Whether a fetch follows the running one, and whether callers wait for it.
  private(set) var isQueued = false
  var hasQueuedCallers = false
  /// The value in the cacher after a flush.
  private(set) var stored: [Int]?
  private var base: [Int]?
  private var changes: [Change] = []
  private var displaced: Set<Int> = []

  var shown: [Int]? { base.map { $0 + changes.map(\.number) } }

  /// The visible value without the open changes, and without committed ones that an open one is below.
  ///
  /// An update takes all committed ones below it with it.
  private var confirmed: [Int]? {
    base.map { base in base + changes.indices.filter(isConfirmed).map { changes[$0].number } }
  }

  private func isConfirmed(_ index: Int) -> Bool {
    guard !changes[index].isOpen else { return false }
    return changes[index...].contains { $0.isUpdate } || !changes[..<index].contains { $0.isOpen }
  }

  mutating func note(_ event: String) { history.append(event) }

  mutating func show() {
    if shownValues.last != shown { shownValues.append(shown) }
  }

  private mutating func replace(with value: [Int], keeping isKept: (Change) -> Bool) {
    changes = changes.filter(isKept)
    for index in changes.indices {
      changes[index].isOvertaken = true
      changes[index].isForFetch = false
    }
    base = value
  }

  private mutating func endFetch() {
    running = nil
    changes.removeAll(where: \.isForFetch)
    for index in changes.indices { changes[index].isLate = false }
  }

  mutating func store(_ value: [Int], by own: Int? = nil) {
    hasQueuedCallers = false
    replace(with: value) { $0.isOpen && $0.number != own }
    if let own { displaced.remove(own) }
    isQueued = false
    endFetch()
  }

  mutating func update(adding number: Int) {
    changes.append(Change(number: number, isOpen: false, isUpdate: true))
    detach()
  }

  mutating func draft(_ number: Int) {
    changes.append(Change(number: number, isOpen: true, isUpdate: false, isOvertaken: base == nil))
    if base != nil { detach() }
  }

  private mutating func detach() {
    endFetch()
    if isQueued { beginFetch() }
    isQueued = false
  }

  mutating func confirm(_ number: Int) {
    var refreshes = running != nil || displaced.remove(number) != nil
    if let index = changes.firstIndex(where: { $0.number == number }) {
      changes[index].isOpen = false
      changes[index].isLate = running != nil
      if changes[index].isOvertaken || base == nil { refreshes = true }
      if base == nil { dropConfirmed() }
    }
    guard refreshes else { return }
    if running != nil {
      isQueued = true
    } else if base != nil {
      beginFetch()
    }
  }

  mutating func revert(_ number: Int) {
    displaced.remove(number)
    guard let index = changes.firstIndex(where: { $0.number == number }) else { return }
    var refreshes = changes[index...].contains { $0.isUpdate }
    changes.remove(at: index)
    if base == nil { refreshes = dropConfirmed() }
    if refreshes, running != nil { isQueued = true }
  }

  /// Removes the committed changes that have no open one below them, and returns whether there were any.
  @discardableResult
  private mutating func dropConfirmed() -> Bool {
    let firstOpen = changes.firstIndex { $0.isOpen } ?? changes.endIndex
    var late = changes[..<firstOpen].filter(\.isLate)
    for index in late.indices { late[index].isForFetch = true }
    changes = late + changes[firstOpen...]
    return late.count < firstOpen
  }

  /// Requests a newer value.
  mutating func refresh() {
    if running == nil { beginFetch() } else { isQueued = true }
  }

  private mutating func beginFetch() {
    fetches += 1
    hasQueuedCallers = false
    running = fetches
  }

  /// Ends the running fetch.
  mutating func end(with value: [Int]?) {
    if let value { replace(with: value) { $0.isOpen || $0.isLate } }
    endFetch()
    show()
    if isQueued { beginFetch() }
    isQueued = false
  }

  mutating func flush() {
    if base != nil { stored = confirmed }
  }

  mutating func clear() {
    // The states that were not read can hold values: they are removed, too.
    shownValues = [nil]
    displaced.formUnion(changes.filter(\.isOpen).map(\.number))
    changes = []
    base = nil
    stored = nil
    endFetch()
    // Its callers wait for it.
    isCountedLate = isQueued && hasQueuedCallers
    if isCountedLate { fetches += 1 }
    isQueued = false
  }

  /// Removes the value from memory; the changes that it does not contain stay.
  mutating func evict() {
    guard base != nil else { return }
    stored = confirmed
    let isFixed = changes.indices.map { isConfirmed($0) && !changes[$0].isLate }
    changes = zip(changes, isFixed).filter { !$1 }.map(\.0)
    base = nil
    for index in changes.indices { changes[index].isOvertaken = true }
  }
}

/// A key of a map, and the model that predicts its behavior.
private final class EditRun {
  private enum Ending: CaseIterable {
    case succeeds, fails, stores
  }

  private static let limit = 1_000
  private let cacher = ControlledCacher<[Int]>()
  private let costs = Log<[Int]>()
  private let gates = (0..<60).map { _ in Gate() }
  private let arrived = Gate()
  private let failing = Guarded<Set<Int>>([])
  private let map: MultiplexerMap<Int, [Int]>
  private let states: AsyncStream<LoadState<[Int]>>
  private var commits: [(number: Int, ending: Ending, gate: Gate, task: Task<Void, any Error>)] = []
  private var callers: [(fetch: Int, task: Task<[Int], any Error>)] = []
  private var last = 0
  private var model = EditModel()
  private let seed: Int

  init(seed: Int) {
    self.seed = seed
    let tally = Tally()
    let (arrived, gates, failing, costs) = (arrived, gates, failing, costs)
    arrived.open()
    map = MultiplexerMap(
      capacity: .cost(Self.limit) { value in
        costs.append(value)
        return value.first == 8 ? Self.limit : value.count
      },
      cacher: cacher,
      clock: ManualClock()
    ) { _ in
      let number = tally.increment()
      try await arrived.wait()
      await waitUnmoved(gates[number])
      if failing.withLock({ $0.contains(number) }) { throw Broken() }
      return [number * 1_000]
    }
    states = map.subscribe(to: 7, bufferingPolicy: .unbounded)
  }

  func step(_ random: inout SeededRandom) async throws {
    last += 1
    let number = 100 + last
    switch Int.random(in: 0..<20, using: &random) {
    case 0..<4: draft(number, Ending.allCases.randomElement(using: &random) ?? .fails)
    case 4..<8:
      guard let index = commits.indices.randomElement(using: &random) else { return }
      await endCommit(index)
    case 8..<10:
      guard commits.count <= 8, model.shown != nil else { return }
      model.note("update \(number)")
      model.update(adding: number)
      #expect(map.update(7) { $0.append(number) } == model.shown)
    case 10..<12:
      model.note("store \(number)")
      releaseCallers()
      model.store([number])
      map.store([number], for: 7)
    case 12..<14: request()
    case 14..<17: await endFetch(fails: Int.random(in: 0..<4, using: &random) == 0)
    case 17: try await flush()
    case 18:
      model.note("clear")
      model.clear()
      try await map.clear(7)
    default:
      model.note("evict")
      model.evict()
      if last.isMultiple(of: 2) { map.clearMemory(7) } else { map.store([8, last], for: 8) }
    }
    try await settle()
  }

  /// Waits until the model's fetches have begun, and compares it with the map.
  private func settle() async throws {
    model.show()
    try await compare()
    // The same fetches have begun in the map, and none of them ends by itself.
    await arrived.arrivals(model.fetches)
    model.isCountedLate = false
  }

  private func compare() async throws {
    let cache = await map.owner.cache
    let difference = difference(from: cache)
    try #require(difference == nil, "\(seed): \(model.history), \(difference ?? "")")
  }

  func end() async throws {
    while model.running != nil {
      await endFetch(fails: false)
      try await settle()
    }
    while !commits.isEmpty {
      await endCommit(0)
      try await settle()
    }
    while model.running != nil {
      await endFetch(fails: false)
      try await settle()
    }
    try await flush()
    for gate in gates { gate.open() }
    for caller in callers { _ = await caller.task.result }
    try await compare()
    let shown = await shownValues()
    try #require(shown == model.shownValues, "\(seed): \(model.history)")
  }

  private func draft(_ number: Int, _ ending: Ending) {
    model.note("begin \(number)")
    model.draft(number)
    let gate = Gate()
    let task = begin { [map] in
      try await map.update(7, optimistically: { $0.append(number) }) {
        try await gate.wait()
        if ending == .fails { throw Broken() }
        if ending == .stores { map.store([-number], for: 7) }
      }
    }
    commits.append((number, ending, gate, task))
  }

  private func endCommit(_ index: Int) async {
    let commit = commits.remove(at: index)
    model.note("\(commit.number) \(commit.ending)")
    if commit.ending == .stores {
      releaseCallers()
      model.store([-commit.number], by: commit.number)
      model.show()
    }
    if commit.ending == .fails { model.revert(commit.number) } else { model.confirm(commit.number) }
    commit.gate.open()
    _ = await commit.task.result
  }

  private func request() {
    model.note("refresh")
    model.refresh()
    let refreshed = map.refresh(7)
    if model.isQueued { model.hasQueuedCallers = true }
    let fetch = model.isQueued ? model.fetches + 1 : model.fetches
    callers.append((fetch, begin { try await refreshed.request(7) }))
  }

  /// Forgets the callers that are answered by a value that is stored.
  private func releaseCallers() {
    callers.removeAll { $0.fetch == model.running || $0.fetch > model.fetches }
  }

  private func endFetch(fails: Bool) async {
    guard let number = model.running else { return }
    model.note("\(fails ? "fail" : "end") \(number)")
    if fails { failing.withLock { _ = $0.insert(number) } }
    model.end(with: fails ? nil : [number * 1_000])
    let states = map.subscribe(to: 7, bufferingPolicy: .unbounded)
    gates[number].open()
    for await state in states where !state.isLoading { break }
    // A refresh is answered by what was fetched, and nothing else.
    for caller in callers where caller.fetch == number {
      let value = try? await caller.task.value
      #expect(value == (fails ? nil : [number * 1_000]))
    }
    callers.removeAll { $0.fetch == number }
  }

  private func flush() async throws {
    model.note("flush")
    model.flush()
    try await map.flush()
    try #require(cacher.value("7") == model.stored, "\(seed): \(model.history)")
  }

  /// The difference between the map and the model.
  ///
  /// The fetches in progress and their callers are compared, because a wait for one that is missing would not end.
  private func difference(from cache: KeyedCache<Int, [Int]>) -> String? {
    let shown = map.cachedValue(7)
    if shown != model.shown {
      return "\(shown ?? []) is shown, not \(model.shown ?? [])"
    }
    let hash = cache.hasher.hash(7)
    let (flights, eviction) = cache.shards.withLock(hash: hash) { shard in
      let state = shard.keys.index(of: 7, hash: hash).map { shard[$0].state }
      return ([state?.running, state?.queued], shard.extras?.eviction)
    }
    let waiting = flights.map { $0?.callerCount }
    let expected = [
      model.running.map { number in callers.count { $0.fetch == number } },
      model.isQueued ? callers.count { $0.fetch > model.fetches } : nil,
    ]
    if waiting != expected {
      return "the running and the queued fetch have \(waiting) callers, not \(expected)"
    }
    let fetches = map.statistics.fetches
    if fetches != model.fetches, fetches != model.fetches - (model.isCountedLate ? 1 : 0) {
      return "\(fetches) fetches have begun, not \(model.fetches)"
    }
    let values = costs.entries
    if Set(values).count != values.count { return "a cost is computed twice: \(values)" }
    let other = map.cachedValue(8) == nil ? 0 : Self.limit
    let cost = (shown?.count ?? 0) + other
    if eviction?.cost != cost { return "the cost is \(eviction?.cost ?? 0), not \(cost)" }
    return nil
  }

  /// The values that a subscriber has been sent, without repetitions.
  private func shownValues() async -> [[Int]?] {
    map.store([0, 0], for: 7)
    var values: [[Int]?] = []
    for await state in states {
      if state.value?.starts(with: [0, 0]) == true { break }
      if values.isEmpty || values.last != state.value { values.append(state.value) }
    }
    return values
  }
}
