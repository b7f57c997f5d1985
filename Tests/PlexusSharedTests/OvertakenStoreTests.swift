import Plexus
import PlexusSharedTesting
import PlexusTesting
import TestSupport
import Testing

/// Values that are stored in one process while another one changes their keys.
@Suite(.fewAtOnce)
struct `Stored values that another process overtakes` {
  enum Change: CaseIterable {
    case clear, clearTag, store, refresh
  }

  let clock = ManualClock()
  let origin = Origin()
  let node: SharedNode
  let other: SharedNode

  init() {
    var policy = CachePolicy()
    policy.timeToLive = .seconds(600)
    policy.storageTimeout = .seconds(5_000_000_000)
    let engine = SharedMemory<String>(clock: clock)
    let (clock, origin) = (clock, origin)
    let makeNode = {
      SharedNode(
        engine,
        clock: clock,
        policy: policy,
        tagging: { [CacheTag($0)] },
        fetch: origin.value
      )
    }
    (node, other) = (makeNode(), makeNode())
  }

  /// Changes the value to "2" at the origin, and for the processes.
  private func make(_ change: Change) async throws {
    origin.set("2")
    switch change {
    case .clear: try await other.map.clear("k")
    case .clearTag: try await other.map.clear(tags: ["k"])
    case .store:
      other.map.store("2", for: "k")
      try await other.map.flush()
    case .refresh: #expect(try await other.map.refresh("k").request("k") == "2")
    }
  }

  /// Expects the same value in both processes, also once everything is written.
  private func expect(_ value: String) async throws {
    for _ in 0..<2 {
      #expect(try await node.map.request("k") == value)
      #expect(try await other.map.request("k") == value)
      try await node.map.flush()
    }
  }

  private func storeWithoutEngine() async throws {
    node.cacher.cutOff()
    node.map.store("mine", for: "k")
    await #expect(throws: (any Error).self) { try await node.map.flush() }
  }

  @Test(.guarantee(.storedValuesDoNotReplaceLaterChanges), arguments: [false, true])
  func `a stored value is fetched again if its process has not heard that all was removed`(
    isUpdate: Bool
  ) async throws {
    _ = try await node.map.request("k")
    node.cacher.delayAnnouncements()
    try await other.map.clear()
    #expect(try await other.map.request("k") == "1")
    origin.set("2")
    if isUpdate { node.map.update("k") { $0 = "2" } } else { node.map.store("2", for: "k") }
    try await node.map.flush()
    node.cacher.hearAnnouncements()
    try await expect("2")
  }

  @Test(.guarantee(.storedValuesDoNotReplaceLaterChanges), arguments: Change.allCases)
  func `a stored value does not replace a change that was made while it could not be sent`(
    change: Change
  ) async throws {
    _ = try await node.map.request("k")
    try await storeWithoutEngine()
    try await make(change)
    node.cacher.reconnect()
    try await expect("2")
  }

  @Test(.guarantee(.storedValuesDoNotReplaceLaterChanges), arguments: Change.allCases)
  func `a stored value does not replace a change that was made while it was on its way`(
    change: Change
  ) async throws {
    _ = try await node.map.request("k")
    node.cacher.delayCalls(by: .seconds(1))
    node.map.store("mine", for: "k")
    await clock.sleepers(1)
    try await make(change)
    node.cacher.delayCalls(by: .zero)
    clock.advance(by: .seconds(1))
    try await node.map.flush()
    try await expect("2")
  }

  @Test(.guarantee(.storedValuesDoNotReplaceLaterChanges))
  func `a stored value replaces a change that was announced before`() async throws {
    _ = try await node.map.request("k")
    try await other.map.clear("k")
    node.map.store("mine", for: "k")
    try await node.map.flush()
    try await expect("mine")
    #expect(other.fetchCount == 0)
  }

  @Test(.guarantee(.storedValuesDoNotReplaceLaterChanges))
  func `a stored value reaches the others after an interruption in which nothing has changed`()
    async throws
  {
    _ = try await node.map.request("k")
    _ = try await other.map.request("k")
    try await storeWithoutEngine()
    node.cacher.reconnect()
    try await node.map.flush()
    try await expect("mine")
    #expect(node.fetchCount + other.fetchCount == 1)
  }

  @Test(.guarantee(.storedValuesDoNotReplaceLaterChanges))
  func `a value stored in an interruption is fetched again without an entry to compare with`()
    async throws
  {
    _ = try await node.map.request("other")
    try await storeWithoutEngine()
    origin.set("2")
    node.cacher.reconnect()
    try await expect("2")
  }

