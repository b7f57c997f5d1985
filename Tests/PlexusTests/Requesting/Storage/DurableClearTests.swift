import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Clearing what is stored` {
  let cacher = ControlledCacher<Int>()

  private func counting(
    _ kind: CacheKind,
    policy: CachePolicy = .readingFirst(),
    gate: Gate? = nil
  ) -> CacheUnderTest<Int> {
    let tally = Tally()
    return kind.make(storedIn: cacher, policy: policy) {
      let number = tally.increment()
      try await gate?.wait()
      return number
    }
  }

  @Test(.guarantee(.clearIsDurable), arguments: CacheKind.allCases)
  func `clearing returns when the removal is durable, and not before`(kind: CacheKind) async throws
  {
    cacher.entries["key"] = CacheEntry(7, age: .seconds(10))
    let cache = counting(kind)
    _ = try await cache.request()
    let gate = cacher.hold(.remove)
    let ended = Tally()
    let clearing = begin {
      try await cache.clear()
      ended.increment()
    }
    #expect(cache.cachedValue == nil, "It is forgotten before the call suspends")
    await gate.arrivals(1)
    #expect(ended.value == 0)
    #expect(try await cache.request() == 1, "No copy is used until it has been removed")
    #expect(cacher.count(of: .read) == 1)
    gate.open()
    try await clearing.value
    #expect(cacher.entries.isEmpty)
    #expect(cache.cachedValue == 1)
  }

  @Test(arguments: CacheKind.allCases)
  func `clearing during a fetch keeps its result out of memory and cacher`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    let cache = counting(kind, gate: gate)
    let caller = begin { try await cache.request() }
    await gate.arrivals(1)
    try await cache.clear()
    gate.open()
    #expect(try await caller.value == 1)
    #expect(cache.cachedValue == nil)
    try await cache.flush()
    #expect(cacher.entries.isEmpty)
    #expect(cacher.count(of: .store) == 0)
    #expect(try await cache.request() == 2)
  }

  @Test(.guarantee(.clearIsDurable), arguments: CacheKind.allCases, [false, true])
  func `clearing wins over a flush in progress`(kind: CacheKind, all: Bool) async throws {
    let cache = counting(kind)
    cache.store(7)
    let gate = cacher.hold(.store)
    let flushing = begin { try await cache.flush() }
    await gate.arrivals(1)
    let clearing = begin { if all { try await cache.clearAll() } else { try await cache.clear() } }
    gate.open()
    try await flushing.value
    try await clearing.value
    #expect(cacher.entries.isEmpty)
    try await cache.flush()
    #expect(cacher.entries.isEmpty)
    #expect(try await cache.response().source == .fetch)
  }

  @Test(arguments: CacheKind.allCases, [false, true])
  func `clearing outlives a value on its way out of memory`(kind: CacheKind, all: Bool) async throws
  {
    let cache = counting(kind)
    cache.store(7)
    let gate = cacher.hold(.store)
    cache.clearMemory()
    await gate.arrivals(1)
    let clearing = begin { if all { try await cache.clearAll() } else { try await cache.clear() } }
    #expect(try await cache.response().source == .fetch)
    gate.open()
    try await clearing.value
    #expect(cacher.entries.isEmpty)
  }

  @Test(arguments: CacheKind.allCases, [false, true])
  func `clearing while the copy is being read leaves it to the waiting callers only`(
    kind: CacheKind,
    all: Bool
  ) async throws {
    cacher.entries["key"] = CacheEntry(7, age: .seconds(10))
    let cache = counting(kind)
    let gate = cacher.hold(.read)
    let caller = begin { try await cache.request() }
    await gate.arrivals(1)
    let removal = all && kind == .map ? cacher.hold(.removeAll) : cacher.hold(.remove)
    let clearing = begin { if all { try await cache.clearAll() } else { try await cache.clear() } }
    gate.open()
    #expect(try await caller.value == 7)
    #expect(cache.cachedValue == nil)
    removal.open()
    try await clearing.value
    #expect(try await cache.response().source == .fetch)
    #expect(cacher.entries.isEmpty)
  }

  @Test(arguments: CacheKind.allCases)
  func `a copy whose removal failed is never used again, and is removed by the next flush`(
    kind: CacheKind
  ) async throws {
    cacher.entries["key"] = CacheEntry(7, age: .seconds(10))
    let cache = counting(kind)
    cacher.fail(.remove)
    let error = try await #require(throws: CacherError.self) { try await cache.clear() }
    #expect(error.keys == ["key"])
    let told = try await #require(throws: CacherError.self) { try await cache.flush() }
    #expect(told.keys == ["key"])
    for _ in 0..<2 {
      // Fetched, or being written since the last time.
      #expect(try await cache.request() != 7)
      cache.clearMemory()
    }
    let again = try await #require(throws: CacherError.self) { try await cache.flush() }
    #expect(again.keys == ["key"])
    #expect(cacher.count(of: .read) == 0)
    cacher.mend()
    try await cache.flush()
    #expect(cacher.entries.isEmpty)
    #expect(cacher.count(of: .remove) >= 4)
  }

  @Test(arguments: CacheKind.allCases)
  func `a copy whose removal failed is removed by the next clear, and values wait for that`(
    kind: CacheKind
  ) async throws {
    cacher.entries["key"] = CacheEntry(7, age: .seconds(10))
    let cache = counting(kind)
    cacher.fail(.remove)
    await #expect(throws: CacherError.self) { try await cache.clear() }
    cache.store(8)
    let error = try await #require(throws: CacherError.self) { try await cache.flush() }
    #expect(error.keys == ["key"])
    #expect(cacher.value() == 7, "Written now, it would be removed with the older copy later")
    cacher.mend()
    try await cache.flush()
    #expect(cacher.value() == 8)
    try await cache.clear()
    #expect(cacher.entries.isEmpty)
  }

  @Test func `a failed clear of all keys is tried again before anything is written`() async throws {
    let map = MultiplexerMap<Int, Int>(policy: .readingFirst(), cacher: cacher) { 10 * $0 }
    for key in 0..<20 { cacher.entries["\(key)"] = CacheEntry(7, age: .seconds(10)) }
    cacher.fail(.removeAll)
    await #expect(throws: Broken.self) { try await map.clear() }
    await #expect(throws: Broken.self) { try await map.flush() }
    for key in 0..<20 { #expect(try await map.request(key) == 10 * key) }
    #expect(cacher.count(of: .read) == 0)
    let error = try await #require(throws: CacherError.self) { try await map.flush() }
    #expect(error.keys.count == 20)
    #expect(cacher.count(of: .store) == 0)
    cacher.mend()
    try await map.flush()
    for key in 0..<20 { #expect(cacher.value("\(key)") == 10 * key) }
  }

  @Test(arguments: CacheKind.allCases)
  func `a clear runs to its end when its caller is cancelled`(kind: CacheKind) async throws {
    cacher.entries["key"] = CacheEntry(7, age: .seconds(10))
    let cache = counting(kind)
    let gate = cacher.hold(.remove)
    let clearing = begin { try await cache.clear() }
    await gate.arrivals(1)
    clearing.cancel()
    gate.open()
    try await clearing.value
    #expect(cacher.entries.isEmpty)
  }

  @Test func `what is stored after a clear stays stored, whatever else is being removed`()
    async throws
  {
    let map = MultiplexerMap<Int, Int>(cacher: cacher) { $0 }
    cacher.entries["2"] = CacheEntry(7, age: .seconds(10))
    cacher.fail(.remove, with: ["1"])
    await #expect(throws: CacherError.self) { try await map.clear(1) }
    cacher.mend()
    let gate = cacher.hold(.remove)
    let flushing = begin { try await map.flush() }
    await gate.arrivals(1)
    let clearing = begin { try await map.clear(2) }
    map.store(8, for: 2)
    gate.open()
    try await flushing.value
    try await clearing.value
    try await map.flush()
    #expect(cacher.value("2") == 8)
  }

  @Test func `what is stored after everything was cleared stays stored`() async throws {
    for _ in 0..<20 {
      let cacher = ControlledCacher<Int>()
      let map = MultiplexerMap<Int, Int>(cacher: cacher) { $0 }
      cacher.fail(.remove)
      await #expect(throws: CacherError.self) { try await map.clear(1) }
      cacher.mend()
      let gate = cacher.hold(.remove)
      let flushing = begin { try await map.flush() }
      await gate.arrivals(1)
      let clearing = begin { try await map.clear() }
      for key in 0..<32 { map.store(key, for: key) }
      gate.open()
      try await flushing.value
      try await clearing.value
      try await map.flush()
      #expect(cacher.entries.count == 32)
    }
  }

  @Test(.guarantee(.clearIsDurable))
  func `what is stored and flushed while everything is being cleared stays stored`()
    async throws
  {
    for round in 0..<300 {
      let cacher = ControlledCacher<Int>()
      let map = MultiplexerMap<Int, Int>(cacher: cacher) { $0 }
      for key in 0..<800 { map.store(-1, for: key) }
      // The first key that is observed to be removed, probably while others are still in memory.
      let storing = begin { () -> Int in
        var found: Int?
        while found == nil {
          found = (0..<64).first { map.cachedValue($0) == nil }
          if found == nil { await Task.detached {}.value }
        }
        let key = try #require(found)
        map.store(round, for: key)
        try await map.flush()
        return key
      }
      try await map.clear()
      let key = try await storing.value
      #expect(cacher.entries.mapValues(\.value) == ["\(key)": round])
    }
  }

  @Test func `a multiplexer removes its own entry only, a map everything`() async throws {
    let repository = MuxRepository()
    let me = Multiplexer(id: "me", cacher: cacher) { 1 }.register(in: repository)
    cacher.entries = ["me": CacheEntry(1, age: .zero), "you": CacheEntry(2, age: .zero)]
    try await me.clear()
    #expect(Set(cacher.entries.keys) == ["you"])
    cacher.entries["me"] = CacheEntry(1, age: .zero)
    try await repository.clearAll()
    #expect(Set(cacher.entries.keys) == ["you"])
    let map = MultiplexerMap<String, Int>(cacher: cacher) { _ in 1 }
    try await map.clear()
    #expect(cacher.entries.isEmpty)
  }

  @Test func `clearing one key leaves the stored copies of the others alone`() async throws {
    let map = MultiplexerMap<Int, Int>(policy: .readingFirst(), cacher: cacher) { 10 * $0 }
    for key in 0..<3 { cacher.entries["\(key)"] = CacheEntry(7, age: .seconds(10)) }
    let gate = cacher.hold(.remove)
    let clearing = begin { try await map.clear(1) }
    await gate.arrivals(1)
    #expect(try await map.request(0) == 7)
    #expect(try await map.request(1) == 10)
    gate.open()
    try await clearing.value
    #expect(Set(cacher.entries.keys) == ["0", "2"])
  }
}

@Suite(.fewAtOnce) struct `A repository of members with stored copies` {
  let repository = MuxRepository()

  @Test(.guarantee(.repositoryClearDetachesFirst))
  func `no earlier value comes back after a clear from a cacher that members share`() async throws {
    let cacher = ControlledCacher<Int>()
    let tally = Tally()
    let members = (0..<3).map { _ in
      Multiplexer(id: "shared", policy: .readingFirst(), cacher: cacher) {
        tally.increment() + 1_000
      }
      .register(in: repository)
    }
    members[0].store(1)
    let gate = cacher.hold(.store)
    let flushing = begin { try await members[0].flush() }
    await gate.arrivals(1)
    let clearing = begin { [repository] in try await repository.clearAll() }
    // The others have removed all entries, and the first one is still writing.
    while cacher.count(of: .remove) < 2 { await Task.detached {}.value }
    cacher.entries["shared"] = CacheEntry(1, age: .zero)
    #expect(try await members[1].request() > 1_000)
    gate.open()
    try await flushing.value
    try await clearing.value
    for member in members { #expect(try await member.request() > 1_000) }
    try await members[1].flush()
    members[1].clearMemory()
    cacher.entries["shared"] = CacheEntry(5, age: .zero)
    #expect(try await members[1].request() == 5, "Afterwards copies are used again")
  }

  @Test(arguments: CacheKind.allCases)
  func `clearing a repository cuts a fetch off, whose value reaches neither memory nor cacher`(
    kind: CacheKind
  ) async throws {
    let cacher = ControlledCacher<Int>()
    cacher.entries["key"] = CacheEntry(7, age: .seconds(100_000))
    let gate = Gate()
    let cache = kind.make(storedIn: cacher, policy: .readingFirst()) {
      try await gate.wait()
      return 1
    }
    cache.register(in: repository)
    let caller = begin { try await cache.request() }
    await gate.arrivals(1)
    try await repository.clearAll()
    gate.open()
    #expect(try await caller.value == 1)
    try await repository.flushAll()
    #expect(cacher.entries.isEmpty)
    #expect(cache.cachedValue == nil)
  }

  @Test(.guarantee(.repositoryClearCoversReleasedMembers))
  func `a repository removes the copies of members that were released before`() async throws {
    let cacher = ControlledCacher<Int>()
    let entry = CacheEntry(7, age: .seconds(10))
    cacher.entries = ["me": entry, "users/1": entry, "others/1": entry, "you": entry]
    do {
      let me = Multiplexer(id: "me", cacher: cacher) { 1 }.register(in: repository)
      let users = MultiplexerMap<Int, Int>(id: "users", cacher: cacher) { $0 }
        .register(in: repository)
      // A second one with the same entries.
      let again = Multiplexer(id: "me", cacher: cacher) { 1 }.register(in: repository)
      withExtendedLifetime((me, users, again)) {}
    }
    #expect(repository.count == 0)
    try await repository.clearAll()
    #expect(Set(cacher.entries.keys) == ["others/1", "you"])
    #expect(cacher.count(of: .remove) == 1)
    #expect(cacher.count(of: .removePrefix) == 1)
    try await repository.clearAll()
    #expect(cacher.calls.count == 2, "Nothing is left to be removed")
  }

  @Test(.guarantee(.repositoryClearCoversReleasedMembers))
  func `a repository removes all copies of a released map without an id`() async throws {
    let cacher = ControlledCacher<Int>()
    let entry = CacheEntry(7, age: .seconds(10))
    cacher.entries = ["1": entry, "2": entry]
    do {
      let map = MultiplexerMap<Int, Int>(cacher: cacher) { $0 }.register(in: repository)
      map.store(3, for: 3)
      try await map.flush()
    }
    #expect(repository.count == 0)
    try await repository.clearAll()
    #expect(cacher.entries.isEmpty)
    #expect(cacher.count(of: .removeAll) == 1)
    try await repository.clearAll()
    #expect(cacher.count(of: .removeAll) == 1, "Nothing is left to be removed")
  }

  @Test(.guarantee(.mapsClearedTogetherStillWrite))
  func `a repository does not add up the storage timeouts of members that share a cacher`()
    async throws
  {
    let (cacher, clock) = (ControlledCacher<Int>(), ManualClock())
    cacher.setGeneration(1)
    let gate = cacher.hold(.removePrefix)
    let maps = (0..<10).map { number in
      MultiplexerMap<Int, Int>(id: "\(number)", cacher: cacher, clock: clock) { $0 }
    }
    for map in maps { map.register(in: repository) }
    let clearing = begin { try await repository.clearAll() }
    // Their removals are performed one after another, until one of them takes too long.
    await gate.arrivals(1)
    await clock.sleepers(1)
    #expect(cacher.count(of: .removePrefix) == 1)
    clock.advance(by: .seconds(5))
    await gate.arrivals(10)
    await clock.sleepers(9)
    clock.advance(by: .seconds(5))
    let error = try await #require(throws: MuxRepositoryError.self) { try await clearing.value }
    #expect(error.failures.count == 10)
    gate.open()
    withExtendedLifetime(maps) {}
  }

  @Test(.guarantee(.repositoryClearCoversReleasedMembers))
  func `a repository tries again to remove the copies of released members, and names them`()
    async throws
  {
    let cacher = ControlledCacher<Int>()
    cacher.entries["me"] = CacheEntry(7, age: .seconds(10))
    do {
      let me = Multiplexer(id: "me", cacher: cacher) { 1 }.register(in: repository)
      withExtendedLifetime(me) {}
    }
    cacher.fail(.remove)
    let error = try await #require(throws: MuxRepositoryError.self) {
      try await repository.clearAll()
    }
    #expect(error.failures.map(\.id) == ["me"])
    cacher.mend()
    try await repository.clearAll()
    #expect(cacher.entries.isEmpty)
  }

  @Test func `the copies of a released member are left alone if it was unregistered`() async throws
  {
    let cacher = ControlledCacher<Int>()
    cacher.entries["me"] = CacheEntry(7, age: .seconds(10))
    do {
      let me = Multiplexer(id: "me", cacher: cacher) { 1 }.register(in: repository)
      repository.unregister(me)
    }
    try await repository.clearAll()
    #expect(cacher.value("me") == 7)
  }

  @Test func `a repository names the members whose copies may be left, which they never use again`()
    async throws
  {
    let cacher = ControlledCacher<Int>()
    cacher.entries["bad"] = CacheEntry(7, age: .seconds(10))
    cacher.fail(.remove)
    let good = ControlledCacher<Int>()
    good.entries["map/1"] = CacheEntry(7, age: .seconds(10))
    let bad = Multiplexer(id: "bad", policy: .readingFirst(), cacher: cacher) { 1 }
    let map = MultiplexerMap<Int, Int>(id: "map", policy: .readingFirst(), cacher: good) { $0 }
    repository.register(bad)
    repository.register(map)
    let error = try await #require(throws: MuxRepositoryError.self) {
      try await repository.clearAll()
    }
    #expect(error.failures.map(\.id) == ["bad"])
    #expect(good.entries.isEmpty)
    #expect(try await bad.request() == 1)
  }

  @Test func `a repository flushes all members, and reports which of them failed with which keys`()
    async throws
  {
    let failing = ControlledCacher<Int>()
    failing.fail(.store, with: ["users/2"])
    let working = ControlledCacher<Int>()
    let users = MultiplexerMap<Int, Int>(id: "users", cacher: failing) { $0 }
    let me = Multiplexer(id: "me", cacher: working) { 1 }
    let volatile = Multiplexer { 1 }
    repository.register(users)
    repository.register(me)
    repository.register(volatile)
    for key in 1...3 { _ = try await users.request(key) }
    _ = try await me.request()
    _ = try await volatile.request()
    let error = try await #require(throws: MuxRepositoryError.self) {
      try await repository.flushAll()
    }
    #expect(error.failures.map(\.id) == ["users"])
    #expect((error.errors.first as? CacherError)?.keys == ["users/2"])
    #expect(Set(failing.entries.keys) == ["users/1", "users/3"])
    #expect(working.value("me") == 1)
    failing.mend()
    try await repository.flushAll()
    #expect(failing.value("users/2") == 2)
  }

  @Test
  func `a repository flushes all members at the same time, also when the caller is cancelled`()
    async throws
  {
    let cachers = (0..<3).map { _ in ControlledCacher<Int>() }
    let gates = cachers.map { $0.hold(.store) }
    let members = cachers.map { Multiplexer(id: "me", cacher: $0) { 1 }.register(in: repository) }
    for member in members { member.store(7) }
    let flushing = begin { [repository] in try await repository.flushAll() }
    for gate in gates { await gate.arrivals(1) }
    flushing.cancel()
    for gate in gates { gate.open() }
    try await flushing.value
    for cacher in cachers { #expect(cacher.value("me") == 7) }
    withExtendedLifetime(members) {}
  }
}
