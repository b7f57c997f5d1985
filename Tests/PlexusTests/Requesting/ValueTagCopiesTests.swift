import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Stored copies, and the tags that are stored with them.
@Suite(.fewAtOnce) struct `A stored copy of a value with tags` {
  let clock = ManualClock()
  let cacher = ControlledCacher<Int>()

  private func map(_ prefix: String) -> MultiplexerMap<Int, Int> {
    var policy = CachePolicy()
    policy.cacherRead = .beforeFetch
    return MultiplexerMap(
      id: "rows",
      policy: policy,
      cacher: cacher,
      valueTagging: { _, value in [CacheTag("\(prefix)\(value)")] },
      clock: clock,
      onKeyFetch: { _ in throw Broken() }
    )
  }

  @Test(.guarantee(.valueTagsAreFenced))
  func `a copy is judged by the tags stored with it, also if the closure returns others now`()
    async throws
  {
    let old = map("old")
    old.store(5, for: 1)
    try await old.flush()
    let new = map("new")
    #expect(try await new.request(1) == 5)
    new.clearMemory()
    try await new.clear(tags: ["old5"])
    await #expect(throws: Broken.self) { try await new.request(1) }
  }

  @Test func `a copy that the value has left is not removed by the tags before`() async throws {
    let map = map("t")
    map.store(5, for: 1)
    try await map.flush()
    map.update(1) { $0 = 6 }
    try await map.flush()
    map.clearMemory()
    try await map.clear(tags: ["t5"])
    #expect(try await map.request(1) == 6)
  }

  @Test func `an update whose write fails is still there after a clear of its former tag`()
    async throws
  {
    let map = map("t")
    map.store(5, for: 1)
    try await map.flush()
    map.update(1) { $0 = 6 }
    cacher.fail(.store)
    try? await map.flush()
    try await map.clear(tags: ["t5"])
    #expect(map.cachedValue(1) == 6)
    cacher.mend()
    try await map.flush()
    map.clearMemory()
    #expect(try await map.request(1) == 6)
  }

  @Test func `a clear of a new tag during the commit of an update reaches the stored copy`()
    async throws
  {
    let map = map("t")
    map.store(5, for: 1)
    try await map.flush()
    try? await map.update(
      1,
      optimistically: { $0 = 6 },
      commit: { try await map.clear(tags: ["t6"]) }
    )
    #expect(map.cachedValue(1) == nil)
    try await map.flush()
    await #expect(throws: Broken.self) { try await map.request(1) }
  }
}
