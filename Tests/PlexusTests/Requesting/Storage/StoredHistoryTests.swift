import Foundation
import Plexus
import PlexusTesting
import TestSupport
import Testing

private let historyCount = Effort.count(40_000)

@Suite(.fewAtOnce) struct `Any history of a map behind a cacher` {
  @Test(.guarantee(.callersAgreeWithASequentialModel), arguments: 0..<8)
  func `a map behind a cacher behaves as in a simple sequential model, stress`(
    part: Int
  ) async throws {
    for seed in stride(from: part, to: historyCount, by: 8) {
      var random = SeededRandom(seed: UInt64(seed))
      let run = StoredRun()
      // Many short ones: failures need only a few events.
      for _ in 0..<Int.random(in: 2...9, using: &random) {
        try await run.step(&random)
        try #require(run.difference == nil, "\(seed): \(run.events), \(run.difference ?? "")")
      }
    }
  }
}

/// A map, its cacher, and the model that predicts their behavior.
private final class StoredRun {
  private enum Outcome: String, CaseIterable {
    case succeeds, isUnchanged, isOffline, isBroken

    static let all = allCases
  }

  private let cacher = ControlledCacher<Int>()
  private let clock = ManualClock()
  private let outcome = OutcomeBox()
  private let tally = Tally()
  private var map: MultiplexerMap<String, Int>
  private var model = StoredModel()
  /// The events: their kind, their subject, and their intended ending.
  private(set) var events: [(event: StaticString, what: String, ending: String)] = []
  private(set) var difference: String?

  init() {
    map = Self.makeMap(cacher, clock, outcome, tally)
  }

  /// The outcome of the next fetch.
  private final class OutcomeBox: Sendable {
    private let content = Guarded(Outcome.succeeds)

    var outcome: Outcome {
      get { content.withLock { $0 } }
      set { content.withLock { $0 = newValue } }
    }
  }

  private static func makeMap(
    _ cacher: ControlledCacher<Int>,
    _ clock: ManualClock,
    _ outcome: OutcomeBox,
    _ tally: Tally
  ) -> MultiplexerMap<String, Int> {
    var policy = CachePolicy.readingFirst()
    policy.timeToLive = .seconds(StoredModel.timeToLive * 3_600)
    return MultiplexerMap(policy: policy, capacity: .count(100), cacher: cacher, clock: clock) {
      (_: String, context: FetchContext<Int>) in
      switch outcome.outcome {
      case .succeeds: return .value(tally.increment())
      case .isUnchanged: return .notModified()
      case .isOffline: throw Offline()
      case .isBroken: throw Broken()
      }
    }
  }

