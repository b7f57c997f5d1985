import Plexus
import Synchronization

/// Rows for cache hits and for many callers of one fetch.
func requestingComparisons() -> [Comparison] {
  let numbers: [Int] = (0..<10_000).map { (number: Int) -> Int in number &* 2_654_435_761 }
  let names = (0..<10_000).map { number in
    let digits = String(number)
    return "user_" + String(repeating: "0", count: 19 - digits.utf8.count) + digits
  }
  return [
    hits(of: numbers, kind: "Int", tasks: 1, goal: 1 / 0.45, peer: .anActor),
    hits(of: names, kind: "String", tasks: 1, goal: 1 / 0.45, peer: .anActor),
    hits(of: numbers, kind: "Int", tasks: 2, goal: 14, peer: .anActor),
    hits(of: names, kind: "String", tasks: 2, goal: 14, peer: .anActor),
    hits(of: numbers, kind: "Int", tasks: 2, goal: 1.9, peer: .aLock),
    hits(of: names, kind: "String", tasks: 2, goal: 1.9, peer: .aLock),
    hitsOnMainActor(of: numbers),
    joiners(),
  ] + missComparisons()
}

private enum Peer: String {
  case anActor = "actor with dictionary"
  case aLock = "Mutex<Dictionary>"
}

private let hitsInARun = 2_000_000

private func hits<Key: Hashable & Sendable>(
  of keys: [Key],
  kind: String,
  tasks: Int,
  goal: Double,
  peer: Peer
) -> Comparison {
  let filled = Filled(keys)
  return Comparison(
    name: "hit/\(kind)/\(tasks)/\(peer.rawValue.prefix(5))",
    peer: peer.rawValue,
    goal: goal,
    ours: {
      let map = try await filled.map.value
      return try await inParallel(tasks) { task in
        try await request(keys, from: task) { try await map.request($0) }
      }
    },
    theirs: {
      switch peer {
      case .anActor:
        let cache = await filled.cache.value
        return try await inParallel(tasks) { task in
          try await request(keys, from: task) { try await cache.request($0) }
        }
      case .aLock:
        let table = filled.table
        return try await inParallel(tasks) { task in
          try await request(keys, from: task) { key in table.withLock { $0[key] } ?? 0 }
        }
      }
    }
  )
}

private func hitsOnMainActor(of keys: [Int]) -> Comparison {
  let filled = Filled(keys)
  return Comparison(
    name: "hit/main actor",
    peer: "the same from a task",
    goal: 0.8,
    ours: { @MainActor in
      let map = try await filled.map.value
      return try await nanoseconds(per: hitsInARun) {
        for index in 0..<hitsInARun { _ = try await map.request(keys[index % keys.count]) }
      }
    },
    theirs: { @concurrent in
      let map = try await filled.map.value
      return try await nanoseconds(per: hitsInARun) {
        for index in 0..<hitsInARun { _ = try await map.request(keys[index % keys.count]) }
      }
    }
  )
}

/// The library and its peers, filled with the same keys.
private struct Filled<Key: Hashable & Sendable>: Sendable {
  let map: Task<MultiplexerMap<Key, Int>, any Error>
  let cache: Task<ActorCache<Key>, Never>
  let table: TableBox<Key>

  init(_ keys: [Key]) {
    map = Task {
      let map = MultiplexerMap<Key, Int> { _ in 1 }
      for key in keys { _ = try await map.request(key) }
      return map
    }
    cache = Task { ActorCache(keys) }
    table = TableBox(keys)
  }
}

private func request<Key>(
  _ keys: [Key],
  from task: Int,
  _ body: (Key) async throws -> Int
) async throws -> Int {
  var sum = 0
  var index = task * 5003 % keys.count
  for _ in 0..<hitsInARun {
    sum &+= try await body(keys[index])
    index += 1
    if index == keys.count { index = 0 }
  }
  return sum
}

/// Returns the nanoseconds per operation over all tasks.
private func inParallel(
  _ tasks: Int,
  _ body: @escaping @Sendable (Int) async throws -> Int
) async throws -> Double {
  try await nanoseconds(per: hitsInARun * tasks) {
    try await withThrowingTaskGroup(of: Int.self) { group in
      for task in 0..<tasks { group.addTask { try await body(task) } }
      for try await _ in group {}
    }
  }
}

/// The peer of a map: an actor with a dictionary of values and their deadlines, and one of tasks.
actor ActorCache<Key: Hashable & Sendable> {
  private var values: [Key: (value: Int, deadline: ContinuousClock.Instant)] = [:]
  private var tasks: [Key: Task<Int, any Error>] = [:]
  private let fetch: @Sendable (Key) async throws -> Int

  init(_ keys: [Key], fetch: @escaping @Sendable (Key) async throws -> Int = { _ in 1 }) {
    self.fetch = fetch
    let deadline = ContinuousClock.now.advanced(by: .seconds(1800))
    for key in keys { values[key] = (1, deadline) }
  }

  func request(_ key: Key) async throws -> Int {
    if let (value, deadline) = values[key], ContinuousClock.now < deadline { return value }
    if let task = tasks[key] { return try await task.value }
    let task = Task<Int, any Error> { try await fetch(key) }
    tasks[key] = task
    defer { tasks[key] = nil }
    let value = try await task.value
    values[key] = (value, ContinuousClock.now.advanced(by: .seconds(1800)))
    return value
  }
}

