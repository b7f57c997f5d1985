import Plexus
import PlexusSharedTesting
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `The conformance suite of cachers` {
  @Test(.guarantee(.cachersAreCheckedByOneSuite), arguments: CacherConformance.Rule.allCases)
  func `the conformance suite of cachers accepts one in memory`(
    rule: CacherConformance.Rule
  ) async throws {
    let suite = CacherConformance { count in
      Array(repeating: MemoryCacher(breaks: nil), count: count)
    }
    try await suite.check(rule)
  }

  @Test(.guarantee(.cachersAreCheckedByOneSuite), arguments: CacherConformance.Rule.allCases)
  func `the conformance suite of cachers names the rule that one breaks`(
    rule: CacherConformance.Rule
  ) async {
    let suite = CacherConformance { count in
      Array(repeating: MemoryCacher(breaks: rule), count: count)
    }
    let violation = await #expect(throws: CacherConformance.Violation.self) {
      try await suite.check(rule)
    }
    #expect(violation?.rule == rule)
    #expect(violation?.description.hasSuffix(".") == true)
  }

  @Test func `the conformance suite of cachers refuses the default removal by a prefix`() async {
    let suite = CacherConformance { count in
      Array(repeating: PlainCacher(memory: MemoryCacher(breaks: nil)), count: count)
    }
    for rule in CacherConformance.Rule.allCases {
      if rule == .keepsOtherPrefixes {
        await #expect(throws: CacherConformance.Violation.self) { try await suite.check(rule) }
      } else {
        await #expect(throws: Never.self) { try await suite.check(rule) }
      }
    }
  }
}

/// A cacher with the required operations only.
private struct PlainCacher: Cacher {
  typealias Value = CacherConformance.Value

  let memory: MemoryCacher

  func entry(forKey key: String) async throws -> CacheEntry<Value>? {
    try await memory.entry(forKey: key)
  }

  func store(_ entries: [String: CacheEntry<Value>]) async throws {
    try await memory.store(entries)
  }

  func removeEntries(forKeys keys: Set<String>) async throws {
    try await memory.removeEntries(forKeys: keys)
  }

  func removeAllEntries() async throws {
    try await memory.removeAllEntries()
  }
}

/// A cacher in memory that breaks one rule, or none.
private final class MemoryCacher: BatchReadingCacher {
  typealias Value = CacherConformance.Value
  typealias Entry = CacheEntry<Value>

  private struct State {
    var entries: [String: Entry] = [:]
    var generation = CacheGeneration(epoch: 1)
    /// The last removal of each key, of each prefix, and of everything.
    var removals: [(prefix: String, isKey: Bool, number: UInt64)] = []
    var latestValidator: String?
  }

  private let state = Guarded(State())
  private let broken: CacherConformance.Rule?

  init(breaks rule: CacherConformance.Rule?) {
    broken = rule
  }

  var generation: CacheGeneration? { state.withLock { $0.generation } }

  private func key(_ key: String) -> String {
    broken == .anyKey ? key.lowercased() : key
  }

  func entry(forKey key: String) async throws -> Entry? {
    state.withLock { state in
      var entry = state.entries[self.key(key)]
      if broken == .concurrentUse { entry?.validator = state.latestValidator }
      if broken == .missing && entry == nil { entry = Entry(value: Value(""), storedAt: .zero) }
      return entry
    }
  }

  func entries(forKeys keys: Set<String>) async throws -> [String: Entry] {
    var entries: [String: Entry] = [:]
    for key in keys { entries[key] = try await entry(forKey: key) }
    if broken == .bulkReads { entries["users/1"] = nil }
    return entries
  }

  func store(_ new: [String: Entry]) async throws {
    if broken == .cancelledStore && Task.isCancelled { return }
    var failures: [String: any Error] = [:]
    try state.withLock { state in
      for (key, entry) in new {
        if entry.value.refusesEncoding {
          failures[key] = Value.Refusal()
          if broken == .failingValues { throw Value.Refusal() }
          continue
        }
        if broken == .batches && state.entries.count >= 100 { continue }
        if broken == .anySize && entry.value.text.utf8.count > 1 << 20 { continue }
        if broken == .order && state.entries[key] != nil { continue }
        if let generation = entry.generation, broken != .fencedByRemovals {
          let isRemoved = state.removals.contains { removal in
            removal.number > generation.number
              && (removal.isKey ? key == removal.prefix : key.hasPrefix(removal.prefix))
          }
          if isRemoved { continue }
        }
        state.entries[self.key(key)] = kept(entry, over: state.entries[key])
        state.latestValidator = entry.validator
      }
    }
    if !failures.isEmpty { throw CacherError(failures: failures) }
  }

  private func kept(_ entry: Entry, over previous: Entry?) -> Entry {
    var entry = entry
    entry.generation = nil
    switch broken {
    case .wholeEntries: entry.directives.requiresRevalidation = false
    case .exactDates: entry.storedAt = .milliseconds(Int64(entry.storedAt / .milliseconds(1)))
    case .exactDirectives:
      entry.timeToLive = entry.timeToLive.map { .seconds($0.components.seconds) }
    case .replaces: entry.validator = entry.validator ?? previous?.validator
    default: break
    }
    return entry
  }

  func removeEntries(forKeys keys: Set<String>) async throws {
    if broken == .cancelledRemoval { try Task.checkCancellation() }
    state.withLock { state in
      for key in keys {
        remember(key, isKey: true, &state)
        state.entries[self.key(key)] = nil
        if broken == .removesKeys {
          state.entries = state.entries.filter { !$0.key.hasPrefix(key) }
        }
      }
    }
  }

  func removeAllEntries() async throws {
    state.withLock { state in
      remember("", isKey: false, &state)
      state.entries = broken == .removesEverything ? state.entries.filter { $0.key.isEmpty } : [:]
    }
  }

  func removeEntries(withPrefix prefix: String) async throws {
    state.withLock { state in
      remember(prefix, isKey: false, &state)
      state.entries = state.entries.filter { key, _ in
        switch broken {
        case .removesPrefixes: key == prefix || !key.hasPrefix(prefix)
        case .keepsOtherPrefixes: false
        // Canonical equivalence is that of texts, not of bytes.
        default: !key.utf8.starts(with: prefix.utf8)
        }
      }
    }
  }

  private func remember(_ prefix: String, isKey: Bool, _ state: inout State) {
    state.generation.number += 1
    state.removals.append((prefix, isKey, state.generation.number))
  }
}
