import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `What came with a stored copy about keeping it` {
  let cacher = ControlledCacher<Int>()
  private let clock = ManualClock()

  /// Stores an entry of a given age in hours, compared with which the real duration of a test is negligible.
  private func store(hours: Int, _ directives: CacheDirectives) {
    cacher.entries["key"] = CacheEntry(
      value: 7,
      storedAt: wallTime() - .seconds(hours * 3_600),
      directives: directives
    )
  }

  private func hours(_ count: Int) -> Duration { .seconds(count * 3_600) }

  @Test(arguments: CacheKind.allCases)
  func `directives are written and read with a stored copy`(kind: CacheKind) async throws {
    let directives = CacheDirectives(
      timeToLive: .seconds(1),
      staleWhileRevalidate: .seconds(2),
      staleIfError: .seconds(3),
      requiresRevalidation: true
    )
    let cache = kind.makeInformed(storedIn: cacher, clock: clock) { _ in
      .value(7, directives: directives, validator: "tag")
    }
    _ = try await cache.request()
    try await cache.flush()
    #expect(cacher.entries["key"]?.directives == directives)
    #expect(cacher.entries["key"]?.timeToLive == .seconds(1))
  }

  @Test(arguments: CacheKind.allCases)
  func `a stored directive says how long a copy answers at once while it is renewed`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    let directives = CacheDirectives(timeToLive: hours(1), staleWhileRevalidate: hours(10))
    store(hours: 5, directives)
    let cache = kind.make(storedIn: cacher, policy: .readingFirst(), clock: clock) {
      try await gate.wait()
      return 8
    }
    let response = try await cache.response()
    #expect(response.value == 7)
    #expect(response.source == .cacher)
    #expect(response.isStale)
    #expect(try await cache.request() == 7)
    gate.open()
  }

  @Test(arguments: CacheKind.allCases)
  func `a stored directive says how long a copy is used after a failure of any kind`(
    kind: CacheKind
  ) async throws {
    for (old, standsIn) in [(9, true), (12, false)] {
      store(hours: old, CacheDirectives(timeToLive: hours(1), staleIfError: hours(10)))
      let cache = kind.make(storedIn: cacher, policy: .readingFirst(), clock: clock) {
        throw Broken()
      }
      if standsIn {
        #expect(try await cache.response().source == .cacher)
        #expect(try await cache.response().source == .memory)
        clock.advance(by: hours(2))
        await #expect(throws: Broken.self, "Its time goes on") { try await cache.request() }
      } else {
        await #expect(throws: Broken.self) { try await cache.request() }
        #expect(cache.statistics.restorations == 0)
        #expect(cache.cachedValue == nil)
      }
      #expect(cacher.value() == 7, "A stored copy is never dropped because of an error")
    }
  }

  @Test(arguments: CacheKind.allCases)
  func `a stored directive can forbid to use a copy once it is stale`(kind: CacheKind) async throws
  {
    let policy = CachePolicy.readingFirst(staleFor: hours(100))
    let strict = CacheDirectives(timeToLive: hours(5), requiresRevalidation: true)
    store(hours: 10, strict)
    let cache = kind.make(storedIn: cacher, policy: policy, clock: clock) { throw Offline() }
    await #expect(throws: Offline.self) { try await cache.request() }
    #expect(cache.statistics.restorations == 0)

    store(hours: 1, strict)
    let fresh = kind.make(storedIn: cacher, policy: policy, clock: clock) { throw Offline() }
    #expect(try await fresh.request() == 7)
    #expect(try await fresh.refresh().request() == 7)
    clock.advance(by: hours(4))
    await #expect(throws: Offline.self) { try await fresh.request() }
  }

  @Test(arguments: CacheKind.allCases)
  func `a fresh copy is used more than once where it is read after an error`(
    kind: CacheKind
  ) async throws {
    store(hours: 1, CacheDirectives(timeToLive: hours(5), requiresRevalidation: true))
    let cache = kind.make(storedIn: cacher, clock: clock) { throw Offline() }
    #expect(try await cache.request() == 7)
    #expect(try await cache.response().error is Offline)
    clock.advance(by: hours(4))
    await #expect(throws: Offline.self) { try await cache.request() }
  }

  @Test(arguments: CacheKind.allCases)
  func `directives are left to the policy where the cacher does not store them`(
    kind: CacheKind
  ) async throws {
    let forgetful = ForgetfulCacher()
    let policy = CachePolicy.readingFirst(staleFor: .seconds(3_600))
    let cache = kind.makeInformed(storedIn: forgetful, policy: policy, clock: clock) { _ in
      .value(7, directives: CacheDirectives(timeToLive: .zero, requiresRevalidation: true))
    }
    _ = try await cache.request()
    try await cache.flush()
    let next = kind.make(storedIn: forgetful, policy: policy, clock: clock) { 8 }
    #expect(try await next.request() == 7)
  }
}

/// A cacher that stores only the required parts.
private actor ForgetfulCacher: Cacher {
  private var entries: [String: CacheEntry<Int>] = [:]

  func entry(forKey key: String) -> CacheEntry<Int>? { entries[key] }

  func store(_ new: [String: CacheEntry<Int>]) {
    for (key, entry) in new {
      entries[key] = CacheEntry(value: entry.value, storedAt: entry.storedAt)
    }
  }

  func removeEntries(forKeys keys: Set<String>) { for key in keys { entries[key] = nil } }

  func removeAllEntries() { entries = [:] }
}
