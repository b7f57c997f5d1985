import AsyncAlgorithms
import OpenCombine
import Plexus

/// Rows that compare with other libraries, for information and without goals.
func peerComparisons() -> [Comparison] {
  [1, 10, 100].map { sharedBurst(subscribers: $0) } + [1, 10, 100].map { observers($0) }
}

/// A row against `share()`, with a sequence whose elements are all available.
private func sharedBurst(subscribers: Int) -> Comparison {
  let messages = 100_000 / subscribers
  return Comparison(
    name: "burst/Int/\(subscribers)/share()",
    peer: "AsyncAlgorithms share()",
    goal: 0,
    ours: { await burst(Messenger<Int>(), subscribers: subscribers, messages: messages) },
    theirs: {
      let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
      let shared = stream.share(bufferingPolicy: .unbounded)
      return await nanoseconds(per: subscribers * messages) {
        await withTaskGroup(of: Void.self) { group in
          for _ in 0..<subscribers {
            group.addTask { for await _ in shared {} }
          }
          for number in 0..<messages { continuation.yield(number) }
          continuation.finish()
          await group.waitForAll()
        }
      }
    }
  )
}

/// A row for closures that are called for each message, against a subject, which calls them on the sender's thread.
private func observers(_ count: Int) -> Comparison {
  let messages = 1_000_000 / count
  return Comparison(
    name: "observe/\(count)/OpenCombine",
    peer: "PassthroughSubject.sink",
    goal: 0,
    ours: {
      let messenger = Messenger<Int>()
      let calls = Counter()
      let tokens = (0..<count).map { _ in messenger.observe { _ in calls.increment() } }
      return await nanoseconds(per: count * messages) {
        for number in 0..<messages { messenger.send(number) }
        while calls.value < count * messages { await Task.yield() }
        withExtendedLifetime(tokens) {}
      }
    },
    theirs: {
      let subject = PassthroughSubject<Int, Never>()
      let calls = Counter()
      let tokens = (0..<count).map { _ in subject.sink { _ in calls.increment() } }
      return await nanoseconds(per: count * messages) {
        for number in 0..<messages { subject.send(number) }
        precondition(calls.value == count * messages, "A delivery was lost")
        withExtendedLifetime(tokens) {}
      }
    }
  )
}
