import Foundation
import Plexus
import Synchronization

/// An event of the library, and a message of `NotificationCenter`.
private struct Tick: Event, NotificationCenter.AsyncMessage {
  typealias Subject = TickSource

  let number: Int
}

private final class TickSource: Sendable {}

extension NotificationCenter.MessageIdentifier
where Self == NotificationCenter.BaseMessageIdentifier<Tick> {
  fileprivate static var tick: Self { .init() }
}

/// An event that is retained.
private struct KeptTick: Event {
  var persistence: EventPersistence { .persistent(.neverClear, limit: 1) }
}

/// A generic event, which is a separate event type for each argument.
private struct Other<Kind>: Event {}

/// A count of handler calls.
private final class Calls: Sendable {
  private let number = Atomic<Int>(0)

  func add() {
    number.add(1, ordering: .relaxed)
  }

  /// Waits for a number of calls.
  func reach(_ count: Int) async {
    while number.load(ordering: .relaxed) < count { await Task.yield() }
  }
}

/// Rows for the time per handler or stream, from the post until all of them are done.
func eventComparisons() -> [Comparison] {
  let counts = [1, 10, 1000]
  let goals = [(1, 1.0), (10, 1.5), (1000, 2)]
  return goals.map { blocks(handlers: $0, goal: $1) }
    + goals.map { messages(handlers: $0, goal: $1) }
    + counts.map { asyncHandlers($0) }
    + counts.map { streams($0) }
    + [residents(), residentsAgainstNone(), keptEvents()]
}

private let eventDeliveries = 200_000
/// The peer starts a task for each delivery.
private let asyncDeliveries = 20_000

private func blocks(handlers: Int, goal: Double) -> Comparison {
  Comparison(
    name: "post/handlers/\(handlers)",
    peer: "NotificationCenter blocks",
    goal: goal,
    ours: { await postToHandlers(EventBus(), handlers: handlers) },
    theirs: { await postToBlocks(NotificationCenter(), blocks: handlers) }
  )
}

private func messages(handlers: Int, goal: Double) -> Comparison {
  Comparison(
    name: "send/handlers/\(handlers)",
    peer: "NotificationCenter blocks",
    goal: goal,
    ours: {
      let (messenger, calls) = (Messenger<Tick>(), Calls())
      let posts = eventDeliveries / handlers
      let tokens = (0..<handlers).map { _ in messenger.observe { _ in calls.add() } }
      defer { withExtendedLifetime(tokens) {} }
      return await nanoseconds(per: handlers * posts) {
        for number in 0..<posts { messenger.send(Tick(number: number)) }
        await calls.reach(handlers * posts)
      }
    },
    theirs: { await postToBlocks(NotificationCenter(), blocks: handlers) }
  )
}

private func postToHandlers(_ bus: EventBus, handlers: Int) async -> Double {
  let (calls, posts) = (Calls(), eventDeliveries / handlers)
  let tokens = (0..<handlers).map { _ in bus.observe(Tick.self) { _ in calls.add() } }
  let result = await nanoseconds(per: handlers * posts) {
    for number in 1..<posts { bus.post(Tick(number: number)) }
    await bus.postAndWait(Tick(number: 0))
  }
  await calls.reach(handlers * posts)
  withExtendedLifetime(tokens) {}
  return result
}

private func postToBlocks(_ center: NotificationCenter, blocks: Int) async -> Double {
  let (calls, posts) = (Calls(), eventDeliveries / blocks)
  let name = Notification.Name("tick")
  let tokens = (0..<blocks).map { _ in
    center.addObserver(forName: name, object: nil, queue: nil) { _ in calls.add() }
  }
  let result = await nanoseconds(per: blocks * posts) {
    for number in 0..<posts { center.post(name: name, object: nil, userInfo: ["number": number]) }
  }
  await calls.reach(blocks * posts)
  for token in tokens { center.removeObserver(token) }
  return result
}

private func asyncHandlers(_ handlers: Int) -> Comparison {
  let posts = asyncDeliveries / handlers
  return Comparison(
    name: "post/async handlers/\(handlers)",
    peer: "NotificationCenter AsyncMessage",
    goal: 1,
    ours: {
      let (bus, calls) = (EventBus(), Calls())
      let tokens = (0..<handlers).map { _ in
        bus.observe(Tick.self) { (_: Tick) async in calls.add() }
      }
      defer { withExtendedLifetime(tokens) {} }
      return await nanoseconds(per: handlers * posts) {
        for number in 1..<posts { bus.post(Tick(number: number)) }
        await bus.postAndWait(Tick(number: 0))
      }
    },
    theirs: {
      let (center, calls) = (NotificationCenter(), Calls())
      let tokens = (0..<handlers).map { _ in
        center.addObserver(of: TickSource.self, for: .tick) { (_: Tick) async in calls.add() }
      }
      defer { withExtendedLifetime(tokens) {} }
      return await nanoseconds(per: handlers * posts) {
        for number in 0..<posts { center.post(Tick(number: number)) }
        await calls.reach(handlers * posts)
      }
    }
  )
}

