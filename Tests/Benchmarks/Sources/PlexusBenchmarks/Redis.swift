import BenchmarkRedis
import Foundation
import Plexus
import PlexusRedis
import Synchronization

/// Rows for a cache and events that several processes share over a Redis server, beside redis-benchmark.
func redisComparisons() -> [Comparison] {
  [
    sharedReads(callers: 1, goal: 1 / 1.3),
    sharedReads(callers: 100, goal: 0.5),
    sharedReads(callers: 1_000, goal: 0.35),
    looks(),
    manyKeys(),
    publishing(),
    appending(),
    consuming(),
    decoding(),
    consumingInGroup(),
    coldKey(),
    clearingEverywhere(),
  ]
}

// MARK: - Reading

private let space = "values"
private let key = "key"
private let value = String(repeating: "0123456789", count: 10)

/// A row for reading an entry of 100 bytes, by one caller or by several at once.
///
/// redis-benchmark reads the same fields, also over one connection: with as many callers, as many commands at once. It
/// does not read the epoch and the time, as the library does for each entry.
private func sharedReads(callers: Int, goal: Double) -> Comparison {
  let reads = callers == 1 ? 20_000 : 100_000
  return Comparison(
    name: "redis/read/\(callers)",
    peer: "redis-benchmark -P \(callers), HMGET",
    goal: goal,
    ours: { try await withEngine { try await timeReads(reads, callers: callers, of: $1) } },
    theirs: {
      let command = try await readCommand()
      return try runRedisBenchmark(command, count: reads, pipeline: callers, on: command.server)
    }
  )
}

/// A limit of 100,000 reads per second.
private func looks() -> Comparison {
  .limit("redis/look", atMost: 10_000, unit: .nanoseconds) {
    try await withEngine { try await timeReads(100_000, callers: 200, of: $1) }
  }
}

/// A limit for one of 1,000 keys that are looked up together.
private func manyKeys() -> Comparison {
  .limit("redis/1,000 keys at once", atMost: 10_000, unit: .nanoseconds) {
    try await withEngine { _, cacher in
      let keys = (0..<1_000).map { "\(key) \($0)" }
      try await cacher.store(
        Dictionary(
          uniqueKeysWithValues: keys.map { ($0, CacheEntry(value: value, storedAt: .zero)) }
        )
      )
      var wish = SharedCache.Wish()
      wish.takesLease = false
      let wishes = Dictionary(uniqueKeysWithValues: keys.map { [wish] in ($0, wish) })
      return try await nanoseconds(per: 20 * keys.count) {
        for _ in 0..<20 {
          let found = try await cacher.look(for: wishes)
          guard found.count == keys.count else { throw NotMeasurable("an entry was lost") }
        }
      }
    }
  }
}

/// Calls a body with a server, an engine that is connected to it, and a cacher with one entry.
private func withEngine(
  _ body: (RedisEngine, any SharedCacher<String>) async throws -> Double
) async throws -> Double {
  let server = try server()
  let engine = try await connectedEngine(server.socket)
  let cacher = engine.cacher(String.self, space: space, schema: "1")
  try await cacher.store([key: CacheEntry(value: value, storedAt: .zero)])
  let result = try await body(engine, cacher)
  try await engine.close()
  withExtendedLifetime(server) {}
  return result
}

private func timeReads(
  _ count: Int,
  callers: Int,
  of cacher: any SharedCacher<String>
) async throws -> Double {
  try await nanoseconds(per: count) {
    try await withThrowingTaskGroup { group in
      for _ in 0..<callers {
        group.addTask {
          for _ in 0..<(count / callers) {
            guard try await cacher.entry(forKey: key)?.value == value else {
              throw NotMeasurable("the entry was lost")
            }
          }
        }
      }
      try await group.waitForAll()
    }
  }
}

/// A command that the library sends, for redis-benchmark.
private struct SentCommand: Sendable {
  let server: RedisServer
  let words: [String]
}

