import Plexus
import PlexusTesting
import TestSupport
import Testing

extension `Every order of jobs` {
  @Suite(.serialized)
  struct `Following and waiting for subscribers, in every order` {
    @Test(.guarantee(.subscriberCountsYieldEveryChange))
    func `waiting for a subscriber ends, whatever else subscribes and leaves`() throws {
      try forEveryInterleaving(deviations: 3) {
        let messenger = Messenger<Int>()
        let waiters = (0..<2).map { _ in Task { try await messenger.waitForSubscriber() } }
        let visitor = Task { _ = messenger.subscription() }
        let guest = Task { messenger.subscription() }
        for waiter in waiters { try await waiter.value }
        await visitor.value
        let subscription = await guest.value
        try Wrong.unless(messenger.subscriberCount == 1, "\(messenger.subscriberCount)")
        withExtendedLifetime(subscription) {}
      }
    }

    @Test func `a vain wait throws, whether cancelled or at the end`() throws {
      try forEveryInterleaving(deviations: 5) {
        let messenger = Messenger<Int>()
        let doomed = Task { try await messenger.waitForSubscriber() }
        let other = Task { try await messenger.waitForSubscriber() }
        let canceller = Task { doomed.cancel() }
        let finisher = Task { messenger.finish() }
        guard case .failure(let end) = await other.result, end is BroadcastError else {
          throw Wrong(what: "there was nobody")
        }
        await canceller.value
        await finisher.value
        guard case .failure(let error) = await doomed.result else {
          throw Wrong(what: "there was nobody")
        }
        try Wrong.unless(error is CancellationError || error is BroadcastError, "\(error)")
      }
    }

    @Test func `the numbers of subscribers are reported one by one`() throws {
      try forEveryInterleaving(deviations: 5) {
        let messenger = Messenger<Int>()
        let counts = messenger.subscriberCounts()
        let reader = Task {
          var numbers: [Int] = []
          for await count in counts { numbers.append(count) }
          return numbers
        }
        let visitors = (0..<2).map { _ in
          Task {
            let subscription = messenger.subscription()
            await hop()
            withExtendedLifetime(subscription) {}
          }
        }
        for visitor in visitors { await visitor.value }
        messenger.finish()
        let numbers = await reader.value
        try Wrong.unless([[0, 1, 2, 1, 0], [0, 1, 0, 1, 0]].contains(numbers), "\(numbers)")
      }
    }

    @Test func `a wait for a subscriber ends when a state consumer follows`() throws {
      try forEveryInterleaving(deviations: 4) {
        let publisher = DataPublisher<Int>()
        let consumer = StateConsumer<LoadState<Int>>()
        let waiter = Task { try await publisher.waitForSubscriber() }
        let follower = Task { consumer.follow(publisher) }
        try await waiter.value
        await follower.value
        try Wrong.unless(publisher.subscriberCount == 1, "\(publisher.subscriberCount)")
      }
    }

    @Test func `a followed sequence is released with the owner, and delivers what was sent`()
      throws
    {
      try forEveryInterleaving(deviations: Effort.deviations(4)) {
        let source = Messenger<Int>()
        var publisher: DataPublisher<Int>? = DataPublisher()
        weak let weakPublisher = publisher
        let states = publisher?.subscription(bufferingPolicy: .unbounded)
        publisher?.follow(source.subscription())
        let reader = Task {
          var values: [Int] = []
          if let states { for await state in states { values += state.value.map { [$0] } ?? [] } }
          return values
        }
        let sender = Task {
          source.send(1)
          await hop()
          source.send(2)
        }
        let owner = Task { [publisher] in
          await hop()
          withExtendedLifetime(publisher) {}
        }
        publisher = nil
        await owner.value
        await sender.value
        let values = await reader.value
        try Wrong.unless([[], [1], [1, 2]].contains(values), "\(values)")
        for await count in source.subscriberCounts() where count == 0 { break }
        try Wrong.unless(weakPublisher == nil, "the publisher is still there")
      }
    }
  }
}
