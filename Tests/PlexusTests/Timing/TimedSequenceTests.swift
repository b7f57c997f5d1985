import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A debounced or throttled sequence` {
  let clock = ManualClock()

  @Test(arguments: TimedSequenceKind.allCases)
  func `a timed sequence passes on the last of several elements`(kind: TimedSequenceKind) async {
    let upstream = UpstreamHandler()
    let recorder = kind.record(upstream, clock: clock)
    upstream.send(1, 2, 3)
    await clock.passSecond()
    let first = await recorder.first(1)
    #expect(first.count == 1 && first[0] <= 3)
    upstream.send(4)
    upstream.continuation.finish()
    let all = await recorder.finished()
    #expect(all.last == 4)
    #expect(clock.sleeperCount == 0)
  }

  @Test func `a debounced sequence passes an element on when it has been quiet for the delay`()
    async
  {
    let messenger = Messenger<Int>()
    let recorder = Recorder(messenger.subscription().debounced(for: .seconds(1), clock: clock))
    messenger.send(1)
    await clock.sleepers(1)
    clock.advance(by: .milliseconds(500))
    #expect(recorder.elements.isEmpty)
    clock.advance(by: .milliseconds(500))
    #expect(await recorder.first(1) == [1])
    messenger.send(2)
    await clock.passSecond()
    #expect(await recorder.first(2) == [1, 2])
  }

  @Test func `a debounced sequence with leading and a maximum has the rules of a debouncer`() async
  {
    let upstream = UpstreamHandler()
    let recorder = Recorder(
      upstream.debounced(
        for: .seconds(1),
        leading: true,
        maximumDelay: .milliseconds(1500),
        clock: clock
      )
    )
    upstream.send(1)
    #expect(await recorder.first(1) == [1])
    upstream.send(2)
    await clock.sleepers(1)
    clock.advance(by: .seconds(1))
    #expect(await recorder.first(2) == [1, 2])
    recorder.cancel()
  }

  @Test
  func `a throttled sequence passes the first element on at once, and the last one at the end`()
    async
  {
    let upstream = UpstreamHandler()
    let recorder = Recorder(upstream.throttled(for: .seconds(1), clock: clock))
    upstream.send(1)
    #expect(await recorder.first(1) == [1])
    upstream.send(2)
    await clock.passSecond()
    #expect(await recorder.first(2) == [1, 2])
    recorder.cancel()
  }

  @Test func `a throttled sequence without trailing drops and releases early elements`() async {
    let census = Census()
    let (parcels, continuation) = AsyncStream.makeStream(of: Parcel.self)
    let recorder = Recorder(
      parcels.throttled(for: .seconds(1), trailing: false, clock: clock).map(\.number)
    )
    continuation.yield(census.parcel(1))
    #expect(await recorder.first(1) == [1])
    for number in 2...40 { continuation.yield(census.parcel(number)) }
    // The first element stays in the buffer, and the others are released.
    await census.falls(to: 1)
    clock.advance(by: .seconds(1))
    continuation.yield(census.parcel(41))
    #expect(await recorder.first(2) == [1, 41])
    continuation.finish()
    #expect(await recorder.finished() == [1, 41])
    await census.falls(to: 0)
  }

  @Test(.guarantee(.timedSequencesWithholdNothing), arguments: TimedSequenceKind.allCases)
  func `a timed sequence does not withhold the trailing element when the upstream ends`(
    kind: TimedSequenceKind
  ) async {
    let upstream = UpstreamHandler()
    upstream.send(1, 2)
    upstream.continuation.finish()
    let recorder = kind.record(upstream, clock: clock)
    #expect(await recorder.finished() == [2])
    #expect(recorder.error == nil)
    #expect(clock.sleeperCount == 0)
  }

  @Test(.guarantee(.timedSequencesWithholdNothing), arguments: TimedSequenceKind.allCases)
  func `an upstream error is not lost, and follows the pending element`(
    kind: TimedSequenceKind
  ) async {
    let upstream = UpstreamHandler()
    upstream.send(1)
    upstream.continuation.finish(throwing: Broken())
    let recorder = kind.record(upstream, clock: clock)
    #expect(await recorder.finished() == [1])
    #expect(recorder.error is Broken)
    #expect(clock.sleeperCount == 0)
  }

  @Test func `the error of a timed sequence is thrown once, and its type is kept`() async {
    let upstream = UpstreamHandler()
    upstream.continuation.finish(throwing: Broken())
    var iterator = upstream.debounced(for: .seconds(1), clock: clock).makeAsyncIterator()
    await #expect(throws: Broken.self) { try await iterator.next() }
    #expect(await (try? iterator.next()) == .some(nil))
    // This compiles only if the result for a nonthrowing sequence is nonthrowing.
    let messenger = Messenger<Int>()
    let subscription = messenger.subscription()
    messenger.send(1)
    messenger.finish()
    for await number in subscription.throttled(for: .seconds(1), clock: clock) {
      #expect(number == 1)
    }
  }

  @Test(arguments: TimedSequenceKind.allCases)
  func `cancellation ends the iteration immediately, and is forwarded to the upstream`(
    kind: TimedSequenceKind
  ) async {
    let stubborn = StubbornSequence()
    let recorder = kind.record(stubborn, clock: clock)
    let waiting = await stubborn.waiting.first(1)
    recorder.cancel()
    #expect(await recorder.finished().isEmpty)
    waiting[0].resume()
    #expect(await stubborn.cancellations.first(1) == [true])
  }

  @Test(arguments: TimedSequenceKind.allCases)
  func `cancellation drops the pending element of a timed sequence`(kind: TimedSequenceKind) async {
    let upstream = UpstreamHandler()
    let recorder = kind.record(upstream, clock: clock)
    upstream.send(1)
    await clock.sleepers(1)
    recorder.cancel()
    #expect(await recorder.finished().isEmpty)
    #expect(clock.sleeperCount == 0)
  }

  @Test func `an already cancelled task receives no element and starts no iteration`() async {
    let stubborn = StubbornSequence()
    let elements = await Task { [clock] in
      withUnsafeCurrentTask { $0?.cancel() }
      return await stubborn.debounced(for: .zero, clock: clock).reduce(into: []) { $0.append($1) }
    }.value
    #expect(elements.isEmpty)
    #expect(stubborn.waiting.count == 0)
  }

  @Test func `cancellation ends the iteration immediately, even with many buffered elements`() async
  {
    let messenger = Messenger<Int>()
    let subscription = messenger.subscription()
    for number in 0..<100 { messenger.send(number) }
    messenger.finish()
    let numbers = await Task { [clock] in
      var numbers: [Int] = []
      for await number in subscription.debounced(for: .zero, clock: clock) {
        numbers.append(number)
        if number == 3 { withUnsafeCurrentTask { $0?.cancel() } }
      }
      return numbers
    }.value
    #expect(numbers == [0, 1, 2, 3])
  }

  @Test func `cancellation ends the upstream even if the iterator is kept`() async {
    let stubborn = StubbornSequence()
    let gate = Gate()
    let reader = Task { [clock] in
      var iterator = stubborn.debounced(for: .seconds(1), clock: clock).makeAsyncIterator()
      let element = await iterator.next()
      // Waits in spite of cancellation, which keeps the iterator alive.
      await Task { try? await gate.wait() }.value
      let next = await iterator.next()
      return [element, next]
    }
    let waiting = await stubborn.waiting.first(1)
    reader.cancel()
    await gate.arrivals(1)
    waiting[0].resume()
    #expect(await stubborn.cancellations.first(1) == [true])
    gate.open()
    #expect(await reader.value == [nil, nil])
  }

  @Test func `dropping the iterator ends the upstream and releases everything`() async {
    let census = Census()
    let messenger = Messenger<Parcel>()
    do {
      let sequence = messenger.subscription().debounced(for: .seconds(1), clock: clock)
      var iterator = sequence.makeAsyncIterator()
      messenger.send(census.parcel(1))
      async let second: Void = clock.passSecond()
      let parcel = await iterator.next()
      await second
      #expect(parcel?.number == 1)
      messenger.send(census.parcel(2))
      await clock.sleepers(1)
    }
    #expect(clock.sleeperCount == 0)
    await census.falls(to: 0)
    // The iterating task has been cancelled, which removes its subscription.
    let probe = messenger.subscription()
    #expect(messenger.subscriberCount <= 2)
    withExtendedLifetime(probe) {}
  }

  @Test func `every iterator iterates the upstream again`() async {
    let numbers = AsyncStream<Int> { continuation in
      for number in 1...3 { continuation.yield(number) }
      continuation.finish()
    }
    let sequence = Repeating(count: 3).throttled(for: .zero, clock: clock)
    for _ in 0..<2 {
      #expect(await sequence.reduce(into: []) { $0.append($1) } == [0, 1, 2])
    }
    #expect(await numbers.debounced(for: .zero).reduce(into: []) { $0.append($1) } == [1, 2, 3])
  }

  @Test func `a slow reader receives all passed elements, in order`() async {
    let messenger = Messenger<Int>()
    let sequence = messenger.subscription().debounced(for: .zero, clock: clock)
    for number in 0..<100 { messenger.send(number) }
    messenger.finish()
    #expect(await sequence.reduce(into: []) { $0.append($1) } == Array(0..<100))
  }

  @Test func `elements can use their timed sequence during their release`() async {
    let census = Census()
    let messenger = Messenger<Parcel>()
    let isOver = Guarded(false)
    let recorder = Recorder(
      messenger.subscription().debounced(for: .seconds(1), clock: clock).map(\.number)
    )
    for number in 1...100 {
      messenger.send(
        census.parcel(number) { if !isOver.withLock({ $0 }) { messenger.send(Parcel(0)) } }
      )
    }
    messenger.finish()
    #expect(await recorder.finished().count == 1)
    isOver.withLock { $0 = true }
    await census.falls(to: 0)
  }
}

/// A sequence of numbers from zero, the same for every iterator.
private struct Repeating: AsyncSequence, Sendable {
  let count: Int

  struct Iterator: AsyncIteratorProtocol {
    var numbers: Range<Int>

    mutating func next() async -> Int? { numbers.popFirst() }

    mutating func next(isolation actor: isolated (any Actor)?) async -> Int? { numbers.popFirst() }
  }

  func makeAsyncIterator() -> Iterator { Iterator(numbers: 0..<count) }
}
