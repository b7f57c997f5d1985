import Plexus
import Synchronization

/// A payload that has to be retained.
struct Payload: Sendable {
  var title = "a title that does not fit into a small string"
  var detail = "some detail that does not fit into a small string either"
  var number = 1
}

/// Rows for messages that are sent to many subscribers.
func broadcastingComparisons() -> [Comparison] {
  var rows: [Comparison] = []
  let goals = [(1, 25.0, 10.0), (10, 110, 40), (100, 180, 60), (1000, 250, 55)]
  for (subscribers, goal, goalOfStructs) in goals {
    rows.append(burst(of: 1, kind: "Int", subscribers: subscribers, goal: goal))
    rows.append(burst(of: Payload(), kind: "struct", subscribers: subscribers, goal: goalOfStructs))
  }
  for subscribers in [1, 10, 100, 1000] { rows.append(streamBurst(subscribers: subscribers)) }
  for (subscribers, goal) in [(1, 1.6), (10, 1.45), (100, 1.3), (1000, 1.3)] {
    rows.append(lockstep(subscribers: subscribers, goal: goal))
  }
  rows.append(subscribeAndDrop())
  rows.append(mainActorBurst())
  return rows
}

private let deliveriesInABurst = 1_000_000

private func burst<Element: Sendable>(
  of element: Element,
  kind: String,
  subscribers: Int,
  goal: Double
) -> Comparison {
  let messages = deliveriesInABurst / subscribers
  return Comparison(
    name: "burst/\(kind)/\(subscribers)",
    peer: "AsyncStream fan-out",
    goal: goal,
    ours: {
      let messenger = Messenger<Element>()
      return await burst(messenger, of: element, subscribers: subscribers, messages: messages)
    },
    theirs: { await rawBurst(of: element, subscribers: subscribers, messages: messages) }
  )
}

/// Sends all messages before or while the subscribers read.
func burst(_ messenger: Messenger<Int>, subscribers: Int, messages: Int) async -> Double {
  await burst(messenger, of: 1, subscribers: subscribers, messages: messages)
}

private func burst<Element: Sendable>(
  _ messenger: Messenger<Element>,
  of element: Element,
  subscribers: Int,
  messages: Int
) async -> Double {
  let subscriptions = (0..<subscribers).map { _ in messenger.subscription() }
  return await drain(subscriptions, messages: messages) {
    for _ in 0..<messages { messenger.send(element) }
    messenger.finish()
  }
}

private func streamBurst(subscribers: Int) -> Comparison {
  let messages = deliveriesInABurst / subscribers
  return Comparison(
    name: "burst/subscribe()/\(subscribers)",
    peer: "AsyncStream fan-out",
    goal: 3,
    ours: {
      let messenger = Messenger<Int>()
      let streams = (0..<subscribers).map { _ in messenger.subscribe() }
      return await drain(streams, messages: messages) {
        for number in 0..<messages { messenger.send(number) }
        messenger.finish()
      }
    },
    theirs: { await rawBurst(of: 1, subscribers: subscribers, messages: messages) }
  )
}

/// The same by the peer.
func rawBurst<Element: Sendable>(
  of element: Element,
  subscribers: Int,
  messages: Int
) async -> Double {
  let source = RawFanOut<Element>()
  let streams = (0..<subscribers).map { _ in source.subscribe() }
  return await drain(streams, messages: messages) {
    for _ in 0..<messages { source.send(element) }
    source.finish()
  }
}

/// Iterates all sequences while the body sends; returns the nanoseconds of a delivery.
private func drain<S: AsyncSequence & Sendable>(
  _ sequences: [S],
  messages: Int,
  _ send: () -> Void
) async -> Double where S.Failure == Never, S.Element: Sendable {
  await nanoseconds(per: sequences.count * messages) {
    await withTaskGroup(of: Int.self) { group in
      for sequence in sequences {
        group.addTask {
          var count = 0
          for await _ in sequence { count += 1 }
          return count
        }
      }
      send()
      for await count in group { precondition(count == messages, "A delivery was lost") }
    }
  }
}

