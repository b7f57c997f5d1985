import Foundation
import Plexus
import PlexusStorage
import PlexusTesting
import TestSupport
import Testing

/// The number of histories in memory.
private let historyCount = Effort.count(2_400)

@Suite(.fewAtOnce)
struct `Any history of two maps with one cacher` {
  @Test(.guarantee(.mapsNeverReadTooNewValues), arguments: 0..<8)
  func `two maps with one cacher follow the order of fetches and commands, in memory`(
    part: Int
  ) async throws {
    for seed in stride(from: part, to: historyCount, by: 8) {
      let cacher = CountingCacher()
      try await check(seed) { cacher }
    }
  }

  @Test(.guarantee(.mapsNeverReadTooNewValues), arguments: CacherKind.allCases, [false, true])
  private func `two maps with one cacher follow the order of fetches and commands, in files`(
    kind: CacherKind,
    apart: Bool
  ) async throws {
    for seed in 0..<max(1, historyCount / 40) {
      let folder = try TemporaryFolder()
      try await check(seed, isApart: apart) {
        try apart ? kind.openApart(folder.path) : kind.open(folder.path)
      }
    }
  }

  private func check(
    _ seed: Int,
    isApart: Bool = false,
    _ open: @escaping () throws -> any Cacher<Person>
  ) async throws {
    var random = SeededRandom(seed: UInt64(seed))
    let run = try SharedRun(isApart: isApart, open)
    let count = Int.random(in: 4...24, using: &random)
    for number in 1...count {
      try await run.step(&random)
      // Reading removes copies that were cleared, so that it must not follow each step.
      if number == count || Int.random(in: 0..<3, using: &random) == 0 { try await run.probe() }
      if let difference = run.difference {
        Issue.record("seed \(seed): \(run.events.joined(separator: ", ")): \(difference)")
        break
      }
    }
    await run.endFetches()
  }
}

/// Two maps, and the model that predicts which copies another reader accepts.
///
/// Each value is the order of the start of its fetch: a copy is an answer if no clear or refresh of its key came later.
private final class SharedRun {
  private static let keys = [1, 2, 3]

  private static func tag(_ key: Int) -> CacheTag { CacheTag("\(key % 2)") }

  /// A request, and the fetch that is made for it.
  ///
  /// Storing a value ends the requests that wait for it, at any later time, so that each has its own signs.
  private struct Call {
    enum Sign { case begun, ended }

    let gate = Gate()
    let signs = Log<Sign>()
  }

  /// The origin of one map.
  private final class Origin: Sendable {
    private let order: Guarded<Int>
    private let call = Guarded<Call?>(nil)

    init(_ order: Guarded<Int>) {
      self.order = order
    }

    /// Holds the next fetch.
    func hold(_ call: Call?) { self.call.withLock { $0 = call } }

    func fetch(_ key: Int) async throws -> Person {
      let start = order.withLock { $0 }
      let call = call.withLock { call in
        let taken = call
        call = nil
        return taken
      }
      if let call {
        call.signs.append(.begun)
        try await call.gate.wait()
      }
      return Person(name: "\(key)", age: start)
    }
  }

  private struct Fetch {
    let call: Call
    let caller: Task<Person, any Error>
    /// Whether its result is not kept.
    var isDetached = false
    /// The map since a refresh during the fetch.
    var refreshed: MultiplexerMap<Int, Person>?
  }

  /// A map, and what the model knows of it.
  private struct Side {
    let map: MultiplexerMap<Int, Person>
    let origin: Origin
    /// The start of each value in memory.
    var values: [Int: Int] = [:]
    var unwritten: Set<Int> = []
    var fetches: [Int: Fetch] = [:]
  }

  private let open: () throws -> any Cacher<Person>
  private let isApart: Bool
  private let order = Guarded(1)
  private let clock = ManualClock()
  private var sides: [Side] = []
  /// The start of each copy in the cacher.
  private var copies: [Int: Int] = [:]
  /// The keys of which a copy can be there or not.
  private var uncertain: Set<Int> = []
  /// The order of the last clear and of the last refresh of each key.
  private var clears: [Int: Int] = [:]
  private var refreshes: [Int: Int] = [:]
  /// The order of the last reading that can have removed a cleared copy.
  private var removals: [Int: Int] = [:]
  private(set) var events: [String] = []
  private(set) var difference: String?

