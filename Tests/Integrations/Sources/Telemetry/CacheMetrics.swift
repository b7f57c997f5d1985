import Metrics
import Plexus
import ServiceLifecycle

/// Exports the statistics of all registered caches.
struct CacheMetrics: Service {
  var repository = MuxRepository.shared
  var interval: Duration = .seconds(10)
  var clock: any Clock<Duration> = ContinuousClock()

  func run() async throws {
    var counted: [String: CacheStatistics] = [:]
    while !Task.isShuttingDownGracefully {
      record(since: &counted)
      // A graceful shutdown cancels the pause.
      do {
        try await cancelWhenGracefulShutdown { try await clock.sleep(for: interval) }
      } catch { break }
    }
    record(since: &counted)
  }

  /// Counts what has happened since the last call.
  func record(since counted: inout [String: CacheStatistics]) {
    for (id, now) in repository.statistics {
      let past = counted[id].flatMap { hasGrown(from: $0, to: now) ? $0 : nil } ?? CacheStatistics()
      counted[id] = now
      let cache = [("cache.name", id)]
      for (result, field) in [
        ("hit", \CacheStatistics.hits), ("stale", \.staleHits), ("miss", \.misses),
        ("join", \.joins),
      ] {
        Counter(label: "cache.requests", dimensions: cache + [("cache.result", result)])
          .increment(by: max(0, now[keyPath: field] - past[keyPath: field]))
      }
      for (label, field) in [
        ("cache.fetches", \CacheStatistics.fetches), ("cache.fetch.failures", \.failures),
        ("cache.evictions", \.evictions), ("cache.storage.errors", \.cacherErrors),
      ] {
        Counter(label: label, dimensions: cache)
          .increment(by: max(0, now[keyPath: field] - past[keyPath: field]))
      }
      // Abandoned fetches have exceeded their time limit, and still run.
      for (label, count) in [
        ("cache.fetches.running", now.running), ("cache.fetches.waiting", now.waiting),
        ("cache.fetches.abandoned", now.abandoned),
      ] {
        Meter(label: label, dimensions: cache).set(count)
      }
    }
  }

  /// A cache that was released, and created again, counts from zero.
  private func hasGrown(from past: CacheStatistics, to now: CacheStatistics) -> Bool {
    past.hits <= now.hits && past.misses <= now.misses && past.fetches <= now.fetches
  }
}
