import Synchronization
import TestSupport
import Testing

@testable import Plexus

/// Two tasks that read one subscription, which is a programmer error.
@Suite(.fewAtOnce, .timeLimit(.minutes(20))) struct `Two readers of one subscription` {
  private static let sentence = "Two tasks iterate over one subscription at once"

  @Test func `stop the program, and read nothing that was not sent`() async throws {
    let result = await #expect(
      processExitsWith: .failure,
      observing: [\.standardErrorContent]
    ) {
      let messenger = Messenger<Int>()
      let subscription = messenger.subscription()
      for _ in 0..<200_000 { messenger.send(4711) }
      // The other one is detected at the latest when one of them waits for more.
      await withTaskGroup { group in
        for _ in 0..<2 {
          group.addTask {
            // The test does not expect an end without a failure.
            for await number in subscription where number != 4711 { exitSuccessfully() }
          }
        }
      }
    }
    let output = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
    #expect(output.contains(Self.sentence))
  }

  @Test func `are noticed when one sets the position back`() async throws {
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

  @Test func `that take turns read every element once`() async {
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
