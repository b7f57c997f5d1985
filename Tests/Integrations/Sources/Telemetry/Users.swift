import Plexus
import Tracing

/// A cache whose fetches are spans of the requests that cause them.
func makeUsers(
  clock: any Clock<Duration> = ContinuousClock(),
  _ load: @escaping @Sendable ([Int]) async throws -> [Int: String]
) -> MultiplexerMap<Int, String> {
  .bulk(
    id: "users",
    policy: CachePolicy(
      timeToLive: .seconds(60),
      staleWhileRevalidate: .seconds(300),
      inheritsTaskLocals: true
    ),
    capacity: .count(100_000),
    clock: clock,
    window: .milliseconds(2)
  ) { ids in
    try await withSpan("cache.fetch", ofKind: .client) { span in
      span.attributes["cache.name"] = "users"
      span.attributes["cache.keys"] = ids.count
      return try await load(ids)
    }
  }
}
