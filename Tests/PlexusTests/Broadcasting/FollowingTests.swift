import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Following a sequence` {
  @Test(.guarantee(.publishersFollowSequences))
  func `a publisher publishes each element it follows on arrival, and stays usable after the end`()
    async
  {
    let publisher = DataPublisher<Int>()
    let states = publisher.subscription(bufferingPolicy: .unbounded)
    let (numbers, source) = AsyncStream.makeStream(of: Int.self)
    publisher.follow(numbers)
    source.yield(1)
    source.yield(2)
    #expect(await states.first(3).map(words) == ["unknown", "loaded(1)", "loaded(2)"])
    source.finish()
    publisher.update(3)
    #expect(await states.first(1).map(words) == ["loaded(3)"])
  }

  @Test(.guarantee(.publishersFollowSequences))
  func `following a sequence publishes a failure, which keeps the value`()
    async
  {
    let publisher = DataPublisher<Int>()
    let states = publisher.subscription(bufferingPolicy: .unbounded)
    publisher.follow(
      AsyncThrowingStream<Int, any Error> { continuation in
        continuation.yield(1)
        continuation.finish(throwing: LoadingFailure.first)
      }
    )
    #expect(await states.first(3).map(words) == ["unknown", "loaded(1)", "failed(first, 1)"])
  }

  @Test func `following a sequence publishes an error of cancellation that is the sequence's own`()
    async
  {
    let publisher = DataPublisher<Int>()
    publisher.follow(
      AsyncThrowingStream<Int, any Error> { $0.finish(throwing: CancellationError()) }
    )
    for await state in publisher.subscribe() where state.error is CancellationError { break }
    #expect(publisher.state.error is CancellationError)
  }

  @Test func `following a sequence overrules a load, as an update does`() async throws {
    let publisher = DataPublisher<Int>()
    let gate = Gate()
    let load = Task {
      try await publisher.load {
        try await gate.wait()
        return 1
      }
    }
    await gate.arrivals(1)
    let (numbers, source) = AsyncStream.makeStream(of: Int.self)
    publisher.follow(numbers)
    source.yield(7)
    for await state in publisher.subscribe() where state.value == 7 { break }
    gate.open()
    #expect(try await load.value == 1)
    #expect(words(publisher.state) == "loaded(7)")
  }

  @Test func `a messenger sends every element that it follows, and does not end with the sequence`()
    async
  {
    let messenger = Messenger<Int>()
    let messages = messenger.subscription()
    let (numbers, source) = AsyncStream.makeStream(of: Int.self)
    messenger.follow(numbers)
    messenger.follow(
      AsyncThrowingStream<Int, any Error> { continuation in
        continuation.yield(10)
        continuation.finish(throwing: LoadingFailure.first)
      }
    )
    #expect(await messages.first(1) == [10])
    source.yield(1)
    source.yield(2)
    source.finish()
    #expect(await messages.first(2) == [1, 2])
    messenger.send(3)
    #expect(await messages.first(1) == [3])
  }

  @Test func `following carries one broadcaster into another, from when it was subscribed to`()
    async
  {
    let (near, far) = (Messenger<Int>(), Messenger<Int>())
    let messages = far.subscription()
    far.follow(near.subscription())
    for number in 0..<100 { near.send(number) }
    #expect(await messages.first(100) == Array(0..<100))
    #expect(near.subscriberCount == 1)
  }

  @Test func `following a sequence derives one publisher from another`() async {
    let (source, derived) = (DataPublisher<Int>(), DataPublisher<String>())
    derived.follow(source.subscribe().compactMap { $0.value.map { "\($0)" } })
    source.update(5)
    for await state in derived.subscribe() where state.value == "5" { break }
    source.update(6)
    for await state in derived.subscribe() where state.value == "6" { break }
    #expect(derived.state.value == "6")
  }

  @Test(.guarantee(.publishersFollowSequences))
  func `following a sequence ends with its publisher, which it does not keep`() async {
    let census = Census()
    let source = Messenger<Parcel>()
    var publisher: DataPublisher<Parcel>? = DataPublisher()
    publisher?.follow(source.subscription())
    publisher?.follow(source.subscribe())
    #expect(source.subscriberCount == 2)
    source.send(census.parcel(1))
    if let publisher { for await state in publisher.subscribe() where state.value != nil { break } }
    weak let weakPublisher = publisher
    publisher = nil
    for await count in source.subscriberCounts() where count == 0 { break }
    await census.falls(to: 0)
    #expect(weakPublisher == nil)
  }

  @Test(.guarantee(.publishersFollowSequences), arguments: [false, true])
  func `following ends with its messenger, finished or released, with an element on its way`(
    isFinished: Bool
  ) async {
    let source = Messenger<Parcel>()
    let census = Census()
    var messenger: Messenger<Parcel>? = Messenger()
    let messages = messenger?.subscription()
    messenger?.follow(source.subscription())
    source.send(census.parcel(1))
    #expect(await messages?.first(1).map(\.number) == [1])
    if isFinished { messenger?.finish() } else { messenger = nil }
    source.send(census.parcel(2))
    for await count in source.subscriberCounts() where count == 0 { break }
    #expect(await messages?.all().isEmpty == true)
    await census.falls(to: 0)
    // The receiver is gone.
    messenger?.follow(source.subscription())
    #expect(source.subscriberCount == 0)
  }

  @Test func `the end of following a sequence cancels the task in which the sequence waits`() async
  {
    let gate = Gate()
    let ended = Log<Bool>()
    var publisher: DataPublisher<Int>? = DataPublisher()
    publisher?.follow(
      AsyncStream {
        do { try await gate.wait() } catch { ended.append(Task.isCancelled) }
        return nil
      }
    )
    await gate.arrivals(1)
    publisher = nil
    #expect(await ended.first(1) == [true])
  }

  @Test func `the end of following has no effect on a sequence that ignores cancellation`() async {
    struct Deaf: AsyncSequence, AsyncIteratorProtocol, Sendable {
      let gate: Gate
      let ended: Log<Void>

      func makeAsyncIterator() -> Deaf { self }

      mutating func next() async throws -> Int? {
        await Task.detached { [gate] in try? await gate.wait() }.value
        ended.append(())
        throw LoadingFailure.first
      }
    }
    let (gate, ended) = (Gate(), Log<Void>())
    var messenger: Messenger<Int>? = Messenger()
    let messages = messenger?.subscription()
    messenger?.follow(Deaf(gate: gate, ended: ended))
    await gate.arrivals(1)
    messenger = nil
    #expect(await messages?.all() == [])
    gate.open()
    await ended.first(1)
  }

  @Test func `following a sequence releases its sequence and what it holds without a lock`() async {
    let census = Census()
    let messenger = Messenger<Parcel>()
    for isStopped in [false, true] {
      var followers: [Messenger<Parcel>] = []
      for _ in 0..<5 {
        let follower = isStopped ? Messenger<Parcel>() : messenger
        let captured = census.parcel { [weak follower] in
          withoutLocks {
            follower?.send(Parcel(0))
            follower?.follow(AsyncStream<Parcel> { nil })
          }
        }
        follow(follower, holding: captured, untilStopped: isStopped)
        followers.append(follower)
      }
      if isStopped { followers = [] }
      await census.falls(to: 0)
    }
  }

  private func follow(
    _ follower: Messenger<Parcel>,
    holding captured: Parcel,
    untilStopped: Bool
  ) {
    let gate = Gate()
    if !untilStopped { gate.open() }
    follower.follow(
      AsyncStream<Parcel> {
        try? await gate.wait()
        return withExtendedLifetime(captured) { nil }
      }
    )
  }
}
