import Plexus
import PlexusTesting
import TestSupport
import Testing

extension `Every order of jobs` {
  @Suite(.serialized)
  struct `Broadcasting, in every order` {
    /// The ways in which a loop reads.
    enum Way: CaseIterable {
      case unbounded
      case stream
      case newest
      case none
      case oldest

      var policy: BufferingPolicy<Int> {
        switch self {
        case .unbounded, .stream: .unbounded
        case .newest: .bufferingNewest(1)
        case .none: .bufferingNewest(0)
        case .oldest: .bufferingOldest(1)
        }
      }

      var losesNothing: Bool { self == .unbounded || self == .stream }

      /// Starts a loop that reads until the end.
      func read(_ messenger: Messenger<Int>) -> Task<[Int], Never> {
        if self == .stream {
          let stream = messenger.subscribe()
          return Task { await stream.reduce(into: []) { $0.append($1) } }
        }
        let subscription = messenger.subscription(bufferingPolicy: policy)
        return Task {
          var numbers: [Int] = []
          for await number in subscription { numbers.append(number) }
          return numbers
        }
      }
    }

    @Test(.guarantee(.cancelledLoopsEnd), arguments: Way.allCases)
    func `a cancelled loop ends at any time, and delays no other loop`(way: Way) throws {
      try forEveryInterleaving(deviations: Effort.deviations(4)) {
        let messenger = Messenger<Int>()
        let doomed = way.read(messenger)
        let other = way.read(messenger)
        let sender = Task {
          messenger.send(1)
          await hop()
          messenger.send(2)
        }
        let canceller = Task { doomed.cancel() }
        await canceller.value
        let seen = await doomed.value
        try Wrong.unless(messenger.subscriberCount == 1, "the cancelled loop is still subscribed")
        await sender.value
        messenger.send(3)
        messenger.finish()
        let all = await other.value
        try Wrong.unless(seen == seen.sorted() && seen.allSatisfy { $0 < 3 }, "\(seen)")
        if way.losesNothing {
          try Wrong.unless([1, 2].starts(with: seen), "\(seen)")
          try Wrong.unless(all == [1, 2, 3], "\(all)")
        } else {
          try Wrong.unless(Set(all).count == all.count && all == all.sorted(), "\(all)")
        }
      }
    }

    /// An element that runs a closure when it is released.
    final class Parcel: Sendable {
      let onRelease: @Sendable () -> Void

      init(_ onRelease: @escaping @Sendable () -> Void = {}) {
        self.onRelease = onRelease
      }

      deinit { onRelease() }
    }

    // A loop releases the elements that it has read when it is about to wait; the last of the sixteen elements of a
    // chunk releases the others.
    @Test func `a loop that is cancelled by a value that it releases before it waits ends`() throws
    {
      try forEveryInterleaving {
        let messenger = Messenger<Parcel>()
        let subscription = messenger.subscription()
        let loop = Task { await subscription.reduce(into: 0) { count, _ in count += 1 } }
        for _ in 0..<16 { messenger.send(Parcel { withUnsafeCurrentTask { $0?.cancel() } }) }
        let count = await loop.value
        try Wrong.unless(count == 16, "\(count) elements")
      }
    }

    @Test func `a loop that is sent an element by a value that it releases does not wait`() throws {
      try forEveryInterleaving {
        let messenger = Messenger<Parcel>()
        let subscription = messenger.subscription()
        let loop = Task {
          var count = 0
          for await _ in subscription {
            count += 1
            if count == 17 { break }
          }
          return count
        }
        messenger.send(Parcel { messenger.send(Parcel()) })
        for _ in 1..<16 { messenger.send(Parcel()) }
        let count = await loop.value
        try Wrong.unless(count == 17, "\(count) elements")
      }
    }