private func streams(_ streams: Int) -> Comparison {
  let posts = asyncDeliveries / streams
  return Comparison(
    name: "post/streams/\(streams)",
    peer: "NotificationCenter AsyncMessage",
    goal: 1,
    ours: {
      let bus = EventBus()
      let subscriptions = (0..<streams).map { _ in bus.subscription(to: Tick.self) }
      return await read(subscriptions, posts: posts) { bus.post(Tick(number: $0)) }
    },
    theirs: {
      let center = NotificationCenter()
      let sequences = (0..<streams).map { _ in
        center.messages(of: TickSource.self, for: .tick, bufferSize: posts)
      }
      return await read(sequences, posts: posts) { center.post(Tick(number: $0)) }
    }
  )
}

/// Iterates all sequences while the body posts; returns the nanoseconds of a delivery.
///
/// It waits, because the peer's sequences are registered when their iterators are created.
private func read<S: AsyncSequence & Sendable>(
  _ sequences: [S],
  posts: Int,
  _ post: (Int) -> Void
) async -> Double where S.Failure == Never, S.Element: Sendable {
  let ready = Calls()
  return await withTaskGroup(of: Void.self) { group in
    for sequence in sequences {
      group.addTask {
        var iterator = sequence.makeAsyncIterator()
        ready.add()
        for _ in 0..<posts { _ = await iterator.next(isolation: nil) }
      }
    }
    await ready.reach(sequences.count)
    return await nanoseconds(per: sequences.count * posts) {
      for number in 0..<posts { post(number) }
      await group.waitForAll()
    }
  }
}

/// Adds 100,000 handlers of ten other types.
private func addResidents(to bus: EventBus) -> [ObservationToken] {
  func add<E: Event>(_ type: E.Type) -> [ObservationToken] {
    (0..<10_000).map { _ in bus.observe(type) { _ in } }
  }
  return add(Other<Int>.self) + add(Other<Int8>.self) + add(Other<Int16>.self)
    + add(Other<Int32>.self) + add(Other<Int64>.self) + add(Other<UInt>.self)
    + add(Other<UInt8>.self) + add(Other<UInt16>.self) + add(Other<UInt32>.self)
    + add(Other<UInt64>.self)
}

private func residents() -> Comparison {
  Comparison(
    name: "post/100,000 others/10",
    peer: "NotificationCenter blocks",
    goal: 1,
    ours: {
      let bus = EventBus()
      let residents = addResidents(to: bus)
      defer { withExtendedLifetime(residents) {} }
      return await postToHandlers(bus, handlers: 10)
    },
    theirs: {
      let center = NotificationCenter()
      let residents = (0..<100_000).map { number in
        center.addObserver(
          forName: Notification.Name("other \(number % 10)"),
          object: nil,
          queue: nil
        ) { _ in }
      }
      defer { withExtendedLifetime(residents) {} }
      return await postToBlocks(center, blocks: 10)
    }
  )
}

private func residentsAgainstNone() -> Comparison {
  Comparison(
    name: "post/100,000 or none/10",
    peer: "a bus without others",
    goal: 0.8,
    ours: {
      let bus = EventBus()
      let residents = addResidents(to: bus)
      defer { withExtendedLifetime(residents) {} }
      return await postToHandlers(bus, handlers: 10)
    },
    theirs: { await postToHandlers(EventBus(), handlers: 10) }
  )
}

private func keptEvents() -> Comparison {
  let posts = 20_000
  return Comparison(
    name: "post/kept, one by one/10",
    peer: "events that are not kept",
    goal: 0.1,
    ours: {
      let (bus, calls) = (EventBus(), Calls())
      let tokens = (0..<10).map { _ in bus.observe(KeptTick.self) { _ in calls.add() } }
      defer { withExtendedLifetime(tokens) {} }
      return await nanoseconds(per: 10 * posts) {
        for _ in 1..<posts { bus.post(KeptTick()) }
        await bus.postAndWait(KeptTick())
      }
    },
    theirs: { await postToHandlers(EventBus(), handlers: 10) }
  )
}
