import Foundation
import Plexus
import PlexusRedis

/// Operations over a Redis server, whose own instructions are not counted.
let redisOperations: [Operation] = [
  Operation("redis: entry(forKey:)", count: 600, usesRedis: true) { count in
    try await withEngine { engine in
      let cacher = engine.cacher(String.self, space: "values", schema: "1")
      let value = String(repeating: "0123456789", count: 10)
      try await cacher.store(["key": CacheEntry(value: value, storedAt: .zero)])
      for _ in 0..<count {
        use(try await cacher.entry(forKey: "key")?.value.utf8.count ?? 0)
      }
    }
  },
  Operation("redis: publish an event", count: 600, usesRedis: true) { count in
    try await withEngine { engine in
      let bus = EventBus()
      let token = bus.connect(SharedTick.self, as: "ticks", over: engine.events, .publishOnly)
      for number in 0..<count { try await bus.publish(SharedTick(number: number)) }
      token.cancel()
    }
  },
  Operation("redis: event of another node, one of many", count: 3_000, usesRedis: true) { count in
    try await withEngine { engine in
      try await receive(count, of: 3_000, over: engine.events) { .everyNode(from: $0) }
    }
  },
]

private struct SharedTick: Event, Codable {
  let number: Int
}

private func withEngine(_ body: (RedisEngine) async throws -> Void) async throws {
  let socket = ProcessInfo.processInfo.environment[Callgrind.socketVariable] ?? ""
  var options = RedisOptions()
  // Valgrind is slow.
  options.commandTimeout = .seconds(60)
  let engine = try RedisEngine(.unix(path: socket), options: options)
  for await health in engine.health() where health == .connected { break }
  try await body(engine)
  try await engine.close()
}

/// Receives the latest events of a topic that always has as many.
private func receive(
  _ count: Int,
  of total: Int,
  over link: any EventLink,
  _ mode: (LinkPosition) -> LinkMode
) async throws {
  var positions: [LinkPosition] = []
  // One after another: the size of batches would depend on the time.
  for number in 0..<total {
    let message = LinkMessage(
      id: "aaaaaaaaaaaaa.\(number)",
      type: "ticks",
      version: 1,
      origin: "aaaaaaaaaaaaa",
      body: try link.codec.encode(SharedTick(number: number))
    )
    positions.append(try await link.publish(message, to: "ticks"))
  }
  let start = count == total ? LinkPosition.start : positions[total - count - 1]
  let bus = EventBus()
  let countdown = Countdown(count)
  let observation = bus.observe(SharedTick.self) { _ in countdown.signal() }
  let token = bus.connect(SharedTick.self, as: "ticks", over: link, mode(start))
  await countdown.wait()
  token.cancel()
  observation.cancel()
}
