import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `Shared log state` {
  @Test func `a run holds its elements by their numbers and says where it ends`() {
    let run = LogBase.Run<Int>(start: 100)
    #expect(run.end == 100)
    #expect(run.limit == 100 + LogBase.Run<Int>.capacity)
    for number in 100..<run.limit {
      #expect(run.fillsUpNext == (number == run.limit - 1))
      run.append(number)
      #expect(run.end == number + 1)
    }
    for number in 100..<run.limit { #expect(run[number] == number) }
  }

  @Test func `a chunk is followed by the next from its last element on`() {
    let chunk = LogBase.Chunk<Int>(start: 0)
    for number in 0..<LogBase.Run<Int>.capacity - 1 {
      #expect(chunk.append(number) == nil)
      #expect(chunk.follower == nil)
    }
    let follower = chunk.append(LogBase.Run<Int>.capacity - 1)
    #expect(follower != nil)
    #expect(chunk.follower === follower)
    #expect(follower?.run.start == LogBase.Run<Int>.capacity)
    #expect(follower?.run.end == follower?.run.start)
  }

  @Test func `a chain of chunks is released one after the other`() {
    let census = Census()
    var first: LogBase.Chunk<Parcel>? = LogBase.Chunk(start: 0)
    var tail = first
    for number in 0..<100_000 {
      if let follower = tail?.append(census.parcel(number)) { tail = follower }
    }
    first = nil
    #expect(census.living <= 16)
    tail = nil
    #expect(census.living == 0)
  }

  @Test func `a chunk held in the middle keeps what follows, and nothing before`() {
    let census = Census()
    var first: LogBase.Chunk<Parcel>? = LogBase.Chunk(start: 0)
    var tail = first
    for number in 0..<160 {
      if let follower = tail?.append(census.parcel(number)) { tail = follower }
    }
    var middle = first?.follower?.follower
    first = nil
    #expect(census.living == 128)
    let run = middle?.run
    middle = nil
    #expect(census.living == 16)
    #expect(run?[40].number == 40)
    withExtendedLifetime((run, tail)) {}
  }

  @Test func `several replays come first, oldest first, and join what follows without a gap`() async
  {
    let replay = [1, 2, 3]
    let expected: [Policy: [Int]] = [
      .unbounded: [1, 2, 3, 4, 5],
      .newest(9): [1, 2, 3, 4, 5],
      .newest(4): [2, 3, 4, 5],
      .newest(2): [4, 5],
      .newest(1): [5],
      .newest(0): [],
      .oldest(9): [1, 2, 3, 4, 5],
      .oldest(4): [1, 2, 3, 4],
      .oldest(2): [1, 2],
      .oldest(0): [],
    ]
    for (policy, elements) in expected {
      let hub = BroadcastHub<Int>()
      let subscription = hub.subscription(bufferingPolicy: policy(), replaying: replay)
      hub.send(4)
      hub.send(5)
      #expect(subscription.droppedCount == 5 - elements.count, "\(policy)")
      hub.finish()
      #expect(await subscription.all() == elements, "\(policy)")
      #expect(subscription.droppedCount == 5 - elements.count, "\(policy)")
    }
  }

  @Test func `a replay that is read in time is not lost`() async {
    let hub = BroadcastHub<Int>()
    let subscription = hub.subscription(bufferingPolicy: .bufferingNewest(3), replaying: [1, 2, 3])
    #expect(await subscription.first(2) == [1, 2])
    hub.send(4)
    hub.send(5)
    #expect(subscription.droppedCount == 0)
    #expect(await subscription.first(3) == [3, 4, 5])
    hub.finish()
  }

  @Test func `replays of a hub that has finished are still delivered`() async {
    let hub = BroadcastHub<Int>()
    hub.finish()
    for policy in [Policy.unbounded, .newest(2), .oldest(2)] {
      let subscription = hub.subscription(bufferingPolicy: policy(), replaying: [1, 2])
      #expect(await subscription.all() == [1, 2])
      #expect(await subscription.all().isEmpty)
    }
    #expect(hub.subscriberCount == 0)
  }

  @Test func `the last subscriber that leaves is announced, outside of the lock`() async {
    let hubs = Log<BroadcastHub<Int>>()
    let counts = Log<Int>()
    let hub = BroadcastHub<Int>(onEmpty: { counts.append(hubs.entries[0].subscriberCount) })
    hubs.append(hub)
    for policy in [Policy.unbounded, .newest(1), .oldest(1)] {
      var subscriptions = [
        hub.subscription(bufferingPolicy: policy()), hub.subscription(bufferingPolicy: policy()),
      ]
      let before = counts.count
      subscriptions.removeLast()
      #expect(counts.count == before)
      subscriptions.removeLast()
      #expect(counts.count == before + 1)
    }
    #expect(counts.entries == [0, 0, 0])
    let last = hub.subscription(bufferingPolicy: .unbounded)
    hub.finish()
    #expect(await last.all().isEmpty)
    #expect(counts.count == 3)
  }

  @Test func `a handler that waits for its first message is released by finish without a lock`() {
    let hub = BroadcastHub<Int>()
    let counts = Log<Int>()
    func addHandler() {
      let parcel = Parcel(1) { withoutLocks { counts.append(hub.subscriberCount) } }
      let recipe = Handler.Recipe(
        isolation: nil,
        .synchronous { _ in
          withExtendedLifetime(parcel) {}
          return .succeeded
        }
      )
      _ = hub.add(recipe)
    }
    addHandler()
    addHandler()
    hub.finish()
    #expect(counts.entries == [0, 0])
  }

  /// Lets a reader that has found nothing park, and returns whether it would wait.
  private func isParked(_ reader: Subscriber<Int>, in hub: BroadcastHub<Int>) async -> Bool {
    var isParked = false
    await SuspendedTask.suspend(isolation: #isolation) { task in
      hub.park(reader, task: task)
      isParked = reader.waiter.task != nil
      // Nothing else would resume it.
      if isParked { hub.remove(reader) }
    }
    return isParked
  }

  @Test(arguments: [Policy.unbounded, .newest(1), .newest(0), .oldest(1)])
  func `a reader parks only if there is nothing to read and it has not left`(
    policy: Policy
  ) async {
    func reader(of hub: BroadcastHub<Int>) -> Subscriber<Int> {
      hub.subscription(bufferingPolicy: policy()).subscriber
    }
    let hub = BroadcastHub<Int>()
    #expect(await isParked(reader(of: hub), in: hub))
    // All of this can happen between looking for an element and parking.
    let cancelled = reader(of: hub)
    hub.remove(cancelled)
    #expect(await !isParked(cancelled, in: hub))
    let served = reader(of: hub)
    hub.send(1)
    #expect(await !isParked(served, in: hub) || policy == .newest(0))
    let last = reader(of: hub)
    hub.finish()
    #expect(await !isParked(last, in: hub))
  }

  @Test func `what was prepared for delivery is visible before a task is resumed`() async {
    let hub = BroadcastHub<Int>()
    let subscription = hub.subscription(bufferingPolicy: .unbounded)
    var delivery = Delivery<Int>()
    hub.prepare(1, &delivery)
    #expect(await subscription.first(1) == [1])
    delivery.deliver()
  }

  @Test(arguments: [Policy.unbounded, .newest(1), .oldest(1)])
  func `a subscriber that leaves while others are resumed is removed at once`(
    policy: Policy
  ) async {
    let hub = BroadcastHub<Int>()
    var subscription: Subscription<Int>? = hub.subscription(bufferingPolicy: policy())
    var delivery = Delivery<Int>()
    await SuspendedTask.suspend(isolation: #isolation) { task in
      if let subscription { hub.park(subscription.subscriber, task: task) }
      hub.prepare(1, &delivery)
      delivery.effects.perform()
    }
    #expect(delivery.effects.tasks.count == 1)
    subscription = nil
    // The delivery has not ended yet: it can be occupied by thousands of others.
    #expect(hub.subscriberCount == 0)
    withExtendedLifetime(delivery) {}
  }

  /// Delivers an element to a buffer, and returns the one that was dropped.
  private func deliver(
    _ element: Int,
    from sender: UInt64 = 0,
    to buffer: HubBase.PrivateBuffer<Int>
  ) -> Int? {
    var delivery = Delivery<Int>()
    buffer.deliver(element, from: sender, to: &delivery)
    delivery.deliver()
    return delivery.displaced.first
  }

  private func buffer(
    _ limit: BufferLimit,
    ignoring sender: UInt64 = 0
  ) -> HubBase.PrivateBuffer<Int> {
    var limits = SubscriberLimits(limit)
    limits.ignoredSender = sender
    return HubBase.PrivateBuffer(id: 1, limits)
  }

  @Test func `a buffer counts dropped elements, and passes one element to a waiting reader`() async
  {
    let newest = buffer(.newest(2), ignoring: 7)
    #expect([1, 2, 3].map { deliver($0, to: newest) } == [nil, nil, 1])
    #expect(deliver(9, from: 7, to: newest) == nil)
    #expect(Array(newest.elements.popFirst(atMost: 9)) == [2, 3])
    let oldest = buffer(.oldest(2))
    #expect([1, 2, 3].map { deliver($0, to: oldest) } == [nil, nil, 3])
    #expect(oldest.droppedCount == 1)
    let none = buffer(BufferLimit(BufferingPolicy<Int>.bufferingNewest(0)))
    #expect(deliver(0, to: none) == 0)
    await SuspendedTask.suspend(isolation: #isolation) { task in
      #expect(none.park(task))
      // This resumes the task.
      #expect(deliver(1, to: none) == nil)
      #expect(none.task == nil)
    }
    #expect(deliver(2, to: none) == 2)
    #expect(none.popFirst() == 1)
  }

  @Test(.guarantee(.offeredEventsKeepTheirPlace))
  func `elements for a reader of the log alone are read in their places`() async {
    let hub = BroadcastHub<Int>()
    let (one, other) = (
      hub.hostedSubscription(bufferingPolicy: .unbounded),
      hub.hostedSubscription(bufferingPolicy: .unbounded)
    )
    func send(_ number: Int, to subscription: Subscription<Int>) {
      var effects = HubEffects()
      guard let buffer = subscription.subscriber.buffer else { return }
      #expect(hub.send(Box(number), to: buffer, &effects).isAccepted)
      effects.perform()
    }
    send(100, to: one)
    hub.send(1)
    send(101, to: one)
    send(102, to: one)
    send(201, to: other)
    for number in 2...20 { hub.send(number) }
    send(103, to: one)
    #expect(await one.first(5) == [100, 1, 101, 102, 2])
    hub.send(21)
    send(202, to: other)
    hub.finish()
    send(104, to: one)
    #expect(await one.all() == Array(3...20) + [103, 21])
    #expect(await other.all() == [1, 201] + Array(2...21) + [202])
  }

  @Test(.guarantee(.offeredEventsKeepTheirPlace))
  func `an element for a waiting reader of the log alone resumes it, and no other`() async {
    let hub = BroadcastHub<Int>()
    let readers = (0..<2).map { _ in hub.hostedSubscription(bufferingPolicy: .unbounded) }
    let log = Log<Int>()
    let tasks = readers.indices.map { index in
      Task { for await number in readers[index] { log.append(10 * index + number) } }
    }
    while hub.state.withLock({ $0.parkedReaders }) < 2 { await everybodyHasBegun() }
    var effects = HubEffects()
    if let buffer = readers[1].subscriber.buffer {
      #expect(hub.send(Box(1), to: buffer, &effects).isAccepted)
    }
    #expect(effects.tasks.map(\.id) == [readers[1].subscriber.id])
    effects.perform()
    #expect(await log.first(1) == [11])
    hub.finish()
    for task in tasks { await task.value }
    #expect(log.entries == [11])
  }
}