    @Test(.guarantee(.finishedMessengersEndTheirStreams), arguments: Way.allCases)
    func `finish follows what was sent before, and wakes all subscribers`(way: Way) throws {
      try forEveryInterleaving(deviations: Effort.deviations(3)) {
        let messenger = Messenger<Int>()
        let readers = [way.read(messenger), way.read(messenger)]
        let sender = Task {
          messenger.send(1)
          await hop()
          messenger.send(2)
          return messenger.subscriberCount
        }
        let finisher = Task {
          await hop()
          messenger.finish()
        }
        await finisher.value
        let isOpen = await sender.value
        try Wrong.unless(isOpen == 0 || isOpen == 2, "\(isOpen) are subscribed")
        for reader in readers {
          let seen = await reader.value
          try Wrong.unless(seen == seen.sorted(), "\(seen)")
          if way.losesNothing { try Wrong.unless([1, 2].starts(with: seen), "\(seen)") }
          if way.losesNothing, isOpen == 2 { try Wrong.unless(seen == [1, 2], "\(seen)") }
        }
      }
    }

    @Test(arguments: Way.allCases)
    func `the release of a messenger ends its loops, also during a send`(way: Way) throws {
      try forEveryInterleaving(deviations: Effort.deviations(6)) {
        var messenger: Messenger<Int>? = Messenger()
        let readers = [messenger.map(way.read), messenger.map(way.read)]
        let sender = Task { [messenger] in
          messenger?.send(1)
          await hop()
          messenger?.send(2)
        }
        let canceller = Task { readers[0]?.cancel() }
        messenger = nil
        await sender.value
        await canceller.value
        let seen = await readers[1]?.value
        if way.losesNothing { try Wrong.unless(seen == [1, 2], "\(seen ?? [])") }
        _ = await readers[0]?.value
      }
    }

    @Test(.guarantee(.allSubscribersSeeOneOrder)) func `two senders are seen in one order by all`()
      throws
    {
      try forEveryInterleaving(deviations: Effort.deviations(3)) {
        let messenger = Messenger<Int>()
        let readers = [Way.unbounded.read(messenger), Way.stream.read(messenger)]
        let senders = [10, 20].map { first in
          Task {
            messenger.send(first)
            await hop()
            messenger.send(first + 1)
          }
        }
        for sender in senders { await sender.value }
        messenger.finish()
        let seen = await readers[0].value
        let same = await readers[1].value
        try Wrong.unless(seen == same, "\(seen) and \(same)")
        try Wrong.unless(seen.filter { $0 < 20 } == [10, 11], "\(seen)")
        try Wrong.unless(seen.filter { $0 >= 20 } == [20, 21], "\(seen)")
      }
    }

    @Test(.guarantee(.copiesShareOnePosition))
    func `a loop that is left and continued elsewhere loses nothing`() throws {
      try forEveryInterleaving {
        let messenger = Messenger<Int>()
        let subscription = messenger.subscription()
        let sender = Task {
          for number in 1...3 {
            messenger.send(number)
            await hop()
          }
          messenger.finish()
        }
        var seen = await Task {
          var seen: [Int] = []
          for await number in subscription {
            seen.append(number)
            if number == 2 { break }
          }
          return seen
        }.value
        for await number in subscription { seen.append(number) }
        await sender.value
        try Wrong.unless(seen == [1, 2, 3], "\(seen)")
      }
    }

    /// An actor with handlers of both kinds.
    actor Host {
      private(set) var seen: [Int] = []

      func observe(_ messenger: Messenger<Int>, isAsync: Bool) -> ObservationToken {
        isAsync
          ? messenger.observe { (number: Int) async in self.seen.append(number) }
          : messenger.observe { (number: Int) in self.seen.append(number) }
      }

      /// Cancels on the handler's own actor.
      func cancel(_ token: ObservationToken) -> [Int] {
        token.cancel()
        return seen
      }
    }

