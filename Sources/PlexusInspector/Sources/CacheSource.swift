internal import Plexus

/// A cache or a loader.
final class CacheSource: InspectedSource {
  let kind: SourceKind
  private let probe: CacheProbe
  private let disclosure: Disclosure
  private let history: Journal<CacheEvent>

  /// The number of fetches and of events that a page shows.
  private static let limits = (flights: 50, events: 100, history: 2_000)

  init(_ kind: SourceKind, _ probe: CacheProbe, _ disclosure: Disclosure) {
    self.kind = kind
    self.probe = probe
    self.disclosure = disclosure
    history = Journal(capacity: Self.limits.history)
  }

  func start(_ pace: Pace) {
    if let events = probe.events?() { history.read(events, pace: pace) }
  }

  func stop() {
    history.stop()
    _ = probe.flights(0)
  }

  var numbers: JSON? {
    guard let numbers = probe.numbers() else { return nil }
    var json = JSON.object([])
    if let count = numbers.count { json = json.adding(["count": .int(count)]) }
    guard let statistics = numbers.statistics else { return json }
    return json.adding([
      "hits": .int(statistics.hits),
      "staleHits": .int(statistics.staleHits),
      "joins": .int(statistics.joins),
      "misses": .int(statistics.misses),
      "fetches": .int(statistics.fetches),
      "failures": .int(statistics.failures),
      "evictions": .int(statistics.evictions),
      "restorations": .int(statistics.restorations),
      "revalidations": .int(statistics.revalidations),
      "cacherErrors": .int(statistics.cacherErrors),
      "waiting": .int(statistics.waiting),
      "abandoned": .int(statistics.abandoned),
      "fetchTime": .seconds(statistics.fetchTime),
      "longestFetch": .seconds(statistics.longestFetch),
    ])
  }

  func details(since revision: Int) -> (JSON, revision: Int) {
    let flights = probe.flights(Self.limits.flights + 1)
    let changes = history.changes(since: revision, limit: Self.limits.events)
    let details: JSON = [
      "flights": .array(flights.prefix(Self.limits.flights).map(Self.json)),
      "hasMoreFlights": .bool(flights.count > Self.limits.flights),
      "hasEntries": .bool(probe.entries != nil),
      "events": .array(changes.items.map(json)),
    ]
    return (details, changes.revision)
  }

  private static func json(_ flight: CacheProbe.Flight) -> JSON {
    [
      "key": .text(flight.key?.shortened(to: 200)), "age": .seconds(flight.age),
      "callers": .int(flight.callerCount), "waiting": .bool(flight.isWaiting),
    ]
  }

  // MARK: - Entries

  func entries(_ query: EntryQuery) -> JSON? {
    guard let entries = probe.entries else { return nil }
    let start = ContinuousClock.now
    var selection = EntrySelection(query, now: Self.uptime)
    let count = probe.numbers()?.count ?? 0
    var scan = EntryScan(query, until: start + EntryScan.patience)
    var matchCount: Int?
    var isCut = false
    if let found = Self.firstByKey(entries, query, &scan) {
      for row in found.rows { selection.consider(row) }
      matchCount = found.matchCount
    } else {
      // A part of the entries at a time, so that memory is bounded.
      let parts = count / EntryScan.part + 1
      for part in 0..<parts where !scan.isOver {
        let rows = entries(2 * EntryScan.part) { scan.includes($0, part: part, of: parts) }
        for row in rows { selection.consider(row) }
        // There are more failures, which are not counted, or more than a loader counts.
        if rows.count == 2 * EntryScan.part { isCut = true }
      }
    }
    let (window, hasMore) = selection.finish()
    return [
      "count": .int(count),
      "matches": .int(matchCount ?? selection.matchCount),
      "isComplete": .bool(!scan.isOver && !isCut),
      "hasMore": .bool(hasMore),
      "took": .seconds(ContinuousClock.now - start),
      "rows": .array(window.map { json($0.row, key: $0.position.key) }),
      "last": window.last.map { Self.json($0.position) } ?? .null,
    ]
  }

  private static func json(_ position: EntryQuery.Position) -> JSON {
    [
      "number": .string("\(position.number)"), "key": .string(position.key),
      "hash": .string("\(position.hash)"),
    ]
  }

  /// Returns the first entries in the order of keys and some of the others, by one look at the cache; `nil` if the query
  /// needs more than the keys, or if too many of them were seen in the wrong order.
  private static func firstByKey(
    _ entries: (_ limit: Int, _ isIncluded: (CacheProbe.Key) -> Bool) -> [EntryRow],
    _ query: EntryQuery,
    _ scan: inout EntryScan
  ) -> (rows: [EntryRow], matchCount: Int)? {
    guard query.order == .key, query.state == nil else { return nil }
    var keys = KeySelection(query)
    var time = scan
    let rows = entries(2 * EntryScan.part) { key in
      guard time.isLeft() else { return false }
      let text = key.text()
      guard query.matches(text) else { return false }
      return keys.includes(text.shortened(to: EntryQuery.keyLimit), hash: key.hash)
    }
    scan = time
    return rows.count < 2 * EntryScan.part ? (rows, keys.matchCount) : nil
  }

