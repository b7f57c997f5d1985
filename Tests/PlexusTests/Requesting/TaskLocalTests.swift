import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `The task-local values of a fetch` {
  @TaskLocal private static var trace = "none"

  let clock = ManualClock()

  @Test(
    .guarantee(.fetchesHaveTaskLocalsByPolicy),
    arguments: CacheKind.allCases,
    [(true, "caller"), (false, "none")]
  )
  func `task-local values of a fetch are those of its first caller, if the policy says so`(
    kind: CacheKind,
    expected: (inherits: Bool, trace: String)
  ) async throws {
    let policy = CachePolicy(inheritsTaskLocals: expected.inherits)
    let cache = kind.make(policy: policy, clock: clock) { Self.trace }
    let trace = try await Self.$trace.withValue("caller") { try await cache.request() }
    #expect(trace == expected.trace)
  }

  @Test(arguments: CacheKind.allCases)
  func `task-local values of a fetch are there under a timeout and in a second attempt, too`(
    kind: CacheKind
  ) async throws {
    let policy = CachePolicy(
      retry: .exponential(attempts: 2, base: .zero, cap: .zero, jitter: 0),
      fetchTimeout: .seconds(5),
      inheritsTaskLocals: true
    )
    let calls = Tally()
    let cache = kind.make(policy: policy, clock: clock) {
      if calls.increment() == 1 { throw Broken() }
      return Self.trace
    }
    let trace = try await Self.$trace.withValue("caller") { try await cache.request() }
    #expect(trace == "caller")
  }

  @Test(.guarantee(.fetchesHaveTaskLocalsByPolicy), arguments: CacheKind.allCases)
  func `a renewal and a prefetch have the task-local values of what causes them`(
    kind: CacheKind
  ) async throws {
    let policy = CachePolicy(
      timeToLive: .seconds(60),
      staleWhileRevalidate: .seconds(60),
      inheritsTaskLocals: true
    )
    let cache = kind.make(policy: policy, clock: clock) { Self.trace }
    let states = Recorder(cache.subscribe())
    _ = try await Self.$trace.withValue("first") { try await cache.request() }
    clock.advance(by: .seconds(60))
    let stale = try await Self.$trace.withValue("second") { try await cache.request() }
    #expect(stale == "first")
    #expect(await states.first(5).last?.name == "loaded second")
    cache.refresh()
    Self.$trace.withValue("third") { cache.prefetch() }
    #expect(await states.first(7).last?.name == "loaded third")
  }

  @Test(.guarantee(.fetchesHaveTaskLocalsByPolicy), arguments: CacheKind.allCases)
  func `a fetch behind a refresh has no task-local values`(kind: CacheKind) async throws {
    let gate = Gate()
    let cache = kind.make(policy: CachePolicy(inheritsTaskLocals: true), clock: clock) {
      try await gate.wait()
      return Self.trace
    }
    let early = begin { try await Self.$trace.withValue("early") { try await cache.request() } }
    await gate.arrivals(1)
    let late = begin {
      try await Self.$trace.withValue("late") { try await cache.refresh().request() }
    }
    gate.open()
    #expect(try await early.value == "early")
    #expect(try await late.value == "none")
  }

  @Test func `the task-local values of a fetch of several keys are those of their caller`()
    async throws
  {
    let policy = CachePolicy(inheritsTaskLocals: true)
    let map = MultiplexerMap<Int, String>.bulk(policy: policy, clock: clock) { keys in
      Dictionary(uniqueKeysWithValues: keys.map { ($0, Self.trace) })
    }
    let values = await Self.$trace.withValue("caller") { await map.request([1, 2]) }
    #expect(try values[2]?.get() == "caller")
  }

  @Test func `task-local values do not make a fetch a part of the work of its caller`() async throws
  {
    let inner = MultiplexerMap<Int, Int>(
      policy: CachePolicy(inheritsTaskLocals: true),
      clock: clock
    ) { $0 }
    let outer = MultiplexerMap<Int, Int>(
      policy: CachePolicy(inheritsTaskLocals: true),
      clock: clock
    ) { key in
      try await inner.request(key) + 1
    }
    #expect(try await outer.request(1) == 2)
  }
}
