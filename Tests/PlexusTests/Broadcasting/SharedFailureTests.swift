import Plexus
import TestSupport
import Testing

/// The failure that ends a shared sequence is an end: no buffering policy drops it, and it displaces no element.
@Suite(.fewAtOnce) struct `The failure of a shared sequence` {
  private static let policies: [Policy] = [
    .unbounded, .newest(1), .newest(2), .newest(100), .oldest(1), .oldest(2), .newest(0),
  ]

  /// The newest or oldest elements that a policy keeps of unread elements.
  private func kept(_ elements: [String], _ policy: Policy) -> [String] {
    switch policy {
    case .unbounded: elements
    case .newest(let limit): elements.suffix(limit)
    case .oldest(let limit): Array(elements.prefix(limit))
    }
  }

  @Test(.guarantee(.sharedFailuresFollowBufferedElements), arguments: policies, 0...3)
  func `the failure of a shared sequence reaches every subscriber after what its policy keeps`(
    policy: Policy,
    replaying: Int
  ) async {
    let (numbers, source) = AsyncThrowingStream.makeStream(of: Int.self, throwing: (any Error).self)
    let shared = numbers.broadcast(replaying: replaying)
    let all = shared.subscription()
    let subscription = shared.subscription(bufferingPolicy: policy())
    let stream = shared.subscribe(bufferingPolicy: policy())
    let view = shared.map { $0 }.removingNothing().subscription(bufferingPolicy: policy())
    for number in 1...3 { source.yield(number) }
    source.finish(throwing: LoadingFailure.first)
    #expect(await all.all().map(words) == ["1", "2", "3", "first"])
    let expected = kept(["1", "2", "3"], policy) + ["first"]
    #expect(await subscription.all().map(words) == expected)
    #expect(await stream.all().map(words) == expected)
    #expect(await view.all().map(words) == expected)
    let replay = Array(["1", "2", "3"].suffix(replaying))
    let late = kept(replay, policy) + ["first"]
    #expect(await shared.subscription(bufferingPolicy: policy()).all().map(words) == late)
    #expect(await shared.subscribe(bufferingPolicy: policy()).all().map(words) == late)
    let lateView = shared.map { $0 }.subscription(bufferingPolicy: policy())
    #expect(await lateView.all().map(words) == late)
    #expect(shared.subscriberCount == 0)
  }

  @Test(.guarantee(.sharedFailuresFollowBufferedElements), arguments: policies)
  func `the failure of a shared sequence reaches every handler after what its policy keeps`(
    policy: Policy
  ) async {
    let (numbers, source) = AsyncThrowingStream.makeStream(of: Int.self, throwing: (any Error).self)
    let shared = numbers.broadcast(replaying: 2)
    let (host, seen, ofView, late) = (SteppedHost(), Log<String>(), Log<String>(), Log<String>())
    let all = shared.subscription()
    let tokens = [
      await host.observe(shared, policy()) { seen.append(words($0)) },
      await host.observe(shared.map { $0 }, policy()) { ofView.append(words($0)) },
    ]
    for number in 1...3 { source.yield(number) }
    source.finish(throwing: LoadingFailure.first)
    #expect(await all.all().count == 4)
    let token = shared.observe(bufferingPolicy: policy()) { late.append(words($0)) }
    while seen.entries.last != "first" || ofView.entries.last != "first", !Task.isCancelled {
      await host.executor.step(atMost: 1)
    }
    #expect(seen.entries.dropLast().count >= kept(["1", "2", "3"], policy).count)
    #expect(ofView.entries == seen.entries)
    await late.wait { $0.last == "first" }
    if policy != .newest(0) { #expect(late.count >= 2) }
    #expect(shared.subscriberCount == 0)
    withExtendedLifetime((tokens, token)) {}
  }

  @Test func `a shared failure is not counted as dropped, and not delivered to a cancelled reader`()
    async throws
  {
    let (numbers, source) = AsyncThrowingStream.makeStream(of: Int.self, throwing: (any Error).self)
    let shared = numbers.broadcast()
    let all = shared.subscription()
    let slow = shared.subscription(bufferingPolicy: .bufferingOldest(1))
    source.yield(1)
    source.finish(throwing: LoadingFailure.first)
    #expect(await all.all().count == 2)
    #expect(slow.droppedCount == 0)
    let cancelled = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await slow.all().count
    }
    #expect(await cancelled.value == 0)
  }
}

extension Broadcaster {
  fileprivate func removingNothing() -> some Broadcaster<Element> { filter { _ in true } }
}

/// An element, or the error in its place.
private func words(_ result: Result<Int, any Error>) -> String {
  switch result {
  case .success(let number): "\(number)"
  case .failure(let error): "\(error)"
  }
}
