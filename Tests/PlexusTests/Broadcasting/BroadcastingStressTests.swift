import Plexus
import TestSupport
import Testing

/// Concurrent senders, readers and cancellations, for the thread sanitizer and for counting.
@Suite(.fewAtOnce, .serialized) struct `Broadcasting stress` {
  /// A message with its sender and its number.
  struct Message: Hashable, Sendable {
    let sender: Int
    let number: Int
    /// Too long for the inline storage, so that every copy is counted.
    let text: String

    init(sender: Int, number: Int) {
      self.sender = sender
      self.number = number
      text = "message \(number) of the sender \(sender)"
    }
  }

  /// The defects in the messages that a reader has received.
  struct Findings: Equatable, Sendable {
    var gaps = 0
    var repetitions = 0
    var reorders = 0

    /// Checks the numbers of each sender; readers that skip can have gaps.
    init(_ messages: [Message], gapsAreAllowed: Bool = false) {
      var last: [Int: Int] = [:]
      for message in messages {
        let expected = (last[message.sender] ?? message.number - 1) + 1
        if message.number > expected, !gapsAreAllowed { gaps += 1 }
        if message.number == expected - 1 { repetitions += 1 }
        if message.number < expected - 1 { reorders += 1 }
        last[message.sender] = message.number
      }
    }

    init() {}
  }

  let senders = 4
  let messagesEach = 1500

  func sendAll(to messenger: Messenger<Message>) async {
    await withTaskGroup { group in
      for sender in 0..<senders {
        group.addTask {
          for number in 0..<messagesEach {
            messenger.send(Message(sender: sender, number: number))
            if number % 100 == sender { await Task.detached {}.value }
          }
        }
      }
    }
  }

  @Test(.guarantee(.millionsOfDeliveriesLoseNothing))
  func `stress: every reader sees everything once and in one order`() async {
    let messenger = Messenger<Message>()
    let readers = (0..<6).map { index in
      Task { [stream = messenger.subscribe(), subscription = messenger.subscription()] in
        index % 2 == 0 ? await stream.all() : await subscription.all()
      }
    }
    await sendAll(to: messenger)
    messenger.finish()
    var lists: Set<[Message]> = []
    for reader in readers { lists.insert(await reader.value) }
    #expect(lists.count == 1)
    let list = lists.first ?? []
    #expect(list.count == senders * messagesEach)
    #expect(Findings(list) == Findings())
  }

  @Test func `stress: readers that skip never go back, and account for every message`() async {
    let messenger = Messenger<Message>()
    let policies: [Policy] = [
      .newest(1), .newest(7), .newest(0), .oldest(0), .oldest(1), .oldest(9),
    ]
    let subscriptions = policies.map { messenger.subscription(bufferingPolicy: $0()) }
    let readers = subscriptions.map { subscription in Task { await subscription.all() } }
    await sendAll(to: messenger)
    messenger.finish()
    for (reader, subscription) in zip(readers, subscriptions) {
      let list = await reader.value
      #expect(Findings(list, gapsAreAllowed: true) == Findings())
      #expect(list.count + subscription.droppedCount == senders * messagesEach)
    }
  }

  @Test func `stress: readers join and leave at any time and miss nothing in between`() async {
    let messenger = Messenger<Message>()
    let guest = Task {
      var random = SeededRandom(seed: 7)
      var visits = 0
      while messenger.subscriberCount > 0 {
        let policy = [Policy.unbounded, .newest(5), .oldest(5)].randomElement(using: &random)
        let subscription = messenger.subscription(bufferingPolicy: (policy ?? .unbounded)())
        let list = await subscription.first(.random(in: 0..<40, using: &random))
        let isLossless = subscription.droppedCount == 0
        #expect(Findings(list, gapsAreAllowed: !isLossless) == Findings())
        visits += 1
      }
      return visits
    }
    let everything = messenger.subscription()
    let host = Task { await everything.all() }
    await sendAll(to: messenger)
    messenger.finish()
    #expect(Findings(await host.value) == Findings())
    _ = await guest.value
    #expect(messenger.subscriberCount == 0)
  }

