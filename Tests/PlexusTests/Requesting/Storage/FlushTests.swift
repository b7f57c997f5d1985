import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Flushing` {
  let cacher = ControlledCacher<Int>()

  private func counting(
    _ kind: CacheKind,
    policy: CachePolicy = CachePolicy()
  ) -> CacheUnderTest<Int> {
    let tally = Tally()
    return kind.make(storedIn: cacher, policy: policy) { tally.increment() }
  }

  private func map(
    capacity: CacheCapacity<Int> = .unbounded,
    policy: CachePolicy = CachePolicy()
  ) -> MultiplexerMap<Int, Int> {
    MultiplexerMap(policy: policy, capacity: capacity, cacher: cacher, clock: ManualClock()) {
      10 * $0
    }
  }

  @Test(.guarantee(.flushWritesOnlyChanges), arguments: CacheKind.allCases)
  func `flushing writes what has changed since it was written, and nothing else`(
    kind: CacheKind
  ) async throws {
    let cache = counting(kind)
    let events = Recorder(cache.occurrences())
    try await cache.flush()
    #expect(cacher.calls.isEmpty)
    _ = try await cache.request()
    #expect(cacher.calls.isEmpty, "Only a flush writes")
    try await cache.flush()
    #expect(cacher.value() == 1)
    try await cache.flush()
    _ = try await cache.request()
    try await cache.flush()
    #expect(cacher.count(of: .store) == 1)
    _ = try await cache.refresh().request()
    try await cache.flush()
    #expect(cacher.value() == 2)
    cache.store(9)
    try await cache.flush()
    #expect(cacher.value() == 9)
    #expect(cacher.count(of: .store) == 3)
    #expect(cacher.calls.allSatisfy { $0.operation == .store })
    let names = await events.first(6).map(\.description)
    #expect(names.count { $0 == "1 values were written to the cacher" } >= 2)
  }

  @Test(arguments: CacheKind.allCases)
  func `flushing does not write what was read from the cacher`(kind: CacheKind) async throws {
    cacher.entries["key"] = CacheEntry(7, age: .seconds(10))
    let cache = counting(kind, policy: .readingFirst())
    #expect(try await cache.request() == 7)
    try await cache.flush()
    cache.clearMemory()
    #expect(try await cache.request() == 7)
    try await cache.flush()
    #expect(cacher.count(of: .store) == 0)
  }

  @Test(.guarantee(.flushWritesOnlyChanges))
  func `flushing writes a batch, names the keys that failed, and tries them again`() async throws {
    let map = map()
    for key in 1...4 { _ = try await map.request(key) }
    cacher.fail(.store, with: ["2", "3"])
    let error = try await #require(throws: CacherError.self) { try await map.flush() }
    #expect(error.keys == ["2", "3"])
    #expect(error.failures.values.allSatisfy { $0 is Broken })
    #expect(Set(cacher.entries.keys) == ["1", "4"])
    #expect(map.statistics.cacherErrors == 2)
    cacher.mend()
    try await map.flush()
    #expect(cacher.calls.map(\.keys) == [["1", "2", "3", "4"], ["2", "3"]])
    try await map.flush()
    #expect(cacher.calls.count == 2)
  }

  @Test func `an error of a flush that names no key counts as one of all keys`() async throws {
    let map = map()
    for key in 1...3 { _ = try await map.request(key) }
    cacher.onCall { _ in throw Offline() }
    let error = try await #require(throws: CacherError.self) { try await map.flush() }
    #expect(error.keys == ["1", "2", "3"])
    cacher.onCall { _ in }
    try await map.flush()
    #expect(cacher.entries.count == 3)
  }

  @Test(.guarantee(.failingCachersFailNoRequest), arguments: CacheKind.allCases)
  func `a cacher whose calls all fail fails no request, and every error is reported`(
    kind: CacheKind
  ) async throws {
    let policy = CachePolicy.readingFirst()
    for operation in ControlledCacher<Int>.Operation.allCases { cacher.fail(operation) }
    let cache = counting(kind, policy: policy)
    let events = Recorder(cache.occurrences())
    #expect(try await cache.request() == 1)
    #expect(cache.statistics.cacherErrors == 1)
    await #expect(throws: CacherError.self) { try await cache.flush() }
    #expect(cache.statistics.cacherErrors == 2)
    await #expect(throws: CacherError.self) { try await cache.clear() }
    #expect(cache.statistics.cacherErrors == 3)
    #expect(try await cache.request() == 2)
    #expect(try await cache.refresh().request() == 3)
    let errors = await events.first(4).filter { if case .cacherFailed = $0 { true } else { false } }
    #expect(errors.first?.description.hasPrefix("the cacher failed with key") == true)

    let away = kind.make(storedIn: cacher) { throw Offline() }
    await #expect(throws: Offline.self) { try await away.request() }
    #expect(away.statistics.cacherErrors == 1)
  }

  @Test(arguments: CacheKind.allCases)
  func `flushing runs to its end when its caller is cancelled`(kind: CacheKind) async throws {
    let cache = counting(kind)
    _ = try await cache.request()
    let gate = cacher.hold(.store)
    let flushing = begin { try await cache.flush() }
    await gate.arrivals(1)
    flushing.cancel()
    gate.open()
    try await flushing.value
    #expect(cacher.value() == 1)
    let already = begin {
      withUnsafeCurrentTask { $0?.cancel() }
      cache.store(5)
      try await cache.flush()
    }
    try await already.value
    #expect(cacher.value() == 5)
  }

  @Test(arguments: CacheKind.allCases)
  func `flushing does not mark a value as written that came while another one was being written`(
    kind: CacheKind
  ) async throws {
    let cache = counting(kind)
    cache.store(1)
    let gate = cacher.hold(.store)
    let flushing = begin { try await cache.flush() }
    await gate.arrivals(1)
    cache.store(2)
    gate.open()
    try await flushing.value
    #expect(cacher.value() == 1)
    try await cache.flush()
    #expect(cacher.value() == 2)
  }

  @Test(arguments: CacheKind.allCases)
  func `flushes run one after the other, in the order in which they are called`(
    kind: CacheKind
  ) async throws {
    let cache = counting(kind)
    cache.store(1)
    let gate = cacher.hold(.store)
    let first = begin { try await cache.flush() }
    await gate.arrivals(1)
    cache.store(2)
    let second = begin { try await cache.flush() }
    let clearing = begin { try await cache.clear() }
    #expect(cacher.calls.count == 1)
    gate.open()
    try await first.value
    try await second.value
    try await clearing.value
    #expect(cacher.entries.isEmpty)
  }

  // MARK: - Evicted values

  @Test(arguments: CacheKind.allCases)
  func `clearing memory writes what was not written, which is found meanwhile`(
    kind: CacheKind
  ) async throws {
    let cache = counting(kind, policy: .readingFirst())
    cacher.entries["key"] = CacheEntry(1, age: .seconds(50))
    cache.store(7)
    let gate = cacher.hold(.store)
    cache.clearMemory()
    #expect(cache.cachedValue == nil)
    await gate.arrivals(1)
    let response = try await cache.response()
    #expect(response.value == 7)
    #expect(response.source == .cacher)
    #expect(cacher.count(of: .read) == 0)
    gate.open()
    try await cache.flush()
    #expect(cacher.value() == 7)
    #expect(cacher.count(of: .store) == 1)
  }

  @Test(arguments: CacheKind.allCases)
  func `clearing memory does not write again what was written`(kind: CacheKind) async throws {
    let cache = counting(kind)
    cache.store(7)
    try await cache.flush()
    cache.clearMemory()
    try await cache.flush()
    #expect(cacher.count(of: .store) == 1)
  }

  @Test(.guarantee(.evictedValuesAreWrittenFirst))
  func `evicting writes what was not written, without a call`() async throws {
    let map = map(capacity: .count(2), policy: .readingFirst())
    let gate = cacher.hold(.store)
    for key in 1...3 { _ = try await map.request(key) }
    await gate.arrivals(1)
    let written = try #require(cacher.calls.last?.keys)
    #expect(written.count == 1)
    gate.open()
    try await map.flush()
    #expect(Set(cacher.entries.keys) == ["1", "2", "3"])
    #expect(map.statistics.evictions == 1)
    for key in 1...3 { #expect(try await map.request(key) == 10 * key) }
    #expect(map.statistics.fetches == 3)
  }

  @Test func `a value that costs more than the whole limit is written to the cacher`() async throws
  {
    let map = map(capacity: .cost(5, of: { $0 }))
    #expect(try await map.request(7) == 70)
    #expect(map.cachedValue(7) == nil)
    try await map.flush()
    #expect(cacher.value("7") == 70)
  }

  @Test func `the next flush reports lost evicted values, once`() async throws {
    let map = map(capacity: .count(1))
    cacher.fail(.store, with: ["1"])
    let events = Recorder(map.events())
    _ = try await map.request(1)
    _ = try await map.request(2)
    // fetched, fetched, evicted, failed
    _ = await events.first(4)
    let error = try await #require(throws: CacherError.self) { try await map.flush() }
    #expect(error.keys == ["1"])
    #expect(cacher.value("2") == 20)
    try await map.flush()
  }

  @Test func `an evicted value that was lost and written since is not reported as lost`()
    async throws
  {
    let map = map(capacity: .count(1))
    cacher.fail(.store, with: ["1"])
    let events = Recorder(map.events())
    _ = try await map.request(1)
    _ = try await map.request(2)
    _ = await events.first(4)
    cacher.mend()
    map.store(11, for: 1)
    try await map.flush()
    #expect(cacher.value("1") == 11)
  }

  @Test func `an older copy does not replace a lost value`() async throws {
    cacher.entries["1"] = CacheEntry(5, age: .seconds(50))
    let map = map(policy: .readingFirst())
    map.store(6, for: 1)
    cacher.fail(.store)
    let gate = cacher.hold(.store)
    map.clearMemory()
    await gate.arrivals(1)
    gate.open()
    await #expect(throws: CacherError.self) { try await map.flush() }
    #expect(try await map.request(1) == 10)
  }

  @Test func `values that leave memory while nothing can be removed are not kept endlessly`()
    async throws
  {
    let cacher = ControlledCacher<Token>()
    let gone = RecordedChannel<Int>()
    let map = MultiplexerMap<Int, Token>(capacity: .count(1), cacher: cacher) { key in
      Token { gone.send(key) }
    }
    cacher.fail(.removeAll)
    await #expect(throws: Broken.self) { try await map.clear() }
    for key in 1...20 { _ = try await map.request(key) }
    _ = await gone.recorder.first(19)
    let error = try await #require(throws: CacherError.self) { try await map.flush() }
    #expect(error.keys.count == 20)
    cacher.mend()
    try await map.flush()
    #expect(cacher.entries.count == 1)
  }

  // MARK: - Cachers that use their own multiplexer

  @Test(arguments: CacheKind.allCases)
  func `a cacher that uses its own multiplexer does not delay its flush`(
    kind: CacheKind
  ) async throws {
    let cache = counting(kind, policy: .readingFirst())
    let depth = Tally()
    cacher.onCall { call in
      guard depth.increment() < 8 else { return }
      switch call.operation {
      case .read: try await cache.flush()
      case .store:
        try await cache.flush()
        try await cache.clear()
        _ = try await cache.request()
      case .remove, .removeAll, .removePrefix:
        _ = try await cache.request()
        try await cache.flush()
      }
    }
    _ = try await cache.request()
    try await cache.flush()
    try await cache.clear()
    // Work that the cacher has started follows, and nothing has waited for it. A flush waits for earlier work.
    var count: Int
    repeat {
      count = depth.value
      try await cache.flush()
    } while depth.value != count
    cacher.onCall { _ in }
    cache.store(3)
    try await cache.flush()
    #expect(cacher.value() == 3)
  }

  @Test(arguments: CacheKind.allCases)
  func `a task that a cacher has left behind waits for its flush like any other`(
    kind: CacheKind
  ) async throws {
    let cache = counting(kind)
    let gate = Gate()
    let flushed = RecordedChannel<Int?>()
    cache.store(1)
    cacher.onCall { [cacher] _ in
      Task {
        try await gate.wait()
        try await cache.flush()
        flushed.send(cacher.value())
      }
    }
    try await cache.flush()
    cacher.onCall { _ in }
    cache.store(2)
    let slow = cacher.hold(.store)
    gate.open()
    await slow.arrivals(1)
    slow.open()
    #expect(await flushed.recorder.first(1) == [2])
  }

  // MARK: - Memory

  @Test func `nothing that a cacher is given is released under a lock`() async throws {
    let cacher = ControlledCacher<Token>()
    let owner = Guarded<MultiplexerMap<Int, Token>?>(nil)
    let tally = Tally()
    let map = MultiplexerMap<Int, Token>(capacity: .count(4), cacher: cacher) { key in
      Token {
        let map = owner.withLock { $0 }
        _ = map?.cachedValue(key)
        _ = map?.statistics
        tally.increment()
      }
    }
    owner.withLock { $0 = map }
    for round in 0..<20 {
      if round.isMultiple(of: 3) { cacher.fail(.store) } else { cacher.mend() }
      for key in 0..<8 { _ = try await map.request(key) }
      _ = try? await map.flush()
      _ = try await map.refreshAll().request(round % 8)
      map.store(Token {}, for: round % 8)
      if round.isMultiple(of: 2) { map.clearMemory() } else { try await map.clear(round % 8) }
      if round.isMultiple(of: 5) { try await map.clear() }
      cacher.entries = [:]
    }
    #expect(tally.value > 50)
    owner.withLock { $0 = nil }
  }

  @Test(arguments: CacheKind.allCases)
  func `a cache that is released while it writes is written to the end, and then freed`(
    kind: CacheKind
  ) async throws {
    let cacher = ControlledCacher<Token>()
    let gone = Gate()
    let gate = cacher.hold(.store)
    do {
      let cache = kind.make(storedIn: cacher) { Token {} }
      cache.store(Token { Task { try await gone.wait() } })
      cache.clearMemory()
      await gate.arrivals(1)
    }
    gate.open()
    // Only the cacher keeps the stored value.
    while cacher.entries.isEmpty { await Task.detached {}.value }
    cacher.entries = [:]
    await gone.arrivals(1)
    #expect(gone.waiterCount == 1)
    gone.open()
  }

  @Test(arguments: CacheKind.allCases)
  func `flushing tries a value again that came back into memory before it could be written`(
    kind: CacheKind
  ) async throws {
    let cache = kind.make(storedIn: cacher, policy: .readingFirst()) { throw Broken() }
    cache.store(7)
    let gate = cacher.hold(.store)
    cacher.fail(.store)
    cache.clearMemory()
    await gate.arrivals(1)
    #expect(try await cache.request() == 7, "It is on its way")
    gate.open()
    await #expect(throws: CacherError.self) { try await cache.flush() }
    cacher.mend()
    try await cache.flush()
    #expect(cacher.value() == 7)
  }
}

/// A value that reports its release.
private final class Token: Sendable {
  private let onRelease: @Sendable () -> Void

  init(_ onRelease: @escaping @Sendable () -> Void) {
    self.onRelease = onRelease
  }

  deinit { onRelease() }
}
