import Plexus
import PlexusTesting
import TestSupport
import Testing

extension `Every order of jobs` {
  @Suite(.serialized)
  struct `Values and views, in every order` {
    /// Reads elements until the end.
    static func read<Element: Sendable>(
      _ source: some Broadcaster<Element>
    ) -> Task<[Element], Never> {
      Task {
        let subscription = source.subscription(bufferingPolicy: .unbounded)
        var seen: [Element] = []
        for await element in subscription { seen.append(element) }
        return seen
      }
    }

    @Test(.guarantee(.valuesHoldInEveryOrder))
    func `updates, reads and subscriptions see one history of a value`() throws {
      try forEveryInterleaving(deviations: Effort.deviations(4)) {
        let value = CurrentValue(0)
        let writers = [1, 10].map { step in
          Task {
            for _ in 0..<2 {
              let own = value.update { number in
                number += step
                return number
              }
              try Wrong.unless(value.value >= own, "an update was lost")
              await hop()
            }
          }
        }
        let readers = [Self.read(value), Self.read(value.map { $0 })]
        for writer in writers { try await writer.value }
        let last = value.value
        value.finish()
        try Wrong.unless(last == 22, "\(last)")
        for reader in readers {
          let seen = await reader.value
          try Wrong.unless(seen.last == 22, "\(seen)")
          let steps = zip(seen, seen.dropFirst()).map { $1 - $0 }
          try Wrong.unless(steps.allSatisfy { $0 == 1 || $0 == 10 }, "\(seen)")
        }
      }
    }

    @Test(.guarantee(.partsAreCombinedConsistently))
    func `a combination is consistent while others set, subscribe and drop`() throws {
      try forEveryInterleaving(deviations: Effort.deviations(4)) {
        let (value, other) = (CurrentValue(0), CurrentValue(0))
        let sum = combine(value.select { $0 }, value.map { $0 }, other) { part, map, other in
          part == map ? part + other : -100
        }
        let writers = [value, other].map { source in
          Task {
            for _ in 0..<2 {
              source.update { $0 += source === value ? 1 : 10 }
              await hop()
            }
          }
        }
        let reader = Self.read(sum)
        let dropping = Task {
          let subscription = sum.subscription(bufferingPolicy: .unbounded)
          await hop()
          withExtendedLifetime(subscription) {}
        }
        for writer in writers { await writer.value }
        await dropping.value
        try Wrong.unless(sum.current == 22, "\(sum.current)")
        value.finish()
        other.finish()
        let seen = await reader.value
        try Wrong.unless(seen.last == 22, "\(seen)")
        let steps = zip(seen, seen.dropFirst()).map { $1 - $0 }
        try Wrong.unless(steps.allSatisfy { $0 == 1 || $0 == 10 }, "\(seen)")
      }
    }

    @Test(.guarantee(.valuesHoldInEveryOrder))
    func `a part is right while others dispatch, subscribe and drop`() throws {
      try forEveryInterleaving(deviations: Effort.deviations(4)) {
        var store: Store<Int, Int>? = Store(0) { $0 += $1 }
        guard let part = store?.select({ $0 / 2 }) else { return }
        let dropping = (0..<2).map { _ in
          Task {
            let subscription = part.subscription(bufferingPolicy: .unbounded)
            await hop()
            withExtendedLifetime(subscription) {}
          }
        }
        let reader = Task { [part] in
          var seen: [Int] = []
          for await number in part.subscription(bufferingPolicy: .unbounded) {
            seen.append(number)
            if number == 2 { break }
          }
          return seen
        }
        let sender = Task { [store] in
          for _ in 0..<4 {
            store?.dispatch(1)
            let (state, current) = (store?.state ?? 0, part.current)
            try Wrong.unless(current == state / 2, "\(current) of \(state)")
            await hop()
          }
        }
        try await sender.value
        for task in dropping { await task.value }
        let seen = await reader.value
        try Wrong.unless([[0, 1, 2], [1, 2], [2]].contains(seen), "\(seen)")
        try Wrong.unless(part.subscriberCount == 0, "a subscriber is left")
        try Wrong.unless(store?.subscriberCount == 0, "the part is still subscribed")
        store = nil
      }
    }

    @Test func `a new subscriber begins no earlier than current, and misses nothing`() throws {
      try forEveryInterleaving(deviations: Effort.deviations(3)) {
        let value = CurrentValue(0)
        let part = value.select { $0 }
        let views: [any Broadcaster<Int>] = [part, part.map { $0 }, part.map { $0 }.map { $0 }]
        let writer = Task {
          for _ in 0..<3 {
            value.update { $0 += 1 }
            await hop()
          }
        }
        let readers = views.map { view in
          Task {
            let current = part.current
            let subscription = view.subscription(bufferingPolicy: .unbounded)
            var seen: [Int] = []
            for await number in subscription {
              if seen.isEmpty {
                try Wrong.unless(number >= current, "\(number) after \(current)")
              }
              seen.append(number)
            }
            try Wrong.unless(seen == Array((seen.first ?? 9)...3), "\(seen)")
          }
        }
        await writer.value
        await hop()
        value.finish()
        for reader in readers { try await reader.value }
      }
    }

    @Test(.guarantee(.partsAreNeverBehind))
    func `a part of one key path is one history through all its temporaries`() throws {
      try forEveryInterleaving(deviations: Effort.deviations(3)) {
        let store = Store<[Int], Int>([0]) { $0[0] += $1 }
        let readers = (0..<2).map { _ in
          Task {
            let part = store.select(\.[0])
            var seen: [Int] = []
            for await number in part.subscription(bufferingPolicy: .unbounded) {
              try Wrong.unless(part.current >= number, "\(part.current) is behind \(number)")
              seen.append(number)
              if number == 3 { break }
            }
            return seen
          }
        }
        let sender = Task {
          for _ in 0..<3 {
            store.dispatch(1)
            try Wrong.unless(store.select(\.[0]).current == store.state[0], "it is behind")
            await hop()
          }
        }
        try await sender.value
        for reader in readers {
          let seen = try await reader.value
          try Wrong.unless(seen == Array((seen.first ?? 9)...3), "\(seen)")
        }
        try Wrong.unless(store.subscriberCount == 0, "a part is still subscribed")
      }
    }

    @Test(.guarantee(.nothingRunsWithoutLiveSubscriptions))
    func `the last live subscription leaves nothing behind, whenever a signal comes`() throws {
      try forEveryInterleaving(deviations: Effort.deviations(3)) {
        let cache = Multiplexer<Int> {
          await hop()
          return 1
        }
        let signals = Messenger<Void>()
        let leaving = Task {
          let states = cache.subscription(refetching: .on(signals.subscription()))
          await hop()
          withExtendedLifetime(states) {}
        }
        let sending = Task { signals.send() }
        await leaving.value
        await sending.value
        while signals.subscriberCount > 0 || cache.current.isLoading { await hop() }
        try Wrong.unless(cache.subscriberCount == 0, "a subscriber is left")
        let fetches = cache.statistics.fetches
        signals.send()
        cache.refresh()
        await hop()
        try Wrong.unless(cache.statistics.fetches == fetches, "something is still fetched")
        let value = try await cache.request()
        try Wrong.unless(value == 1, "\(value)")
      }
    }
  }
}