  func entry(_ key: String, hash: Int?) -> JSON? {
    guard let entries = probe.entries else { return nil }
    var scan = EntryScan(EntryQuery(), until: ContinuousClock.now + EntryScan.patience)
    var isFound = false
    let row = entries(1) { candidate in
      guard !isFound, scan.includes(candidate, part: 0, of: 1),
        hash == nil || hash == candidate.hash, candidate.shown == key
      else { return false }
      isFound = true
      return true
    }.first
    let original = row?.key().original
    let hasHistory = original != nil || !probe.describesKeys
    let events = history.items.filter { item in
      guard let eventKey = item.record.key else { return probe.isSingle }
      guard let eventKey, !probe.isSingle else { return true }
      if let original { return eventKey == original }
      return eventKey.shortened(to: EntryQuery.keyLimit) == key
    }
    return [
      "key": .string(key),
      "row": row.map { json($0, key: key, limit: 4_000) } ?? .null,
      "events": .array(!hasHistory ? [] : events.suffix(Self.limits.events).map(json)),
    ]
  }

  private func json(_ row: EntryRow, key: String, limit: Int = 100) -> JSON {
    let value =
      row.value.map { disclosure.text(of: $0, limit: limit) } ?? row.error.map(disclosure.text)
    return [
      "key": .string(key),
      "hash": .string("\(row.hash)"),
      "state": .string("\(row.state)"),
      "age": .seconds(row.age),
      "left": row.timeLeft.map(JSON.seconds) ?? .null,
      "tags": .array(row.tags.prefix(20).map { .string($0.name.shortened(to: 60)) }),
      "cost": .int(row.cost),
      "value": .text(value),
      "error": .text(row.error.map(disclosure.text)),
    ]
  }

  // MARK: - Events

  private func json(_ item: JournalState<CacheEvent>.Item) -> JSON {
    let (name, detail) = describe(item.record)
    let key = item.record.key ?? nil
    return [
      "number": .int(item.number),
      "time": item.time.map(JSON.decimal) ?? .null,
      "key": .text(probe.describesKeys ? nil : key?.shortened(to: 200)),
      "what": .string(name),
      "detail": .text(detail),
    ]
  }

  private func describe(_ event: CacheEvent) -> (name: String, detail: String?) {
    switch event {
    case .fetched(_, let outcome, let duration):
      let name =
        switch outcome {
        case .value: "fetched"
        case .notModified: "confirmed"
        case .transient: "fetched, not cached"
        @unknown default: "fetched"
        }
      return (name, Self.text(of: duration))
    case .fetchFailed(_, let error, let duration):
      let text = disclosure.text(of: error).shortened(to: 100)
      return ("failed", "\(Self.text(of: duration)), \(text)")
    case .joined(_, let count):
      return (
        "joined", "\(count) other \(count == 1 ? "request" : "requests") waited for the fetch"
      )
    case .expired: return ("expired", "a request found it stale")
    case .removed(_, let cause): return ("removed", Self.text(of: cause))
    case .stored: return ("stored", "by a caller")
    case .restored: return ("restored", "from the cacher")
    case .flushed(let count): return ("written", "\(count) values to the cacher")
    case .cacherFailed(_, let error): return ("cacher failed", disclosure.text(of: error))
    @unknown default: return ("other", nil)
    }
  }

  private static func text(of cause: CacheEvent.RemovalCause) -> String {
    switch cause {
    case .capacity: "evicted for others"
    case .cleared: "cleared, also where it is stored"
    case .memoryCleared: "memory was cleared"
    case .transient: "must not be cached"
    case .expired: "stale for too long"
    @unknown default: "\(cause)"
    }
  }

  private static func text(of duration: Duration) -> String {
    switch duration.seconds {
    case ..<1: "\(Int((duration.seconds * 1_000).rounded())) ms"
    case ..<120: "\((duration.seconds * 10).rounded() / 10) s"
    default: "\(Int((duration.seconds / 60).rounded())) min"
    }
  }

  /// The time that continues at one pace, in seconds.
  private static var uptime: Double { (ContinuousClock.now - origin).seconds }

  private static let origin = ContinuousClock.now
}

extension CacheEvent {
  /// The key: `.some(nil)` for all keys, and `nil` for an event without keys.
  fileprivate var key: String?? {
    switch self {
    case .fetched(let key, _, _), .fetchFailed(let key, _, _), .joined(let key, _),
      .expired(let key), .stored(let key), .restored(let key):
      key
    case .removed(let key, _), .cacherFailed(let key, _): .some(key)
    case .flushed: nil
    @unknown default: nil
    }
  }
}

/// A look at the entries of a cache, for a limited time.
struct EntryScan {
  /// The number of entries that are looked at together.
  static let part = 50_000
  /// The time that a look takes at most, beside the time for copying what it finds.
  static let patience = Duration.seconds(2)

  private(set) var isOver = false
  private let query: EntryQuery
  private let deadline: ContinuousClock.Instant

  init(_ query: EntryQuery, until deadline: ContinuousClock.Instant) {
    self.query = query
    self.deadline = deadline
  }

  /// Returns whether there is time for another entry.
  mutating func isLeft() -> Bool {
    guard !isOver else { return false }
    if ContinuousClock.now >= deadline { isOver = true }
    return !isOver
  }

  /// Returns whether a key belongs to a part and is searched for.
  mutating func includes(_ key: CacheProbe.Key, part: Int, of parts: Int) -> Bool {
    guard isLeft() else { return false }
    guard parts == 1 || Int(UInt(bitPattern: key.hash) % UInt(parts)) == part else { return false }
    return query.search.isEmpty || query.matches(key.text())
  }
}
