import Plexus

/// The content of a ``SharedMemory``: entries, leases, failures, and the nodes that have looked for each key.
///
/// Times are those since the creation of the engine. Each operation returns the announcements that it causes.
struct SharedMemoryState<Value: Sendable>: Sendable {
  struct Epoch: Hashable, Sendable {
    var counter: UInt64 = 1
    var nonce: UInt64 = 1
  }

  /// The epoch and the last token that a node has seen.
  ///
  /// An engine with less has lost data.
  struct Knowledge: Hashable, Sendable {
    var epoch: Epoch
    var token: UInt64
  }

  /// An announcement of a change for some nodes.
  struct Announcement: Sendable {
    var nodes: Set<Int>
    var change: SharedCache.Change
  }

  private struct Record: Sendable {
    var entry: CacheEntry<Value>?
    var epoch = Epoch()
    var token: UInt64 = 0
    var storedAt = Duration.zero
    var outdatedBy: UInt64 = 0
    var lease: Lease?
    var failure: (token: UInt64, failure: SharedCache.Failure)?
  }

  private struct Lease: Sendable {
    var version: SharedCache.Version
    var node: Int
    var until: Duration
  }

  private(set) var epoch = Epoch()
  private var records: [String: Record] = [:]
  private var lastToken: UInt64 = 0
  private var lastNonce: UInt64 = 1
  private var interested: [String: Set<Int>] = [:]
  /// The tokens of the last removals by tags.
  private var marks: [CacheTag: UInt64] = [:]
  private var interestedInTags: [CacheTag: Set<Int>] = [:]
  let leaseTime: Duration

  init(leaseTime: Duration) {
    self.leaseTime = leaseTime
  }

  var knowledge: Knowledge { Knowledge(epoch: epoch, token: lastToken) }

  /// Continues after a state that is lost: its nonces are not used again.
  mutating func succeed(_ lost: Self, isEmpty: Bool) {
    lastNonce = lost.lastNonce
    guard isEmpty else { return }
    lastNonce += 1
    epoch.nonce = lastNonce
  }

  /// Raises the epoch if a node has seen a later epoch or a later token, so that a lost lease is never granted again.
  mutating func reconcile(_ known: Knowledge, nodes: Set<Int>) -> [Announcement] {
    let isOlder =
      known.epoch.counter == epoch.counter
      ? known.epoch.nonce != epoch.nonce : epoch.counter < known.epoch.counter
    guard isOlder || lastToken < known.token else { return [] }
    lastToken = max(lastToken, known.token)
    return raise(above: known.epoch.counter, nodes: nodes)
  }

  private mutating func raise(above counter: UInt64, nodes: Set<Int>) -> [Announcement] {
    lastNonce += 1
    epoch = Epoch(counter: max(counter, epoch.counter) + 1, nonce: lastNonce)
    interested = [:]
    interestedInTags = [:]
    marks = [:]
    return [Announcement(nodes: nodes, change: .everything)]
  }

  // MARK: - Operations

  mutating func look(
    _ key: String,
    _ wish: SharedCache.Wish,
    by node: Int,
    at now: Duration
  ) -> SharedCache.Finding<Value> {
    interested[key, default: []].insert(node)
    for tag in wish.tags { interestedInTags[tag, default: []].insert(node) }
    var record = records[key] ?? Record()
    var previous: CacheEntry<Value>?
    if let entry = record.entry, record.epoch == epoch, !isRemoved(record.token, wish.tags) {
      let version = version(record.token)
      if record.outdatedBy <= record.token, wish.newerThan.map({ $0 < version }) ?? true {
        return .entry(entry, age: now - record.storedAt, version)
      }
      previous = entry
      previous?.unchangedSince = record.token
    }
    if let lease = record.lease,
      lease.version.epoch != epoch.counter || lease.version.nonce != epoch.nonce
        || lease.until <= now || isRemoved(lease.version.token, wish.tags)
    {
      record.lease = nil
    }
    if let awaited = wish.awaited, let failure = record.failure, failure.token >= awaited.token {
      return .failedElsewhere(failure.failure)
    }
    if let lease = record.lease {
      let limit = min(lease.until - now, leaseTime)
      return .busy(lease.version, previous: previous, holderUntil: limit)
    }
    guard wish.takesLease else { return .missing(previous: previous) }
    let version = version(nextToken())
    // It lasts until its node can no longer renew it.
    record.lease = Lease(version: version, node: node, until: .seconds(Int64.max / 4))
    records[key] = record
    return .granted(SharedCache.Lease(key: key, version: version), previous: previous)
  }

  mutating func fill(
    _ entry: CacheEntry<Value>,
    under lease: SharedCache.Lease,
    by node: Int,
    at now: Duration
  ) -> (SharedCache.Fill, [Announcement]) {
    var record = records[lease.key] ?? Record()
    let holds = holds(lease, record, node, at: now)
    guard lease.version.epoch == epoch.counter, lease.version.nonce == epoch.nonce else {
      return (.cleared, [])
    }
    guard holds else { return (.superseded, []) }
    if isRemoved(lease.version.token, entry.tags) {
      return (.superseded, release([lease], because: nil, by: node, at: now))
    }
    for tag in entry.tags { interestedInTags[tag, default: []].insert(node) }
    record.entry = entry
    record.epoch = epoch
    record.token = lease.version.token
    record.storedAt = now
    record.outdatedBy = 0
    record.failure = nil
    record.lease = nil
    records[lease.key] = record
    return (.stored, announce([lease.key], by: node, keepsOwn: true))
  }

