import Plexus
import PlexusSharedTesting
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `Maps with a shared tier and a limit` {
  let clock = ManualClock()
  let origin = Origin()
  let engine: SharedMemory<String>

  init() {
    engine = SharedMemory<String>(clock: clock)
  }

  private func makeNode(
    _ maximum: Int?,
    waiting: Int? = nil,
    _ change: (inout CachePolicy) -> Void = { _ in }
  ) -> SharedNode {
    var policy = CachePolicy()
    policy.storageTimeout = .seconds(5_000_000_000)
    policy.maximumConcurrentFetches = maximum
    policy.maximumWaitingFetches = waiting
    change(&policy)
    return SharedNode(engine, clock: clock, policy: policy, fetch: origin.value)
  }

  @Test(.guarantee(.fetchesStayWithinTheirLimit))
  func `a fetch of a shared map takes its place before its lease`() async throws {
    let (a, b) = (makeNode(1), makeNode(nil))
    a.gate.close()
    let first = Task { try await a.map.request("1") }
    await a.gate.arrivals(1)
    a.map.prefetch(["2"])
    #expect(a.map.statistics.waiting == 1)
    // Nothing holds its lease meanwhile: the other node fetches it.
    #expect(try await b.map.request("2") == "1")
    #expect(b.fetchCount == 1)
    a.gate.open()
    #expect(try await first.value == "1")
    #expect(try await a.map.request("2") == "1")
    #expect(a.fetchCount == 1)
  }

  /// Lets a node wait for the fetch of another one, which is held at its gate.
  private func beginWait(
    of node: SharedNode,
    for owner: SharedNode
  ) async -> (other: Task<String, any Error>, waiting: Task<String, any Error>) {
    owner.gate.close()
    let other = Task { try await owner.map.request("1") }
    await owner.gate.arrivals(1)
    let waiting = Task { try await node.map.request("1") }
    await clock.sleepers(1)
    return (other, waiting)
  }

  @Test func `a fetch of a shared map that waits for another node needs no place meanwhile`()
    async throws
  {
    let (a, b) = (makeNode(1), makeNode(nil))
    let (other, waiting) = await beginWait(of: a, for: b)
    #expect(try await a.map.request("2") == "1")
    b.gate.open()
    #expect(try await waiting.value == "1")
    #expect(try await other.value == "1")
    #expect(a.map.statistics.running == 0)
  }

  @Test func `a request of a shared map beyond the limit fails, or gets a stale value`()
    async throws
  {
    let a = makeNode(1, waiting: 0) {
      $0.timeToLive = .seconds(10)
      $0.usesCachedValue = { ($0 as? MultiplexerError) == .overloaded }
    }
    #expect(try await a.map.request("2") == "1")
    clock.advance(by: .seconds(10))
    a.gate.close()
    let first = Task { try await a.map.request("1") }
    await a.gate.arrivals(2)
    let response = try await a.map.response("2")
    #expect(response.isStale)
    #expect(response.error as? MultiplexerError == .overloaded)
    await #expect(throws: MultiplexerError.overloaded) { try await a.map.request("3") }
    #expect(a.map.statistics.failures == 0)
    a.gate.open()
    #expect(try await first.value == "1")
    #expect(try await a.map.request("3") == "1")
  }

  @Test(.guarantee(.fetchesStayWithinTheirLimit))
  func `a refresh of a shared map whose predecessor has ended is not refused`() async throws {
    let a = makeNode(1, waiting: 0)
    a.gate.close()
    let first = Task { try await a.map.request("1") }
    await a.gate.arrivals(1)
    let newer = a.map.refresh("1")
    let second = Task(executorPreference: Inline.shared) { try await newer.request("1") }
    #expect(a.map.statistics.joins == 1)
    a.gate.open()
    #expect(try await first.value == "1")
    #expect(try await second.value == "1")
    #expect(a.fetchCount == 2)
    #expect(a.map.statistics.failures == 0)
  }

  @Test(arguments: [0, nil])
  func `a fresh entry of the tier needs no place`(waiting: Int?) async throws {
    let (a, b) = (makeNode(1, waiting: waiting), makeNode(nil))
    for key in ["2", "3"] { #expect(try await b.map.request(key) == "1") }
    a.gate.close()
    let first = Task { try await a.map.request("1") }
    await a.gate.arrivals(1)
    #expect(try await a.map.request("2") == "1")
    #expect(await a.map.request(["2", "3"]).count == 2)
    #expect(a.fetches.entries == ["1"])
    a.gate.open()
    #expect(try await first.value == "1")
    #expect(a.map.statistics.running + a.map.statistics.waiting == 0)
    #expect(a.map.statistics.restorations == 2)
  }

  @Test func `an entry of the tier that a refresh has outdated needs a place for its fetch`()
    async throws
  {
    let (a, b) = (makeNode(1), makeNode(nil))
    #expect(try await b.map.request("2") == "1")
    a.gate.close()
    let first = Task { try await a.map.request("1") }
    await a.gate.arrivals(1)
    origin.set("2")
    let second = Task(executorPreference: Inline.shared) {
      try await a.map.refresh("2").request("2")
    }
    #expect(a.map.statistics.waiting == 1)
    a.gate.open()
    #expect(try await second.value == "2")
    #expect(try await first.value == "2")
    #expect(a.fetches.entries == ["1", "2"])
  }

  @Test(.guarantee(.fetchesStayWithinTheirLimit))
  func `a fetch that has waited for another node gets its entry without a place`() async throws {
    let (a, b) = (makeNode(1), makeNode(nil))
    let (other, waiting) = await beginWait(of: a, for: b)
    a.gate.close()
    let busy = Task { try await a.map.request("2") }
    await a.gate.arrivals(1)
    b.gate.open()
    #expect(try await waiting.value == "1")
    #expect(try await other.value == "1")
    #expect(a.fetches.entries == ["2"])
    a.gate.open()
    #expect(try await busy.value == "1")
  }

  @Test(.guarantee(.fetchesStayWithinTheirLimit))
  func `a caller of a shared map has its answer when the place of its fetch is free`() async throws
  {
    let a = makeNode(1, waiting: 0)
    for key in 0..<300 { #expect(try await a.map.request("\(key)") == "1") }
    #expect(a.map.statistics.failures == 0)
  }
}

/// Runs a task on the thread that enqueues it, before that thread continues.
private final class Inline: TaskExecutor {
  static let shared = Inline()

  func enqueue(_ job: consuming ExecutorJob) {
    job.runSynchronously(on: asUnownedTaskExecutor())
  }
}
