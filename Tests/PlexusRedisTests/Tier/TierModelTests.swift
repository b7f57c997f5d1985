import Foundation
import Plexus
import PlexusSupport
import PlexusTesting
import TestSupport
import Testing

@testable import PlexusRedis

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `A space of the shared tier` {
  /// A node with a connection of its own.
  struct Node {
    let tier: Tier
    let connection: RedisConnection
    let pushes: Log<[RESPValue]>

    init(
      _ name: String,
      on server: RedisServer,
      schema: String = "1",
      lease: Duration = .seconds(60),
      timeout: Duration = .seconds(60)
    ) async throws {
      var settings = RedisConnection.Settings(server.address)
      settings.commandTimeout = timeout
      settings.setup = [RedisCommand("CLIENT", ["TRACKING", "ON", "NOLOOP"])]
      let (connected, pushes) = (Log<Void>(), Log<[RESPValue]>())
      connection = try RedisConnection(settings) { event in
        switch event {
        case .connected: connected.append(())
        case .push(let elements): pushes.append(elements)
        case .refusal: break
        case .disconnected: break
        }
      }
      self.pushes = pushes
      var times = Tier.Times()
      times.lease = lease
      tier = Tier(space: "s", schema: schema, node: name, route: Route(connection), times: times)
      await connected.first(1)
    }

    func look(
      _ key: String,
      _ change: (inout SharedCache.Wish) -> Void = { _ in }
    ) async throws -> TierFinding {
      var wish = SharedCache.Wish()
      change(&wish)
      return try await tier.look(for: [(key, wish)])[0].get()
    }

    /// The lease of a key that has no entry and no other lease.
    func lease(_ key: String) async throws -> SharedCache.Lease {
      guard case .granted(let lease, _) = try await look(key) else {
        throw TierError.unexpectedReply
      }
      return lease
    }

    /// The entry that is found without a script.
    func read(
      _ key: String,
      _ change: (inout SharedCache.Wish) -> Void = { _ in }
    ) async throws -> TierEntry? {
      var wish = SharedCache.Wish()
      change(&wish)
      return try await tier.read(for: [(key, wish)])[0].get()
    }

    func entry(
      _ key: String,
      _ change: (inout SharedCache.Wish) -> Void = { _ in }
    ) async throws -> TierEntry? {
      let finding = try await look(key) { wish in
        wish.takesLease = false
        change(&wish)
      }
      return if case .entry(let entry) = finding { entry } else { nil }
    }

    /// Waits until the engine tells that a key of it has changed.
    func change(of name: String) async {
      await pushes.wait { pushes in
        pushes.contains { $0.last?.elements?.contains { $0.text == name } == true }
      }
    }
  }

  @Test(.guarantee(.sharedCallsHaveTheHighestPriority))
  func `callers are read for with the priority of the most urgent one`() {
    let priorities: [TaskPriority] = [.low, .high, .background]
    let reads = priorities.map {
      Tier.Readers.Read(id: 0, wish: ("k", SharedCache.Wish()), priority: $0)
    }
    #expect(Tier.Readers.priority(of: reads) == .high)
  }

  @Test func `one node gets the lease, the others its value`() async throws {
    let server = try RedisServer()
    let (a, b) = (try await Node("a", on: server), try await Node("b", on: server))
    let lease = try await a.lease("k")
    guard case .busy(let version, let remaining, nil) = try await b.look("k") else {
      Issue.record("Two leases")
      return
    }
    #expect(version == lease.version)
    #expect(remaining > .seconds(30))
    #expect(try await a.tier.fill([1, 2], under: lease) == .stored)
    // The node that waits is notified, and does not poll.
    await b.change(of: b.tier.names.lease("k"))
    let entry = try #require(try await b.entry("k"))
    #expect(entry.payload == [1, 2])
    #expect(entry.version == lease.version)
    #expect(entry.age >= .zero)
    #expect(try await a.tier.fill([3], under: lease) == .superseded)
  }

  @Test(.guarantee(.largeOperationsAreSentInParts))
  func `a look for many keys is sent in parts, and answers in order`() async throws {
    let server = try RedisServer()
    let (a, b) = (try await Node("a", on: server), try await Node("b", on: server))
    // Each key twice, in different parts.
    let keys = (0..<1_000).map { "key \($0 % 500)" }
    for (index, result) in await a.tier.look(for: keys.map { ($0, SharedCache.Wish()) })
      .enumerated()
    {
      switch try result.get() {
      case .granted(let lease, nil):
        #expect(index < 500)
        #expect(lease.key == keys[index])
      case .busy(let version, _, nil):
        #expect(index >= 500)
        #expect(version.token == UInt64(index - 499))
      case let other:
        Issue.record("\(other)")
        return
      }
    }
    let findings = await b.tier.look(for: keys.map { ($0, SharedCache.Wish()) })
    #expect(findings.count == 1_000)
    for finding in findings {
      guard case .busy = try finding.get() else {
        Issue.record("\(finding)")
        return
      }
    }
    let commands = try await a.connection.send(RedisCommand("INFO", ["commandstats"])).text ?? ""
    // One more of them looks for the sign of the server, which a new space does not have.
    #expect(commands.contains("cmdstat_evalsha:calls=251,"))
  }

  @Test(.guarantee(.readsNeedNoScript))
  func `entries that are there are read without a script, in order`() async throws {
    let server = try RedisServer()
    let (a, b) = (try await Node("a", on: server), try await Node("b", on: server))
    var values: [(key: String, payload: [UInt8], tags: [String])] = []
    for number in 0..<300 {
      values.append(("key \(number)", [UInt8(number % 256)], ["t\(number % 70)"]))
    }
    try await a.tier.store(values)
    _ = try await b.lease("other")
    let scripts = try await calls("evalsha", on: a)
    let wishes = (0..<301).map { number in
      var wish = SharedCache.Wish()
      wish.tags = [CacheTag("t\(number % 70)")]
      return ("key \(number)", wish)
    }
    let entries = try await b.tier.read(for: wishes).map { try $0.get()?.payload }
    var expected: [[UInt8]?] = (0..<300).map { [UInt8($0 % 256)] }
    expected.append(nil)
    #expect(entries == expected)
    #expect(try await calls("evalsha", on: a) == scripts)
    // A change of an entry that was read is announced.
    try await a.tier.remove(["key 3"])
    await b.change(of: b.tier.names.entry("key 3"))
    #expect(try await b.read("key 3") == nil)
  }

  private func calls(_ command: String, on node: Node) async throws -> Int? {
    let stats = try await node.connection.send(RedisCommand("INFO", ["commandstats"])).text ?? ""
    guard let range = stats.firstRange(of: "cmdstat_\(command):calls=") else { return nil }
    return Int(stats[range.upperBound...].prefix { $0.isNumber })
  }

  /// Polls until a condition is met.
  private func wait(until isMet: @escaping @Sendable () -> Bool) async {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        while !isMet() { poll(nil, 0, 5) }
        continuation.resume()
      }
    }
  }

  /// Begins to read entries one after another, on a server that stands still: two are sent, and the others wait.
  private func read(_ keys: [String], by node: Node) async -> [Task<[UInt8]?, any Error>] {
    var tasks: [Task<[UInt8]?, any Error>] = []
    for (index, key) in keys.enumerated() {
      tasks.append(Task { try await node.tier.read(key, SharedCache.Wish())?.payload })
      await wait {
        node.connection.load.commands >= min(2, index + 1) * 3
          && node.tier.readers.withLock { $0.waiting.count } >= index - 1
      }
    }
    return tasks
  }

  @Test(.guarantee(.simultaneousReadsAreAnsweredTogether))
  func `callers that read at the same time are answered together, each with its own entry`()
    async throws
  {
    let server = try RedisServer()
    let (a, b) = (try await Node("a", on: server), try await Node("b", on: server))
    let keys = (0..<40).map { "\($0)" }
    try await a.tier.store(keys.map { ($0, [UInt8($0) ?? 0], []) })
    _ = try await b.entry("0")
    let before = try #require(try await calls("mget", on: a))
    server.suspend()
    let tasks = await read(keys + ["none"], by: b)
    tasks[7].cancel()
    await #expect(throws: CancellationError.self) { try await tasks[7].value }
    // In flight: the other ones do not fail with it.
    tasks[0].cancel()
    await #expect(throws: CancellationError.self) { try await tasks[0].value }
    server.resume()
    for number in keys.indices where number != 0 && number != 7 {
      #expect(try await tasks[number].value == [UInt8(number)])
    }
    #expect(try await tasks[40].value == nil)
    // The epoch is read once for all that waited.
    #expect(try await calls("mget", on: a) == before + 3)
    #expect(b.tier.readers.withLock { $0.waiting.isEmpty })
  }

  @Test(.guarantee(.simultaneousReadsAreAnsweredTogether))
  func `callers that wait behind a read without an answer fail with it`() async throws {
    let server = try RedisServer()
    let a = try await Node("a", on: server)
    try await a.tier.store([("k", [1], [])])
    let b = try await Node("b", on: server, timeout: .milliseconds(200))
    while b.tier.epoch == nil { _ = try? await b.entry("k") }
    server.suspend()
    let tasks = (0..<6).map { _ in Task { try await b.tier.read("k", SharedCache.Wish()) } }
    for task in tasks {
      await #expect(throws: RedisConnectionError.self) { try await task.value }
    }
    #expect(b.tier.readers.withLock { $0.waiting.isEmpty })
    server.resume()
    while (try? await b.read("k")) == nil { await Task.detached {}.value }
    while (try? await b.tier.read("k", SharedCache.Wish())) == nil { await Task.detached {}.value }
  }

  /// Returns changes of a key with the tag "x" by another node, and one by a node of another schema.
  private func changes(by node: Node, _ other: Node) -> [() async throws -> Void] {
    [
      { try await node.tier.store([("k", [9], ["x"])]) },
      { try await node.tier.remove(["k"]) },
      { try await node.tier.outdate(["k"]) },
      { try await node.tier.remove(tags: ["x"]) },
      { try await node.tier.removeAll() },
      { try await other.tier.store([("k", [9], ["x"])]) },
    ]
  }

  @Test(.guarantee(.storedValuesDoNotReplaceLaterChanges))
  func `a value that requires an unchanged key is stored over no change`() async throws {
    let server = try RedisServer()
    let (a, b) = (try await Node("a", on: server), try await Node("b", on: server))
    let other = try await Node("c", on: server, schema: "2")
    func store(_ payload: UInt8, since token: UInt64) async -> Bool {
      var value = Tier.Stored(key: "k", payload: [payload], tags: ["x"])
      value.unchangedSince = token
      do {
        try await a.tier.store([value])
        return true
      } catch {
        #expect((error as? TierFailures)?.errors["k"] as? TierError == .changed)
        return false
      }
    }
    // A key without an entry can have been removed.
    _ = try await a.entry("k")
    #expect(await !store(1, since: a.tier.newest.token))
    let changes = changes(by: b, other) + [{ try await other.tier.remove(["k"]) }]
    for change in changes {
      try await a.tier.store([("k", [1], ["x"])])
      let token = a.tier.newest.token
      #expect(await store(2, since: token))
      #expect(await !store(3, since: token))
      #expect(try await b.entry("k") { $0.tags = ["x"] }?.payload == [2])
      let latest = a.tier.newest.token
      // Changes of other keys are none of this one.
      try await b.tier.store([("other", [1], ["y"])])
      try await b.tier.remove(["other"])
      #expect(await store(2, since: latest))
      let last = a.tier.newest.token
      try await change()
      #expect(await !store(4, since: last))
      #expect(try await b.entry("k") { $0.tags = ["x"] }?.payload != [4])
    }
  }

  @Test(.guarantee(.storedValuesDoNotReplaceLaterChanges))
  func `a store by the same cache is no change for its later ones, and for a repetition of it`()
    async throws
  {
    let server = try RedisServer()
    let (a, b) = (try await Node("a", on: server), try await Node("b", on: server))
    let other = try await Node("c", on: server, schema: "2")
    func store(_ id: String?, since token: UInt64? = 0) async throws -> Bool {
      var value = Tier.Stored(key: "k", payload: [1], tags: ["x"])
      (value.unchangedSince, value.id) = (token, id)
      do {
        try await a.tier.store([value])
        return true
      } catch let error as TierFailures where error.errors["k"] as? TierError == .changed {
        return false
      }
    }
    #expect(try await !store("one 2"))
    #expect(try await store("one 2", since: nil))
    for id in ["one 2", "one 2", "one 3", "one 10"] { #expect(try await store(id)) }
    for id in ["one 9", "two 11", "one", "one x", "11", "", nil] {
      #expect(try await !store(id))
    }
    let entry = a.tier.names.entry("k")
    let changes =
      changes(by: b, other) + [
        { _ = try await b.tier.fill([9], under: b.lease("k")) },
        // Damage, and an entry of an earlier version of the library.
        { try RedisShell.perform(["HSET \(entry) v x"], on: server) },
        { try RedisShell.perform(["HSET \(entry) i 'one  10'"], on: server) },
        { try RedisShell.perform(["HDEL \(entry) i"], on: server) },
      ]
    for (index, change) in changes.enumerated() {
      #expect(try await store("one 10", since: nil))
      #expect(try await store("one 11"))
      if index == 6 { try await a.tier.outdate(["k"]) }
      try await change()
      #expect(try await !store("one 12"), "\(index)")
    }
  }

  @Test(.guarantee(.readsNeedNoScript)) func `only a valid entry is read without a script`()
    async throws
  {
    let server = try RedisServer()
    let (a, b) = (try await Node("a", on: server), try await Node("b", on: server))
    // It does not know the epoch.
    try await a.tier.store([("k", [1], ["x"])])
    #expect(try await b.read("k") == nil)
    let entry = try #require(try await b.entry("k") { $0.tags = ["x"] })
    #expect(try await b.read("k") { $0.tags = ["x"] }?.payload == [1])
    #expect(try await b.read("k")?.version == entry.version)
    #expect(try await b.read("k") { $0.newerThan = entry.version } == nil)
    #expect(try await b.read("k") { $0.tags = ["x", "unknown"] } == nil)
    #expect(try await b.read("none") == nil)
    let other = try await Node("c", on: server, schema: "2")
    _ = try await other.entry("k")
    #expect(try await other.read("k") == nil)
    try await a.tier.remove(tags: ["x"])
    #expect(try await b.read("k") { $0.tags = ["x"] } == nil)
    try await a.tier.store([("k", [2], ["x"])])
    #expect(try await b.read("k") { $0.tags = ["x"] }?.payload == [2])
    try await a.tier.outdate(["k"])
    #expect(try await b.read("k") == nil)
    try await a.tier.store([("k", [3], [])])
    #expect(try await b.read("k")?.payload == [3])
    try await a.tier.remove(["k"])
    #expect(try await b.read("k") == nil)
    try await a.tier.store([("k", [4], [])])
    try await a.tier.removeAll()
    #expect(try await b.read("k") == nil)
    _ = try await b.entry("k")
    #expect(try await b.read("k") == nil)
    try await a.tier.store([("k", [5], [])])
    #expect(try await b.read("k")?.payload == [5])
    // An engine that has lost data.
    let token = try #require(try await b.entry("k")).version.token
    _ = try await a.connection.send(
      RedisCommand("SET", [.text(a.tier.names.tokens), .text("\(token - 1)")])
    )
    #expect(try await b.read("k") == nil)
    _ = try await a.connection.send(RedisCommand("SET", [.text(a.tier.names.entry("text")), "x"]))
    #expect(try await b.read("text") == nil)
  }

  @Test(
    .guarantee(.readsNeedNoScript),
    arguments: ["t", "v", "o"],
    ["-9223372036854775808", "9223372036854775808", "1.5", "", "x"]
  )
  func `an entry with damaged numbers is none`(field: String, text: String) async throws {
    let server = try RedisServer()
    let a = try await Node("a", on: server)
    try await a.tier.store([("k", [1], []), ("other", [2], [])])
    _ = try await a.entry("k")
    _ = try await a.connection.send(
      RedisCommand("HSET", [.text(a.tier.names.entry("k")), .text(field), .text(text)])
    )
    #expect(try await a.read("k") == nil)
    let found = await a.tier.look(for: [("k", SharedCache.Wish()), ("other", SharedCache.Wish())])
    if case .entry? = try? found[0].get() { Issue.record("The entry is damaged.") }
    _ = try found[0].get()
    guard case .entry = try found[1].get() else {
      Issue.record("There is no entry")
      return
    }
  }

  @Test(.guarantee(.readsNeedNoScript), arguments: 0..<8)
  func `an entry is read without a script exactly if the script finds it`(seed: UInt64) async throws
  {
    var generator = SeededRandom(seed: seed)
    let server = try RedisServer()
    let nodes = [try await Node("a", on: server), try await Node("b", on: server)]
    for _ in 0..<200 {
      let tier = nodes[.random(in: 0..<2, using: &generator)].tier
      let key = "\(Int.random(in: 0..<3, using: &generator))"
      let tags = [["x"], ["x", "y"], []][.random(in: 0..<3, using: &generator)]
      switch Int.random(in: 0..<12, using: &generator) {
      case 0: try await tier.remove([key])
      case 1: try await tier.removeAll()
      case 2: try await tier.outdate([key])
      case 3: try await tier.remove(tags: tags)
      case 4: _ = try await nodes[0].connection.send(RedisCommand("INCR", ["{s}:2:tokens"]))
      default: try await tier.store([(key, [.random(in: 0...255, using: &generator)], tags)])
      }
      let node = nodes[.random(in: 0..<2, using: &generator)]
      let older = try await node.read(key)?.version
      let isRenewed = Bool.random(using: &generator)
      func change(_ wish: inout SharedCache.Wish) {
        (wish.tags, wish.takesLease) = (tags.map { CacheTag($0) }, false)
        if isRenewed { wish.newerThan = older }
      }
      let known = node.tier.epoch
      let read = try await node.read(key, change)
      let found = try await node.look(key, change)
      // Of an epoch that the node does not know only the script tells.
      if node.tier.epoch != known { continue }
      guard case .entry(let entry) = found else {
        #expect(read == nil)
        continue
      }
      #expect(read?.version == entry.version)
      #expect(read?.payload == entry.payload)
      #expect(read.map { $0.age <= entry.age } == true)
    }
  }

  @Test(.guarantee(.largeOperationsAreSentInParts))
  func `many leases are renewed and given back in parts`() async throws {
    let server = try RedisServer()
    let node = try await Node("a", on: server)
    let keys = (0..<100).map { "key \($0)" }
    let leases = try await node.tier.look(for: keys.map { ($0, SharedCache.Wish()) }).map {
      result in
      guard case .granted(let lease, _) = try result.get() else { throw TierError.unexpectedReply }
      return lease
    }
    let lost = [5, 31, 32, 33, 99].map { leases[$0] }
    try await node.tier.remove(lost.map(\.key))
    #expect(try await node.tier.renew(leases) == lost)
    try await node.tier.release(leases, because: nil)
    for result in await node.tier.look(for: keys.map { ($0, SharedCache.Wish()) }) {
      guard case .granted = try result.get() else {
        Issue.record("\(result)")
        return
      }
    }
  }

  @Test(.guarantee(.largeOperationsAreSentInParts))
  func `a part that fails fails for its keys only`() async throws {
    let server = try RedisServer()
    let node = try await Node("a", on: server)
    let keys = (0..<100).map { "key \($0)" }
    try await node.tier.store(keys.map { ($0, [1], []) })
    // One of the keys is not permitted.
    let rules: [RedisCommand.Argument] = [
      "SETUSER", "app", "on", ">secret", "+@all", "~{s}:2:[^e]*", "~{s}:2:epoch",
      "~{s}:2:e:1:key?[^4]*", "~{s}:2:e:1:key?4", "~{s}:2:e:1:key?4[^0]",
    ]
    _ = try await node.connection.send(RedisCommand("ACL", rules))
    _ = try await node.connection.send(RedisCommand("AUTH", ["app", "secret"]))
    for (index, result) in await node.tier.look(for: keys.map { ($0, SharedCache.Wish()) })
      .enumerated()
    {
      switch result {
      case .success(.entry(let entry)):
        #expect(entry.payload == [1])
        #expect(!(40..<48).contains(index))
      case .success(let other):
        Issue.record("\(other)")
        return
      case .failure:
        #expect((40..<48).contains(index))
      }
    }
    let failures = await #expect(throws: TierFailures.self) { try await node.tier.outdate(keys) }
    #expect(failures.map { Set($0.errors.keys) } == Set(keys[40..<48]))
    guard case .granted = try await node.look("key 99") else {
      Issue.record("There is no lease")
      return
    }
  }

  @Test func `parts that a server does not know the script of are run all the same`() async throws {
    let server = try RedisServer()
    let node = try await Node("a", on: server)
    let keys = (0..<100).map { "key \($0)" }
    try await node.tier.store(keys.map { ($0, [1], []) })
    _ = try await node.connection.send(RedisCommand("SCRIPT", ["FLUSH"]))
    try await node.tier.store(keys.map { ($0, [2], []) })
    for key in keys { #expect(try await node.entry(key)?.payload == [2]) }
  }

  @Test(.guarantee(.outdatedLeasesStoreNothing))
  func `nothing is stored under a lease that is older than a removal`() async throws {
    let server = try RedisServer()
    let (a, b) = (try await Node("a", on: server), try await Node("b", on: server))
    let first = try await a.lease("k")
    try await b.tier.remove(["k"])
    #expect(try await a.tier.fill([1], under: first) == .superseded)
    let second = try await a.lease("k")
    try await b.tier.removeAll()
    #expect(try await a.tier.fill([1], under: second) == .cleared)
    // The lease of an earlier epoch blocks no other lease.
    let third = try await b.lease("k")
    let fourth = try await a.lease("other")
    try await b.tier.outdate(["other"])
    #expect(try await a.tier.fill([1], under: fourth) == .superseded)
    try await b.tier.store([("k", [9], [])])
    #expect(try await b.tier.fill([1], under: third) == .superseded)
    #expect(try await a.entry("k")?.payload == [9])
    #expect(try await a.entry("other") == nil)
  }

  @Test(.guarantee(.changesAreFollowedEverywhere))
  func `an entry is outdated although the number of tokens was lost`() async throws {
    let server = try RedisServer()
    let (a, b) = (try await Node("a", on: server), try await Node("b", on: server))
    try await a.tier.store((0..<10).map { ("\($0)", [1], []) })
    _ = try await b.tier.beat(acknowledging: nil, trust: .seconds(60))
    _ = try await a.connection.send(RedisCommand("DEL", [.text(a.tier.names.tokens)]))
    try await b.tier.outdate(["9"])
    for _ in 0..<20 { _ = try await a.connection.send(RedisCommand("INCR", ["{s}:2:tokens"])) }
    #expect(try await (Node("c", on: server)).entry("9") == nil)
    try await b.tier.store([("9", [2], [])])
    #expect(try await a.entry("9")?.payload == [2])
  }

  @Test(.guarantee(.clearEverywhereOutlastsTrust))
  func `a fence that was lost is set again while its clear waits`() async throws {
    let server = try RedisServer()
    let (a, b) = (try await Node("a", on: server), try await Node("b", on: server))
    let first = try await b.tier.beat(acknowledging: nil, trust: .seconds(60)).mark
    _ = try await b.tier.beat(acknowledging: first, trust: .seconds(60))
    let fence = try await a.tier.fence()
    for damage in [
      RedisCommand("DEL", ["{s}:2:fence"]), RedisCommand("SET", ["{s}:2:fence", "x"]),
    ] {
      _ = try await a.connection.send(damage)
      #expect(try await a.tier.laggards(behind: fence).nodes != [])
      #expect(try await b.tier.beat(acknowledging: first, trust: .seconds(60)).mark == fence)
    }
    _ = try await b.tier.beat(acknowledging: fence, trust: .seconds(60))
    #expect(try await a.tier.laggards(behind: fence).nodes == [])
  }

  @Test func `an outdated entry is a fallback, and not an answer`() async throws {
    let server = try RedisServer()
    let node = try await Node("a", on: server)
    try await node.tier.store([("k", [1], [])])
    try await node.tier.outdate(["k"])
    guard case .granted(let lease, let previous) = try await node.look("k") else {
      Issue.record("There is no lease")
      return
    }
    #expect(previous?.payload == [1])
    #expect(try await node.tier.fill([2], under: lease) == .stored)
    #expect(try await node.entry("k")?.payload == [2])
  }

  @Test func `a caller that has a version gets a newer one, or the lease`() async throws {
    let server = try RedisServer()
    let node = try await Node("a", on: server)
    try await node.tier.store([("k", [1], [])])
    let first = try #require(try await node.entry("k"))
    guard
      case .granted(let lease, let previous) = try await node.look(
        "k",
        { $0.newerThan = first.version }
      )
    else {
      Issue.record("There is no lease")
      return
    }
    #expect(previous?.version == first.version)
    #expect(try await node.tier.fill([2], under: lease) == .stored)
    guard case .entry(let second) = try await node.look("k", { $0.newerThan = first.version })
    else {
      Issue.record("There is no entry")
      return
    }
    #expect(second.payload == [2])
    // After a removal of everything, what is stored is newer whatever its number.
    try await node.tier.removeAll()
    try await node.tier.store([("k", [3], [])])
    guard case .entry = try await node.look("k", { $0.newerThan = second.version }) else {
      Issue.record("There is no entry")
      return
    }
  }

  @Test func `a failed fetch fails for its waiting callers, and for no other`()
    async throws
  {
    let server = try RedisServer()
    let (a, b) = (try await Node("a", on: server), try await Node("b", on: server))
    let lease = try await a.lease("k")
    guard case .busy(let version, _, _) = try await b.look("k") else {
      Issue.record("The lease is not held")
      return
    }
    let token = version.token
    try await a.tier.release([lease], because: [7])
    #expect(try await b.look("k") { $0.awaited = version } == .failedElsewhere(payload: [7]))
    let next = try await b.lease("k")
    #expect(next.version.token > token)
    // A lease that is lost tells no failure.
    try await a.tier.release([lease], because: [8])
    guard case .busy = try await a.look("k") else {
      Issue.record("The lease is not held")
      return
    }
  }

  @Test(arguments: [(30, 30), (3_600, 60)])
  func `the failure of a fetch is kept for slow processes as long as a lease, within limits`(
    lease: Int,
    time: Int
  ) async throws {
    let server = try RedisServer()
    let node = try await Node("a", on: server, lease: .seconds(lease))
    let lease = try await node.lease("k")
    try await node.tier.release([lease], because: [7])
    let reply = try RedisShell.run("PTTL \(node.tier.names.fetch("k"))", on: server)
    let rest = try #require(Int(reply.dropFirst().dropLast()))
    #expect(rest <= time * 1_000)
    // Without the lease it would be five seconds.
    #expect(rest > 5_000)
  }

  @Test(.guarantee(.fetchesOfDeadNodesAreTakenOver))
  func `a lease is given back to a server without memory, also without its failure`()
    async throws
  {
    let server = try RedisServer()
    let (a, b) = (try await Node("a", on: server), try await Node("b", on: server))
    let lease = try await a.lease("k")
    try RedisShell.perform(["CONFIG SET maxmemory 1"], on: server)
    _ = try? await a.tier.release([lease], because: [1])
    try RedisShell.perform(["CONFIG SET maxmemory 0"], on: server)
    guard case .granted = try await b.look("k") else {
      Issue.record("The lease is still held")
      return
    }
  }

  @Test func `a lease lasts as long as it is renewed, and is taken over afterwards`() async throws {
    let server = try RedisServer()
    let (a, b) = (
      try await Node("a", on: server, lease: .milliseconds(50)), try await Node("b", on: server)
    )
    let lease = try await a.lease("k")
    // Its length is that of the node which holds it, by the clock of the node that waits.
    while case .busy = try await b.look("k", { $0.takesLease = false }) {}
    #expect(try await a.tier.renew([lease]) == [])
    guard case .busy = try await b.look("k") else {
      Issue.record("The lease that was renewed late is over")
      return
    }
    while case .busy = try await b.look("k", { $0.takesLease = false }) {}
    let other = try await b.lease("k")
    #expect(try await a.tier.renew([lease]) == [lease])
    #expect(try await a.tier.fill([1], under: lease) == .superseded)
    #expect(try await b.tier.renew([other]) == [])
    #expect(try await b.tier.fill([2], under: other) == .stored)
  }

  @Test(.guarantee(.clockStepsKeepClearsComplete))
  func `a node waits for a lease as long as its holder renews it, whatever its own leases`()
    async throws
  {
    let server = try RedisServer()
    let (a, b) = (
      try await Node("a", on: server), try await Node("b", on: server, lease: .milliseconds(1))
    )
    let lease = try await a.lease("k")
    for _ in 0..<20 {
      guard case .busy(lease.version, let remaining, _) = try await b.look("k") else {
        Issue.record("The lease is over")
        return
      }
      #expect(remaining > .seconds(30))
    }
  }

  @Test(.guarantee(.clockStepsKeepClearsComplete))
  func `nothing stays of a renewed lease that has ended, except its failure`() async throws {
    let server = try RedisServer()
    let node = try await Node("a", on: server)
    let name = node.tier.names.fetch("k")
    func isRenewed() throws -> Bool {
      try RedisShell.run("HEXISTS \(name) u", on: server) == ":1\r\n"
    }
    func isThere() throws -> Bool { try RedisShell.run("EXISTS \(name)", on: server) == ":1\r\n" }
    func renewed() async throws -> SharedCache.Lease {
      let lease = try await node.lease("k")
      #expect(try await node.tier.renew([lease]) == [])
      #expect(try isRenewed())
      return lease
    }
    var lease = try await renewed()
    try await node.tier.release([lease], because: nil)
    #expect(try !isThere())
    lease = try await renewed()
    try await node.tier.outdate(["k"])
    #expect(try await node.tier.renew([lease]) == [lease])
    #expect(try !isThere())
    lease = try await renewed()
    try await node.tier.outdate(["k"])
    #expect(try await node.tier.fill([1], under: lease) == .superseded)
    #expect(try !isThere())
    lease = try await renewed()
    try await node.tier.release([lease], because: [7])
    #expect(try isThere() && !isRenewed())
    let rest = try RedisShell.run("PTTL \(name)", on: server).dropFirst().dropLast()
    #expect(try #require(Int(rest)) <= 60_000)
    // A failure does not last longer because the next lease does.
    let awaited = lease.version
    lease = try await renewed()
    #expect(try await node.look("k") { $0.awaited = awaited } == .failedElsewhere(payload: [7]))
    try RedisShell.perform(["HSET \(name) x 1"], on: server)
    guard case .busy(lease.version, _, _) = try await node.look("k", { $0.awaited = awaited })
    else {
      Issue.record("The failure is not over")
      return
    }
  }

  @Test(.guarantee(.renewalsWakeNoNode)) func `renewing a lease wakes no node that waits for it`()
    async throws
  {
    let server = try RedisServer()
    let (a, b) = (try await Node("a", on: server), try await Node("b", on: server))
    let lease = try await a.lease("k")
    guard case .busy = try await b.look("k") else {
      Issue.record("The lease is not held")
      return
    }
    for _ in 0..<3 { #expect(try await a.tier.renew([lease]) == []) }
    // Announcements that were sent before the reply have arrived with it.
    _ = try await b.connection.send(RedisCommand("PING"))
    let changes = b.pushes.entries.flatMap { $0.last?.elements ?? [] }.compactMap(\.text)
    #expect(!changes.contains { b.tier.names.subject(of: $0) == .lease("k") })
    #expect(try await a.tier.fill([1], under: lease) == .stored)
    await b.change(of: b.tier.names.lease("k"))
  }

  @Test(.guarantee(.tagRemovalsReachEveryNode))
  func `a removal by tags takes entries and leases along, and needs no keys`() async throws {
    let server = try RedisServer()
    let (a, b) = (try await Node("a", on: server), try await Node("b", on: server))
    func lease(_ key: String, _ tags: [String]) async throws -> SharedCache.Lease {
      guard
        case .granted(let lease, nil) = try await a.look(
          key,
          { $0.tags = tags.map { CacheTag($0) } }
        )
      else {
        throw TierError.unexpectedReply
      }
      return lease
    }
    let tags = ["x", "y"]
    #expect(try await a.tier.fill([1], under: lease("1", tags), tags: tags) == .stored)
    #expect(try await a.tier.fill([1], under: lease("2", ["y"]), tags: ["y"]) == .stored)
    try await a.tier.store([("3", [1], ["x"]), ("4", [1], ["y"])])
    let open = try await lease("5", ["x"])
    try await b.tier.remove(tags: ["x"])
    await a.change(of: a.tier.names.tag("x"))
    #expect(
      try await b.look("1") {
        ($0.tags, $0.takesLease) = (tags.map { CacheTag($0) }, false)
      } == .nothing(previous: nil)
    )
    #expect(
      try await b.look("3") { ($0.tags, $0.takesLease) = (["x"], false) } == .nothing(previous: nil)
    )
    for key in ["2", "4"] {
      guard case .entry = try await b.look(key, { $0.tags = ["y"] }) else {
        Issue.record("\(key)")
        return
      }
    }
    // The tag is used again before the fill of the older lease.
    _ = try await lease("6", ["x"])
    #expect(try await a.tier.fill([1], under: open, tags: ["x"]) == .superseded)
    // An engine that evicts a tag removes its entries.
    _ = try await b.connection.send(RedisCommand("DEL", [.text(b.tier.names.tag("y"))]))
    _ = try await lease("2", ["y"])
    #expect(
      try await b.look("4") { ($0.tags, $0.takesLease) = (["y"], false) } == .nothing(previous: nil)
    )
  }

  @Test func `an engine that has lost its data gets a higher epoch from any node that knows one`()
    async throws
  {
    let server = try RedisServer()
    let (a, b) = (try await Node("a", on: server), try await Node("b", on: server))
    for _ in 0..<5 { try await a.tier.removeAll() }
    let known = try #require(a.tier.epoch)
    // It begins again with less than it had, as from an old snapshot.
    _ = try await b.connection.send(RedisCommand("FLUSHALL"))
    try await b.tier.store([("k", [1], [])])
    #expect(try await a.entry("k") == nil)
    #expect(try #require(a.tier.epoch).counter > known.counter)
    // So does one with the same counter and another nonce.
    let same = TierEpoch(counter: try #require(a.tier.epoch).counter, nonce: 1)
    _ = try await b.connection.send(
      RedisCommand("SET", [.text(a.tier.names.epoch), .text(same.description)])
    )
    try await a.tier.store([("k", [2], [])])
    #expect(try #require(a.tier.epoch).counter > same.counter)
  }

  @Test(.guarantee(.clearEverywhereOutlastsTrust))
  func `a removal of everything waits for nodes that may still trust their copies`()
    async throws
  {
    let server = try RedisServer()
    let (a, b) = (try await Node("a", on: server), try await Node("b", on: server))
    let first = try await a.tier.beat(acknowledging: nil, trust: .seconds(60)).mark
    _ = try await a.tier.beat(acknowledging: first, trust: .seconds(60))
    _ = try await b.tier.beat(acknowledging: first, trust: .seconds(60))
    #expect(try await a.tier.laggards(behind: first).nodes == [])
    let second = TierMark(epoch: try await a.tier.removeAll())
    _ = try await a.tier.beat(acknowledging: second, trust: .seconds(60))
    #expect(try await a.tier.laggards(behind: second).nodes != [])
    _ = try await b.tier.beat(acknowledging: second, trust: .seconds(60))
    #expect(try await a.tier.laggards(behind: second).nodes == [])
    // A node that has acknowledged something later is not waited for.
    let third = try await a.tier.fence()
    #expect(try await a.tier.laggards(behind: third).nodes != [])
    let fourth = TierMark(epoch: try await b.tier.removeAll())
    for node in [a, b] { _ = try await node.tier.beat(acknowledging: fourth, trust: .seconds(60)) }
    #expect(try await a.tier.laggards(behind: third).nodes == [])
    // A node that has left is not waited for.
    let next = try await a.tier.removeAll()
    try await a.tier.leave()
    try await b.tier.leave()
    #expect(try await a.tier.laggards(behind: TierMark(epoch: next)).nodes == [])
  }

  @Test(arguments: ["", "a:b", "{s}:2:epoch", "ä\0\r\n", String(repeating: "k", count: 70_000)])
  func `a space of the shared tier takes any key`(key: String) async throws {
    let server = try RedisServer()
    let node = try await Node("a", on: server)
    let lease = try await node.lease(key)
    #expect(try await node.tier.fill([0, 13, 10, 255], under: lease) == .stored)
    #expect(try await node.entry(key)?.payload == [0, 13, 10, 255])
    #expect(node.tier.names.subject(of: node.tier.names.entry(key)) == .entry(key))
    #expect(node.tier.names.subject(of: node.tier.names.lease(key)) == .lease(key))
  }

  @Test func `an epoch is read as it is written, and damage is no epoch`() {
    let epoch = TierEpoch(counter: TierScripts.largestNumber, nonce: .max)
    #expect(TierEpoch(epoch.description) == epoch)
    for text in [
      "", "-", "1", "1-", "-1", "x-1", "1-2-3", "99999999999999999999-1", "1-!",
      "9007199254740993-1",
    ] {
      #expect(TierEpoch(text) == nil, "\(text)")
    }
  }
}

extension Tier {
  /// Stores values.
  func store(_ values: [(key: String, payload: [UInt8], tags: [String])]) async throws {
    try await store(values.map { Stored(key: $0.key, payload: $0.payload, tags: $0.tags) })
  }
}
