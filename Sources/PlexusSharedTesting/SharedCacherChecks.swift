internal import Plexus

/// The checks of the conformance suite, with two nodes over an empty space.
struct Checks: Sendable {
  let rule: SharedCacherConformance.Rule
  let a: any SharedCacher<String>
  let b: any SharedCacher<String>

  static func entry(_ value: String) -> CacheEntry<String> {
    CacheEntry(value: value, storedAt: .zero)
  }

  private func require(_ condition: Bool, _ expectation: String) throws {
    guard condition else {
      throw SharedCacherConformance.Violation(rule: rule, description: expectation)
    }
  }

  private func look(
    _ node: any SharedCacher<String>,
    _ key: String = "key",
    _ change: (inout SharedCache.Wish) -> Void = { _ in }
  ) async throws -> SharedCache.Finding<String> {
    var wish = SharedCache.Wish()
    change(&wish)
    guard let finding = try await node.look(for: [key: wish])[key] else {
      throw SharedCacherConformance.Violation(
        rule: rule,
        description: "A look finds something for each key."
      )
    }
    return finding
  }

  private func lease(
    _ node: any SharedCacher<String>,
    _ key: String = "key"
  ) async throws -> SharedCache.Lease {
    guard case .granted(let lease, _) = try await look(node, key) else {
      throw SharedCacherConformance.Violation(
        rule: rule,
        description: "A key without an entry and a lease has a lease to grant."
      )
    }
    try require(lease.key == key, "A lease names its key.")
    return lease
  }

  private func fill(_ value: String, by node: any SharedCacher<String>) async throws {
    let fill = try await node.fill(Self.entry(value), under: try await lease(node))
    try require(fill == .stored, "A value that was fetched under a valid lease is stored.")
  }

  private func value(
    _ node: any SharedCacher<String>,
    _ key: String = "key"
  ) async throws -> String? {
    try await node.entry(forKey: key)?.value
  }

  // MARK: - Leases

  func oneLease() async throws {
    let announcements = Announcements(of: b)
    let lease = try await lease(a)
    guard case .busy(let version, nil, let limit) = try await look(b) else {
      return try require(false, "The second node finds the key busy.")
    }
    try require(version == lease.version, "The version of the lease is that of its holder.")
    try require(limit > .zero, "A lease that has just been granted lasts for some time.")
    let fill = try await a.fill(Self.entry("value"), under: lease)
    try require(fill == .stored, "The holder's value is stored.")
    guard case .entry(let entry, let age, let found) = try await lookUntilFree(b, announcements)
    else {
      return try require(false, "The second node finds the value.")
    }
    try require(entry.value == "value", "The value is the one that was filled in.")
    try require(found == lease.version, "The version of the entry is that of the lease.")
    try require(age >= .zero, "The age of an entry is not negative.")
    let second = try await a.fill(Self.entry("second"), under: lease)
    try require(second == .superseded, "A lease can be filled once.")
  }

  /// Looks after each announcement, of which the renewal of a lease can cause some, until the key is not busy.
  private func lookUntilFree(
    _ node: any SharedCacher<String>,
    _ announcements: Announcements,
    _ change: (inout SharedCache.Wish) -> Void = { _ in }
  ) async throws -> SharedCache.Finding<String> {
    while true {
      await announcements.waitForAnyChange(of: "key")
      let finding = try await look(node, "key", change)
      if case .busy = finding { continue }
      return finding
    }
  }

  func manyKeys() async throws {
    let keys = (0..<4_096).map { "key \($0)" }
    let wishes = Dictionary(uniqueKeysWithValues: keys.map { ($0, SharedCache.Wish()) })
    let findings = try await a.look(for: wishes)
    try require(Set(findings.keys) == Set(keys), "A look finds something for each key.")
    for (key, finding) in findings {
      guard case .granted(let lease, nil) = finding, lease.key == key else {
        return try require(false, "The first node gets every lease.")
      }
    }
    for finding in try await b.look(for: wishes).values {
      guard case .busy = finding else { return try require(false, "The second node gets none.") }
    }
  }

  func fence(
    _ expected: SharedCache.Fill,
    _ change: (any SharedCacher<String>) async throws -> Void
  ) async throws {
    let lease = try await lease(a)
    try await change(b)
    let fill = try await a.fill(Self.entry("old"), under: lease)
    try require(fill == expected, "The fill is \(expected).")
    try require(try await value(b) != "old", "The older value is not stored.")
  }