  func step(_ random: inout SeededRandom) async throws {
    let key = StoredModel.keys[Int.random(in: 0..<StoredModel.keys.count, using: &random)]
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<34: await request(key, insists: false, &random)
    case 34..<40: await request(key, insists: true, &random)
    case 40..<48:
      let value = tally.increment()
      note("store", key)
      map.store(value, for: key)
      model.bring(value, for: key)
    case 48..<54:
      note("refresh", key)
      map.refresh(key)
      model.refresh([key], isComplete: false)
    case 54..<57:
      note("refresh all")
      map.refreshAll()
      model.refresh(StoredModel.keys, isComplete: true)
    case 57..<62: await clear([key], isComplete: false, fails: Bool.random(using: &random))
    case 62..<65:
      await clear(StoredModel.keys, isComplete: true, fails: Bool.random(using: &random))
    case 65..<78: await flush(failing: Int.random(in: 0..<4, using: &random) == 0 ? [key] : [])
    case 78..<88:
      await clearMemory(failing: Int.random(in: 0..<4, using: &random) == 0 ? [key] : [])
    case 88..<92:
      note("reopen")
      map = Self.makeMap(cacher, clock, outcome, tally)
      model.reopen()
    default:
      let hours = Bool.random(using: &random) ? 40 : 70
      note(hours == 40 ? "advance 40" : "advance 70")
      clock.advance(by: .seconds(hours * 3_600))
      model.now += hours
    }
    compare()
  }

  private func note(_ event: StaticString, _ what: String = "", _ ending: String = "") {
    events.append((event, what, ending))
  }

  private func request(_ key: String, insists: Bool, _ random: inout SeededRandom) async {
    let outcome = Outcome.all[Int.random(in: 0..<Outcome.all.count, using: &random)]
    self.outcome.outcome = outcome
    note(insists ? "request insisting" : "request", key, outcome.rawValue)
    let fetched = tally.value + 1
    let reference = insists ? map.refresh(key) : map
    let result = try? await reference.request(key)
    if insists { model.refresh([key], isComplete: false) }
    let expected = model.request(key, insists: insists) { previous in
      switch outcome {
      case .succeeds: .brings(fetched)
      case .isUnchanged: previous.map { .brings($0) } ?? .fails(isOffline: false)
      case .isOffline: .fails(isOffline: true)
      case .isBroken: .fails(isOffline: false)
      }
    }
    if result != expected {
      tell("got \(result.map { "\($0)" } ?? "an error"), not \(expected.map { "\($0)" } ?? "one")")
    }
  }

  private func clear(_ keys: [String], isComplete: Bool, fails: Bool) async {
    note("clear", isComplete ? "" : keys[0], fails ? "fails" : "")
    if fails {
      cacher.fail(.remove)
      cacher.fail(.removeAll)
    }
    let hasFailed: Bool
    do {
      if isComplete { try await map.clear() } else { try await map.clear(keys[0]) }
      hasFailed = false
    } catch {
      hasFailed = true
    }
    cacher.mend()
    model.clear(keys, isComplete: isComplete, fails: fails)
    if hasFailed != fails { tell("clearing has failed, or has not") }
  }

  private func flush(failing keys: Set<String>) async {
    note("flush", keys.first ?? "", keys.isEmpty ? "" : "fails")
    if !keys.isEmpty { cacher.fail(.store, with: keys) }
    var failed: Set<String> = []
    do {
      try await map.flush()
    } catch let error as CacherError {
      failed = error.keys
    } catch {
      tell("\(error)")
    }
    cacher.mend()
    let expected = model.flush(failing: keys)
    if failed != expected { tell("\(failed) has failed, not \(expected)") }
  }

  private func clearMemory(failing keys: Set<String>) async {
    note("clear memory", keys.first ?? "", keys.isEmpty ? "" : "fails")
    if !keys.isEmpty { cacher.fail(.store, with: keys) }
    map.clearMemory()
    // It follows the write in progress.
    try? await map.clear("none")
    cacher.mend()
    model.clearMemory(failing: keys)
  }

  private func compare() {
    let entries = cacher.entries
    for key in StoredModel.keys {
      let stored = entries[key]?.value
      if map.cachedValue(key) != model.value(of: key) {
        tell("\(key) is \(map.cachedValue(key) ?? 0) in memory, not \(model.value(of: key) ?? 0)")
      }
      if stored != model.stored[key]?.value {
        tell("\(key) is stored as \(stored ?? 0), not \(model.stored[key]?.value ?? 0)")
      }
    }
  }

  private func tell(_ difference: String) {
    self.difference = difference
  }
}

/// A model of a map and its cacher, one event after the other.
private struct StoredModel {
  enum Fetch {
    case brings(Int)
    case fails(isOffline: Bool)
  }

  private struct Item {
    var value: Int
    var storedAt: Int
    var deadline: Int
    /// Whether it was marked as changed since.
    var isOutdated = false
    /// Whether it is missing in the cacher.
    var isNew = true
    /// The number of refreshes before it was fetched.
    var order = 0
  }

  struct Stored {
    var value: Int
    /// The age when it was written; the wall clock stands still.
    var age: Int
    /// Whether it was written before the last refresh of all keys.
    var isFromBefore = false
    /// The number of refreshes before it was fetched.
    var order = 0
  }

