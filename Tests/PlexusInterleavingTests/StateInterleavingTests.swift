import Plexus
import PlexusTesting
import TestSupport
import Testing

extension `Every order of jobs` {
  @Suite(.serialized)
  struct `Stores, in every order` {
    /// Reads numbers until the end.
    static func read(_ changes: Subscription<Change<Int>>) -> Task<[Change<Int>], Never> {
      Task {
        var seen: [Change<Int>] = []
        for await change in changes { seen.append(change) }
        return seen
      }
    }

    /// Middleware whose effect adds ten to every number below ten.
    static let addingTen = Middleware<[Int], Int> { action, context, next in
      next(action)
      guard action < 10 else { return }
      context.run {
        await hop()
        context.dispatch(action + 10)
      }
    }

    @Test(.guarantee(.dispatchAndWaitIncludesEffects))
    func `dispatchAndWait returns after the effects, whatever others dispatch`() throws {
      try forEveryInterleaving(deviations: 4) {
        let store = Store<[Int], Int>([], middleware: [Self.addingTen]) { $0.append($1) }
        let callers = [1, 2].map { number in
          Task {
            await store.dispatchAndWait(number)
            let state = store.state
            try Wrong.unless(state.contains(number), "\(number) was not reduced: \(state)")
            try Wrong.unless(state.contains(number + 10), "the effect is not over: \(state)")
          }
        }
        for caller in callers { try await caller.value }
        try Wrong.unless(store.state.sorted() == [1, 2, 11, 12], "\(store.state)")
      }
    }

    @Test func `a caller that waits is cancelled without harm to the effect or others`() throws {
      try forEveryInterleaving(deviations: 4) {
        let store = Store<[Int], Int>([], middleware: [Self.addingTen]) { $0.append($1) }
        let doomed = Task { await store.dispatchAndWait(1) }
        let other = Task {
          await store.dispatchAndWait(2)
          return store.state
        }
        let canceller = Task { doomed.cancel() }
        await canceller.value
        await doomed.value
        let state = await other.value
        try Wrong.unless(state.contains(12), "\(state)")
        while !store.state.contains(11) { await hop() }
      }
    }

    @Test(.guarantee(.storesEndTheirStreams))
    func `the release of a store cancels its effects and ends its streams`() throws {
      try forEveryInterleaving(deviations: 4) {
        let ends = Messenger<Bool>()
        let ended = ends.subscription()
        let middleware = Middleware<Int, Int> { action, context, next in
          next(action)
          context.run {
            while !Task.isCancelled { await hop() }
            context.dispatch(100)
            ends.send(context.state < 100)
          }
        }
        var store: Store<Int, Int>? = Store(0, middleware: [middleware]) { $0 += $1 }
        guard let changes = store?.subscription(toChangesOf: { $0 }) else { return }
        let loop = Self.read(changes)
        let sender = Task { [store] in
          store?.dispatch(1)
          await hop()
          store?.dispatch(2)
        }
        store = nil
        let seen = await loop.value
        await sender.value
        try Wrong.unless(seen.map(\.new) == [0, 1, 3], "\(seen)")
        var iterator = ended.makeAsyncIterator()
        for _ in 0..<2 {
          let isIgnored = await iterator.next()
          try Wrong.unless(isIgnored == true, "an action was carried out after the end")
        }
      }
    }

    @Test(.guarantee(.changesAreReal))
    func `changes form a chain from the subscription to the end`() throws {
      try forEveryInterleaving(deviations: Effort.deviations(4)) {
        var store: Store<Int, Int>? = Store(0) { $0 += $1 }
        let senders = [1, 10].map { number in
          Task { [store] in
            for _ in 0..<2 {
              store?.dispatch(number)
              await hop()
              store?.dispatch(0)
            }
          }
        }
        let readers = (0..<2).map { index in
          Task { [store] in
            guard let store else { return [Change<Int>]() }
            let changes =
              index == 0
              ? store.subscription(toChangesOf: \.self) : store.subscription(toChangesOf: { $0 })
            return await Self.read(changes, first: 1)
          }
        }
        for reader in readers {
          let seen = await reader.value
          try Wrong.unless(seen.count == 1 && seen[0].old == nil, "\(seen)")
        }
        guard let all = store?.subscription(toChangesOf: \.self) else { return }
        for sender in senders { await sender.value }
        let final = store?.state
        store = nil
        let seen = await Self.read(all).value
        try Wrong.unless(seen.first?.old == nil && seen.last?.new == final, "\(seen)")
        for (before, after) in zip(seen, seen.dropFirst()) {
          try Wrong.unless(after.old == before.new && after.old != after.new, "\(seen)")
        }
      }
    }

    /// Reads a number of changes.
    static func read(
      _ changes: Subscription<Change<Int>>,
      first count: Int
    ) async -> [Change<Int>] {
      var seen: [Change<Int>] = []
      for await change in changes {
        seen.append(change)
        if seen.count == count { break }
      }
      return seen
    }