  func fencedByOwnLease() async throws {
    for change in [Change.remove, .outdate] {
      let lost = try await lease(a)
      try await make(change, by: b)
      let lease = try await lease(a)
      try require(lease.version > lost.version, "A later lease has a higher version.")
      let early = try await a.fill(Self.entry("old"), under: lost)
      try require(early == .superseded, "The lease that was lost stores nothing.")
      await a.release([lost], because: nil)
      guard case .busy(let version, _, _) = try await look(b) else {
        return try require(false, "The lease that was lost releases nothing.")
      }
      try require(version == lease.version, "The later lease is the one that is held.")
      let fill = try await a.fill(Self.entry("new"), under: lease)
      try require(fill == .stored, "The later lease stores its value.")
      let late = try await a.fill(Self.entry("old"), under: lost)
      try require(late == .superseded, "The lease that was lost replaces nothing newer.")
      try require(try await value(b) == "new", "The newer value is found.")
      try await b.remove(.keys(["key"]), reach: .shared)
    }
  }

  func fencedStore() async throws {
    try await fill("first", by: a)
    var entry = Self.entry("old")
    entry.generation = a.generation
    try require(entry.generation != nil, "A shared cacher counts the removals of everything.")
    try await b.remove(.all, reach: .shared)
    try await a.store(["key": entry])
    try require(try await value(b) == nil, "The older value is not stored.")
    entry.generation = a.generation
    try await a.store(["key": entry])
    try require(try await value(b) == "old", "A value of the present generation is stored.")
  }

  func comparedStore() async throws {
    try await fill("first", by: a)
    guard let marks = a.generation?.marks, marks > 0 else { return }
    func stores(_ number: UInt64, of cache: UInt64 = 1) async throws -> Bool {
      var entry = Self.entry("\(number)")
      entry.unchangedSince = marks
      entry.storeID = SharedCache.StoreID(cache: cache, number: number)
      do {
        try await a.store(["key": entry])
        return true
      } catch let error as CacherError where error.failures["key"] is SharedCache.Overtaken {
        return false
      }
    }
    try require(try await stores(1), "A value is stored over the entry that its node has seen.")
    try require(try await stores(1), "A store can be repeated.")
    try require(try await stores(2), "A value is stored over an earlier one of the same cache.")
    try require(try await !stores(1), "A value is not stored over a later one of the same cache.")
    try require(try await !stores(3, of: 2), "A value is not stored over one of another cache.")
    try await b.outdate(["key"])
    try require(try await !stores(3), "A value is not stored over a later refresh.")
    try await b.remove(.keys(["key"]), reach: .shared)
    try require(try await !stores(4), "A value is not stored after a later removal.")
    try await b.store(["key": Self.entry("other")])
    try require(try await !stores(5), "A value is not stored over a later one of another node.")
  }

  func outdatedIsFallback() async throws {
    try await fill("old", by: a)
    try await b.outdate(["key"])
    guard case .granted(let lease, let previous?) = try await look(a) else {
      return try require(false, "An outdated entry is renewed, and handed out with the lease.")
    }
    try require(previous.value == "old", "The fallback is the outdated value.")
    let fill = try await a.fill(Self.entry("new"), under: lease)
    try require(fill == .stored, "The new value is stored.")
    try require(try await value(b) == "new", "The new value is an answer.")
  }

  func newerThan() async throws {
    try await fill("old", by: a)
    guard case .entry(_, _, let version) = try await look(b) else {
      return try require(false, "The value is found.")
    }
    guard case .granted(let lease, _) = try await look(b, "key", { $0.newerThan = version }) else {
      return try require(false, "A node that needs a newer value gets the lease.")
    }
    _ = try await b.fill(Self.entry("new"), under: lease)
    guard
      case .entry(let entry, _, let newer) = try await look(a, "key", { $0.newerThan = version })
    else { return try require(false, "A newer value satisfies the wish.") }
    try require(entry.value == "new" && newer > version, "Versions are ordered by leases.")
    try await a.remove(.all, reach: .shared)
    try await fill("third", by: a)
    guard case .entry(_, _, let third) = try await look(b, "key", { $0.newerThan = newer }) else {
      return try require(false, "After a removal of everything each version is newer.")
    }
    try require(third > newer, "Versions are ordered by removals of everything first.")
  }

  func failureElsewhere() async throws {
    try await fill("old", by: a)
    try await b.outdate(["key"])
    let lease = try await lease(a)
    guard case .busy(let version, _, _) = try await look(b) else {
      return try require(false, "The key is busy.")
    }
    let failure = SharedCache.Failure(
      description: "down",
      isConnectivityFailure: true,
      isOriginFailure: false
    )
    await a.release([lease], because: failure)
    guard case .failedElsewhere(failure) = try await look(b, "key", { $0.awaited = version }) else {
      return try require(false, "The node that waited gets the failure as it was.")
    }
    guard case .missing(let previous?) = try await look(b, "key", { $0.takesLease = false }),
      previous.value == "old"
    else { return try require(false, "A look that takes no lease finds the fallback.") }
    guard case .granted = try await look(b) else {
      return try require(false, "A node that did not wait fetches.")
    }
  }