/// Returns the command that reads the fields of an entry, and the server with the entry.
private func readCommand() async throws -> SentCommand {
  let server = try server()
  let engine = try await connectedEngine(server.socket)
  let cacher = engine.cacher(String.self, space: space, schema: "1")
  try await cacher.store([key: CacheEntry(value: value, storedAt: .zero)])
  let monitor = try LineProcess(
    program("redis-cli"),
    ["-s", server.socket, "MONITOR"],
    reportsErrors: false
  )
  _ = try await monitor.nextLine()
  _ = try await cacher.entry(forKey: key)
  var words: [String] = []
  while words.isEmpty {
    let line = try await monitor.nextLine()
    guard line.contains("\"HMGET\" \"{\(space)}:2:e:1:\(key)\"") else { continue }
    words = line.drop { $0 != "\"" }.dropFirst().dropLast().components(separatedBy: "\" \"")
  }
  monitor.end()
  try await engine.close()
  return SentCommand(server: server, words: words)
}

/// Runs redis-benchmark with one connection, which tracks keys as the library's does.
///
/// - Returns: The nanoseconds for one command.
private func runRedisBenchmark(
  _ words: [String],
  count: Int,
  pipeline: Int,
  on server: RedisServer
) throws -> Double {
  let options = ["-s", server.socket, "-3", "--enable-tracking", "-c", "1", "--csv"]
  let (output, _) = try runProcess(
    URL(filePath: program("redis-benchmark")),
    options + ["-n", "\(count)", "-P", "\(pipeline)"] + words
  )
  // The name of the test has commas when the command has.
  let fields = output.split(separator: "\n").last?.components(separatedBy: "\",\"") ?? []
  guard fields.count >= 7, let perSecond = Double(fields[fields.count - 7]), perSecond > 0 else {
    throw NotMeasurable("redis-benchmark said: \(output)")
  }
  return 1e9 / perSecond
}

private func runRedisBenchmark(
  _ command: SentCommand,
  count: Int,
  pipeline: Int,
  on server: RedisServer
) throws -> Double {
  try runRedisBenchmark(command.words, count: count, pipeline: pipeline, on: server)
}

// MARK: - Events

private struct Tick: Event, Codable {
  let number: Int
}

private let publishers = 500
private let eventCount = 50_000

/// A limit of 100,000 published events per second.
private func publishing() -> Comparison {
  .limit("redis/publish/\(publishers)", atMost: 10_000, unit: .nanoseconds, timePublishing)
}

/// The same beside redis-benchmark, which appends as many bytes to a stream and does nothing else.
private func appending() -> Comparison {
  Comparison(
    name: "redis/publish/\(publishers), XADD",
    peer: "redis-benchmark -P \(publishers), XADD",
    goal: 0,
    ours: timePublishing,
    theirs: {
      let server = try server()
      try await connectedEngine(server.socket).close()
      let words = [
        "XADD", "stream", "*", "h", String(repeating: "h", count: 40), "d", "{\"number\":12345}",
      ]
      return try runRedisBenchmark(words, count: eventCount, pipeline: publishers, on: server)
    }
  )
}

private func timePublishing() async throws -> Double {
  let server = try server()
  let engine = try await connectedEngine(server.socket)
  let time = try await publishTicks(over: engine)
  try await engine.close()
  withExtendedLifetime(server) {}
  return time
}

private func publishTicks(over engine: RedisEngine) async throws -> Double {
  let bus = EventBus()
  let token = bus.connect(Tick.self, as: "ticks", over: engine.events, .publishOnly)
  try await bus.publish(Tick(number: -1))
  let time = try await nanoseconds(per: eventCount) {
    try await withThrowingTaskGroup { group in
      for publisher in 0..<publishers {
        group.addTask {
          for number in 0..<(eventCount / publishers) {
            try await bus.publish(Tick(number: publisher * eventCount + number))
          }
        }
      }
      try await group.waitForAll()
    }
  }
  token.cancel()
  return time
}

/// A limit of 200,000 handled events per second, for a node that catches up.
private func consuming() -> Comparison {
  .limit("redis/consume", atMost: 5_000, unit: .nanoseconds) {
    try await timeConsuming(.everyNode(from: .start))
  }
}