    @Test(.guarantee(.handlersDoNotStartAfterCancellation), arguments: [false, true])
    func `no handler starts after it was cancelled on its own actor`(isAsync: Bool) throws {
      try forEveryInterleaving {
        let messenger = Messenger<Int>()
        let host = Host()
        let token = await host.observe(messenger, isAsync: isAsync)
        let sender = Task {
          messenger.send(1)
          await hop()
          messenger.send(2)
        }
        let canceller = Task { await host.cancel(token) }
        let seen = await canceller.value
        await sender.value
        for _ in 0..<3 { await hop() }
        let later = await host.seen
        try Wrong.unless(seen == later, "\(later) instead of \(seen)")
        try Wrong.unless(later == Array([1, 2].prefix(later.count)), "\(later)")
        try Wrong.unless(messenger.subscriberCount == 0, "it is still subscribed")
      }
    }

    @Test(.guarantee(.suspendedReadersKeepSubscriptionOrder), arguments: [false, true])
    func `a handler that follows another one on the same actor misses nothing`(isAsync: Bool) throws
    {
      try forEveryInterleaving(deviations: 4) {
        let messenger = Messenger<Int>()
        let host = Host()
        let other = Host()
        let first = await host.observe(messenger, isAsync: isAsync)
        let canceller = Task { first.cancel() }
        messenger.send(1)
        // The task of the first can be about to end.
        let second = await host.observe(messenger, isAsync: isAsync)
        let witness = await other.observe(messenger, isAsync: isAsync)
        messenger.send(2)
        await canceller.value
        messenger.send(3)
        messenger.finish()
        while await host.seen.suffix(1) != [3] { await hop() }
        while await other.seen.count < 2 { await hop() }
        let seen = await host.seen
        try Wrong.unless(seen.filter { $0 == 3 }.count == 1, "\(seen)")
        try Wrong.unless(seen.filter { $0 == 2 }.count >= 1, "\(seen)")
        try Wrong.unless(await other.seen == [2, 3], "the witness")
        withExtendedLifetime((second, witness)) {}
      }
    }

    @Test(.guarantee(.tokensAndOwnersReleaseHandlers))
    func `a released owner is not called again, and its handler is removed`() throws {
      try forEveryInterleaving {
        let messenger = Messenger<Int>()
        let calls = Messenger<Int>()
        let called = Way.unbounded.read(calls)
        var owner: Owner? = Owner()
        if let owner { messenger.observe(as: owner) { _, number in calls.send(number) } }
        let sender = Task {
          messenger.send(1)
          await hop()
          messenger.send(2)
        }
        await hop()
        owner = nil
        messenger.send(3)
        await sender.value
        messenger.send(4)
        while messenger.subscriberCount > 0 { await hop() }
        calls.finish()
        let seen = await called.value
        try Wrong.unless(!seen.contains(4) && seen == seen.sorted(), "\(seen)")
      }
    }

    @Test(
      .guarantee(.suspendedReadersKeepSubscriptionOrder),
      arguments: [
        BufferingPolicy<Int>.bufferingOldest(2), .bufferingNewest(2), .bufferingNewest(100),
        .unbounded,
      ]
    )
    func `a handler is served before a loop that came later`(
      policy: BufferingPolicy<Int>
    ) throws {
      // First in, first out: a task that is resumed first continues first.
      try forEveryInterleaving(deviations: 0) {
        let (messenger, log) = (Messenger<Int>(), Journal())
        let token = messenger.observe { (number: Int) in log.append("\(number) at handler") }
        let subscription = messenger.subscription(bufferingPolicy: policy)
        let loop = Task {
          for await number in subscription { log.append("\(number) at loop") }
        }
        for number in 0..<4 {
          // Both are waiting by then.
          for _ in 0..<5 { await hop() }
          messenger.send(number)
        }
        messenger.finish()
        await loop.value
        for _ in 0..<5 { await hop() }
        let expected = (0..<4).flatMap { ["\($0) at handler", "\($0) at loop"] }
        try Wrong.unless(log.entries == expected, "\(log.entries)")
        withExtendedLifetime(token) {}
      }
    }
  }
}