  func releasedLease() async throws {
    let announcements = Announcements(of: b)
    let lease = try await lease(a)
    guard case .busy(let version, _, _) = try await look(b) else {
      return try require(false, "The key is busy.")
    }
    await a.release([lease], because: nil)
    let finding = try await lookUntilFree(b, announcements) { $0.awaited = version }
    guard case .granted(let next, _) = finding else {
      return try require(false, "The node that waited gets the lease.")
    }
    try require(next.version > lease.version, "A later lease has a higher version.")
  }

  func announcesLeases() async throws {
    try await fill("old", by: a)
    try await a.outdate(["key"])
    let lease = try await lease(a)
    let announcements = Announcements(of: b)
    guard case .busy = try await look(b) else {
      return try require(false, "The key is busy.")
    }
    await a.release([lease], because: nil)
    await announcements.waitForLease(of: "key")
    try require(!announcements.contains("key"), "The end of a lease is no change of the entry.")
    try await a.store(["key": Self.entry("new")])
    await announcements.wait(for: "key")
  }

  func lostLease() async throws {
    let lost = try await lease(a)
    try await b.remove(.keys(["key"]), reach: .shared)
    _ = try await lease(b)
    await a.release([lost], because: nil)
    guard case .busy = try await look(a) else {
      return try require(false, "The lease of another node stays.")
    }
  }

  func lookOnly() async throws {
    guard case .missing(nil) = try await look(a, "key", { $0.takesLease = false }) else {
      return try require(false, "Nothing is found.")
    }
    _ = try await lease(b)
  }

  // MARK: - Tags

  private static func tagged(_ value: String, _ tags: CacheTag...) -> CacheEntry<String> {
    var entry = entry(value)
    entry.tags = tags
    return entry
  }

  private func value(
    _ node: any SharedCacher<String>,
    _ key: String,
    _ tags: CacheTag...
  ) async throws -> String? {
    let finding = try await look(node, key) { wish in
      wish.takesLease = false
      wish.tags = tags
    }
    if case .entry(let entry, _, _) = finding { return entry.value }
    guard case .missing(nil) = finding else {
      throw SharedCacherConformance.Violation(
        rule: rule,
        description: "An entry that was removed by a tag is no fallback."
      )
    }
    return nil
  }

  private func fill(
    _ value: String,
    _ key: String,
    _ tag: CacheTag,
    by node: any SharedCacher<String>
  ) async throws {
    guard case .granted(let lease, nil) = try await look(node, key, { $0.tags = [tag] }) else {
      return try require(
        false,
        "A key without a valid entry has a lease to grant, and no fallback."
      )
    }
    let fill = try await node.fill(Self.tagged(value, tag), under: lease)
    try require(fill == .stored, "A value that was fetched under a valid lease is stored.")
  }

  func fencedByTagRemoval() async throws {
    guard case .granted(let lease, _) = try await look(a, "key", { $0.tags = ["one", "two"] })
    else {
      return try require(false, "A key without an entry has a lease to grant.")
    }
    _ = try await look(a, "second") { $0.tags = ["two"] }
    try await b.remove(.tags(["two"]), reach: .shared)
    guard case .granted = try await look(b, "second", { $0.tags = ["two"] }) else {
      return try require(false, "A lease from before the removal keeps no node from fetching.")
    }
    // Another node uses the tag again before the fill.
    try await fill("other", "other", "two", by: b)
    let fill = try await a.fill(Self.tagged("old", "one", "two"), under: lease)
    try require(fill == .superseded, "The fill is superseded.")
    try require(try await value(b, "key", "one", "two") == nil, "The older value is not stored.")
  }

  func removesByTag() async throws {
    try await fill("filled", "1", "one", by: a)
    try await fill("filled", "2", "two", by: a)
    try await a.store(["3": Self.tagged("stored", "one", "two"), "4": Self.entry("stored")])
    for key in ["1", "3"] {
      let isThere = try await value(b, key, "one") != nil
      try require(isThere, "An entry is found until it is removed.")
    }
    try await b.remove(.tags(["one"]), reach: .shared)
    for node in [a, b] {
      try require(try await value(node, "1", "one") == nil, "A value that was filled is gone.")
      try require(try await value(node, "2", "two") != nil, "A value with another tag stays.")
      try require(try await value(node, "3", "one", "two") == nil, "A stored value is gone.")
      try require(try await value(node, "4") != nil, "A value without a tag stays.")
    }
    try await fill("new", "1", "one", by: b)
    try require(try await value(a, "1", "one") == "new", "A value that is fetched later is found.")
    try require(
      try await value(a, "3", "one", "two") == nil,
      "The new use of a tag restores nothing."
    )
  }

