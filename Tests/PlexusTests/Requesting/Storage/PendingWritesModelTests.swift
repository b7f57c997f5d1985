import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `Every sequence of events of a pendingWrites` {
  @Test(arguments: [false, true])
  func `pending writes keep every promise in every sequence of events`(hasOnlyName: Bool) throws {
    try walk(
      World(onlyName: hasOnlyName ? "name" : nil),
      events: World.Event.allCases,
      depth: 6
    )
  }

  @Test func `a refresh after the clock was set back outdates what was written before`() {
    var pendingWrites = PendingWrites<Int, Int>(isReadFirst: true)
    pendingWrites.noteWrite(at: .seconds(100))
    pendingWrites.refresh("1", at: .seconds(50))
    pendingWrites.refreshAll(at: .seconds(40))
    guard case .elsewhere(let time) = pendingWrites.lookUp("2") else {
      Issue.record("Nothing is known of it")
      return
    }
    #expect(time == .seconds(100))
    pendingWrites.refresh("2", at: .seconds(150))
    guard case .elsewhere(.seconds(150)) = pendingWrites.lookUp("2") else {
      Issue.record("It was refreshed later")
      return
    }
  }
}

@Suite(.fewAtOnce) struct `A pendingWrites of a shared cacher` {
  private func isContested(_ key: Int, _ writes: PendingWrites<Int, Int>) -> [Bool?] {
    let revisions = [
      writes.dirty.entries.first?.element.revision, writes.departures["1"]?.note.revision,
    ]
    return revisions.compactMap(\.self).map { revision in
      writes.note(key, hash: 1, name: "1", revision: revision)?.isContested
    }
  }

  @Test(.guarantee(.storedValuesDoNotReplaceLaterChanges), arguments: [false, true])
  func `pending writes note that others can have changed a key, until a newer value`(ofAll: Bool) {
    var writes = PendingWrites<Int, Int>(isReadFirst: true, isShared: true)
    var effects = CacheEffects(tellsEvents: false)
    writes.noteValue(1, hash: 1, name: "1", isNewest: true, &effects)
    #expect(isContested(1, writes) == [false])
    if ofAll { writes.contestAll() } else { writes.contest(1, hash: 1, name: "1") }
    #expect(isContested(1, writes) == [true])
    writes.depart(1, hash: 1, ValueOutcome(1), &effects)
    #expect(isContested(1, writes) == [true])
    writes.noteValue(1, hash: 1, name: "1", isNewest: true, &effects)
    #expect(isContested(1, writes) == [false])
    writes.depart(1, hash: 1, ValueOutcome(1), &effects)
    #expect(isContested(1, writes) == [false])
    if ofAll { writes.contestAll() } else { writes.contest(1, hash: 1, name: "1") }
    #expect(isContested(1, writes) == [true])
  }

  @Test(.guarantee(.storedValuesDoNotReplaceLaterChanges))
  func `pending writes keep nothing of a note that is replaced`() {
    var writes = PendingWrites<Int, Int>(isReadFirst: true, isShared: true)
    var effects = CacheEffects(tellsEvents: false)
    writes.noteValue(1, hash: 1, name: "1", isNewest: true, &effects)
    let revision = writes.dirty.entries[0].element.revision
    writes.noteValue(1, hash: 1, name: "1", isNewest: true, &effects)
    #expect(writes.note(1, hash: 1, name: "1", revision: revision) == nil)
  }
}

@Suite(.fewAtOnce) struct `A pendingWrites of a bounded cache` {
  @Test(.guarantee(.slowCachersKeepMemoryBounded))
  func `pending writes combine many refreshes into one, which outdates the same copies`() {
    var pendingWrites = PendingWrites<Int, Int>(isReadFirst: true, isBounded: true)
    for key in 0..<100_000 {
      pendingWrites.refresh("\(key)", at: .seconds(key))
      #expect(pendingWrites.refreshes.count <= 1024)
    }
    for key in [0, 1_000, 99_999, 200_000] {
      guard case .elsewhere(let time?) = pendingWrites.lookUp("\(key)") else {
        Issue.record("It is not known that \(key) was refreshed")
        return
      }
      #expect(time >= .seconds(min(key, 98_000)))
    }
  }

