import Plexus
import PlexusRedis
import PlexusTesting
import TestSupport
import Testing

/// Caches while their server is away, and the changes that have failed meanwhile.
@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Caches during an outage of a Redis server` {
  /// Lets time pass by the clock of a server.
  private func pass(_ seconds: Double, on server: RedisServer) async {
    await Failover.poll { (try? RedisShell.run("BLPOP nothing \(seconds)", on: server)) != nil }
  }

  /// Returns a node with a heartbeat each 40 milliseconds, and the value "1" of all keys.
  private func hastyNode(at address: RedisAddress) async throws -> CacheNode {
    try await CacheNode(address) { options in
      options.nearLease = .milliseconds(400)
    } fetch: { _ in
      "1"
    }
  }

  // MARK: - Copies

  /// Returns a node whose server is away, and whose copies from before are no longer used without the rule.
  private func isolatedNode(
    _ rule: RedisOptions.WhileIsolated,
    _ origin: Guarded<Result<String, any Error>>,
    policy: CachePolicy = CachePolicy()
  ) async throws -> (RedisServer, RedisProxy, CacheNode) {
    let server = try RedisServer()
    let proxy = try RedisProxy(server)
    let monitor = try await RedisMonitor(server)
    let node = try await CacheNode(proxy.address, policy: policy) { options in
      options.nearLease = .milliseconds(200)
      options.whileIsolated = rule
    } fetch: { _ in
      try origin.withLock { $0 }.get()
    }
    await monitor.acknowledgements(1)
    #expect(try await node.map.request("before") == "1")
    proxy.refuse()
    await pass(0.2, on: server)
    return (server, proxy, node)
  }

  @Test func `copies and values that are fetched meanwhile are kept, and are fallbacks`()
    async throws
  {
    let origin = Guarded<Result<String, any Error>>(.success("1"))
    let policy = CachePolicy(timeToLive: .seconds(3_600))
    let (_, proxy, node) = try await isolatedNode(.keep(.seconds(3_600)), origin, policy: policy)
    origin.withLock { $0 = .success("2") }
    #expect(try await node.map.request("before") == "1")
    #expect(try await node.map.request("new") == "2")
    origin.withLock { $0 = .failure(Offline()) }
    #expect(try await node.map.request("new") == "2")
    #expect(try await node.map.refresh("new").request("new") == "2")
    #expect(node.fetches.entries == ["before", "new", "new"])
    // None of them is used after the reconnection without a look.
    origin.withLock { $0 = .success("3") }
    proxy.endRefusal()
    while try await node.map.request("new") == "2" { await Task.detached {}.value }
    #expect(try await node.map.request("new") == "3")
  }

  @Test(.guarantee(.copiesNeedTheServerByDefault))
  func `by default no copy is used, not even as a fallback`() async throws {
    let origin = Guarded<Result<String, any Error>>(.success("1"))
    let (_, _, node) = try await isolatedNode(.fetch, origin)
    origin.withLock { $0 = .success("2") }
    #expect(try await node.map.request("before") == "2")
    origin.withLock { $0 = .failure(Offline()) }
    await #expect(throws: Offline.self) { try await node.map.request("before") }
  }

  @Test(.guarantee(.keptCopiesHideOutages)) func `an outage of the server is none of the origin`()
    async throws
  {
    #expect(try await fetchesOfAnOutage(.keep(.seconds(3_600))) == 400)
  }

  @Test(.guarantee(.outagesCostOneQueryPerRequest))
  func `by default, an outage of the server costs a query for each request at most`()
    async throws
  {
    #expect(try await (400...6_000).contains(fetchesOfAnOutage(.fetch)))
  }

  /// Returns the number of fetches for 6,000 requests over 400 keys, 50 at a time.
  private func fetchesOfAnOutage(_ rule: RedisOptions.WhileIsolated) async throws -> Int {
    let origin = Guarded<Result<String, any Error>>(.success("1"))
    let (_, _, node) = try await isolatedNode(rule, origin)
    let before = node.fetchCount
    await withTaskGroup { group in
      for task in 0..<50 {
        group.addTask {
          for request in 0..<120 {
            _ = try? await node.map.request("\((task + request * 50) % 400)")
          }
        }
      }
    }
    return node.fetchCount - before
  }

  @Test(.guarantee(.clearsWaitForKeptCopies), arguments: [false, true])
  func `a clear everywhere waits until a process without the server keeps no copy`(
    losesRegistrations: Bool
  ) async throws {
    let server = try RedisServer()
    let origin = Guarded("1")
    let proxy = try RedisProxy(server)
    let change: (inout RedisOptions) -> Void = { options in
      options.nearLease = .milliseconds(400)
      options.whileIsolated = .keep(.seconds(3))
    }
    let monitor = try await RedisMonitor(server)
    let deaf = try await CacheNode(proxy.address) { options in
      change(&options)
      options.commandTimeout = .milliseconds(400)
    } fetch: { _ in
      origin.withLock { $0 }
    }
    let node = try await CacheNode(server.address, change) { _ in origin.withLock { $0 } }
    await monitor.acknowledgements(2)
    #expect(try await deaf.map.request("k") == "1")
    // Otherwise, the time to keep counts from the fetch, which is later than the last heartbeat.
    let fetched = ContinuousClock.now
    await Failover.poll { deaf.engine.status.lastAnsweredBeat.map { $0 > fetched } ?? false }
    proxy.stall(later: true)
    if losesRegistrations {
      _ = try RedisShell.run("FLUSHALL", on: server)
      _ = try await node.map.request("other")
    }
    await pass(0.8, on: server)
    origin.withLock { $0 = "2" }
    // Its copy, unless the machine is so slow that the time to keep it is over.
    let copy = try await deaf.map.request("k")
    #expect(["1", "2"].contains(copy))
    try await node.repository.clearAll(.everywhere)
    #expect(try await deaf.map.request("k") == "2")
    proxy.resume()
  }

  // MARK: - Debts

  /// Lets scripts of the server fail that remove entries, or allows them again.
  private func allowRemovals(_ isAllowed: Bool, on server: RedisServer) throws {
    // Only removals add fields to entries without a payload.
    try RedisShell.perform(["ACL SETUSER default \(isAllowed ? "+" : "-")del"], on: server)
  }

  @Test(.guarantee(.failedRemovalsAreRepeated), arguments: ["key", "tag"])
  func `a removal that failed is repeated, although no key of it is used`(
    subject: String
  ) async throws {
    let server = try RedisServer()
    let origin = Guarded("1")
    let a = try await CacheNode(server.address) {
      $0.nearLease = .milliseconds(400)
    } fetch: { _ in
      origin.withLock { $0 }
    }
    let b = try await CacheNode(server.address) { _ in origin.withLock { $0 } }
    // The first heartbeat of a connection lets a cache repeat what has failed.
    await Failover.poll { a.engine.status.lastAnsweredBeat != nil }
    // The first process does not know the other key with the tag.
    let key = subject == "key" ? "k" : "k2"
    #expect(try await a.map.request("k") == "1")
    #expect(try await b.map.request(key) == "1")
    try allowRemovals(false, on: server)
    // A removal by a tag gets a number.
    try RedisShell.perform(["ACL SETUSER default -incr"], on: server)
    await #expect(throws: (any Error).self) {
      if subject == "key" { try await a.map.clear("k") } else { try await a.map.clear(tags: ["k"]) }
    }
    origin.withLock { $0 = "2" }
    #expect(try await b.map.request(key) == "1")
    try RedisShell.perform(["ACL SETUSER default +incr"], on: server)
    try allowRemovals(true, on: server)
    // A hit does not suspend: without the task, the loop would take a thread from the heartbeat that it waits for.
    let clock = ContinuousClock()
    let end = clock.now + .seconds(60)
    while try await b.map.request(key) == "1", clock.now < end { await Task.detached {}.value }
    #expect(try await b.map.request(key) == "2")
    for node in [a, b] { try await node.close() }
  }

  @Test(
    .guarantee(.storedValuesDoNotReplaceLaterChanges),
    arguments: [false, true],
    [false, true]
  )
  func `updates over an outage of the server are kept if no other process has changed the key`(
    isChanged: Bool,
    isFetched: Bool
  ) async throws {
    let server = try RedisServer()
    let proxy = try RedisProxy(server)
    let other = try await CacheNode(server.address) { _ in "changed" }
    // The space is there before the process begins.
    #expect(try await other.map.request("other") == "changed")
    let node = try await CacheNode(proxy.address) { _ in "0" }
    if isFetched {
      // Before, values are not kept in memory.
      await Failover.poll { node.engine.status.lastAnsweredBeat != nil }
      #expect(try await node.map.request("k") == "0")
    } else {
      node.map.store("0", for: "k")
      try await node.map.flush()
    }
    for round in 1...9 {
      if round == 4 {
        proxy.refuse()
        await node.engine.becomesIsolated()
        if isChanged { try await other.map.clear("k") }
      }
      if round == 7 {
        proxy.endRefusal()
        await node.engine.becomesConnected()
      }
      #expect(node.map.update("k") { $0 = "\(round)" } == "\(round)")
      if (4..<7).contains(round) {
        await #expect(throws: CacherError.self) { try await node.map.flush() }
      } else {
        try await node.map.flush()
      }
    }
    #expect(try await other.map.request("k") == (isChanged ? "changed" : "9"))
    for node in [node, other] { try await node.close() }
  }

  @Test(.guarantee(.closingPaysWhatIsOwed))
  func `the engine pays what it owes before it closes, or throws`() async throws {
    let server = try RedisServer()
    let origin = Guarded("1")
    let b = try await CacheNode(server.address) { _ in origin.withLock { $0 } }
    for isPaid in [false, true] {
      // Its next heartbeat comes much later.
      let a = try await CacheNode(server.address) { _ in origin.withLock { $0 } }
      for node in [a, b] { _ = try await node.map.request("k") }
      try allowRemovals(false, on: server)
      await #expect(throws: (any Error).self) { try await a.map.clear("k") }
      origin.withLock { $0 = "2" }
      guard isPaid else {
        await #expect(throws: (any Error).self) { try await a.close() }
        try allowRemovals(true, on: server)
        #expect(try await b.map.request("k") == "1")
        continue
      }
      try allowRemovals(true, on: server)
      try await a.close()
      while try await b.map.request("k") == "1" { await Task.detached {}.value }
      #expect(try await b.map.request("k") == "2")
    }
    try await b.close()
  }

  @Test func `the engine closes within the time of a command although the server stands still`()
    async throws
  {
    let server = try RedisServer()
    let gate = Gate()
    gate.open()
    let node = try await CacheNode(server.address) {
      $0.commandTimeout = .seconds(1)
      $0.eventTimeout = .seconds(1)
    } fetch: { _ in
      try await gate.wait()
      return "1"
    }
    // An event that is being handled is given back by the end of the engine, too.
    let events = node.engine.events
    let (bus, tokens, handling) = (EventBus(), ObservationBag(), Log<String>())
    bus.observe(Note.self) { note in
      handling.append(note.text)
      if note.text == "held" { try await gate.wait() }
    }
    .store(in: tokens)
    bus.connect(Note.self, as: "notes", over: events, EventNode.group).store(in: tokens)
    let sender = try EventNode(server)
    await sender.connect(.publishOnly)
    while handling.entries.isEmpty { try await sender.publish("first") }
    // It holds a lease, and owes a removal.
    #expect(try await node.map.request("k") == "1")
    try await failRemoval(of: ["values/k"], by: node, on: server)
    gate.close()
    let fetch = Task { try await node.map.request("held") }
    try await sender.publish("held")
    await handling.contains("held")
    await gate.arrivals(3)
    try await sender.engine.close()
    server.suspend()
    let stopwatch = Stopwatch()
    let error = await #expect(throws: RedisEngineError.self) { try await node.engine.close() }
    let duration = stopwatch.elapsed
    print("closed beside a server that stands still: \(duration), \(error.map { "\($0)" } ?? "")")
    // Many times the time of a command.
    #expect(duration < .seconds(30))
    gate.open()
    #expect(try await fetch.value == "1")
    server.resume()
  }

  /// Lets the removal of a key fail; later ones succeed.
  private func failRemoval(
    of keys: Set<String>,
    by node: CacheNode,
    on server: RedisServer
  ) async throws {
    try allowRemovals(false, on: server)
    await #expect(throws: (any Error).self) {
      try await node.cacher.remove(.keys(keys), reach: .shared)
    }
    try allowRemovals(true, on: server)
  }

  @Test func `the engine pays what it owes although a value of the key is being stored`()
    async throws
  {
    let server = try RedisServer()
    let proxy = try RedisProxy(server)
    let other = try await CacheNode(server.address) { _ in "2" }
    let node = try await CacheNode(proxy.address) { _ in "1" }
    #expect(try await node.map.request("k") == "1")
    try await failRemoval(of: ["values/k"], by: node, on: server)
    proxy.hold(before: "LARGE")
    let large = CacheEntry(value: String(repeating: "LARGE", count: 40_000), storedAt: .zero)
    let storing = Task { try await node.cacher.store(["values/k": large]) }
    await Failover.poll { proxy.isHeld }
    try await node.close()
    #expect(try await other.cacher.entry(forKey: "values/k") == nil)
    _ = await storing.result
    try await other.close()
  }

  @Test(arguments: [1, 300])
  func `the engine pays although a repetition in progress fails`(count: Int) async throws {
    let server = try RedisServer()
    let proxy = try RedisProxy(server)
    let node = try await hastyNode(at: proxy.address)
    let keys = (0..<count).map { "values/\($0)." }
    let entry = CacheEntry(value: "old", storedAt: .zero)
    try await node.cacher.store(Dictionary(uniqueKeysWithValues: keys.map { ($0, entry) }))
    try allowRemovals(false, on: server)
    await #expect(throws: (any Error).self) {
      try await node.cacher.remove(.keys(Set(keys)), reach: .shared)
    }
    // A heartbeat that repeats the removals.
    proxy.hold(before: "values/0.")
    await Failover.poll { proxy.isHeld }
    let failed = try refusedRemovals(on: server)
    let closing = Task { try await node.close() }
    await pass(0.2, on: server)
    // It fails, and the engine hears of that only when later ones would succeed.
    proxy.holdReplies()
    proxy.releaseHeld()
    await Failover.poll { (try? refusedRemovals(on: server)) != failed }
    try allowRemovals(true, on: server)
    proxy.resume()
    try await closing.value
    #expect(try RedisShell.reply("EXISTS {values}:2:e:1:values/0.", on: server).hasPrefix(":0"))
  }

  @Test func `a repetition ends with the first part that the server refuses as a whole`()
    async throws
  {
    let server = try RedisServer()
    let node = try await CacheNode(server.address) { _ in "1" }
    try allowRemovals(false, on: server)
    let keys = Set((0..<2_000).map { "values/\($0)" })
    await #expect(throws: (any Error).self) {
      try await node.cacher.remove(.keys(keys), reach: .shared)
    }
    await #expect(throws: (any Error).self) { try await node.close() }
    // Of each repetition, 128 of the 250 scripts were run.
    let refusals = try #require(try refusedRemovals(on: server)?.dropFirst("rejected_calls=".count))
    #expect((try #require(Int(refusals)) - 250) % 128 == 0)
    #expect(node.engine.status.owedRemovals == keys.count)
  }

  /// Returns how often removals were refused, as the server says.
  private func refusedRemovals(on server: RedisServer) throws -> Substring? {
    try RedisShell.reply("INFO commandstats", on: server).split(separator: "\r\n")
      .first { $0.hasPrefix("cmdstat_del:") }?.split(separator: ",")
      .first { $0.hasPrefix("rejected") }
  }

  @Test func `a value that is not stored, because it is from before a clear, settles no removal`()
    async throws
  {
    let server = try RedisServer()
    let node = try await CacheNode(server.address) { _ in "1" }
    #expect(try await node.map.request("k") == "1")
    try await failRemoval(of: ["values/k"], by: node, on: server)
    var entry = CacheEntry(value: "older", storedAt: .zero)
    entry.generation = CacheGeneration(epoch: 1, number: 0)
    try await node.cacher.store(["values/k": entry])
    #expect(node.engine.status.owedRemovals == 0)
    #expect(try await node.cacher.entry(forKey: "values/k") == nil)
    try await node.close()
  }

  @Test func `a value is not stored if a failed removal of its key fails again`() async throws {
    let server = try RedisServer()
    let node = try await CacheNode(server.address) { _ in "1" }
    #expect(try await node.map.request("k") == "1")
    try await failRemoval(of: ["values/k"], by: node, on: server)
    try allowRemovals(false, on: server)
    let entry = CacheEntry(value: "stored", storedAt: .zero)
    let error = await #expect(throws: CacherError.self) {
      try await node.cacher.store(["values/k": entry])
    }
    #expect(error.map { Array($0.failures.keys) } == ["values/k"])
    #expect(node.engine.status.owedRemovals == 1)
    try allowRemovals(true, on: server)
    try await node.cacher.store(["values/k": entry])
    #expect(node.engine.status.owedRemovals == 0)
    try await node.close()
  }

  // MARK: - Schemas

  @Test func `a failed removal removes the entries of other schemas although a value is stored`()
    async throws
  {
    let server = try RedisServer()
    let node = try await CacheNode(server.address) { _ in "1" }
    let second = node.engine.cacher(String.self, space: "values", schema: "2")
    let entry = CacheEntry(value: "stored", storedAt: .zero)
    for cacher in [node.cacher, second] { try await cacher.store(["values/k": entry]) }
    try await failRemoval(of: ["values/k"], by: node, on: server)
    try await node.cacher.store(["values/k": entry])
    #expect(node.engine.status.owedRemovals == 0)
    // Not even as a fallback.
    #expect(try RedisShell.reply("EXISTS {values}:2:e:2:values/k", on: server).hasPrefix(":0"))
    #expect(try await node.cacher.entry(forKey: "values/k")?.value == "stored")
    try await node.close()
  }

  @Test func `a value stays that another schema of the process has stored after a failed removal`()
    async throws
  {
    let server = try RedisServer()
    let node = try await CacheNode(server.address) { _ in "1" }
    let second = node.engine.cacher(String.self, space: "values", schema: "2")
    try await failRemoval(of: ["values/k"], by: node, on: server)
    try await second.store(["values/k": CacheEntry(value: "stored", storedAt: .zero)])
    // Nothing is left to repeat.
    #expect(node.engine.status.owedRemovals == 0)
    try await node.close()
    let other = try await CacheNode(server.address) { _ in "1" }
    let reader = other.engine.cacher(String.self, space: "values", schema: "2")
    #expect(try await reader.entry(forKey: "values/k")?.value == "stored")
    try await other.close()
  }

  @Test(arguments: ["key", "tag", "everything"])
  func `no schema of the process uses an entry whose removal is owed`(subject: String) async throws
  {
    let server = try RedisServer()
    let origin = Guarded("1")
    // Its next heartbeat comes much later.
    let node = try await CacheNode(server.address) { _ in origin.withLock { $0 } }
    let second = MultiplexerMap(
      id: "values",
      cacher: node.engine.cacher(String.self, space: "values", schema: "2"),
      tagging: { (key: String) in [CacheTag(key)] },
      onKeyFetch: { _ in origin.withLock { $0 } }
    )
    #expect(try await second.request("k") == "1")
    let right = subject == "everything" ? "hdel" : "del"
    try RedisShell.perform(["ACL SETUSER default -\(right)"], on: server)
    await #expect(throws: (any Error).self) {
      switch subject {
      case "key": try await node.cacher.remove(.keys(["values/k"]), reach: .shared)
      case "tag": try await node.cacher.remove(.tags(["k"]), reach: .shared)
      default: try await node.cacher.remove(.all, reach: .shared)
      }
    }
    origin.withLock { $0 = "2" }
    #expect(try await second.request("k") == "2")
    #expect(node.engine.status.owedRemovals == 1)
    try RedisShell.perform(["ACL SETUSER default +\(right)"], on: server)
    #expect(try await second.request("k") == "2")
    #expect(node.engine.status.owedRemovals == 0)
    try await node.close()
  }

  @Test func `other schemas of the process hear of a repeated removal`() async throws {
    let server = try RedisServer()
    // Its next heartbeat comes much later.
    let node = try await CacheNode(server.address) { _ in "1" }
    let second = MultiplexerMap(
      id: "values",
      cacher: node.engine.cacher(String.self, space: "values", schema: "2"),
      tagging: { (key: String) in [CacheTag(key)] },
      onKeyFetch: { _ in "1" }
    )
    // Unless a heartbeat is so late that it repeats the removal before the value.
    repeat {
      try allowRemovals(false, on: server)
      await #expect(throws: (any Error).self) {
        try await node.cacher.remove(.tags(["k"]), reach: .shared)
      }
      try allowRemovals(true, on: server)
      // It does not wait for the removal of a tag, which removes it.
      second.store("stored", for: "k")
      try await second.flush()
    } while node.engine.status.owedRemovals == 0
    // Another key with the tag.
    #expect(try await node.map.request("key") == "1")
    #expect(node.engine.status.owedRemovals == 0)
    #expect(try await second.request("k") == "1")
    try await node.close()
  }

  // MARK: - Stored values

  @Test func `large values of other spaces do not wait for the repetition before a large one`()
    async throws
  {
    let server = try RedisServer()
    let proxy = try RedisProxy(server)
    let node = try await hastyNode(at: proxy.address)
    let second = node.engine.cacher(String.self, space: "second", schema: "1")
    let large = CacheEntry(value: String(repeating: "x", count: 200_000), storedAt: .zero)
    try await second.store(["first": large])
    try allowRemovals(false, on: server)
    await #expect(throws: (any Error).self) {
      try await node.cacher.remove(.keys(["values/k"]), reach: .shared)
    }
    proxy.hold(before: "values/k")
    await Failover.poll { proxy.isHeld }
    try allowRemovals(true, on: server)
    async let waiting: Void = node.cacher.store(["values/k": large])
    await pass(0.2, on: server)
    async let storing: Void = second.store(["k": large])
    await Failover.poll {
      (try? RedisShell.reply("EXISTS {second}:2:e:1:k", on: server))?.hasPrefix(":1") == true
    }
    proxy.resume()
    _ = try await (waiting, storing)
    try await node.close()
  }

  @Test(
    .guarantee(.storedValuesDoNotReplaceLaterChanges),
    arguments: ["key", "tag", "everywhere", "store"],
    [true, false]
  )
  func `a value that could not be stored does not replace a later change of another process`(
    change: String,
    isAway: Bool
  ) async throws {
    let server = try RedisServer()
    let proxy = try RedisProxy(server)
    let origin = Guarded("1")
    func makeNode(_ address: RedisAddress) async throws -> CacheNode {
      try await CacheNode(address) {
        $0.nearLease = .milliseconds(400)
      } fetch: { _ in
        origin.withLock { $0 }
      }
    }
    let node = try await makeNode(proxy.address)
    let other = try await makeNode(server.address)
    #expect(try await node.map.request("k") == "1")
    if isAway {
      proxy.refuse()
      await node.engine.becomesIsolated()
    } else {
      try RedisShell.perform(["ACL SETUSER default -evalsha"], on: server)
    }
    node.map.store("mine", for: "k")
    await #expect(throws: CacherError.self) { try await node.map.flush() }
    try RedisShell.perform(["ACL SETUSER default +evalsha"], on: server)
    origin.withLock { $0 = "2" }
    switch change {
    case "key": try await other.map.clear("k")
    case "tag": try await other.map.clear(tags: ["k"])
    case "everywhere": try await other.repository.clear(tags: ["k"], .everywhere)
    default:
      other.map.store("2", for: "k")
      try await other.map.flush()
    }
    proxy.endRefusal()
    if isAway { await node.engine.becomesConnected() }
    while try await node.map.request("k") != "2" { await Task.detached {}.value }
    try await node.map.flush()
    for node in [node, other] {
      #expect(try await node.map.request("k") == "2")
      try await node.close()
    }
  }

  @Test(.guarantee(.storedValuesDoNotReplaceLaterChanges))
  func `a value that could not be stored is stored later if nothing has changed`()
    async throws
  {
    let server = try RedisServer()
    let proxy = try RedisProxy(server)
    let other = try await CacheNode(server.address) { _ in "1" }
    let node = try await CacheNode(proxy.address) { _ in "1" }
    #expect(try await node.map.request("k") == "1")
    proxy.refuse()
    await node.engine.becomesIsolated()
    node.map.store("mine", for: "k")
    await #expect(throws: CacherError.self) { try await node.map.flush() }
    // Changes of other keys.
    _ = try await other.map.request("other")
    try await other.map.clear("other")
    proxy.endRefusal()
    await node.engine.becomesConnected()
    try await node.map.flush()
    #expect(try await other.map.request("k") == "mine")
    #expect(try await node.map.request("k") == "mine")
    try await node.close()
    try await other.close()
  }

  @Test(
    .guarantee(.storedValuesDoNotReplaceLaterChanges),
    arguments: ["nothing", "clear", "store"]
  )
  func `a store that was executed without a reply is kept if no other process changes its key`(
    change: String
  ) async throws {
    let server = try RedisServer()
    let proxy = try RedisProxy(server)
    let origin = Guarded("1")
    let other = try await CacheNode(server.address) { _ in origin.withLock { $0 } }
    let node = try await CacheNode(proxy.address) { _ in origin.withLock { $0 } }
    // The script is loaded.
    node.map.store("mine", for: "other")
    try await node.map.flush()
    #expect(try await node.map.request("k") == "1")
    proxy.holdReplies()
    node.map.store("mine", for: "k")
    let flush = Task { try await node.map.flush() }
    while try await other.map.request("k") != "mine" { await Task.detached {}.value }
    proxy.refuse()
    await #expect(throws: CacherError.self) { try await flush.value }
    await node.engine.becomesIsolated()
    origin.withLock { $0 = "2" }
    switch change {
    case "clear": try await other.map.clear("k")
    case "store":
      other.map.store("2", for: "k")
      try await other.map.flush()
    default: break
    }
    proxy.endRefusal()
    await node.engine.becomesConnected()
    try await node.map.flush()
    let value = change == "nothing" ? "mine" : "2"
    #expect(try await other.map.request("k") == value)
    #expect(try await node.map.request("k") == value)
    for node in [node, other] { try await node.close() }
  }

  @Test(.guarantee(.storedValuesDoNotReplaceLaterChanges))
  func `a value that was stored during an outage in which everything was removed is fetched again`()
    async throws
  {
    let server = try RedisServer()
    let proxy = try RedisProxy(server)
    let origin = Guarded("1")
    let other = try await CacheNode(server.address) { _ in origin.withLock { $0 } }
    let node = try await CacheNode(proxy.address) { _ in origin.withLock { $0 } }
    #expect(try await node.map.request("k") == "1")
    proxy.refuse()
    await node.engine.becomesIsolated()
    origin.withLock { $0 = "2" }
    node.map.store("2", for: "k")
    await #expect(throws: CacherError.self) { try await node.map.flush() }
    origin.withLock { $0 = "1" }
    try await other.map.clear()
    #expect(try await other.map.request("k") == "1")
    origin.withLock { $0 = "2" }
    proxy.endRefusal()
    await node.engine.becomesConnected()
    try await node.map.flush()
    // The announcement is on its way to the other process.
    while try await other.map.request("k") != "2" { await Task.detached {}.value }
    #expect(try await node.map.request("k") == "2")
    for node in [node, other] { try await node.close() }
  }

  @Test func `a value that is stored after a failed removal stays`() async throws {
    let server = try RedisServer()
    let a = try await hastyNode(at: server.address)
    _ = try await a.map.request("k")
    try RedisShell.perform(["ACL SETUSER default -del"], on: server)
    await #expect(throws: (any Error).self) {
      try await a.cacher.remove(.keys(["values/k"]), reach: .shared)
    }
    try RedisShell.perform(["ACL SETUSER default +del"], on: server)
    let entry = CacheEntry(value: "stored", storedAt: .zero)
    try await a.cacher.store(["values/k": entry])
    // Some heartbeats.
    await pass(0.5, on: server)
    #expect(try await a.cacher.entry(forKey: "values/k")?.value == "stored")
    try await a.close()
  }

  @Test func `a value that is stored while a failed removal is repeated stays`() async throws {
    let server = try RedisServer()
    let proxy = try RedisProxy(server)
    let other = try await CacheNode(server.address) { _ in "1" }
    let node = try await hastyNode(at: proxy.address)
    let entry = CacheEntry(value: "stored", storedAt: .zero)
    try allowRemovals(false, on: server)
    await #expect(throws: (any Error).self) {
      try await node.cacher.remove(.keys(["values/k"]), reach: .shared)
    }
    proxy.hold(before: "values/k")
    await Failover.poll { proxy.isHeld }
    try allowRemovals(true, on: server)
    // The removal has to be sent once more since the server no longer knows its script; it knows that for values.
    try RedisShell.perform(["SCRIPT FLUSH"], on: server)
    try await other.cacher.store(["values/other": entry])
    async let storing: Void = node.cacher.store(["values/k": entry])
    // A value that does not wait is sent now.
    await pass(0.2, on: server)
    proxy.resume()
    try await storing
    while node.engine.status.owedRemovals > 0 { await pass(0.01, on: server) }
    #expect(try await node.cacher.entry(forKey: "values/k")?.value == "stored")
    for node in [node, other] { try await node.close() }
  }
}
