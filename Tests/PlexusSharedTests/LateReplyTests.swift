import Plexus
import PlexusSharedTesting
import PlexusTesting
import TestSupport
import Testing

/// Replies of the engine that arrive long after the engine has sent them.
@Suite(.fewAtOnce)
struct `Late replies of a shared cacher` {
  private let clock = ManualClock()
  private let origin = Origin()
  private let cacher: LateReplyCacher
  private let map: MultiplexerMap<String, String>
  private let other: SharedNode

  init() {
    let engine = SharedMemory<String>(clock: clock)
    var policy = CachePolicy()
    policy.timeToLive = .seconds(600)
    policy.storageTimeout = .seconds(5_000_000_000)
    let (origin, cacher) = (origin, LateReplyCacher(engine.node()))
    self.cacher = cacher
    map = MultiplexerMap(id: "values", policy: policy, cacher: cacher, clock: clock) {
      try origin.value($0)
    }
    other = SharedNode(engine, clock: clock, policy: policy, fetch: origin.value)
  }

  /// Lets this process fetch "2" after another one has fetched "1" and taken the lease from it.
  private func fetchAfterOther() async throws {
    cacher.beforeNextReply { [clock, origin, other] in
      try await other.map.clear("k")
      #expect(try await other.map.request("k") == "1")
      origin.set("2")
      clock.advance(by: .seconds(1))
    }
    #expect(try await map.request("k") == "2")
    #expect(try await other.map.request("k") == "1")
  }

  @Test(.guarantee(.returnedValuesOutdateOlderEntries))
  private func `late replies make no entry newer than the value that its process has returned`()
    async throws
  {
    try await fetchAfterOther()
    cacher.beforeNextReply { [clock] in clock.advance(by: .seconds(5)) }
    #expect(try await map.request("k") == "2")
  }

  @Test(.guarantee(.returnedValuesOutdateOlderEntries))
  private func `late replies make no entry a fallback for a newer value of its process`()
    async throws
  {
    try await fetchAfterOther()
    origin.fail()
    other.map.refresh("k")
    try await other.map.flush()
    cacher.beforeNextReply { [clock] in clock.advance(by: .seconds(5)) }
    await #expect(throws: Origin.Down.self) { try await map.request("k") }
  }
}
