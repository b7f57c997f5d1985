import Plexus
import PlexusTesting
import TestSupport
import Testing

/// The elements that subscribers receive after everything was cleared.
@Suite(.fewAtOnce) struct `After a sign-out` {
  static let policies: [Policy] = [
    .unbounded, .newest(1), .newest(3), .newest(100), .oldest(1), .oldest(100),
  ]

  /// Publishes more states than fit into a chunk of the log.
  private func publish(to publisher: DataPublisher<String>) {
    for _ in 0..<10 {
      publisher.startLoading()
      publisher.update("secret")
    }
  }

  @Test(.guarantee(.noStateFromBeforeAReset), arguments: policies)
  func `a publisher gives no subscriber a state from before a sign-out`(policy: Policy) async {
    let publisher = DataPublisher<String>()
    publisher.update("secret")
    let late = publisher.subscription(bufferingPolicy: policy())
    let stream = publisher.subscribe(bufferingPolicy: policy())
    let subscription = publisher.subscription(bufferingPolicy: policy())
    publish(to: publisher)
    publisher.reset()
    publisher.update("public")
    #expect(await stream.first(1).allSatisfy { $0.value != "secret" })
    #expect(await late.first(1).allSatisfy { $0.value != "secret" })
    let states = await subscription.first(policy == .newest(1) || policy == .oldest(1) ? 1 : 2)
    let expected: [Policy: [String?]] = [.newest(1): ["public"], .oldest(1): [nil]]
    #expect(states.map(\.value) == expected[policy] ?? [nil, "public"])
  }

  @Test(.guarantee(.noStateFromBeforeAReset), arguments: policies)
  func `a replayed state that was not read is not given after a sign-out`(policy: Policy) async {
    let publisher = DataPublisher<String>()
    publisher.update("secret")
    let subscription = publisher.subscription(bufferingPolicy: policy())
    publisher.reset()
    #expect(await subscription.first(1).map(\.value) == [nil])
    #expect(subscription.droppedCount == 0)
    publisher.update("public")
    #expect(await subscription.first(1).map(\.value) == ["public"])
  }

  @Test(.guarantee(.noStateFromBeforeAReset), arguments: 0...40)
  func `an iterator in the middle of what it reads skips the rest after a sign-out`(read: Int) async
  {
    let publisher = DataPublisher<String>()
    let subscription = publisher.subscription(bufferingPolicy: .unbounded)
    var iterator = subscription.makeAsyncIterator()
    for number in 0..<40 { publisher.update("secret \(number)") }
    for _ in 0..<read { _ = await iterator.next() }
    publisher.reset()
    #expect(await iterator.next()?.value == nil)
    publisher.update("public")
    #expect(await iterator.next()?.value == "public")
  }

  @Test func `what was lost before a sign-out still counts, and what was taken back does not`()
    async
  {
    let publisher = DataPublisher<String>()
    let subscription = publisher.subscription(bufferingPolicy: .bufferingNewest(3))
    for _ in 0..<10 { publisher.update("secret") }
    #expect(subscription.droppedCount == 8)
    publisher.reset()
    #expect(subscription.droppedCount == 8)
    #expect(await subscription.first(1).map(\.value) == [nil])
    #expect(subscription.droppedCount == 8)
    for _ in 0..<5 { publisher.update("public") }
    #expect(subscription.droppedCount == 10)
  }

  @Test(.guarantee(.noStateFromBeforeAReset), arguments: policies)
  func `a publisher of pages gives no subscriber a state from before a sign-out`(
    policy: Policy
  ) async throws {
    let publisher = Catalog().publisher()
    let subscription = publisher.subscription(bufferingPolicy: policy())
    try await publisher.loadFirstPage()
    for _ in 0..<2 { try await publisher.loadNextPage() }
    publisher.reset()
    #expect(await subscription.first(1).map(words) == ["unknown"])
  }

  @Test(.guarantee(.noStateFromBeforeAReset), arguments: policies)
  func `a manager gives no subscriber a state from before a sign-out`(policy: Policy) async throws {
    struct Manager: DataManager {
      let publisher = DataPublisher<String>()
      func fetch() async throws -> String { "secret" }
    }
    let manager = Manager()
    let stream = manager.subscribe(bufferingPolicy: policy())
    _ = try await manager.refresh()
    manager.logOut()
    #expect(await stream.first(1).map(\.value) == [nil])
  }

  @Test(.guarantee(.noStateFromBeforeAReset), arguments: policies)
  func `a multiplexer gives no subscriber a state from before a sign-out`(
    policy: Policy
  ) async throws {
    let multiplexer = Multiplexer<String> { "secret" }
    let subscription = multiplexer.subscription(bufferingPolicy: policy())
    _ = try await multiplexer.refresh().request()
    try await multiplexer.clear()
    #expect(await subscription.first(1).map(\.value) == [nil])
  }

  @Test(.guarantee(.noStateFromBeforeAReset), arguments: policies)
  func `a map gives no subscriber a state from before a sign-out`(policy: Policy) async throws {
    let map = MultiplexerMap<String, String> { _ in "secret" }
    let keys = ["a", "b", "c"]
    for isClearedTogether in [false, true] {
      let subscriptions = keys.map { map.subscription(to: $0, bufferingPolicy: policy()) }
      for key in keys { _ = try await map.request(key) }
      // Without a value, the unread states still contain one.
      map.clearMemory()
      _ = try await map.request("c")
      if isClearedTogether {
        try await map.clear()
      } else {
        for key in keys { try await map.clear(key) }
      }
      for subscription in subscriptions {
        #expect(await subscription.first(1).map(\.value) == [nil])
      }
    }
  }

  @Test(.guarantee(.noStateFromBeforeAReset), arguments: policies)
  func `a repository gives no subscriber of a member a state from before a sign-out`(
    policy: Policy
  ) async throws {
    let repository = MuxRepository()
    let multiplexer = Multiplexer<String> { "secret" }.register(in: repository)
    let map = MultiplexerMap<String, String> { _ in "secret" }.register(in: repository)
    let subscriptions = [
      multiplexer.subscription(bufferingPolicy: policy()),
      map.subscription(to: "a", bufferingPolicy: policy()),
    ]
    _ = try await multiplexer.request()
    _ = try await map.request("a")
    try await repository.clearAll()
    for subscription in subscriptions {
      #expect(await subscription.first(1).map(\.value) == [nil])
    }
  }
}