  init(isApart: Bool, _ open: @escaping () throws -> any Cacher<Person>) throws {
    self.open = open
    self.isApart = isApart
    for _ in 0..<2 {
      let origin = Origin(order)
      sides.append(Side(map: try makeMap { try await origin.fetch($0) }, origin: origin))
    }
  }

  private func makeMap(
    fetch: @escaping @concurrent @Sendable (Int) async throws -> Person
  ) throws -> MultiplexerMap<Int, Person> {
    MultiplexerMap(
      id: "map",
      policy: CachePolicy(timeToLive: .seconds(1_000_000), cacherRead: .beforeFetch),
      cacher: try open(),
      tagging: { [Self.tag($0)] },
      clock: clock,
      onKeyFetch: fetch
    )
  }

  private func advance() -> Int {
    order.withLock { order in
      order += 1
      return order
    }
  }

  func endFetches() async {
    for side in sides {
      for fetch in side.fetches.values {
        fetch.call.gate.open()
        _ = await fetch.caller.result
      }
    }
  }

  func step(_ random: inout SeededRandom) async throws {
    let side = Int.random(in: 0...1, using: &random)
    let key = Self.keys[Int.random(in: 0..<Self.keys.count, using: &random)]
    let tag = Self.tag(key)
    let tagged = Self.keys.filter { Self.tag($0) == tag }
    let map = sides[side].map
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<20: try await beginFetch(key, side)
    case 20..<36: try await endFetch(key, side)
    case 36..<43:
      note("\(side) stores \(key)")
      let now = advance()
      sides[side].fetches[key]?.isDetached = true
      map.store(Person(name: "\(key)", age: now), for: key)
      bring(now, key, side)
    case 43..<48:
      note("\(side) updates \(key)")
      if map.update(key, { $0.name += "." }) != nil {
        sides[side].fetches[key]?.isDetached = true
        sides[side].unwritten.insert(key)
      }
    case 48..<53:
      note("\(side) clears \(key)")
      clear([key], side)
      try await map.clear(key)
    case 53..<56:
      note("\(side) clears all")
      clear(Self.keys, side)
      try await map.clear()
    case 56..<63:
      note("\(side) clears tag \(tag)")
      clear(tagged, side)
      try await map.clear(tags: [tag])
    case 63..<68:
      note("\(side) refreshes \(key)")
      try await refresh([key], side, map.refresh(key))
    case 68..<72:
      note("\(side) refreshes tag \(tag)")
      try await refresh(tagged, side, map.refresh(tags: [tag]))
    case 72..<75:
      note("\(side) refreshes all")
      try await refresh(Self.keys, side, map.refreshAll())
    case 75..<88:
      note("\(side) flushes")
      try await map.flush()
      write(side)
    case 88..<93:
      note("\(side) clears memory")
      map.clearMemory()
      try await settle(side)
      write(side)
      sides[side].values = [:]
    default:
      guard !isApart else { return }
      note("time passes")
      clock.advance(by: .seconds(Int.random(in: 1...100, using: &random)))
    }
  }

  private func note(_ event: String) { events.append(event) }

  /// Waits until the storage of a map has done what was scheduled.
  private func settle(_ side: Int) async throws { try await sides[side].map.clear(99) }

  // MARK: - Fetches

  private func beginFetch(_ key: Int, _ side: Int) async throws {
    guard sides[side].fetches[key] == nil, sides[side].values[key] == nil else { return }
    note("\(side) begins \(key)")
    noteReading(key)
    _ = advance()
    let (call, map) = (Call(), sides[side].map)
    sides[side].origin.hold(call)
    let caller = Task { () async throws -> Person in
      defer { call.signs.append(.ended) }
      return try await map.request(key)
    }
    if await call.signs.first(1) == [.begun] {
      sides[side].fetches[key] = Fetch(call: call, caller: caller)
      expect(isUsable(key) != true, "a copy of \(key) that is usable was not used")
    } else {
      sides[side].origin.hold(nil)
      let start = try await caller.value.age ?? 0
      expect(isAllowed(start, key), "\(start) of \(key) was read, and is too old")
      sides[side].values[key] = start
    }
  }

  private func endFetch(_ key: Int, _ side: Int) async throws {
    guard let fetch = sides[side].fetches.removeValue(forKey: key) else { return }
    note("\(side) ends \(key)")
    fetch.call.gate.open()
    let start = try await fetch.caller.value.age ?? 0
    guard !fetch.isDetached else { return }
    bring(start, key, side)
    guard let refreshed = fetch.refreshed else { return }
    _ = advance()
    bring(try await refreshed.request(key).age ?? 0, key, side)
  }

  private func bring(_ start: Int, _ key: Int, _ side: Int) {
    sides[side].values[key] = start
    sides[side].unwritten.insert(key)
  }

  // MARK: - Commands

  private func clear(_ keys: [Int], _ side: Int) {
    let now = advance()
    for key in keys {
      clears[key] = now
      sides[side].values[key] = nil
      sides[side].unwritten.remove(key)
      sides[side].fetches[key]?.isDetached = true
    }
  }

  private func refresh(
    _ keys: [Int],
    _ side: Int,
    _ refreshed: MultiplexerMap<Int, Person>
  ) async throws {
    let now = advance()
    for key in keys {
      refreshes[key] = now
      if sides[side].fetches[key]?.isDetached == false {
        sides[side].fetches[key]?.refreshed = refreshed
      }
    }
    // Refreshes are written behind.
    try await settle(side)
  }

  private func write(_ side: Int) {
    for key in sides[side].unwritten {
      guard let start = sides[side].values[key], start >= clears[key] ?? 0 else { continue }
      copies[key] = start
      if start < removals[key] ?? 0 { uncertain.insert(key) } else { uncertain.remove(key) }
    }
    sides[side].unwritten = []
  }

  // MARK: - Reading

  private func isAllowed(_ start: Int, _ key: Int) -> Bool {
    start >= clears[key] ?? 0 && start >= refreshes[key] ?? 0
  }

  /// Returns whether a copy is an answer; `nil` if it can be there or not.
  private func isUsable(_ key: Int) -> Bool? {
    guard let start = copies[key], isAllowed(start, key) else {
      return uncertain.contains(key) ? nil : false
    }
    return uncertain.contains(key) ? nil : true
  }

  /// A cleared copy is removed when it is read, and so are values that were fetched before.
  private func noteReading(_ key: Int) {
    if let start = copies[key], start < clears[key] ?? 0 { removals[key] = advance() }
  }

  func probe() async throws {
    let reader = try makeMap { _ in throw Fetched() }
    for key in Self.keys {
      noteReading(key)
      if let start = try? await reader.request(key).age {
        expect(isAllowed(start, key), "\(start) of \(key) was read, and is too old")
        if isUsable(key) == true {
          expect(start == copies[key], "\(start) is not the last written")
        }
      } else {
        expect(isUsable(key) != true, "a copy of \(key) that is usable was not used")
      }
    }
    // It can have to remove what it has read.
    try await reader.clear(99)
  }

  private func expect(_ condition: Bool, _ text: @autoclosure () -> String) {
    if !condition { difference = difference ?? text() }
  }
}

