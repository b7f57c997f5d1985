import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A zipper` {
  let profile = Multiplexer { "Ada" }
  let users = MultiplexerMap<Int, Int> { key in
    guard key >= 0 else { throw Broken(reason: "\(key)") }
    return key * 10
  }

  @Test func `a zipper returns the values of all requests in the order in which they were added`()
    async throws
  {
    let (name, user, number) = try await Zipper(profile, users[7], Request { 3.5 }).values()
    #expect(name == "Ada")
    #expect(user == 70)
    #expect(number == 3.5)
  }

  @Test(.guarantee(.zippersStartAllAtOnce)) func `a zipper returns all results, failures too`()
    async throws
  {
    let (name, user) = await Zipper(profile, users[-1]).results()
    #expect(try name.get() == "Ada")
    #expect(throws: Broken(reason: "-1")) { try user.get() }
  }

  @Test(.guarantee(.zippersStartAllAtOnce)) func `a zipper grows by one request at a time`()
    async throws
  {
    let two = Zipper(profile).add(users[7])
    let three = two.add(Request { true })
    let (name, user, flag) = try await three.values()
    #expect((name, user, flag) == ("Ada", 70, true))
    let (again, _) = try await two.values()
    #expect(again == "Ada")
  }

  @Test func `a zipper takes what is in memory, and requests the rest, each once`() async throws {
    let clock = ManualClock()
    let origin = ScriptedFetcher<Int>([.success(1), .success(2)])
    let stale = Multiplexer(clock: clock) { try await origin.fetch() }
    _ = try await (profile.request(), users.request(7), stale.request())
    #expect(try await Zipper(profile, users[7]).values() == ("Ada", 70))
    let (name, user) = await Zipper(profile, users[7]).results()
    #expect(try (name.get(), user.get()) == ("Ada", 70))
    #expect(try await [users[7], users[7]].values() == [70, 70])
    #expect(users.statistics.counts == CacheStatistics(hits: 4, misses: 1, fetches: 1))

    clock.advance(by: .seconds(100_000))
    #expect(stale.requestImmediately() == nil)
    #expect(try await Zipper(profile, users[8], stale).values() == ("Ada", 80, 2))
    #expect(await [users[7], users[9]].results().map { try? $0.get() } == [70, 90])
    #expect(profile.statistics.counts == CacheStatistics(hits: 3, misses: 1, fetches: 1))
    #expect(users.statistics.counts == CacheStatistics(hits: 5, misses: 3, fetches: 3))
    #expect(stale.refresh().requestImmediately() == nil)
  }

  @Test(.guarantee(.zippersStartAllAtOnce)) func `a zipper makes all requests at once`()
    async throws
  {
    let gate = Gate()
    let slow = MultiplexerMap<Int, Int> { key in
      try await gate.wait()
      return key
    }
    let zipped = Task { try await Zipper(slow[1], slow[2], slow[3]).values() }
    let listed = Task { try await [4, 5].map { slow[$0] }.values() }
    await gate.arrivals(5)
    gate.open()
    #expect(try await zipped.value == (1, 2, 3))
    #expect(try await listed.value == [4, 5])
  }

  @Test(.guarantee(.zippersStartAllAtOnce))
  func `a zipper fails with the first error and cancels the rest`()
    async throws
  {
    let gate = Gate()
    let slow = Request {
      try await gate.wait()
      return 1
    }
    await #expect(throws: Broken(reason: "-1")) {
      _ = try await Zipper(slow, users[-1], slow).values()
    }
    await #expect(throws: Broken(reason: "-2")) {
      _ = try await [slow, Request(users[-2]), slow].values()
    }
    #expect(gate.waiterCount == 0)
  }

  @Test func `a zipper passes a cancellation on to all requests`() async throws {
    let gate = Gate()
    let slow = Request {
      try await gate.wait()
      return 1
    }
    _ = try await users.request(1)
    let values = Task { try await Zipper(slow, slow).values() }
    let results = Task { await Zipper(slow, users[1]).results() }
    let listed = Task { await [slow, slow].results() }
    await gate.arrivals(5)
    values.cancel()
    results.cancel()
    listed.cancel()
    await #expect(throws: CancellationError.self) { _ = try await values.value }
    let (first, second) = await results.value
    #expect(throws: CancellationError.self) { try first.get() }
    #expect(try second.get() == 10)
    for result in await listed.value {
      #expect(throws: CancellationError.self) { try result.get() }
    }
  }

  @Test(.guarantee(.zippersStartAllAtOnce))
  func `a zipper of a list keeps its order, failures too`()
    async throws
  {
    let results = await [1, -2, 3].map { users[$0] }.results()
    #expect(try results[0].get() == 10)
    #expect(throws: Broken(reason: "-2")) { try results[1].get() }
    #expect(try results[2].get() == 30)
    #expect(try await (0..<500).map { users[$0] }.values() == (0..<500).map { $0 * 10 })
  }

  @Test func `a zipper of nothing returns nothing`() async throws {
    let none: [Request<Int>] = []
    #expect(await none.results().isEmpty)
    #expect(try await none.values().isEmpty)
    func zipper<each R: Requestable>(_ request: repeat each R) -> Zipper<repeat each R> {
      Zipper(repeat each request)
    }
    await zipper().results()
    try await zipper().values()
  }

  @Test func `a zipper that requests a key twice fetches it once`() async throws {
    let tally = Tally()
    let map = MultiplexerMap<Int, Int> { _ in tally.increment() }
    let (first, second) = try await Zipper(map[1], map[1]).values()
    #expect(first == 1)
    #expect(second == 1)
  }
}