private func lockstep(subscribers: Int, goal: Double) -> Comparison {
  let rounds = 100_000 / subscribers
  return Comparison(
    name: "lockstep/\(subscribers)",
    peer: "AsyncStream fan-out",
    goal: goal,
    ours: { await lockstep(subscribers: subscribers, rounds: rounds) },
    theirs: { await rawLockstep(subscribers: subscribers, rounds: rounds) }
  )
}

/// Sends each message once all subscribers have received the previous one.
func lockstep(subscribers: Int, rounds: Int) async -> Double {
  let messenger = Messenger<Int>()
  let subscriptions = (0..<subscribers).map { _ in messenger.subscription() }
  return await march(
    subscriptions,
    rounds: rounds,
    send: { messenger.send($0) },
    finish: { messenger.finish() }
  )
}

/// The same by the peer.
func rawLockstep(subscribers: Int, rounds: Int) async -> Double {
  let source = RawFanOut<Int>()
  let streams = (0..<subscribers).map { _ in source.subscribe() }
  return await march(
    streams,
    rounds: rounds,
    send: { source.send($0) },
    finish: { source.finish() }
  )
}

/// Sends each element once all subscribers have received the previous one.
private func march<S: AsyncSequence & Sendable>(
  _ sequences: [S],
  rounds: Int,
  send: @Sendable (Int) -> Void,
  finish: @Sendable () -> Void
) async -> Double where S.Failure == Never, S.Element: Sendable {
  let round = Round()
  return await withTaskGroup(of: Void.self) { group in
    for sequence in sequences {
      group.addTask { for await _ in sequence { round.arrive() } }
    }
    let result = await nanoseconds(per: rounds * sequences.count) {
      for number in 0..<rounds { await round.wait(for: sequences.count) { send(number) } }
    }
    finish()
    return result
  }
}

/// A countdown of the subscribers that have received an element.
private final class Round: Sendable {
  private let missing = Atomic<Int>(0)
  private let sender = Mutex<CheckedContinuation<Void, Never>?>(nil)

  func wait(for count: Int, _ send: () -> Void) async {
    await withCheckedContinuation { continuation in
      missing.store(count, ordering: .sequentiallyConsistent)
      sender.withLock { $0 = continuation }
      send()
    }
  }

  func arrive() {
    guard missing.subtract(1, ordering: .sequentiallyConsistent).newValue == 0 else { return }
    let sender = sender.withLock { sender in
      defer { sender = nil }
      return sender
    }
    sender?.resume()
  }
}

private func subscribeAndDrop() -> Comparison {
  let cycles = 100_000
  return Comparison(
    name: "subscribe and drop",
    peer: "AsyncStream fan-out",
    goal: 8,
    ours: { await subscribeAndDrop(cycles: cycles) },
    theirs: { await rawSubscribeAndDrop(cycles: cycles) }
  )
}

func subscribeAndDrop(cycles: Int) async -> Double {
  let messenger = Messenger<Int>()
  return await nanoseconds(per: cycles) {
    for _ in 0..<cycles { _ = messenger.subscription() }
  }
}

/// The same by the peer.
func rawSubscribeAndDrop(cycles: Int) async -> Double {
  let source = RawFanOut<Int>()
  return await nanoseconds(per: cycles) {
    for _ in 0..<cycles { _ = source.subscribe() }
  }
}

private func mainActorBurst() -> Comparison {
  let messages = 20_000
  return Comparison(
    name: "main actor, buffered",
    peer: "AsyncStream",
    goal: 300,
    ours: { await drainOnMainActor(messages: messages) },
    theirs: { await drainRawOnMainActor(messages: messages) }
  )
}

@MainActor
private func drainOnMainActor(messages: Int) async -> Double {
  let messenger = Messenger<Int>()
  let subscription = messenger.subscription()
  for number in 0..<messages { messenger.send(number) }
  messenger.finish()
  var sum = 0
  return await nanoseconds(per: messages) {
    for await number in subscription { sum += number }
  }
}

@MainActor
private func drainRawOnMainActor(messages: Int) async -> Double {
  let source = RawFanOut<Int>()
  let stream = source.subscribe()
  for number in 0..<messages { source.send(number) }
  source.finish()
  var sum = 0
  return await nanoseconds(per: messages) {
    for await number in stream { sum += number }
  }
}
