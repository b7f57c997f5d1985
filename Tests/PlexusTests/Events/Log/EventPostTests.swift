import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `The posts of a bus` {
  @Test(.guarantee(.postsAreRecorded))
  func `the posts of a bus include those of a type that has never had a subscriber`() async {
    let bus = EventBus()
    let posts = bus.posts()
    bus.post(Ping(1))
    _ = await bus.postAndWait(Ping(2))
    bus.post(Ping(3), scope: "left")
    let first = await posts.first(3)
    #expect(first.compactMap { ($0.event as? Ping)?.number } == [1, 2, 3])
    #expect(first.map(\.typeName) == ["Ping", "Ping", "Ping"])
    #expect(first.map(\.scope) == [nil, nil, "left"])
    #expect(first.map(\.scope?.description) == [nil, nil, "left"])
    #expect(first.map(\.subscriberCount) == [0, 0, 0])
    #expect(first.map(\.isRetained) == [false, false, false])
    #expect(first.map(\.counts) == [[0, 0, 0], [0, 0, 0], [0, 0, 0]])
    // The wall clock of a machine that runs this test.
    #expect(first.allSatisfy { $0.time > .seconds(1_600_000_000) })
  }

  @Test(.guarantee(.postsAreRecorded), arguments: [nil, PersistenceRule.neverClear])
  func `the posts of a bus have an outcome once all handlers have finished`(
    rule: PersistenceRule?
  ) async throws {
    let (bus, gate) = (EventBus(), Gate())
    let tokens = [
      bus.observe(Notice.self) { _ async in try? await gate.wait() },
      bus.observe(Notice.self) { _ throws in throw Broken() },
    ]
    let stream = bus.subscription(to: Notice.self)
    let posts = bus.posts()
    bus.post(Notice(1, rule))
    await gate.arrivals(1)
    let post = try #require(await posts.first(1).first)
    #expect(post.subscriberCount == 3 && post.isRetained == (rule != nil))
    #expect(post.outcome == nil)
    gate.open()
    await bus.settle()
    #expect(post.counts == [3, 2, rule == nil ? 0 : 1])
    withExtendedLifetime((tokens, stream)) {}
  }

  @Test func `the posts of a bus show whether an event is retained, without being a subscriber`()
    async
  {
    let bus = EventBus()
    let posts = bus.posts()
    for rule in PersistenceRule.allCases { bus.post(Notice(1, rule)) }
    #expect(await posts.first(3).map(\.isRetained) == [true, true, true])
    #expect(bus.subscriberCount(for: Notice.self) == 0)
    #expect(bus.pendingNumbers() == [1, 1, 1])
    let token = bus.observe(Notice.self) { _ in .handledSuccessfully }
    bus.post(Notice(2, .clearImmediately))
    await bus.settle()
    let late = await posts.first(1)
    #expect(late.map(\.subscriberCount) == [1])
    #expect(late.map(\.counts) == [[1, 1, 0]])
    withExtendedLifetime(token) {}
  }

  @Test func `the posts of a bus have the outcome that a waiting caller gets`() async throws {
    let (bus, gate) = (EventBus(), Gate())
    let posts = bus.posts()
    let token = bus.observe(Ping.self) { _ async in await waitUnmoved(gate) }
    let caller = Task { await bus.postAndWait(Ping(1)) }
    await gate.arrivals(1)
    caller.cancel()
    let outcome = await caller.value
    #expect(outcome.isIncomplete)
    let post = try #require(await posts.first(1).first)
    #expect(post.outcome == outcome)
    gate.open()
    #expect(await bus.postAndWait(Ping(2)).handled == 1)
    #expect(await posts.first(1).map(\.counts) == [[1, 1, 0]])
    withExtendedLifetime(token) {}
  }

  @Test(.guarantee(.postsAreRecorded), arguments: [nil, PersistenceRule.clearImmediately])
  func `the posts of a bus include those of a handler, behind the event that it handles`(
    rule: PersistenceRule?
  ) async {
    let bus = EventBus()
    let posts = bus.posts()
    let handled = Log<Int>()
    let token = bus.observe(Notice.self) { event async -> HandlerResult in
      if event.number == 1 {
        #expect(await bus.postAndWait(Notice(2, rule)).isDeferred)
        bus.post(Notice(3, rule))
      }
      handled.append(event.number)
      return .handledSuccessfully
    }
    bus.post(Notice(1, rule))
    await handled.first(3)
    await bus.settle()
    let all = await posts.first(4)
    #expect(all.compactMap { ($0.event as? Notice)?.number } == [1, 2, 3, -1])
    #expect(all.map { $0.outcome?.handled } == [1, 1, 1, 1])
    withExtendedLifetime(token) {}
  }

  @Test(.guarantee(.postsAreRecorded))
  func `the posts of a bus have the order in which several threads' events are delivered`()
    async
  {
    let bus = EventBus()
    let delivered = bus.subscription(to: Notice.self)
    let posts = bus.posts(bufferingPolicy: .unbounded)
    await withTaskGroup { group in
      for thread in 0..<4 {
        group.addTask {
          for number in 0..<500 {
            let rule: PersistenceRule? = number % 10 == 0 ? .clearImmediately : nil
            bus.post(Notice(1_000 * thread + number, rule))
          }
        }
      }
    }
    let expected = await delivered.first(2_000).map(\.number)
    #expect(await posts.first(2_000).compactMap { ($0.event as? Notice)?.number } == expected)
  }

  @Test func `the posts of a bus reach every reader from its registration on`() async {
    let bus = EventBus()
    let first = bus.posts()
    bus.post(Ping(1))
    let second = bus.posts()
    bus.post(Ping(2))
    #expect(await first.first(2).compactMap { ($0.event as? Ping)?.number } == [1, 2])
    #expect(await second.first(1).compactMap { ($0.event as? Ping)?.number } == [2])
  }

  @Test func `the posts of a bus are bounded by the policy of the reader`() async {
    let bus = EventBus()
    let posts = bus.posts()
    let few = bus.posts(bufferingPolicy: .bufferingOldest(2))
    for number in 0..<1_500 { bus.post(Ping(number)) }
    let newest = await posts.first(1)
    #expect(newest.compactMap { ($0.event as? Ping)?.number } == [500])
    #expect(newest.map(\.number) == [501], "The number shows how many were dropped")
    #expect(await few.first(2).compactMap { ($0.event as? Ping)?.number } == [0, 1])
  }

  @Test func `the numbers of the posts of a bus begin with 1 once there was no reader`() async {
    let bus = EventBus()
    do {
      let first = bus.posts()
      bus.post(Ping(1))
      let second = bus.posts()
      bus.post(Ping(2))
      #expect(await first.first(2).map(\.number) == [1, 2])
      #expect(await second.first(1).map(\.number) == [2])
    }
    bus.post(Ping(3))
    let posts = bus.posts()
    bus.post(Ping(4))
    #expect(await posts.first(1).map(\.number) == [1])
  }

  @Test(.guarantee(.logsKeepNothingWithoutReaders))
  func `the posts of a bus keep no event alive once the reader has left`() async {
    let (bus, census) = (EventBus(), Census())
    do {
      let posts = bus.posts()
      bus.post(Load(census.parcel()))
      #expect(census.living == 1)
      withExtendedLifetime(posts) {}
    }
    await census.falls(to: 0)
    bus.post(Load(census.parcel()))
    #expect(census.living == 0)
    let later = bus.posts()
    bus.post(Ping(1))
    #expect(await later.first(1).map(\.typeName) == ["Ping"])
  }

  @Test func `the posts of a bus end with the bus, which they do not keep alive`() async {
    var bus: EventBus? = EventBus()
    weak let former = bus
    let posts = bus?.posts()
    bus?.post(Ping(1))
    bus = nil
    #expect(former == nil)
    #expect(await posts?.all().map(\.typeName) == ["Ping"])
  }

  @Test func `the posts of a bus are recorded with no lock that user code could need`() async {
    let (bus, census) = (EventBus(), Census())
    let posts = bus.posts(bufferingPolicy: .bufferingNewest(1))
    for number in 0..<3 {
      let parcel = census.parcel(number) {
        withoutLocks { bus.post(Ping(number)) }
      }
      bus.post(Load(parcel, .clearImmediately))
      bus.removePendingEvents(of: Load.self)
    }
    bus.post(Ping(3))
    await census.falls(to: 0)
    #expect(await posts.first(1).count == 1)
  }

  @Test func `records that a log drops are released with no lock held, by the last thread`() async {
    let (bus, census) = (EventBus(), Census())
    for round in 0..<50 {
      let gate = Gate()
      // While the answers of the first let waiting events follow one another, the second is busy with those before.
      let tokens = [
        bus.observe(Load.self) { _ async in
          try? await gate.wait()
          return .handledSuccessfully
        },
        bus.observe(Load.self) { _ async in },
      ]
      let posts = bus.posts(bufferingPolicy: .bufferingNewest(1))
      for number in 0..<20 {
        let parcel = census.parcel(number) { withoutLocks { bus.post(Ping(round)) } }
        bus.post(Load(parcel, number.isMultiple(of: 5) ? .clearImmediately : nil))
      }
      gate.open()
      await census.falls(to: 0)
      #expect(await posts.first(1).count == 1)
      for token in tokens { token.cancel() }
    }
  }
}

extension EventPost {
  /// The numbers of subscribers reached and of successes, and whether the event is retained, once the post has ended.
  fileprivate var counts: [Int]? {
    outcome.map { [$0.notified, $0.handled, $0.isPersisted ? 1 : 0] }
  }
}