/// The peer of a map in parallel: a dictionary behind the standard library's lock.
private final class TableBox<Key: Hashable & Sendable>: Sendable {
  private let table: Mutex<[Key: Int]>

  init(_ keys: [Key]) {
    table = Mutex(Dictionary(uniqueKeysWithValues: keys.map { ($0, 1) }))
  }

  func withLock<Result: Sendable>(_ body: ([Key: Int]) -> Result) -> Result {
    table.withLock { body($0) }
  }
}

/// Rows for fetches that return immediately, for keys with one caller.
private func missComparisons() -> [Comparison] {
  [1, 2, 100].map { misses("\($0)", tasks: $0) }
    + [
      misses("bounded", tasks: 1, capacity: .count(100)),
      misses("a fetch that suspends", tasks: 1) { _ in
        await Task.yield()
        return 1
      },
    ]
}

private func misses(
  _ name: String,
  tasks: Int,
  capacity: CacheCapacity<Int> = .unbounded,
  _ fetch: @escaping @Sendable (Int) async throws -> Int = { _ in 1 }
) -> Comparison {
  let keys = 40_000 / tasks
  return Comparison(
    name: "miss/\(name)",
    peer: Peer.anActor.rawValue,
    goal: 0.7,
    ours: {
      let map = MultiplexerMap<Int, Int>(capacity: capacity) { try await fetch($0) }
      return try await misses(keys: keys, tasks: tasks) { try await map.request($0) }
    },
    theirs: {
      let cache = ActorCache<Int>([]) { try await fetch($0) }
      return try await misses(keys: keys, tasks: tasks) { try await cache.request($0) }
    }
  )
}

private func misses(
  keys: Int,
  tasks: Int,
  _ request: @escaping @Sendable (Int) async throws -> Int
) async throws -> Double {
  try await nanoseconds(per: keys * tasks) {
    try await withThrowingTaskGroup(of: Int.self) { group in
      for task in 0..<tasks {
        group.addTask {
          var sum = 0
          for key in task * keys..<(task + 1) * keys { sum += try await request(key) }
          return sum
        }
      }
      for try await sum in group { precondition(sum == keys, "A value was lost") }
    }
  }
}

private func joiners() -> Comparison {
  let callers = 100_000
  return Comparison(
    name: "100,000 joiners",
    peer: "await task.value",
    goal: 1 / 1.1,
    ours: { try await calls(count: callers) },
    theirs: { try await callsOfATask(count: callers) }
  )
}

/// Measures many callers of one fetch.
func calls(count: Int) async throws -> Double {
  let door = Door()
  let fetches = Counter()
  let multiplexer = Multiplexer<Int> {
    fetches.increment()
    await door.wait()
    return 1
  }
  let result = try await crowd(of: count, door: door) { try await multiplexer.request() }
  precondition(fetches.value == 1, "There was more than one fetch")
  return result
}

/// Measures as many tasks that wait for another task.
func callsOfATask(count: Int) async throws -> Double {
  let door = Door()
  let task = Task<Int, any Error> {
    await door.wait()
    return 1
  }
  return try await crowd(of: count, door: door) { try await task.value }
}

/// Starts the callers, opens the door when all of them have started, and waits for their results.
private func crowd(
  of callers: Int,
  door: Door,
  _ body: @escaping @Sendable () async throws -> Int
) async throws -> Double {
  let begun = Counter()
  return try await nanoseconds(per: callers) {
    // No task group: each ending task takes time in proportion to the size of the group.
    let tasks = (0..<callers).map { _ in
      Task {
        if begun.increment() == callers { door.open() }
        return try await body()
      }
    }
    var sum = 0
    for task in tasks { sum += try await task.value }
    precondition(sum == callers, "A caller was forgotten")
  }
}

/// A door that suspends one task until it is opened.
final class Door: Sendable {
  private struct State {
    var isOpen = false
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let state = Mutex(State())

  func wait() async {
    await withCheckedContinuation { continuation in
      let isOpen = state.withLock { state in
        if !state.isOpen { state.waiter = continuation }
        return state.isOpen
      }
      if isOpen { continuation.resume() }
    }
  }

  func open() {
    let waiter = state.withLock { state in
      state.isOpen = true
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume()
  }
}

final class Counter: Sendable {
  private let count = Atomic<Int>(0)

  var value: Int { count.load(ordering: .relaxed) }

  @discardableResult
  func increment() -> Int {
    count.add(1, ordering: .relaxed).newValue
  }
}