  @Test(.guarantee(.droppedStreamsUnsubscribe), arguments: [UInt64(1), 2, 3])
  func `stress: cancellation at any time ends every loop and leaves no subscriber behind`(
    seed: UInt64
  ) async {
    let messenger = Messenger<Message>()
    var random = SeededRandom(seed: seed)
    let sending = Task { await sendAll(to: messenger) }
    for _ in 0..<200 {
      let policy = [Policy.unbounded, .newest(1), .newest(3), .oldest(2), .newest(0)]
        .randomElement(using: &random)
      let subscription = messenger.subscription(bufferingPolicy: (policy ?? .unbounded)())
      let task = Task { await subscription.all() }
      for _ in 0..<Int.random(in: 0..<4, using: &random) { await Task.detached {}.value }
      // The count can be read at any time.
      _ = (subscription.droppedCount, messenger.subscriberCount)
      task.cancel()
      _ = subscription.droppedCount
      let list = await task.value
      let isLossless = subscription.droppedCount == 0
      #expect(Findings(list, gapsAreAllowed: !isLossless) == Findings())
    }
    await sending.value
    #expect(messenger.subscriberCount == 0)
  }

  @Test func `stress: handlers see everything once, in one order, until they are cancelled`() async
  {
    let messenger = Messenger<Message>()
    let logs = (0..<4).map { _ in Log<Message>() }
    let bag = ObservationBag()
    let host = HandlerHost()
    for (index, log) in logs.enumerated() {
      let token = await host.observe(messenger, policy: .unbounded, isAsync: index == 3) {
        log.append($0)
      }
      token.store(in: bag)
    }
    let fickle = Task {
      for number in 0..<200 {
        let log = Log<Message>()
        let token = await host.observe(messenger, policy: .unbounded, isAsync: number % 2 == 0) {
          log.append($0)
        }
        await Task.detached {}.value
        token.cancel()
        #expect(Findings(log.entries) == Findings())
      }
    }
    await sendAll(to: messenger)
    await fickle.value
    for log in logs { await log.first(senders * messagesEach) }
    #expect(Set(logs.map(\.entries)).count == 1)
    #expect(Findings(logs[0].entries) == Findings())
    bag.cancelAll()
    #expect(messenger.subscriberCount == 0)
  }

  @Test func `stress: states are seen in one order while they change, load and are reset`() async {
    let publisher = DataPublisher<Int>()
    let all = publisher.subscription(bufferingPolicy: .unbounded)
    let updates = Task {
      var updates: [Int] = []
      var previous: Int?
      for await state in all {
        // What a reset skips ends with a state that holds nothing.
        if case .loading(let kept) = state { #expect(kept == previous) }
        if case .loaded(let value) = state, value < 10_000 { updates.append(value) }
        previous = state.value
        if updates.last == -1 { break }
      }
      return updates
    }
    await withTaskGroup { group in
      group.addTask { for value in 0..<2000 { publisher.update(value) } }
      group.addTask { for _ in 0..<300 { publisher.reset() } }
      group.addTask {
        for value in 0..<200 {
          let load = Task { try await publisher.load { 10_000 + value } }
          if value % 3 == 0 { load.cancel() }
          _ = await load.result
        }
      }
      for _ in 0..<3 {
        group.addTask {
          for _ in 0..<200 {
            let subscription = publisher.subscription()
            #expect(await subscription.first(1).count == 1)
          }
        }
      }
    }
    publisher.reset()
    publisher.update(-1)
    let seen = await updates.value.dropLast()
    #expect(Array(seen) == Set(seen).sorted())
    #expect(publisher.subscriberCount == 1)
  }

  @Test(.guarantee(.finishedSourcesReleaseLateHandlers))
  func `stress: the last reference can be released while all others are busy`() async {
    for round in 0..<200 {
      var messenger: Messenger<Message>? = Messenger()
      let subscriptions = [Policy.unbounded, .newest(2), .oldest(2)].map {
        messenger?.subscription(bufferingPolicy: $0())
      }
      let readers = subscriptions.map { subscription in
        Task { [subscription] in await subscription?.all() ?? [] }
      }
      let sender = Task { [messenger] in
        for number in 0..<50 { messenger?.send(Message(sender: round, number: number)) }
      }
      readers[round % 3].cancel()
      messenger = nil
      await sender.value
      for reader in readers {
        #expect(Findings(await reader.value, gapsAreAllowed: true) == Findings())
      }
    }
  }
}
