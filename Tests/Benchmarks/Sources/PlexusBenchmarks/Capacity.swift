import Foundation
import Plexus
import Synchronization

/// Rows for the cost of a limit on hits, and for large numbers of entries.
func capacityComparisons() -> [Comparison] {
  [
    boundedHits(),
    hitsWithTimeToIdle(),
    hitsAmongMany(inOrder: true),
    hitsAmongMany(inOrder: false),
    hitsAmongManyOfATable(),
    bytesOfAnEntry(isBounded: false),
    bytesOfAnEntry(isBounded: true),
    clearingByTag(),
  ]
}

private let hitsInARun = 2_000_000

/// A value that is created on first use, so that it takes no time of other rows.
private final class Lazy<Value: Sendable>: Sendable {
  private let make: @Sendable () -> Value
  private let made = Mutex<Value?>(nil)

  init(_ make: @escaping @Sendable () -> Value) {
    self.make = make
  }

  var value: Value {
    get async {
      made.withLock { made in
        let value = made ?? make()
        made = value
        return value
      }
    }
  }
}

private func filledMap(
  count: Int,
  capacity: CacheCapacity<Int>,
  timeToIdle: Duration? = nil
) -> MultiplexerMap<Int, Int> {
  let policy = CachePolicy(timeToIdle: timeToIdle)
  let map = MultiplexerMap<Int, Int>(policy: policy, capacity: capacity) { _ in 1 }
  for number in 0..<count { map.store(1, for: key(number)) }
  return map
}

private func key(_ number: Int) -> Int { number &* 2_654_435_761 }

/// A row for the nanoseconds of one hit, with keys in the order in which they were stored or in random order.
private func hits(
  in map: MultiplexerMap<Int, Int>,
  count: Int,
  inOrder: Bool = true
) async throws -> Double {
  let step = inOrder ? 1 : 7_368_787 % count
  var number = 0
  var sum = 0
  let time = try await nanoseconds(per: hitsInARun) {
    for _ in 0..<hitsInARun {
      sum &+= try await map.request(key(number))
      number += step
      if number >= count { number -= count }
    }
  }
  precondition(sum == hitsInARun, "There was another value")
  return time
}

private func boundedHits() -> Comparison {
  let bounded = Lazy { filledMap(count: 10_000, capacity: .count(10_000)) }
  let unbounded = Lazy { filledMap(count: 10_000, capacity: .unbounded) }
  return Comparison(
    name: "hit/bounded",
    peer: "the same without a limit",
    goal: 0.8,
    ours: { try await hits(in: await bounded.value, count: 10_000) },
    theirs: { try await hits(in: await unbounded.value, count: 10_000) }
  )
}

private func hitsWithTimeToIdle() -> Comparison {
  let idle = Lazy { filledMap(count: 10_000, capacity: .unbounded, timeToIdle: .seconds(3_600)) }
  let plain = Lazy { filledMap(count: 10_000, capacity: .unbounded) }
  return Comparison(
    name: "hit/time to idle",
    peer: "the same without it",
    goal: 0.8,
    ours: { try await hits(in: await idle.value, count: 10_000) },
    theirs: { try await hits(in: await plain.value, count: 10_000) }
  )
}

/// A row for clearing 1,000 of 1,000,000 entries, per cleared entry.
private func clearingByTag() -> Comparison {
  let (count, cleared) = (1_000_000, 1_000)
  let map = Lazy {
    let map = MultiplexerMap<Int, Int>(
      tagging: { $0 < cleared ? ["few"] : ["most"] },
      onKeyFetch: { _ in 1 }
    )
    for number in 0..<count { map.store(1, for: number) }
    return map
  }
  return Comparison(
    name: "clear/1,000 of 1,000,000/tag",
    peer: "by a condition",
    goal: 20,
    ours: {
      let map = await map.value
      for number in 0..<cleared { map.store(1, for: number) }
      return try await nanoseconds(per: cleared) {
        try await map.clear(tags: ["few"])
        precondition(map.count == count - cleared)
      }
    },
    theirs: {
      let map = await map.value
      for number in 0..<cleared { map.store(1, for: number) }
      return try await nanoseconds(per: cleared) {
        try await map.clear { $0 < cleared }
        precondition(map.count == count - cleared)
      }
    }
  )
}

private func hitsAmongMany(inOrder: Bool) -> Comparison {
  let many = Lazy { filledMap(count: 1_000_000, capacity: .unbounded) }
  let few = Lazy { filledMap(count: 1_000, capacity: .unbounded) }
  return Comparison(
    name: "hit/1,000,000 entries/\(inOrder ? "in order" : "scattered")",
    peer: "the same of 1,000 entries",
    goal: 1 / 3,
    ours: { try await hits(in: await many.value, count: 1_000_000, inOrder: inOrder) },
    theirs: { try await hits(in: await few.value, count: 1_000, inOrder: inOrder) }
  )
}

private func hitsAmongManyOfATable() -> Comparison {
  let count = 1_000_000
  let many = Lazy { filledMap(count: count, capacity: .unbounded) }
  let table = Lazy { LockedTable(count: count) }
  return Comparison(
    name: "hit/1,000,000 entries/scattered/Mutex",
    peer: "Mutex<Dictionary>",
    goal: 1,
    ours: { try await hits(in: await many.value, count: count, inOrder: false) },
    theirs: {
      let table = await table.value
      let step = 7_368_787 % count
      var number = 0
      var sum = 0
      let time = await nanoseconds(per: hitsInARun) {
        for _ in 0..<hitsInARun {
          sum &+= table.value(of: key(number))
          number += step
          if number >= count { number -= count }
        }
      }
      precondition(sum == hitsInARun, "A value was lost")
      return time
    }
  )
}

/// The peer of a map with a large number of entries.
private final class LockedTable: Sendable {
  private let table: Mutex<[Int: Int]>

  init(count: Int) {
    table = Mutex(Dictionary(uniqueKeysWithValues: (0..<count).map { (key($0), 1) }))
  }

  func value(of key: Int) -> Int { table.withLock { $0[key] ?? 0 } }
}

/// A row for the memory of an entry without its key and value.
private func bytesOfAnEntry(isBounded: Bool) -> Comparison {
  .limit("bytes/1,000,000 entries\(isBounded ? "/bounded" : "")", atMost: 96, unit: .bytes) {
    try Probe.run(isBounded ? "bounded entries" : "entries", count: 1_000_000)
  }
}

/// Returns the memory of one of many entries, without its key and value.
func bytesOfAnEntry(count: Int, isBounded: Bool) -> Double {
  let before = bytesInUse()
  let map = filledMap(count: count, capacity: isBounded ? .count(count) : .unbounded)
  let bytes = bytesInUse() - before
  precondition(map.cachedValue(key(count - 1)) == 1, "A value was lost")
  return Double(bytes) / Double(count) - 2 * Double(MemoryLayout<Int>.size)
}

/// The memory of the process.
func bytesInUse() -> Int {
  #if canImport(Darwin)
  var statistics = malloc_statistics_t()
  malloc_zone_statistics(nil, &statistics)
  return Int(statistics.size_in_use)
  #else
  let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
  let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
  return pages * Int(getpagesize())
  #endif
}
