import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A shared sequence` {
  /// A sequence that records its iterations and their ends, and can be iterated again.
  struct Tracked: AsyncSequence, Sendable {
    let source: Messenger<Int>
    let log: Log<String>

    struct Iterator: AsyncIteratorProtocol {
      var elements: Subscription<Int>.Iterator
      let log: Log<String>

      mutating func next() async -> Int? {
        let element = await elements.next()
        if element == nil { log.append(Task.isCancelled ? "stopped" : "ended") }
        return element
      }
    }

    func makeAsyncIterator() -> Iterator {
      let iterator = Iterator(elements: source.subscription().makeAsyncIterator(), log: log)
      log.append("started")
      return iterator
    }
  }

  @Test(.guarantee(.sharedSequencesIterateOnce))
  func `a shared sequence delivers each element to all subscribers, and iterates once`() async {
    let (numbers, source) = AsyncStream.makeStream(of: Int.self)
    let shared = numbers.broadcast()
    let subscriptions = (0..<5).map { _ in shared.subscription() }
    let stream = shared.subscribe()
    let log = Log<Int>()
    let token = shared.observe { log.append($0) }
    #expect(shared.subscriberCount == 7)
    for number in 0..<50 { source.yield(number) }
    source.finish()
    for subscription in subscriptions { #expect(await subscription.all() == Array(0..<50)) }
    #expect(await stream.all() == Array(0..<50))
    #expect(await log.first(50) == Array(0..<50))
    withExtendedLifetime(token) {}
  }

  @Test(.guarantee(.sharedSequencesIterateOnce))
  func `a shared sequence starts with the first subscriber and stops with the last`() async {
    let (source, log) = (Messenger<Int>(), Log<String>())
    let shared = Tracked(source: source, log: log).broadcast()
    #expect(log.count == 0)
    var subscriptions = [shared.subscription()]
    await log.first(1)
    subscriptions.append(shared.subscription())
    let token = shared.observe { _ in }
    source.send(1)
    for subscription in subscriptions { #expect(await subscription.first(1) == [1]) }
    subscriptions.removeLast()
    token.cancel()
    source.send(2)
    #expect(await subscriptions[0].first(1) == [2])
    #expect(log.entries == ["started"])
    subscriptions = []
    #expect(await log.first(2) == ["started", "stopped"])
    #expect(source.subscriberCount == 0)
  }

  @Test func `a shared sequence starts again for a later subscriber, without what came before`()
    async
  {
    let (source, log) = (Messenger<Int>(), Log<String>())
    let shared = Tracked(source: source, log: log).broadcast()
    for round in 0..<5 {
      let subscription = shared.subscription()
      await log.first(2 * round + 1)
      for await count in source.subscriberCounts() where count == 1 { break }
      source.send(round)
      #expect(await subscription.first(1) == [round])
      let task = Task { await subscription.all() }
      task.cancel()
      #expect(await task.value == [])
      await log.first(2 * round + 2)
    }
    #expect(log.entries == Array(repeating: ["started", "stopped"], count: 5).flatMap(\.self))
  }

  @Test func `a shared sequence continues for a subscriber that joins while the last one leaves`()
    async throws
  {
    let (source, log) = (Messenger<Int>(), Log<String>())
    let shared = Tracked(source: source, log: log).broadcast()
    let followers = Guarded<[Subscription<Int>]>([])
    let subscription = shared.subscription()
    // It is resumed, and subscribes once more, inside the call that cancels it.
    let loop = begin {
      for await _ in subscription {}
      followers.withLock { $0.append(shared.subscription()) }
    }
    await log.first(1)
    loop.cancel()
    try await loop.value
    #expect(shared.subscriberCount == 1)
    #expect(source.subscriberCount == 1, "The iteration is not stopped")
    source.send(1)
    source.finish()
    #expect(await log.first(2) == ["started", "ended"])
    let follower = try #require(followers.withLock { $0.first })
    #expect(await follower.all() == [1])
  }

  @Test func `a shared sequence delivers nothing that a stopped iteration still yields`() async {
    // It yields its number on demand, and ignores cancellation.
    final class Deaf: AsyncSequence, Sendable {
      struct Iterator: AsyncIteratorProtocol {
        let number: Int
        let gate: Gate

        mutating func next() async -> Int? {
          await Task.detached { [gate] in try? await gate.wait() }.value
          return number
        }
      }

      let gates = [Gate(), Gate()]
      let iterations = Guarded(0)

      func makeAsyncIterator() -> Iterator {
        let number = iterations.withLock { iterations in
          defer { iterations += 1 }
          return iterations
        }
        return Iterator(number: number, gate: gates[number])
      }
    }
    let deaf = Deaf()
    let shared = deaf.broadcast()
    var first: Subscription<Int>? = shared.subscription()
    await deaf.gates[0].arrivals(1)
    first = nil
    let second = shared.subscription()
    deaf.gates[0].admit(1)
    await deaf.gates[1].arrivals(1)
    deaf.gates[1].admit(3)
    #expect(await second.first(3) == [1, 1, 1])
    withExtendedLifetime(first) {}
  }

  @Test(.guarantee(.sharedSequencesIterateOnce))
  func `a shared sequence is never iterated twice at once, however quickly subscribers change`()
    async
  {
    // It records every iteration that starts before another one has ended.
    final class Exclusive: AsyncSequence, Sendable {
      final class Iterator: AsyncIteratorProtocol {
        let sequence: Exclusive

        init(_ sequence: Exclusive) {
          self.sequence = sequence
          sequence.begin()
        }

        deinit { sequence.live.withLock { $0 -= 1 } }

        func next() async -> Int? {
          await Task.detached { [sequence] in try? await sequence.gate.wait() }.value
          return 7
        }
      }

      let gate = Gate()
      let live = Guarded(0)
      let overlaps = Guarded(0)

      func makeAsyncIterator() -> Iterator { Iterator(self) }

      func begin() {
        let isAlone = live.withLock { live in
          live += 1
          return live == 1
        }
        if !isAlone { overlaps.withLock { $0 += 1 } }
      }
    }
    for _ in 0..<100 {
      let sequence = Exclusive()
      let shared = sequence.broadcast()
      var early: Subscription<Int>? = shared.subscription()
      await sequence.gate.arrivals(1)
      for _ in 0..<3 {
        early = nil
        early = shared.subscription()
      }
      sequence.gate.open()
      #expect(await early?.first(2) == [7, 7])
      #expect(sequence.overlaps.withLock { $0 } == 0)
    }
  }

  @Test func `a shared sequence serves the remaining subscriber, however many have left before`()
    async
  {
    // It yields without end until it is cancelled.
    struct Ones: AsyncSequence, Sendable {
      struct Iterator: AsyncIteratorProtocol {
        mutating func next() async -> Int? { Task.isCancelled ? nil : 1 }
      }

      func makeAsyncIterator() -> Iterator { Iterator() }
    }
    let shared = Ones().broadcast(bufferingPolicy: .bufferingNewest(1))
    for _ in 0..<20 {
      await withTaskGroup { group in
        for _ in 0..<4 {
          group.addTask {
            for _ in 0..<20 { _ = shared.subscription() }
          }
        }
      }
      let subscription = shared.subscription()
      #expect(await subscription.first(3) == [1, 1, 1])
      #expect(shared.subscriberCount == 1)
    }
  }

  @Test
  func `a shared sequence delivers its failure to handlers that come later, too, and frees them`()
    async
  {
    let (numbers, source) = AsyncThrowingStream.makeStream(of: Int.self, throwing: (any Error).self)
    let shared = numbers.broadcast()
    source.finish(throwing: LoadingFailure.first)
    #expect(await shared.subscription().all().map(words) == ["first"])
    let census = Census()
    let log = Log<String>()
    let owner = Owner()
    let tokens = [
      shared.observe { [parcel = census.parcel()] (result: Result<Int, any Error>) in
        withExtendedLifetime(parcel) { log.append(words(result)) }
      },
      shared.observe { @MainActor [parcel = census.parcel()] (result: Result<Int, any Error>) in
        withExtendedLifetime(parcel) { log.append(words(result)) }
      },
      shared.observe { [parcel = census.parcel()] (result: Result<Int, any Error>) async in
        withExtendedLifetime(parcel) { log.append(words(result)) }
      },
    ]
    shared.observe(as: owner) {
      [parcel = census.parcel()] (_, result: Result<Int, any Error>) in
      withExtendedLifetime(parcel) { log.append(words(result)) }
    }
    #expect(await log.first(4) == ["first", "first", "first", "first"])
    await census.falls(to: 0)
    #expect(shared.subscriberCount == 0)
    withExtendedLifetime((tokens, owner)) {}
  }

  @Test(.guarantee(.sharedFailuresReachLaterSubscribers))
  func `a shared sequence delivers its failure last, to all and to later subscribers`()
    async
  {
    let (numbers, source) = AsyncThrowingStream.makeStream(of: Int.self, throwing: (any Error).self)
    let shared = numbers.broadcast()
    let subscriptions = (0..<3).map { _ in shared.subscription() }
    let log = Log<String>()
    let token = shared.observe { log.append(words($0)) }
    source.yield(1)
    source.finish(throwing: LoadingFailure.first)
    for subscription in subscriptions {
      #expect(await subscription.all().map(words) == ["1", "first"])
    }
    #expect(await log.first(2) == ["1", "first"])
    for policy in [Policy.unbounded, .newest(1), .oldest(1)] {
      #expect(await shared.subscription(bufferingPolicy: policy()).all().map(words) == ["first"])
    }
    #expect(shared.subscriberCount == 0)
    withExtendedLifetime(token) {}
  }

  @Test func `a shared sequence throws the failure where a loop gets its results`() async {
    let shared = AsyncThrowingStream<Int, any Error> { continuation in
      continuation.yield(1)
      continuation.finish(throwing: LoadingFailure.second)
    }.broadcast()
    var numbers: [Int] = []
    await #expect(throws: LoadingFailure.second) {
      for await result in shared.subscribe() { numbers.append(try result.get()) }
    }
    #expect(numbers == [1])
  }

  @Test
  func `a shared sequence that has ended ends later streams at once, and is not iterated again`()
    async
  {
    let (source, log) = (Messenger<Int>(), Log<String>())
    let shared = Tracked(source: source, log: log).broadcast()
    let subscription = shared.subscription()
    await log.first(1)
    source.finish()
    #expect(await subscription.all() == [])
    #expect(await shared.subscribe().all() == [])
    #expect(log.entries == ["started", "ended"])
    #expect(shared.subscriberCount == 0)
  }

  @Test
  func `a shared sequence gives subscribers its buffering policy unless they ask for another one`()
    async
  {
    let numbers = Messenger<Int>()
    let shared = numbers.subscription().broadcast(bufferingPolicy: .bufferingNewest(2))
    let few = shared.subscription()
    let fewToo = shared.subscribe()
    let all = shared.subscription(bufferingPolicy: .unbounded)
    for number in 0..<10 { numbers.send(number) }
    numbers.finish()
    #expect(await all.all() == Array(0..<10))
    #expect(await few.all() == [8, 9])
    #expect(await fewToo.all() == [8, 9])
    #expect(few.droppedCount == 8)
  }

  @Test
  func `a shared sequence stops when it is released, ends its streams, and frees the sequence`()
    async
  {
    let census = Census()
    let (source, log) = (Messenger<Int>(), Log<String>())
    var shared: SharedSequence<Int>? = tracked(source, log, holding: census.parcel()).broadcast()
    let subscription = shared?.subscription()
    let waiting = Task { await subscription?.all() }
    await log.first(1)
    source.send(1)
    source.send(2)
    weak let weakShared = shared
    shared = nil
    #expect(weakShared == nil)
    #expect(await waiting.value.map { Array(0..<$0.count).map { $0 + 1 } == $0 } == true)
    // It is stopped while it waits for an element or while it delivers one.
    await census.falls(to: 0)
    #expect(source.subscriberCount == 0)
    #expect(!log.entries.contains("ended"))
  }

  @Test func `a shared sequence frees the sequence when that has ended`() async {
    let census = Census()
    let (source, log) = (Messenger<Int>(), Log<String>())
    let shared = tracked(source, log, holding: census.parcel()).broadcast()
    let subscription = shared.subscription()
    await log.first(1)
    source.finish()
    #expect(await subscription.all() == [])
    await census.falls(to: 0)
    withExtendedLifetime(shared) {}
  }

  @Test func `a shared sequence without subscribers is never iterated`() {
    let log = Log<String>()
    let shared = Tracked(source: Messenger(), log: log).broadcast()
    _ = (shared.subscriberCount, shared.subscriberCounts())
    #expect(log.count == 0)
  }

  @Test func `a shared sequence can be shown by an observed value`() async {
    let (numbers, source) = AsyncStream.makeStream(of: Int.self)
    let shared = numbers.broadcast()
    let log = Log<Int>()
    let value = await ObservedValue(shared, initial: 0)
    let token = shared.observe { @MainActor in log.append($0) }
    source.yield(7)
    await log.first(1)
    // The system determines which of the two is resumed first.
    while await value.value == 0 { await Task.detached {}.value }
    #expect(await value.value == 7)
    withExtendedLifetime(token) {}
  }

  private func tracked(
    _ source: Messenger<Int>,
    _ log: Log<String>,
    holding captured: Parcel
  ) -> some AsyncSequence<Int, Never> & Sendable {
    Tracked(source: source, log: log).map { withExtendedLifetime((captured, $0)) { $0.1 } }
  }

  // MARK: - Replay and lingering

  @Test(.guarantee(.sharedSequencesReplay))
  func `a shared sequence replays the requested number of elements, and then continues`() async {
    let numbers = Messenger<Int>()
    let shared = numbers.subscription().broadcast(replaying: 2)
    let first = shared.subscription()
    for number in 1...3 { numbers.send(number) }
    #expect(await first.first(3) == [1, 2, 3])
    let second = shared.subscription()
    let mapped = shared.map { $0 * 10 }.subscription(bufferingPolicy: .unbounded)
    numbers.send(4)
    numbers.finish()
    #expect(await second.all() == [2, 3, 4])
    #expect(await mapped.all() == [20, 30, 40])
    #expect(await shared.subscription().all() == [3, 4], "after the end, too")
    #expect(await shared.map { $0 }.subscribe().all() == [3, 4])
  }

  @Test(.guarantee(.sharedSequencesReplay))
  func `a shared sequence replays its failure after its elements, of which it displaces none`()
    async
  {
    let (numbers, source) = AsyncThrowingStream.makeStream(of: Int.self, throwing: (any Error).self)
    let shared = numbers.broadcast(replaying: 2)
    let first = shared.subscription()
    for number in 1...3 { source.yield(number) }
    source.finish(throwing: LoadingFailure.first)
    #expect(await first.all().map(words) == ["1", "2", "3", "first"])
    #expect(await shared.subscription().all().map(words) == ["2", "3", "first"])
  }

  @Test(.guarantee(.sharedSequencesReplay))
  func `a shared sequence clears its replay when it stops`() async {
    let (source, log) = (Messenger<Int>(), Log<String>())
    let shared = Tracked(source: source, log: log).broadcast(replaying: 2)
    var first: Subscription? = shared.subscription()
    await log.first(1)
    source.send(1)
    #expect(await first?.first(1) == [1])
    first = nil
    let second = shared.subscription()
    await log.first(3)
    source.send(2)
    #expect(await second.first(1) == [2])
    withExtendedLifetime(first) {}
  }

  @Test(.guarantee(.lingeringContinuesWithoutSubscribers))
  func `a shared sequence lingers without subscribers`()
    async
  {
    let (source, log) = (Messenger<Int>(), Log<String>())
    let clock = ManualClock()
    let shared = Tracked(source: source, log: log).broadcast(
      replaying: 1,
      lingering: .seconds(5),
      clock: clock
    )
    for round in 0..<3 {
      let subscription = shared.subscription()
      await log.first(1)
      source.send(round)
      // The newest element of the previous round is replayed.
      while await subscription.first(1) != [round] { await Task.detached {}.value }
    }
    await clock.sleepers(1)
    clock.advance(by: .seconds(4))
    #expect(log.entries == ["started"])
    clock.advance(by: .seconds(1))
    #expect(await log.first(2) == ["started", "stopped"])
    let late = shared.subscription()
    #expect(await log.first(3).last == "started")
    source.send(9)
    #expect(await late.first(1) == [9], "nothing from before is replayed")
  }

  @Test(.guarantee(.lingeringContinuesWithoutSubscribers))
  func `a shared sequence lingers no longer than it lives`()
    async
  {
    let (source, log) = (Messenger<Int>(), Log<String>())
    let clock = ManualClock()
    var shared: SharedSequence<Int>? = Tracked(source: source, log: log).broadcast(
      lingering: .seconds(5),
      clock: clock
    )
    do {
      let subscription = shared?.subscription()
      await log.first(1)
      withExtendedLifetime(subscription) {}
    }
    await clock.sleepers(1)
    shared = nil
    #expect(await log.first(2) == ["started", "stopped"])
    #expect(clock.sleeperCount == 0)
  }
}

/// An element, or the error in its place.
private func words(_ result: Result<Int, any Error>) -> String {
  switch result {
  case .success(let number): "\(number)"
  case .failure(let error): "\(error)"
  }
}