    @Test func `a cancelled loop over changes leaves, without affecting the others`()
      throws
    {
      try forEveryInterleaving(deviations: 4) {
        var store: Store<Int, Int>? = Store(0) { $0 += $1 }
        guard let first = store?.subscription(toChangesOf: \.self),
          let second = store?.subscription(toChangesOf: \.self)
        else { return }
        let doomed = Self.read(first)
        let other = Self.read(second)
        let sender = Task { [store] in
          store?.dispatch(1)
          await hop()
          store?.dispatch(1)
        }
        let canceller = Task { doomed.cancel() }
        await canceller.value
        _ = await doomed.value
        try Wrong.unless(store?.subscriberCount == 1, "the cancelled loop is still subscribed")
        await sender.value
        store = nil
        let seen = await other.value
        try Wrong.unless(seen.map(\.new) == [0, 1, 2], "\(seen)")
      }
    }

    /// An actor with closures of both kinds.
    actor Host {
      private(set) var seen: [Int] = []

      func add(to consumer: StateConsumer<Int>, isAsync: Bool, in bag: ObservationBag) {
        if isAsync {
          consumer.add(\.self, in: bag) { _, new async in self.seen.append(new) }
        } else {
          consumer.add(\.self, in: bag) { _, new in self.seen.append(new) }
        }
      }

      /// Cancels on the closure's own actor.
      func empty(_ bag: ObservationBag) -> [Int] {
        bag.cancelAll()
        return seen
      }
    }

    @Test(.guarantee(.cancelledBagsStartNoClosure), arguments: [false, true])
    func `no closure of a consumer starts after its bag was cancelled on its actor`(
      isAsync: Bool
    ) throws {
      try forEveryInterleaving {
        let consumer = StateConsumer<Int>()
        let bag = ObservationBag()
        let host = Host()
        await host.add(to: consumer, isAsync: isAsync, in: bag)
        let sourceTask = Task {
          consumer.consume(1)
          await hop()
          consumer.consume(2)
        }
        let canceller = Task { await host.empty(bag) }
        let seen = await canceller.value
        await sourceTask.value
        for _ in 0..<3 { await hop() }
        let later = await host.seen
        try Wrong.unless(seen == later, "\(later) instead of \(seen)")
        try Wrong.unless([1, 2].starts(with: later), "\(later)")
        try Wrong.unless(bag.count == 0, "the bag still counts it")
      }
    }

    @Test(arguments: [false, true])
    func `a closure that follows another one on its actor misses nothing`(isAsync: Bool) throws {
      try forEveryInterleaving(deviations: 4) {
        let consumer = StateConsumer<Int>()
        let (bag, kept) = (ObservationBag(), ObservationBag())
        let host = Host()
        await host.add(to: consumer, isAsync: isAsync, in: bag)
        let canceller = Task { bag.cancelAll() }
        consumer.consume(1)
        // The task of the first can be about to end.
        await host.add(to: consumer, isAsync: isAsync, in: kept)
        consumer.consume(2)
        await canceller.value
        consumer.consume(3)
        while await host.seen.suffix(1) != [3] { await hop() }
        let seen = await host.seen
        try Wrong.unless(seen.filter { $0 == 3 }.count == 1, "\(seen)")
        try Wrong.unless((1...2).contains(seen.filter { $0 == 2 }.count), "\(seen)")
        kept.cancelAll()
      }
    }

    @Test(.guarantee(.pagesKeepTheirStore))
    func `a page that is released while its app is busy ends its streams`() throws {
      try forEveryInterleaving(deviations: Effort.deviations(4)) {
        let app = Store<Int, Int>(0) { $0 += $1 }
        var page: PageStore<Int, Int, Int, Int>? = app.page({ $0 }, reducer: { $0 += $1 })
        guard let states = page?.subscription(bufferingPolicy: .unbounded),
          let changes = page?.subscription(toChangesOfApp: \.self)
        else { return }
        let sums = Task {
          var sums: [Int] = []
          for await (app, page) in states { sums.append(app + page) }
          return sums
        }
        let numbers = Self.read(changes)
        let sender = Task {
          app.dispatch(1)
          await hop()
          app.dispatch(1)
        }
        let user = Task { [page] in
          page?.dispatch(1)
          await hop()
          page?.dispatch(1)
        }
        page = nil
        let seen = await sums.value
        let ofApp = await numbers.value
        await sender.value
        await user.value
        try Wrong.unless(seen == Array(0..<seen.count) && seen.count >= 3, "\(seen)")
        try Wrong.unless([0, 1, 2].starts(with: ofApp.map(\.new)), "\(ofApp)")
        try Wrong.unless(app.subscriberCount == 0, "the page is still subscribed")
      }
    }
  }
}
