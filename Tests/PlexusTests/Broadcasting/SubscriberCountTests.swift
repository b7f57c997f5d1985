import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `The number of subscribers as a stream` {
  @Test
  func `a stream of subscriber counts begins with the number at the moment, and skips nothing`()
    async
  {
    let messenger = Messenger<Int>()
    var kept: [Subscription<Int>] = [messenger.subscription()]
    let counts = messenger.subscriberCounts()
    for policy in [Policy.unbounded, .newest(1), .newest(0), .oldest(3)] {
      kept.append(messenger.subscription(bufferingPolicy: policy()))
      kept.removeLast()
    }
    kept.append(messenger.subscription(ignoring: Author()))
    kept = []
    #expect(await counts.first(12) == [1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 0])
    #expect(messenger.subscriberCount == 0)
  }

  @Test func `a stream of subscriber counts does not begin with a handler whose owner is released`()
    async
  {
    let messenger = Messenger<Int>()
    messenger.observe(as: Parcel(0)) { (_: Parcel, _: Int) in }
    #expect(await messenger.subscriberCounts().first(1) == [0])
  }

  @Test func `a stream of subscriber counts counts streams and handlers alike, and not itself`()
    async
  {
    let messenger = Messenger<Int>()
    let counts = messenger.subscriberCounts()
    #expect(messenger.subscriberCount == 0)
    let stream = messenger.subscribe()
    let plain = messenger.observe { (_: Int) in }
    let suspending = messenger.observe { (_: Int) async in }
    plain.cancel()
    suspending.cancel()
    #expect(await counts.first(6) == [0, 1, 2, 3, 2, 1])
    withExtendedLifetime(stream) {}
  }

  @Test
  func `a stream of subscriber counts wakes a waiting reader when a subscriber joins or leaves`()
    async
  {
    let messenger = Messenger<Int>()
    let log = Log<Int>()
    let counts = messenger.subscriberCounts()
    let reader = Task { for await count in counts { log.append(count) } }
    await log.first(1)
    let subscription = messenger.subscription()
    await log.first(2)
    let token = messenger.observe { (_: Int) in }
    await log.first(3)
    token.cancel()
    await log.first(4)
    let loop = Task { await subscription.all() }
    loop.cancel()
    _ = await loop.value
    await log.first(5)
    var owner: Parcel? = Parcel(0)
    if let owner { messenger.observe(as: owner) { (_: Parcel, _: Int) in } }
    await log.first(6)
    owner = nil
    messenger.send(0)
    await log.first(7)
    messenger.finish()
    await reader.value
    #expect(log.entries == [0, 1, 2, 1, 0, 1, 0])
    withExtendedLifetime(owner) {}
  }

  @Test func `a stream of subscriber counts ends with the messenger, after a last zero`() async {
    var messenger: Messenger<Int>? = Messenger()
    let counts = messenger?.subscriberCounts()
    let subscriptions = (0..<3).map { _ in messenger?.subscription() }
    messenger = nil
    #expect(await counts?.all() == [0, 1, 2, 3, 0])
    let finished = Messenger<Int>()
    finished.finish()
    #expect(await finished.subscriberCounts().all() == [0])
    withExtendedLifetime(subscriptions) {}
  }

  @Test
  func `a stream of subscriber counts is the same for every reader, each with its own policy`()
    async
  {
    let messenger = Messenger<Int>()
    let all = (0..<3).map { _ in messenger.subscriberCounts() }
    let newest = messenger.subscriberCounts(bufferingPolicy: .bufferingNewest(1))
    let subscriptions = (0..<50).map { _ in messenger.subscription() }
    for counts in all { #expect(await counts.first(51) == Array(0...50)) }
    #expect(await newest.first(1) == [50])
    withExtendedLifetime(subscriptions) {}
  }

  @Test(.guarantee(.subscriberCountsYieldEveryChange))
  func `a stream of subscriber counts steps by one while many join and leave at once`() async {
    let messenger = Messenger<Int>()
    let counts = messenger.subscriberCounts()
    let reader = Task { await counts.all() }
    await withTaskGroup { group in
      for _ in 0..<4 {
        group.addTask {
          for round in 0..<300 {
            let subscription = messenger.subscription()
            let token = round % 3 == 0 ? messenger.observe { (_: Int) in } : nil
            withExtendedLifetime((subscription, token)) {}
          }
        }
      }
    }
    messenger.finish()
    let list = await reader.value
    #expect(list.first == 0 && list.last == 0)
    #expect(list.count == 3201)
    #expect(zip(list, list.dropFirst()).allSatisfy { abs($0 - $1) == 1 })
  }

  @Test func `a stream of subscriber counts is reported by publishers and shared sequences, too`()
    async
  {
    let publisher = DataPublisher<Int>()
    let paged = PagedPublisher<Int, Int> { _ in Page(items: [], next: nil) }
    let shared = AsyncStream<Int> { _ in }.broadcast()
    let counts = [
      publisher.subscriberCounts(), paged.subscriberCounts(), shared.subscriberCounts(),
    ]
    let first = (publisher.subscribe(), paged.subscribe(), shared.subscribe())
    let second = (publisher.observe { _ in }, paged.observe { _ in }, shared.observe { _ in })
    for counts in counts { #expect(await counts.first(3) == [0, 1, 2]) }
    withExtendedLifetime((first, second)) {}
  }

  @Test
  func `a stream of subscriber counts wakes a reader of a publisher's count whenever it waits`()
    async
  {
    let publisher = DataPublisher<Int>()
    let log = Log<Int>()
    let counts = publisher.subscriberCounts()
    let reading = Task { for await count in counts { log.append(count) } }
    for round in 0..<100 {
      await log.first(4 * round + 1)
      let subscription = publisher.subscription()
      await log.first(4 * round + 2)
      let token = publisher.observe { _ in }
      await log.first(4 * round + 3)
      token.cancel()
      await log.first(4 * round + 4)
      withExtendedLifetime(subscription) {}
    }
    reading.cancel()
    await reading.value
    #expect(publisher.subscriberCount == 0)
  }

  @Test func `a stream of subscriber counts resumes no task under the lock of a publisher`() async {
    // Resuming a task enqueues it on its executor, which can be a user's.
    final class LockFinder: TaskExecutor {
      let publisher = DataPublisher<Int>()
      let jobs = Log<Void>()

      func enqueue(_ job: consuming ExecutorJob) {
        withoutLocks { [publisher] in _ = (publisher.state, publisher.subscriberCount) }
        jobs.append(())
        let job = UnownedJob(job)
        Task.detached { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
      }
    }
    let finder = LockFinder()
    let log = Log<Int>()
    let counts = finder.publisher.subscriberCounts()
    let reading = Task(executorPreference: finder) {
      for await count in counts { log.append(count) }
    }
    for round in 0..<50 {
      await log.first(4 * round + 1)
      let subscription = finder.publisher.subscription()
      await log.first(4 * round + 2)
      let token = finder.publisher.observe { _ in }
      await log.first(4 * round + 3)
      token.cancel()
      await log.first(4 * round + 4)
      withExtendedLifetime(subscription) {}
    }
    reading.cancel()
    await reading.value
    #expect(finder.jobs.count > 10)
  }
}

@Suite(.fewAtOnce) struct `Waiting for a subscriber` {
  @Test func `waiting for a subscriber returns at once if there is one`() async throws {
    let messenger = Messenger<Int>()
    let subscription = messenger.subscription()
    try await messenger.waitForSubscriber()
    #expect(messenger.subscriberCount == 1)
    withExtendedLifetime(subscription) {}
  }

  @MainActor @Test(.guarantee(.subscriberCountsYieldEveryChange))
  func `waiting for a subscriber returns when there was a subscriber, even for a moment`()
    async throws
  {
    let messenger = Messenger<Int>()
    let publisher = DataPublisher<Int>()
    let waiting = [
      Task { try await messenger.waitForSubscriber() },
      Task { try await publisher.waitForSubscriber() },
    ]
    await everybodyHasBegun()
    _ = (messenger.subscription(), publisher.subscription())
    for task in waiting { try await task.value }
    #expect(messenger.subscriberCount == 0)
  }

  @MainActor @Test
  func `waiting for a subscriber does not count a handler whose owner was released`() async {
    let messenger = Messenger<Int>()
    messenger.observe(as: Parcel(0)) { (_: Parcel, _: Int) in }
    let waiting = Task { try await messenger.waitForSubscriber() }
    await everybodyHasBegun()
    waiting.cancel()
    await #expect(throws: CancellationError.self) { try await waiting.value }
  }

  @MainActor @Test func `waiting for a subscriber ends at once when its task is cancelled`() async {
    let paged = PagedPublisher<Int, Int> { _ in Page(items: [], next: nil) }
    for isLate in [false, true] {
      let waiting = Task { try await paged.waitForSubscriber() }
      if isLate { await everybodyHasBegun() }
      waiting.cancel()
      await #expect(throws: CancellationError.self) { try await waiting.value }
    }
  }

  @MainActor @Test func `waiting for a subscriber throws when the broadcaster ends before`() async {
    let messenger = Messenger<Int>()
    let waiting = Task { try await messenger.waitForSubscriber() }
    await everybodyHasBegun()
    messenger.finish()
    await #expect(throws: BroadcastError.finished) { try await waiting.value }
    await #expect(throws: BroadcastError.finished) { try await messenger.waitForSubscriber() }
    #expect("\(BroadcastError.finished)".contains("without a subscriber"))
  }
}