  func announcesTagRemoval() async throws {
    try await fill("filled", "key", "filled", by: a)
    try await a.store(["key": Self.tagged("stored", "stored")])
    try await fill("filled", "other", "read", by: b)
    _ = try await value(a, "other", "read")
    for tag: CacheTag in ["filled", "stored", "read"] {
      let announcements = Announcements(of: a)
      try await b.remove(.tags([tag]), reach: .shared)
      await announcements.waitForRemoval(of: tag, key: tag == "read" ? "other" : "key")
    }
  }

  // MARK: - Announcements

  func announcesToReaders() async throws {
    for change in [Change.fill, .store, .remove, .outdate] {
      let announcements = Announcements(of: a)
      _ = try await look(a, "key") { $0.takesLease = false }
      try await make(change, by: b)
      await announcements.wait(for: "key")
      try await b.remove(.keys(["key"]), reach: .shared)
    }
  }

  func announcesToWriters() async throws {
    for change in [Change.store, .remove, .outdate] {
      try await fill("own", by: a)
      let announcements = Announcements(of: a)
      try await make(change, by: b)
      await announcements.wait(for: "key")
      try await a.store(["key": Self.entry("own")])
      try await make(change, by: b)
      await announcements.wait(for: "key")
      try await b.remove(.keys(["key"]), reach: .shared)
    }
  }

  private enum Change: Sendable {
    case fill, store, remove, outdate
  }

  private func make(_ change: Change, by node: any SharedCacher<String>) async throws {
    switch change {
    case .fill: try await fill("new", by: node)
    case .store: try await node.store(["key": Self.entry("new")])
    case .remove: try await node.remove(.keys(["key"]), reach: .shared)
    case .outdate: try await node.outdate(["key"])
    }
  }

  func noEcho() async throws {
    let announcements = Announcements(of: a)
    try await fill("own", by: a)
    try await a.store(["key": Self.entry("own")])
    _ = try await look(a)
    _ = try await look(a, "other") { $0.takesLease = false }
    try await b.store(["other": Self.entry("theirs")])
    await announcements.wait(for: "other")
    try require(!announcements.contains("key"), "A node hears nothing of its own changes.")
  }

  func announcesCompleteRemoval() async throws {
    try await fill("value", by: a)
    _ = try await look(b)
    let announcements = Announcements(of: b)
    let moment = b.trust.now
    try await a.remove(.all, reach: .everywhere)
    // It waits for nodes that have not heard of it: they must not trust older copies.
    let holds = b.trust.holds
    b.trust.extend(until: moment)
    try require(b.trust.holds == holds, "The trust has ended when the removal returns.")
    await announcements.waitForEverything()
    try require(try await value(b) == nil, "Nothing is left.")
  }

  // MARK: - Entries

  func anyKey() async throws {
    let keys = [
      "", " ", "a/b", "..", "ä€😀", "{key}", "a:b\r\n\0", String(repeating: "k", count: 20_000),
    ]
    for key in keys {
      let lease = try await lease(a, key)
      let fill = try await a.fill(Self.entry(key), under: lease)
      try require(fill == .stored, "The value of each key is stored.")
    }
    for key in keys { try require(try await value(b, key) == key, "Each key has its own value.") }
    try await b.removeEntries(forKeys: Set(keys.dropFirst()))
    try require(try await value(a, "") == "", "Only the keys that are named are removed.")
    try require(try await value(a, " ") == nil, "The keys that are named are removed.")
  }

  func wholeEntries() async throws {
    var directives = CacheDirectives(timeToLive: .seconds(7))
    directives.staleIfError = .seconds(8)
    directives.staleWhileRevalidate = .seconds(9)
    directives.requiresRevalidation = true
    let entry = CacheEntry(
      value: "value \0 ä",
      storedAt: .zero,
      validator: "\"tag\"",
      directives: directives
    )
    _ = try await a.fill(entry, under: try await lease(a))
    guard let found = try await b.entry(forKey: "key") else {
      return try require(false, "The entry is found.")
    }
    try require(found.value == entry.value, "The value is kept.")
    try require(found.validator == entry.validator, "The validator is kept.")
    try require(found.directives == entry.directives, "The directives are kept.")
  }
}
