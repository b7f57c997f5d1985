internal import PlexusSupport

/// The running and waiting transfers of each host, and which of them is next.
///
/// Each step takes time in proportion to the logarithm of the number of transfers that wait at the host.
///
/// Invariants:
///
/// - No transfer waits at a host that has fewer running transfers than the limit.
/// - A turn that ends is handed to the most urgent waiting transfer, of equally urgent ones to the earliest.
/// - For each waiting transfer, the line of the host has an entry with its present urgency; outdated entries are
///   skipped.
struct HostGateState<Key: Hashable & Sendable>: Sendable {
  private struct Place: Sendable {
    let host: String
    let key: Key
    var urgency: Int
  }

  let limit: Int
  private var running: [String: Int] = [:]
  private var lines: [String: HostLine] = [:]
  /// The places of waiting transfers, and the transfers of each key.
  private var places: [Int: Place] = [:]
  private var waiting: [Key: Set<Int>] = [:]
  /// The number of callers of a key, by urgency.
  private var demand: [Key: [Int: Int]] = [:]

  init(limit: Int) {
    self.limit = limit
  }

  /// The highest urgency of a key among its callers; `nil` if it has none.
  func urgency(of key: Key) -> Int? {
    demand[key]?.keys.max()
  }

  /// Adds a caller of a key.
  ///
  /// - Returns: Whether the key has become more urgent.
  mutating func want(_ key: Key, urgency: Int) -> Bool {
    let before = self.urgency(of: key)
    demand[key, default: [:]][urgency, default: 0] += 1
    return update(key, before)
  }

  /// Removes a caller of a key.
  ///
  /// - Returns: Whether the key has become less urgent.
  mutating func unwant(_ key: Key, urgency: Int) -> Bool {
    guard let count = demand[key]?[urgency] else { return false }
    let before = self.urgency(of: key)
    demand[key]?[urgency] = count > 1 ? count - 1 : nil
    if demand[key]?.isEmpty == true { demand[key] = nil }
    return update(key, before)
  }

  /// Adds a transfer of a host.
  ///
  /// - Returns: Whether it runs; otherwise it waits.
  mutating func enter(_ host: String, id: Int, for key: Key) -> Bool {
    guard running[host, default: 0] >= limit else {
      running[host, default: 0] += 1
      return true
    }
    let urgency = urgency(of: key) ?? Self.none
    places[id] = Place(host: host, key: key, urgency: urgency)
    waiting[key, default: []].insert(id)
    lines[host, default: HostLine()].count += 1
    lines[host]?.append(HostLine.Entry(urgency: urgency, id: id))
    return false
  }

  /// Removes a waiting transfer.
  mutating func cancel(_ id: Int) {
    guard let host = remove(id)?.host else { return }
    tidy(host)
  }

  /// Ends a turn.
  ///
  /// - Returns: The transfer whose turn begins.
  mutating func leave(_ host: String) -> Int? {
    while let entry = lines[host]?.popFirst() {
      guard places[entry.id]?.urgency == entry.urgency else { continue }
      _ = remove(entry.id)
      tidy(host)
      return entry.id
    }
    lines[host] = nil
    running[host, default: 1] -= 1
    if running[host] == 0 { running[host] = nil }
    return nil
  }

  /// Whether there are neither callers nor transfers.
  var isEmpty: Bool {
    running.isEmpty && lines.isEmpty && places.isEmpty && waiting.isEmpty && demand.isEmpty
  }

  /// The number of waiting transfers at all hosts.
  var waitingCount: Int { places.count }

  /// The number of entries of all lines, including outdated ones.
  var entryCount: Int { lines.values.reduce(0) { $0 + $1.entries.count } }

  /// The urgency of a key without callers.
  private static var none: Int { -1 }

  private mutating func update(_ key: Key, _ before: Int?) -> Bool {
    let now = urgency(of: key)
    guard now != before else { return false }
    for id in waiting[key] ?? [] {
      guard let host = places[id]?.host else { continue }
      places[id]?.urgency = now ?? Self.none
      lines[host]?.append(HostLine.Entry(urgency: now ?? Self.none, id: id))
      tidy(host)
    }
    return true
  }

  private mutating func remove(_ id: Int) -> Place? {
    guard let place = places.removeValue(forKey: id) else { return nil }
    waiting[place.key]?.remove(id)
    if waiting[place.key]?.isEmpty == true { waiting[place.key] = nil }
    lines[place.host]?.count -= 1
    return place
  }

  /// Removes outdated entries of a line when there are many.
  private mutating func tidy(_ host: String) {
    guard let line = lines[host] else { return }
    if line.count == 0 {
      lines[host] = nil
    } else if line.entries.count > 2 * line.count + 16 {
      var left = HostLine()
      left.count = line.count
      var seen = Set<Int>()
      for entry in line.entries
      where places[entry.id]?.urgency == entry.urgency && seen.insert(entry.id).inserted {
        left.append(entry)
      }
      lines[host] = left
    }
  }
}

/// The waiting requests at one host, the most urgent first, of equally urgent ones the earliest.
struct HostLine: Sendable {
  struct Entry: Comparable, Sendable {
    let urgency: Int
    let id: Int

    static func < (one: Entry, other: Entry) -> Bool {
      one.urgency != other.urgency ? one.urgency > other.urgency : one.id < other.id
    }
  }

  /// The number of waiting requests; some have several entries.
  var count = 0
  private var heap = Heap<Entry>()

  var entries: [Entry] { heap.elements }

  mutating func append(_ entry: Entry) {
    heap.insert(entry)
  }

  mutating func popFirst() -> Entry? {
    heap.popFirst()
  }
}