  @Test func `pending writes let no older copy replace a value that was given up`() {
    var pendingWrites = PendingWrites<Int, Int>(isReadFirst: true, isBounded: true)
    var effects = CacheEffects(tellsEvents: false)
    for key in 0..<3 {
      pendingWrites.noteValue(key, hash: UInt64(key), name: "\(key)", isNewest: true, &effects)
      pendingWrites.depart(key, hash: UInt64(key), ValueOutcome(key), limit: 2, &effects)
    }
    #expect(pendingWrites.takeOverflow() == ["2"])
    guard case .elsewhere(.some) = pendingWrites.lookUp("2") else {
      Issue.record("The cacher may have an older copy")
      return
    }
  }

  @Test func `pending writes remove everything if too many removals fail`() {
    var pendingWrites = PendingWrites<Int, Int>(isReadFirst: true, isBounded: true)
    var effects = CacheEffects(tellsEvents: false)
    for key in 0..<100_000 {
      pendingWrites.remove(key, hash: UInt64(key), name: "\(key)", &effects)
      #expect(pendingWrites.removals.count <= 1024)
    }
    #expect(pendingWrites.completeRemoval != nil)
    guard case .removed = pendingWrites.lookUp("1") else {
      Issue.record("A copy is used that was to be removed")
      return
    }
  }
}

/// Pending writes, a scripted cacher, and a model of both.
///
/// Values are numbered in the order of their creation; a copy contains the number. The time of the wall clock is the
/// number of events.
private struct World: ModelWorld {
  enum Event: CaseIterable {
    case store, tooEarly, forget, refresh, refreshAll, clear, clearAll
    case beginWriting, endWriting, failWriting, beginRemoving, endRemoving
  }

  private typealias Ledger = PendingWrites<Int, Int>

  /// A write in progress.
  private struct Writing {
    let value: Int
    let revision: UInt64
    let isDeparture: Bool
    let time: Int
  }

  /// A removal in progress.
  private struct Removing {
    let removals: [String: UInt64]
    let complete: UInt64?
  }

  private(set) var history: [Event] = []
  private(set) var brokenPromise: String?
  private var pendingWrites: Ledger
  private let name = "name"

  // The model.
  private var last = 0
  private var memory: Int?
  private var isWritten = true
  private var departed: Int?
  private var stored: (value: Int, time: Int)?
  private var writing: Writing?
  private var removing: Removing?
  /// Values up to this one have been cleared.
  private var clearedUpTo = 0
  /// Values up to this one are outdated.
  private var outdatedUpTo = 0
  /// Whether a refresh of the key, and one of all keys, is recorded.
  private var hasMark = false
  private var hasMarkOfAll = false

  init(onlyName: String?) {
    pendingWrites = Ledger(isReadFirst: true, onlyName: onlyName)
  }

  private var now: Duration { .seconds(history.count) }

  private mutating func expect(_ condition: Bool, _ promise: String) {
    if !condition, brokenPromise == nil { brokenPromise = promise }
  }

  /// Performs an event.
  ///
  /// - Returns: Whether it is possible now.
  mutating func apply(_ event: Event) -> Bool {
    history.append(event)
    var effects = CacheEffects(tellsEvents: false)
    switch event {
    case .store, .tooEarly: noteValue(isNewest: event == .store, &effects)
    case .forget:
      guard let value = memory else { return false }
      let leaving = copy(value)
      pendingWrites.depart(0, hash: 0, leaving, &effects)
      if !isWritten { departed = value }
      memory = nil
    case .refresh, .refreshAll:
      outdatedUpTo = last
      hasMark = event == .refresh
      if event == .refreshAll { hasMarkOfAll = true }
      if event == .refresh {
        pendingWrites.refresh(name, at: now)
      } else {
        pendingWrites.refreshAll(at: now)
      }
    case .clear, .clearAll:
      clearedUpTo = last
      hasMark = false
      memory = nil
      departed = nil
      if event == .clear {
        pendingWrites.remove(0, hash: 0, name: name, &effects)
      } else {
        pendingWrites.removeAll(&effects)
      }
    case .beginWriting:
      guard writing == nil, removing == nil, beginWriting() else { return false }
    case .endWriting, .failWriting:
      guard let writing else { return false }
      end(writing, fails: event == .failWriting, &effects)
    case .beginRemoving:
      guard writing == nil, removing == nil, pendingWrites.hasRemovals else { return false }
      removing = Removing(removals: pendingWrites.removals, complete: pendingWrites.completeRemoval)
    case .endRemoving:
      guard let removing else { return false }
      stored = nil
      if let revision = removing.complete {
        pendingWrites.confirmCompleteRemoval(revision)
      } else {
        pendingWrites.confirmRemoval(
          of: removing.removals.map { (name: $0.key, revision: $0.value) }
        )
      }
      self.removing = nil
    }
    compare()
    return true
  }

