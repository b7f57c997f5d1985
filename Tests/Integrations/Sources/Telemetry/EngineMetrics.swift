import Metrics
import PlexusRedis
import ServiceLifecycle

/// Exports the status of an engine and of the events that it carries.
struct EngineMetrics: Service {
  let engine: RedisEngine
  var interval: Duration = .seconds(10)
  var clock: any Clock<Duration> = ContinuousClock()

  func run() async throws {
    var last: EngineStatus?
    while !Task.isShuttingDownGracefully {
      record(since: &last)
      do {
        try await cancelWhenGracefulShutdown { try await clock.sleep(for: interval) }
      } catch { break }
    }
    record(since: &last)
  }

  /// Counts what has happened since the last call.
  func record(since last: inout EngineStatus?) {
    let now = engine.status
    let past = last
    last = now
    let system = [("db.system.name", "redis")]
    func count(
      _ label: String,
      _ field: KeyPath<EngineStatus, Int>,
      _ more: [(String, String)] = []
    ) {
      Counter(label: label, dimensions: system + more)
        .increment(by: max(0, now[keyPath: field] - (past?[keyPath: field] ?? 0)))
    }
    count("cache.engine.commands", \.roundTrips.count)
    count("cache.engine.reconnections", \.reconnections)
    count("cache.engine.io", \.bytesIn, [("network.io.direction", "receive")])
    count("cache.engine.io", \.bytesOut, [("network.io.direction", "transmit")])
    for kind in RedisEngineError.Kind.allCases {
      let increase = now.errors[kind, default: 0] - (past?.errors[kind, default: 0] ?? 0)
      guard increase > 0 else { continue }
      Counter(label: "cache.engine.errors", dimensions: system + [("error.type", "\(kind)")])
        .increment(by: increase)
    }
    func set(_ label: String, _ value: Int) {
      Meter(label: label, dimensions: system).set(value)
    }
    set("cache.engine.outbox.size", now.caches.outboxBytes + now.events.outboxBytes)
    set("cache.engine.removals.owed", now.owedRemovals)
    set("messaging.client.events.unconfirmed", now.unconfirmedEvents)
    set("messaging.client.events.unacknowledged", now.unacknowledgedEvents)
  }
}
