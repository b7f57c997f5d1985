import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Very many fetches that wait for a place: with a step for each of them that looks at all others, or at all that run, these
/// tests take minutes.
@Suite(.fewAtOnce) struct `Very many fetches that wait` {
  private static let count = Effort.isFull ? 10_000 : 3_000

  @Test func `a wait of an unrelated fetch does not make the queue of a limit slow`() async throws {
    let gate = Gate()
    let inner = Multiplexer<Int> {
      await waitUnmoved(gate)
      return 1
    }
    let outer = Multiplexer<Int> { try await inner.request() }
    let waiter = Task { try await outer.request() }
    await gate.arrivals(1)
    let running = Gate()
    let map = MultiplexerMap<Int, Int>(policy: LimitedOrigin.policy(1_000)) { key in
      try await running.wait()
      return key
    }
    map.prefetch(0..<Self.count)
    #expect(map.statistics.waiting == Self.count - 1_000)
    try await map.clear()
    #expect(map.statistics.waiting == 0)
    running.open()
    gate.open()
    #expect(try await waiter.value == 1)
  }

  @Test func `very many callers that join and leave prefetches do not slow down each other`()
    async throws
  {
    let origin = LimitedOrigin()
    let map = origin.makeMap(1, waiting: Self.count)
    let first = begin { try await map.request(-1) }
    map.prefetch(0..<Self.count)
    let callers = (0..<Self.count).map { key in begin { try await map.request(key) } }
    for caller in callers.shuffled() { caller.cancel() }
    #expect(map.statistics.waiting == Self.count)
    let other = begin { try await map.request(-2) }
    #expect(map.statistics.waiting == Self.count, "In the place of a prefetch")
    try await map.clear()
    for key in [-1, -2] { origin.gate(key).open() }
    #expect(try await first.value == 99)
    #expect(try await other.value == 98)
  }

  @Test func `very many fetches that join one that waits take no time for each other`() async throws
  {
    let origin = LimitedOrigin()
    let inner = origin.makeMap(1)
    inner.prefetch([0, 1])
    let outer = MultiplexerMap<Int, Int> { _ in try await inner.request(1) }
    outer.prefetch(0..<Self.count)
    while inner.statistics.joins < Self.count { await Task.detached {}.value }
    for key in [0, 1] { origin.gate(key).open() }
    while outer.count < Self.count { await Task.detached {}.value }
    #expect(origin.begun == [0, 1])
  }

  @Test(arguments: [nil, Int.max])
  func `a fetch that waits in another cache does not make nested waits slow`(
    outerMaximum: Int?
  ) async throws {
    let (origin, other) = (LimitedOrigin(), LimitedOrigin())
    let third = other.makeMap(1)
    third.prefetch([1, 2])
    let inner = origin.makeMap(2_000)
    inner.prefetch(-2_000..<0)
    let outer = MultiplexerMap<Int, Int>(policy: LimitedOrigin.policy(outerMaximum)) {
      try await inner.request($0)
    }
    outer.prefetch(0..<2_000)
    while inner.statistics.waiting < 2_000 { await Task.detached {}.value }
    for key in [1, 2] { other.gate(key).open() }
    for key in -2_000..<2_000 { origin.gate(key).open() }
    while outer.count < 2_000 { await Task.detached {}.value }
    #expect(inner.count == 4_000)
  }
}