  private func copy(_ value: Int) -> ValueOutcome<Int> {
    ValueOutcome(value)
  }

  private mutating func noteValue(isNewest: Bool, _ effects: inout CacheEffects) {
    last += 1
    memory = last
    isWritten = false
    departed = nil
    pendingWrites.noteValue(0, hash: 0, name: name, isNewest: isNewest, &effects)
    if isNewest {
      hasMark = false
    } else if hasMark || hasMarkOfAll {
      // A value that was fetched too early is outdated from the start.
      hasMark = true
      outdatedUpTo = last
    }
  }

  private mutating func beginWriting() -> Bool {
    guard !pendingWrites.isToBeRemoved(name) else { return false }
    if let departure = pendingWrites.departures[name] {
      writing = Writing(
        value: departure.copy.value,
        revision: departure.note.revision,
        isDeparture: true,
        time: history.count
      )
      expect(departure.copy.value == departed, "another value is on its way than believed")
    } else if let note = pendingWrites.dirty.entries.first?.element, let memory {
      writing = Writing(
        value: memory,
        revision: note.revision,
        isDeparture: false,
        time: history.count
      )
      expect(!isWritten, "a value is written twice")
    } else {
      return false
    }
    if let writing, pendingWrites.isOutdated(name, revision: writing.revision) {
      pendingWrites.outdate(name, until: .seconds(writing.time))
      hasMark = true
    }
    return true
  }

  private mutating func end(_ writing: Writing, fails: Bool, _ effects: inout CacheEffects) {
    self.writing = nil
    if fails {
      guard writing.isDeparture else { return }
      let isLost = pendingWrites.loseDeparture(name, revision: writing.revision, at: now, &effects)
      expect(isLost == (departed == writing.value), "a value was lost, or not")
      if isLost {
        departed = nil
        hasMark = true
        outdatedUpTo = last
      }
      return
    }
    stored = (writing.value, writing.time)
    if writing.isDeparture {
      pendingWrites.endDeparture(name, revision: writing.revision, &effects)
      if departed == writing.value { departed = nil }
    } else {
      pendingWrites.confirm(0, hash: 0, revision: writing.revision, &effects)
      if memory == writing.value { isWritten = true }
    }
  }

  private mutating func compare() {
    expect(pendingWrites.dirty.isEmpty == (memory == nil || isWritten), "a value was not noted")
    expect(
      pendingWrites.departures[name]?.copy.value == departed,
      "another value leaves than believed"
    )
    switch pendingWrites.lookUp(name) {
    case .departing(let copy, let isOutdated, _):
      expect(copy.value == departed, "a value was found that is not on its way")
      expect(copy.value > clearedUpTo, "a cleared value was found on its way")
      expect(isOutdated == (copy.value <= outdatedUpTo), "a refresh was forgotten, or made up")
    case .removed:
      expect(pendingWrites.hasRemovals, "a copy is not used for no reason")
    case .elsewhere(let outdatedUntil):
      expect(!pendingWrites.isToBeRemoved(name), "a copy is used that has to be removed")
      guard memory == nil, let stored else { return }
      expect(stored.value > clearedUpTo, "a cleared value would be found")
      let isUsed = outdatedUntil.map { .seconds(stored.time) > $0 } ?? true
      if stored.value <= outdatedUpTo {
        expect(!isUsed, "a value of before a refresh would be found")
      }
    }
  }
}