  @Test(.guarantee(.storedValuesDoNotReplaceLaterChanges))
  func `an update of a value from before a change does not replace the change`() async throws {
    _ = try await other.map.request("k")
    #expect(try await node.map.request("k") == "1")
    try await make(.clear)
    // The change is known here, and the value has not been looked up since.
    node.map.update("k") { $0 += " changed" }
    try await node.map.flush()
    try await expect("2")
  }

  @Test(.guarantee(.storedValuesDoNotReplaceLaterChanges))
  func `an update during an interruption is kept if nothing has changed`() async throws {
    _ = try await other.map.request("k")
    _ = try await node.map.request("k")
    node.cacher.cutOff()
    node.map.update("k") { $0 += " changed" }
    node.cacher.reconnect()
    try await node.map.flush()
    try await expect("1 changed")
  }

  @Test(
    .guarantee(.storedValuesDoNotReplaceLaterChanges),
    arguments: [nil] + Change.allCases,
    [false, true]
  )
  func `a stored value whose store lost its reply stays, unless the key has changed since`(
    change: Change?,
    isUpdated: Bool
  ) async throws {
    let cacher = RefusingCacher(node.cacher, refusing: "values/k")
    let map = MultiplexerMap(
      id: "values",
      cacher: cacher,
      tagging: { [CacheTag($0)] },
      onKeyFetch: { try origin.value($0) }
    )
    #expect(try await map.request("k") == "1")
    cacher.losesReplies = true
    map.store("mine", for: "k")
    await #expect(throws: CacherError.self) { try await map.flush() }
    cacher.losesReplies = false
    #expect(try await other.map.request("k") == "mine")
    if let change { try await make(change) }
    if isUpdated { map.update("k") { $0 += "!" } }
    try await map.flush()
    let value = change != nil ? "2" : isUpdated ? "mine!" : "mine"
    #expect(try await map.request("k") == value)
    #expect(try await other.map.request("k") == value)
  }

  @Test(arguments: Change.allCases)
  func `an update of a value that could not be sent does not replace a change before it`(
    change: Change
  ) async throws {
    let isRefused = Guarded(true)
    let map = MultiplexerMap(
      id: "values",
      cacher: AlteredCacher(node: node.cacher, isRefused: isRefused),
      tagging: { [CacheTag($0)] },
      onKeyFetch: { try origin.value($0) }
    )
    _ = try await map.request("other")
    map.store("mine", for: "k")
    await #expect(throws: CacherError.self) { try await map.flush() }
    try await make(change)
    isRefused.withLock { $0 = false }
    map.update("k") { $0 += " changed" }
    try await map.flush()
    #expect(try await map.request("k") == "2")
    #expect(try await other.map.request("k") == "2")
  }

  @Test(.guarantee(.storedValuesDoNotReplaceLaterChanges))
  func `a stored value is fetched again by all if its process has fetched without the engine`()
    async throws
  {
    _ = try await other.map.request("k")
    try await storeWithoutEngine()
    clock.advance(by: .seconds(2))
    origin.set("2")
    #expect(try await node.map.request("k") == "2")
    node.cacher.reconnect()
    try await node.map.flush()
    try await expect("2")
  }

  @Test(.guarantee(.storedValuesDoNotReplaceLaterChanges), arguments: Change.allCases)
  func `a stored value does not replace a change in an engine that compares nothing`(
    change: Change
  ) async throws {
    let cacher = AlteredCacher(node: node.cacher, comparesEntries: false)
    let map = MultiplexerMap(
      id: "values",
      cacher: cacher,
      tagging: { [CacheTag($0)] },
      onKeyFetch: { try origin.value($0) }
    )
    _ = try await map.request("k")
    node.cacher.cutOff()
    map.store("mine", for: "k")
    await #expect(throws: (any Error).self) { try await map.flush() }
    try await make(change)
    node.cacher.reconnect()
    #expect(try await map.request("k") == "2")
    #expect(try await other.map.request("k") == "2")
  }
}

/// A cacher that stores every value of the present generation, or none.
private struct AlteredCacher: ForwardingCacher {
  let node: SharedMemoryNode<String>
  var comparesEntries = true
  var isRefused = Guarded(false)

  var generation: CacheGeneration? {
    guard !comparesEntries else { return node.generation }
    return node.generation.map { CacheGeneration(epoch: $0.epoch, number: $0.number) }
  }

  func store(_ entries: [String: CacheEntry<String>]) async throws {
    if isRefused.withLock({ $0 }) { throw CancellationError() }
    try await node.store(entries)
  }
}