/// The same beside the decoding of the events alone, which a node does for each of them.
private func decoding() -> Comparison {
  Comparison(
    name: "redis/consume, JSON",
    peer: "JSONDecoder",
    goal: 0,
    ours: { try await timeConsuming(.everyNode(from: .start)) },
    theirs: {
      let coders = (JSONEncoder(), JSONDecoder())
      let bodies = try (0..<eventCount).map { [UInt8](try coders.0.encode(Tick(number: $0))) }
      return try await nanoseconds(per: eventCount) {
        for (number, body) in bodies.enumerated() {
          let tick = try coders.1.decode(Tick.self, from: Data(body))
          guard tick.number == number else { throw NotMeasurable("an event was damaged") }
        }
      }
    }
  )
}

/// A node of a group, which handles and acknowledges each event before the next one, beside a node that gets every event.
private func consumingInGroup() -> Comparison {
  Comparison(
    name: "redis/consume/group",
    peer: "every node",
    goal: 0,
    ours: { try await timeConsuming(.oneNode(group: "group")) },
    theirs: { try await timeConsuming(.everyNode(from: .start)) }
  )
}

private func timeConsuming(_ mode: LinkMode) async throws -> Double {
  let server = try server()
  let publisher = try await connectedEngine(server.socket)
  _ = try await publishTicks(over: publisher)
  try await publisher.close()
  let time = try await timeConsuming(mode, at: server.socket)
  withExtendedLifetime(server) {}
  return time
}

private func timeConsuming(_ mode: LinkMode, at socket: String) async throws -> Double {
  let engine = try await connectedEngine(socket)
  let bus = EventBus()
  let count = Atomic(0)
  let (ends, end) = AsyncStream.makeStream(of: Void.self)
  let observation = bus.observe(Tick.self) { _ in
    if count.add(1, ordering: .relaxed).newValue == eventCount { end.finish() }
  }
  let time = await nanoseconds(per: eventCount) {
    let token = bus.connect(Tick.self, as: "ticks", over: engine.events, mode)
    for await _ in ends {}
    token.cancel()
  }
  observation.cancel()
  try await engine.close()
  return time
}

// MARK: - Processes

/// A limit for the slowest of 12 processes that request a key at once, whose origin takes 300 ms. One of them fetches.
private func coldKey() -> Comparison {
  .limit("redis/12 processes, a cold key", atMost: 315, unit: .milliseconds) {
    let server = try server()
    let nodes = try await RedisNode.start(12, server.socket)
    var slowest: [Double] = []
    for round in 0..<5 {
      let milliseconds = try await nanoseconds(per: 1_000_000) {
        for node in nodes { node.send("get \(round)") }
        for node in nodes { _ = try await node.nextLine() }
      }
      slowest.append(milliseconds)
      var fetches = 0
      for node in nodes { fetches += Int(try await node.ask("fetches")) ?? 0 }
      guard fetches == round + 1 else {
        throw NotMeasurable("\(fetches) fetches of \(round + 1) keys")
      }
    }
    return slowest.sorted()[slowest.count / 2]
  }
}

/// A limit for clearing the copies of three processes, until no request is answered with an older value.
private func clearingEverywhere() -> Comparison {
  .limit("redis/clearAll(.everywhere)/3", atMost: 5, unit: .milliseconds) {
    let server = try server()
    let nodes = try await RedisNode.start(3, server.socket, fetchTime: .zero)
    var times: [Double] = []
    for _ in 0..<51 {
      for node in nodes { _ = try await node.ask("get key") }
      guard let time = Double(try await nodes[0].ask("clear")) else {
        throw NotMeasurable("a clear has failed")
      }
      times.append(time)
    }
    return times.sorted()[times.count / 2]
  }
}

// MARK: - Parts

private func server() throws -> RedisServer {
  guard RedisServer.executable != nil else {
    throw NotMeasurable("redis-server or valkey-server is not installed")
  }
  return try RedisServer()
}

private func program(_ name: String) throws -> String {
  let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
  guard
    let path = folders.map({ "\($0)/\(name)" })
      .first(where: FileManager.default.isExecutableFile)
  else { throw NotMeasurable("\(name) is not installed") }
  return path
}

/// Returns an engine that is connected to a server.
func connectedEngine(_ socket: String) async throws -> RedisEngine {
  var options = RedisOptions()
  // Many callers at once wait for each other.
  options.commandTimeout = .seconds(10)
  let engine = try RedisEngine(.unix(path: socket), options: options)
  for await health in engine.health() where health == .connected { break }
  return engine
}
