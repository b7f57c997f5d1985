import Synchronization
import TestSupport
import Testing

@testable import Plexus

/// Two tasks that read one subscription, which is a programmer error.
@Suite(.fewAtOnce) struct `Two readers of one subscription` {
  private static let sentence = "Two tasks iterate over one subscription at once"

  @Test(
    .guarantee(.sharedIterationReadsOnlySentElements),
    .startsProcess,
    arguments: [Policy.unbounded, .newest(1), .newest(64), .newest(100_000), .oldest(100_000)]
  )
  func `two readers of one subscription stop the program, and read nothing that was not sent`(
    policy: Policy
  ) async throws {
    let result =
      switch policy {
      case .unbounded:
        await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
          await readTwice(.unbounded)
        }
      case .newest(1):
        await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
          await readTwice(.newest(1))
        }
      case .newest(64):
        await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
          await readTwice(.newest(64))
        }
      case .newest:
        await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
          await readTwice(.newest(100_000))
        }
      case .oldest:
        await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
          await readTwice(.oldest(100_000))
        }
      }
    let output = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(output.contains(Self.sentence))
  }

  @Test(.guarantee(.sharedIterationReadsOnlySentElements), .startsProcess)
  func `two readers of states that can be reset stop the program`() async throws {
    let result = await #expect(
      processExitsWith: .failure,
      observing: [\.standardErrorContent]
    ) {
      let publisher = DataPublisher<Int>()
      let subscription = publisher.subscription(bufferingPolicy: .unbounded)
      let isSent: @Sendable (LoadState<Int>) -> Bool = { $0.value == nil || $0.value == 4711 }
      await readTwice(subscription, isSent: isSent) {
        for _ in 0..<20_000 {
          publisher.update(4711)
          publisher.reset()
        }
      }
    }
    let output = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(output.contains(Self.sentence))
  }

  @Test(.guarantee(.sharedIterationReadsOnlySentElements), .startsProcess)
  func `two readers of one subscription are noticed when one sets the position back`() async throws
  {
    // The reader of the first elements is preempted before it writes its position, and the other one has read on
    // meanwhile.
    let result = await #expect(
      processExitsWith: .failure,
      observing: [\.standardErrorContent]
    ) {
      let hub = BroadcastHub<Int>()
      let subscription = hub.subscription(bufferingPolicy: .unbounded)
      for _ in 0..<64 { hub.send(4711) }
      var other = subscription.makeAsyncIterator()
      for _ in 0..<40 { _ = await other.next() }
      subscription.subscriber.position.store(6, ordering: .relaxed)
      _ = await other.next()
      exitSuccessfully()
    }
    let output = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(output.contains(Self.sentence))
  }

  @Test func `two readers of one subscription that take turns read every element once`() async {
    let hub = BroadcastHub<Int>()
    let subscription = hub.subscription(bufferingPolicy: .unbounded)
    for number in 0..<200 { hub.send(number) }
    var iterators = (0..<3).map { _ in subscription.makeAsyncIterator() }
    for number in 0..<200 {
      let read = await iterators[number * 7 / 5 % 3].next()
      #expect(read == number)
    }
  }
}

/// Lets two tasks read one subscription to messages.
private func readTwice(_ policy: Policy) async {
  let messenger = Messenger<Int>()
  let subscription = messenger.subscription(bufferingPolicy: policy())
  let isSent: @Sendable (Int) -> Bool = { $0 == 4711 }
  await readTwice(subscription, isSent: isSent) {
    for _ in 0..<100_000 { messenger.send(4711) }
  }
}

/// Lets two tasks read one subscription, while and after elements are sent.
///
/// The other one is detected at the latest when one of them waits for more. The process ends without a failure, which
/// the test does not expect, if they read an element that was not sent.
private func readTwice<Element>(
  _ subscription: Subscription<Element>,
  isSent: @escaping @Sendable (Element) -> Bool,
  _ send: () -> Void
) async {
  send()
  await withTaskGroup { group in
    for _ in 0..<2 {
      group.addTask {
        for await element in subscription where !isSent(element) { exitSuccessfully() }
      }
    }
    send()
  }
}
