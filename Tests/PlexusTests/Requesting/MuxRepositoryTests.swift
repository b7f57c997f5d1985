import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A repository` {
  let repository = MuxRepository()

  @Test func `a repository clears all of its members`() async throws {
    let profile = Multiplexer { 1 }.register(in: repository)
    let users = MultiplexerMap<Int, Int> { $0 }.register(in: repository)
    _ = try await profile.request()
    _ = try await users.request(7)
    try await repository.clearAll()
    #expect(profile.cachedValue == nil)
    #expect(users.cachedValue(7) == nil)
  }

  @Test(.guarantee(.repositoryClearDetachesFirst), arguments: CacheKind.allCases)
  func `a repository detaches fetches in flight, so that later requests get nothing of them`(
    kind: CacheKind
  ) async throws {
    let gate = Gate()
    let tally = Tally()
    let cache = kind.make {
      let number = tally.increment()
      try await gate.wait()
      return number
    }
    cache.register(in: repository)
    let early = begin { try await cache.request() }
    await gate.arrivals(1)
    try await repository.clearAll()
    let late = begin { try await cache.request() }
    gate.open()
    #expect(try await early.value == 1)
    #expect(try await late.value == 2)
    #expect(cache.cachedValue == 2)
  }

  @Test(.guarantee(.repositoryClearDetachesFirst))
  func `a repository cuts all members off before it waits for the first of them`() async throws {
    let gate = Gate()
    let first = Member(gate: gate)
    let second = Member(gate: gate)
    repository.register(first)
    repository.register(second)
    let clearing = begin { [repository] in try await repository.clearAll() }
    #expect(first.cutOffs.value == 2, "Once when it is held, once when it is released")
    #expect(second.cutOffs.value == 2)
    // Both are called at the same time: a slow one does not delay the other.
    await gate.arrivals(2)
    gate.open()
    try await clearing.value
  }

  @Test(.guarantee(.cachesRegisterWeakly))
  func `a repository clears the others when one fails, and names every error`() async throws {
    let gate = Gate()
    gate.open()
    let failing = [Member(gate: gate, error: Broken()), Member(gate: gate, error: Offline())]
    let profile = Multiplexer { 1 }.register(in: repository)
    for member in failing { repository.register(member) }
    _ = try await profile.request()
    do {
      try await repository.clearAll()
      Issue.record("It must throw")
    } catch let error as MuxRepositoryError {
      #expect(error.errors.count == 2)
      #expect(error.errors.contains { $0 is Broken })
      #expect(error.errors.contains { $0 is Offline })
      #expect(error.description.hasPrefix("2 members of the repository failed"))
    }
    #expect(profile.cachedValue == nil)
    #expect(gate.arrivalCount == 2)
    withExtendedLifetime(failing) {}
  }

  @Test func `a repository clears memory only, and keeps fetches in flight`() async throws {
    let gate = Gate()
    let origin = ScriptedFetcher<Int>([.success(1), .success(2)], gate: gate)
    let cache = Multiplexer { try await origin.fetch() }.register(in: repository)
    gate.admit(1)
    _ = try await cache.request()
    let refreshed = cache.refresh()
    let caller = begin { try await refreshed.request() }
    await gate.arrivals(2)
    repository.clearMemory()
    #expect(cache.cachedValue == nil)
    gate.open()
    _ = try await caller.value
    #expect(cache.cachedValue == 2)
  }

  @Test(.guarantee(.cachesRegisterWeakly), arguments: CacheKind.allCases)
  func `a repository holds its members weakly`(kind: CacheKind) async throws {
    do {
      let cache = kind.make { 1 }
      cache.register(in: repository)
      _ = try await cache.request()
      #expect(repository.count == 1)
    }
    #expect(repository.count == 0)
    try await repository.clearAll()
  }

  @Test
  func `a repository has a member once, however often and under whatever reference it registers`() {
    let cache = Multiplexer { 1 }
    repository.register(cache)
    repository.register(cache)
    cache.refresh().register(in: repository)
    #expect(repository.count == 1)
    repository.unregister(cache)
    #expect(repository.count == 0)
    repository.unregister(cache)

    let map = MultiplexerMap<Int, Int> { $0 }
    repository.register(map)
    map.refreshAll().register(in: repository)
    #expect(repository.count == 1)
    repository.unregister(map.refresh(1))
    #expect(repository.count == 0)
  }

  @Test func `a repository keeps a member that was registered through a released reference`()
    async throws
  {
    let cache = Multiplexer { 1 }
    cache.refresh().register(in: repository)
    _ = try await cache.request()
    try await repository.clearAll()
    #expect(cache.cachedValue == nil)
  }

  @Test func `a repository removes any number of released members`() async throws {
    for _ in 0..<1_000 { _ = Multiplexer { 1 }.register(in: repository) }
    #expect(repository.count == 0)
  }

  @Test func `a repository supports members that register others when they are detached`()
    async throws
  {
    let repository = repository
    let member = Member(gate: nil) {
      repository.register(Multiplexer { 1 })
    }
    repository.register(member)
    try await repository.clearAll()
    #expect(member.cutOffs.value == 2)
  }
}

private final class Member: RepositoryMember {
  let cutOffs = Tally()
  private let gate: Gate?
  private let error: (any Error)?
  private let onCutOff: @Sendable () -> Void

  init(gate: Gate?, error: (any Error)? = nil, onCutOff: @escaping @Sendable () -> Void = {}) {
    self.gate = gate
    self.error = error
    self.onCutOff = onCutOff
  }

  func invalidate() {
    cutOffs.increment()
    onCutOff()
  }

  func removeStored() async throws {
    try await gate?.wait()
    if let error { throw error }
  }

  func clearMemory() {}
}