  mutating func store(
    _ entries: [String: CacheEntry<Value>],
    by node: Int,
    at now: Duration
  ) -> (Set<String>, [Announcement]) {
    // A value from before a removal of everything is not stored after it.
    let isPast: (CacheEntry<Value>) -> Bool = { [epoch] entry in
      entry.generation.map { $0.number != epoch.counter } ?? false
    }
    let overtaken = Set(
      entries.filter { key, entry in
        isPast(entry)
          ? entry.storeID != nil
          : entry.unchangedSince.map { hasChanged(key, since: $0, for: entry) } ?? false
      }.keys
    )
    var entries = entries.filter { !isPast($0.value) }
    for key in overtaken {
      entries[key] = nil
      interested[key, default: []].insert(node)
    }
    for (key, entry) in entries {
      var record = Record()
      record.entry = entry
      record.epoch = epoch
      record.token = nextToken()
      record.storedAt = now
      records[key] = record
      for tag in entry.tags { interestedInTags[tag, default: []].insert(node) }
    }
    return (overtaken, announce(Array(entries.keys), by: node, keepsOwn: true))
  }

  /// Returns whether a key can have changed since a token, other than by the cache of a value: one without an entry can
  /// have been removed.
  private func hasChanged(
    _ key: String,
    since token: UInt64,
    for value: CacheEntry<Value>
  ) -> Bool {
    guard let record = records[key], let entry = record.entry, record.epoch == epoch else {
      return true
    }
    var token = token
    if let id = entry.storeID, let later = value.storeID, id.isIncluded(in: later) {
      token = max(token, record.token)
    }
    return record.token > token || record.outdatedBy > token || isRemoved(token + 1, value.tags)
  }

  mutating func release(
    _ leases: [SharedCache.Lease],
    because failure: SharedCache.Failure?,
    by node: Int,
    at now: Duration
  ) -> [Announcement] {
    var released: [String] = []
    for lease in leases {
      guard var record = records[lease.key], holds(lease, record, node, at: now) else { continue }
      record.lease = nil
      if let failure { record.failure = (lease.version.token, failure) }
      records[lease.key] = record
      released.append(lease.key)
    }
    // The entries are the same: their next change is announced as well.
    return released.compactMap { key in
      let others = interested[key]?.subtracting([node]) ?? []
      return others.isEmpty ? nil : Announcement(nodes: others, change: .leased([key]))
    }
  }

  mutating func outdate(_ keys: Set<String>, by node: Int) -> [Announcement] {
    let token = nextToken()
    for key in keys {
      records[key, default: Record()].outdatedBy = token
      records[key]?.lease = nil
    }
    return announce(Array(keys), by: node, keepsOwn: false)
  }

  mutating func remove(_ keys: Set<String>, by node: Int) -> [Announcement] {
    for key in keys { records[key] = nil }
    return announce(Array(keys), by: node, keepsOwn: false)
  }

  mutating func remove(_ tags: Set<CacheTag>, by node: Int) -> [Announcement] {
    let token = nextToken()
    var nodes: Set<Int> = []
    for tag in tags {
      marks[tag] = token
      nodes.formUnion(interestedInTags.removeValue(forKey: tag) ?? [])
    }
    nodes.remove(node)
    return nodes.isEmpty ? [] : [Announcement(nodes: nodes, change: .tagged(tags))]
  }

  mutating func removeAll(by node: Int, nodes: Set<Int>) -> [Announcement] {
    raise(above: epoch.counter, nodes: nodes.subtracting([node]))
  }

  /// Lets the leases of a node expire, which can no longer renew them.
  mutating func disconnect(_ node: Int, at now: Duration) {
    for key in records.keys where records[key]?.lease?.node == node {
      records[key]?.lease?.until = now + leaseTime
    }
    for key in interested.keys { interested[key]?.remove(node) }
    for tag in interestedInTags.keys { interestedInTags[tag]?.remove(node) }
  }

  /// Renews the leases that a node holds, if they have not expired.
  mutating func reconnect(_ node: Int, holding held: Set<SharedCache.Lease>, at now: Duration) {
    for key in records.keys {
      guard let lease = records[key]?.lease, lease.node == node, now < lease.until,
        held.contains(SharedCache.Lease(key: key, version: lease.version))
      else { continue }
      records[key]?.lease?.until = .seconds(Int64.max / 4)
    }
  }

  // MARK: - Parts

  private func version(_ token: UInt64) -> SharedCache.Version {
    SharedCache.Version(epoch: epoch.counter, nonce: epoch.nonce, token: token)
  }

  /// Returns whether a value with a token was removed by one of its tags.
  private func isRemoved(_ token: UInt64, _ tags: [CacheTag]) -> Bool {
    tags.contains { tag in marks[tag].map { token <= $0 } ?? false }
  }

  private mutating func nextToken() -> UInt64 {
    lastToken += 1
    return lastToken
  }

  private func holds(
    _ lease: SharedCache.Lease,
    _ record: Record,
    _ node: Int,
    at now: Duration
  ) -> Bool {
    guard let held = record.lease else { return false }
    return held.version == lease.version && held.node == node && now < held.until
  }

  private mutating func announce(
    _ keys: [String],
    by node: Int,
    keepsOwn: Bool
  ) -> [Announcement] {
    var announcements: [Announcement] = []
    for key in keys {
      let nodes = interested.removeValue(forKey: key) ?? []
      if keepsOwn { interested[key] = [node] }
      let others = nodes.subtracting([node])
      if !others.isEmpty {
        announcements.append(Announcement(nodes: others, change: .changed([key])))
      }
    }
    return announcements
  }
}
