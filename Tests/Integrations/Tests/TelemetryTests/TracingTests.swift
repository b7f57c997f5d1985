import InMemoryTracing
import Plexus
import PlexusTesting
import Testing
import Tracing

@Suite(.serialized) struct `Traces` {
  private static let tracer: InMemoryTracer = {
    let tracer = InMemoryTracer()
    InstrumentationSystem.bootstrap(tracer)
    return tracer
  }()

  private var tracer: InMemoryTracer { Self.tracer }

  @Test func `a fetch is a child of the request that causes it`() async throws {
    tracer.clearAll()
    let users = makeUsers { ids in Dictionary(uniqueKeysWithValues: ids.map { ($0, "\($0)") }) }
    _ = try await withSpan("request") { _ in try await users.request(1) }
    let spans = tracer.finishedSpans
    let request = try #require(spans.first { $0.operationName == "request" })
    let fetch = try #require(spans.first { $0.operationName == "cache.fetch" })
    #expect(fetch.parentSpanID == request.spanID)
    #expect(fetch.traceID == request.traceID)
  }

  @Test func `a batch is a child of its first request`() async throws {
    tracer.clearAll()
    let users = makeUsers { ids in Dictionary(uniqueKeysWithValues: ids.map { ($0, "\($0)") }) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for id in 0..<10 {
        group.addTask {
          _ = try await withSpan("request \(id)") { _ in try await users.request(id) }
        }
      }
      try await group.waitForAll()
    }
    let spans = tracer.finishedSpans
    let fetches = spans.filter { $0.operationName == "cache.fetch" }
    let requests = Set(spans.filter { $0.operationName.hasPrefix("request") }.map(\.spanID))
    #expect(fetches.allSatisfy { $0.parentSpanID.map(requests.contains) ?? false })
    #expect(!fetches.isEmpty && fetches.count <= 10)
  }

  @Test func `a refresh is a child of the request that causes it`() async throws {
    tracer.clearAll()
    let users = makeUsers { ids in Dictionary(uniqueKeysWithValues: ids.map { ($0, "\($0)") }) }
    _ = try await users.request(1)
    users.refresh(1)
    _ = try await withSpan("request") { _ in try await users.request(1) }
    try expectFetchOfRequest()
  }

  @Test func `a renewal behind a stale answer is a child of its request`() async throws {
    tracer.clearAll()
    let clock = ManualClock()
    let users = makeUsers(clock: clock) { ids in
      Dictionary(uniqueKeysWithValues: ids.map { ($0, "\($0)") })
    }
    users.store("1", for: 1)
    clock.advance(by: .seconds(61))
    let events = Recorder(users.events())
    try await within(.seconds(60)) {
      _ = try await withSpan("request") { _ in try await users.request(1) }
      await clock.sleepers(1)
      clock.advance(by: .milliseconds(2))
      while !events.elements.contains(where: { if case .fetched = $0 { true } else { false } }) {
        _ = await events.first(events.elements.count + 1)
      }
    }
    try expectFetchOfRequest()
  }

  private func expectFetchOfRequest() throws {
    let spans = tracer.finishedSpans
    let request = try #require(spans.first { $0.operationName == "request" })
    #expect(
      spans.contains { $0.operationName == "cache.fetch" && $0.parentSpanID == request.spanID }
    )
  }
}