/// A cacher in memory that counts removals, as `writing-a-cacher` describes it.
private final class CountingCacher: Cacher {
  private struct State: Sendable {
    var entries: [String: CacheEntry<Person>] = [:]
    var removals: [(prefix: String, isKey: Bool)] = []
  }

  private let state = Guarded(State())

  var generation: CacheGeneration? {
    CacheGeneration(epoch: 1, number: UInt64(state.withLock { $0.removals.count }))
  }

  func entry(forKey key: String) async throws -> CacheEntry<Person>? {
    state.withLock { $0.entries[key] }
  }

  func store(_ entries: [String: CacheEntry<Person>]) async throws {
    state.withLock { state in
      for (key, entry) in entries {
        let since = state.removals.dropFirst(Int(entry.generation?.number ?? 0))
        let isRemoved = since.contains { $0.isKey ? $0.prefix == key : key.hasPrefix($0.prefix) }
        if !isRemoved { state.entries[key] = entry }
      }
    }
  }

  func removeEntries(forKeys keys: Set<String>) async throws {
    state.withLock { state in
      for key in keys {
        state.removals.append((key, true))
        state.entries[key] = nil
      }
    }
  }

  func removeEntries(withPrefix prefix: String) async throws {
    state.withLock { state in
      state.removals.append((prefix, false))
      state.entries = state.entries.filter { !$0.key.hasPrefix(prefix) }
    }
  }

  func removeAllEntries() async throws { try await removeEntries(withPrefix: "") }
}