  static let keys = ["a", "b", "c"]
  /// In hours, like all times here, compared with which the real duration of a history is negligible.
  static let timeToLive = 100

  var now = 0
  private(set) var stored: [String: Stored] = [:]
  private var memory: [String: Item] = [:]
  /// The keys whose stored copies are outdated, if any.
  private var outdated: Set<String> = []
  /// The number of refreshes, and that of the last one of each key: another map of the process follows them.
  private var order = 0
  private var refreshed: [String: Int] = [:]
  private var pending: Set<String> = []
  private var losses: Set<String> = []

  func value(of key: String) -> Int? { memory[key]?.value }

  mutating func bring(_ value: Int, for key: String) {
    memory[key] = Item(
      value: value,
      storedAt: now,
      deadline: now + Self.timeToLive,
      order: order
    )
    outdated.remove(key)
  }

  mutating func refresh(_ keys: [String], isComplete: Bool) {
    order += 1
    for key in keys {
      refreshed[key] = order
      memory[key]?.isOutdated = true
      if isComplete {
        stored[key]?.isFromBefore = true
        outdated.remove(key)
      } else {
        outdated.insert(key)
      }
    }
  }

  mutating func request(
    _ key: String,
    insists: Bool,
    fetch: (_ previous: Int?) -> Fetch
  ) -> Int? {
    if let item = memory[key], !item.isOutdated, now < item.deadline { return item.value }
    let copy = memory[key] == nil && !pending.contains(key) ? stored[key] : nil
    if let copy, !insists, !isOutdated(key, copy), copy.age < Self.timeToLive {
      adopt(copy, for: key, until: now - copy.age + Self.timeToLive)
      return copy.value
    }
    switch fetch(memory[key]?.value ?? copy?.value) {
    case .brings(let value):
      bring(value, for: key)
      return value
    case .fails(isOffline: true):
      if let copy { adopt(copy, for: key, until: min(now, now - copy.age + Self.timeToLive)) }
      return memory[key]?.value
    case .fails(isOffline: false):
      return nil
    }
  }

  private func isOutdated(_ key: String, _ copy: Stored) -> Bool {
    outdated.contains(key) || copy.isFromBefore || copy.order < refreshed[key] ?? 0
  }

  private mutating func adopt(_ copy: Stored, for key: String, until deadline: Int) {
    memory[key] = Item(
      value: copy.value,
      storedAt: now - copy.age,
      deadline: deadline,
      isNew: false
    )
  }

  mutating func clear(_ keys: [String], isComplete: Bool, fails: Bool) {
    for key in keys {
      memory[key] = nil
      outdated.remove(key)
      pending.insert(key)
    }
    if !fails { removePending() }
  }

  /// Every call of the cacher starts with this.
  private mutating func removePending() {
    for key in pending { stored[key] = nil }
    pending = []
  }

  mutating func flush(failing keys: Set<String>) -> Set<String> {
    removePending()
    var failed = losses
    for (key, item) in memory where item.isNew {
      if keys.contains(key) {
        failed.insert(key)
        continue
      }
      write(item, for: key)
      memory[key]?.isNew = false
      failed.remove(key)
    }
    losses = []
    return failed
  }

  private mutating func write(_ item: Item, for key: String) {
    stored[key] = Stored(value: item.value, age: now - item.storedAt, order: item.order)
    if item.isOutdated { outdated.insert(key) }
    losses.remove(key)
  }

  mutating func clearMemory(failing keys: Set<String>) {
    removePending()
    for (key, item) in memory where item.isNew {
      if keys.contains(key) {
        losses.insert(key)
        outdated.insert(key)
      } else {
        write(item, for: key)
      }
    }
    memory = [:]
  }

  mutating func reopen() {
    memory = [:]
    outdated = []
    pending = []
    losses = []
    for key in stored.keys { stored[key]?.isFromBefore = false }
  }
}
