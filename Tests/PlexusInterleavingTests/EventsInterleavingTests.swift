import Plexus
import PlexusTesting
import Synchronization
import TestSupport
import Testing

extension `Every order of jobs` {
  @Suite(.serialized)
  struct `Events, in every order` {
    /// The events that handlers have received.
    final class Notes: Sendable {
      private let notes = Mutex<[String]>([])

      var all: [String] { notes.withLock { $0 } }

      func add(_ note: String) {
        notes.withLock { $0.append(note) }
      }

      func count(_ note: String) -> Int {
        all.count { $0 == note }
      }
    }

    struct News: PersistentEvent {
      let number: Int
      var rule: PersistenceRule?

      init(_ number: Int, _ rule: PersistenceRule? = nil) {
        self.number = number
        self.rule = rule
      }

      var persistenceRule: PersistenceRule { rule ?? .clearImmediately }

      var persistence: EventPersistence {
        if let rule { .persistent(rule) } else { .none }
      }
    }

    struct Echo: Event {}

    static let rules: [PersistenceRule] = [
      .clearImmediately, .clearAfterAllCurrentSubscribersNotified, .neverClear,
    ]

    /// Registers a handler that suspends in the middle.
    static func observe(
      _ bus: EventBus,
      _ name: String,
      _ notes: Notes,
      succeeds: Bool
    ) -> ObservationToken {
      bus.observe(News.self) { news async in
        notes.add("\(name) begins \(news.number)")
        await hop()
        notes.add("\(name) ends \(news.number)")
        return succeeds ? .handledSuccessfully : .failed
      }
    }

    @Test(.guarantee(.eventsAreRetainedBeforeDelivery), arguments: rules, [true, false])
    func `a subscriber that joins around a post gets the event at most once`(
      rule: PersistenceRule,
      succeeds: Bool
    ) throws {
      try forEveryInterleaving(deviations: Effort.deviations(3)) {
        let (bus, notes) = (EventBus(), Notes())
        let first = Self.observe(bus, "first", notes, succeeds: succeeds)
        let poster = Task { await bus.postAndWait(News(1, rule)) }
        let late = Task {
          await hop()
          return Self.observe(bus, "late", notes, succeeds: true)
        }
        let outcome = await poster.value
        let token = await late.value
        await bus.postAndWait(News(2))
        let count = notes.count("late ends 1")
        try Wrong.unless(notes.count("first ends 1") == 1, "the first got it not once")
        switch (rule, succeeds) {
        case (.neverClear, _): try Wrong.unless(count == 1, "late: \(notes.all)")
        case (.clearImmediately, true), (_, false):
          try Wrong.unless(count == (succeeds ? 0 : 1), "late: \(notes.all)")
        case (_, true):
          // It can have been in time.
          try Wrong.unless(count == outcome.notified - 1, "late: \(notes.all)")
        }
        try Wrong.unless(notes.all.last?.hasSuffix("2") == true, "out of order: \(notes.all)")
        let isKept = !bus.pendingEvents(of: News.self).isEmpty
        try Wrong.unless(isKept == (rule == .neverClear), "kept: \(isKept)")
        withExtendedLifetime((first, token)) {}
      }
    }

    @Test(.guarantee(.unhandledEventsAreRetained), arguments: [true, false])
    func `two late subscribers never handle the same event both with success`(removes: Bool) throws
    {
      try forEveryInterleaving(deviations: Effort.deviations(2)) {
        let (bus, notes) = (EventBus(), Notes())
        bus.post(News(1, .clearImmediately))
        let one = Self.observe(bus, "one", notes, succeeds: false)
        let two = Task { Self.observe(bus, "two", notes, succeeds: true) }
        let remover = Task {
          await hop()
          if removes { bus.removePendingEvents(of: News.self) }
        }
        let third = Task {
          await hop()
          return Self.observe(bus, "third", notes, succeeds: true)
        }
        let tokens = [one, await two.value, await third.value]
        await remover.value
        await bus.postAndWait(News(2))
        let successes = notes.count("two ends 1") + notes.count("third ends 1")
        if removes {
          try Wrong.unless(successes <= 1, "\(notes.all)")
        } else {
          try Wrong.unless(successes == 1, "\(notes.all)")
        }
        try Wrong.unless(bus.pendingEvents(of: News.self).isEmpty, "it is still kept")
        withExtendedLifetime(tokens) {}
      }
    }

    @Test(arguments: [nil] + rules)
    func `a post ends, whichever subscribers leave meanwhile`(rule: PersistenceRule?) throws {
      try forEveryInterleaving(deviations: 2) {
        let (bus, notes) = (EventBus(), Notes())
        let first = Self.observe(bus, "first", notes, succeeds: false)
        let second = Self.observe(bus, "second", notes, succeeds: false)
        let last = bus.observe(News.self) { news in
          notes.add("last ends \(news.number)")
          return .failed
        }
        let poster = Task { await bus.postAndWait(News(1, rule)) }
        let leaver = Task { first.cancel() }
        let other = Task {
          await hop()
          second.cancel()
        }
        let outcome = await poster.value
        await leaver.value
        await other.value
        let begun = notes.count("first begins 1") + notes.count("second begins 1")
        let ended = notes.count("first ends 1") + notes.count("second ends 1")
        // A delivery to a handler that is removed while it runs has failed.
        try Wrong.unless(rule != nil || begun == ended, "it did not wait: \(notes.all)")
        try Wrong.unless(outcome.notified == begun + 1, "\(outcome), \(notes.all)")
        try Wrong.unless(notes.count("last ends 1") == 1, "the last was forgotten")
        try Wrong.unless(bus.subscriberCount(for: News.self) == 1, "they are still subscribed")
        last.cancel()
      }
    }

    @Test(.guarantee(.eventsHaveOneOrderPerScope), arguments: [nil] + rules)
    func `streams and handlers see one order, and miss nothing`(rule: PersistenceRule?) throws {
      try forEveryInterleaving(deviations: 2) {
        let (bus, notes) = (EventBus(), Notes())
        let token = Self.observe(bus, "handler", notes, succeeds: false)
        let stream = bus.subscription(to: News.self)
        let posters = [10, 20].map { first in
          Task {
            bus.post(News(first, rule))
            await hop()
            bus.post(News(first + 1))
          }
        }
        var seen: [Int] = []
        for await news in stream {
          seen.append(news.number)
          if seen.count == 4 { break }
        }
        for poster in posters { await poster.value }
        await bus.postAndWait(News(0))
        let handled = notes.all.filter { $0.hasPrefix("handler ends") }
        try Wrong.unless(
          handled == (seen + [0]).map { "handler ends \($0)" },
          "\(handled), \(seen)"
        )
        try Wrong.unless(seen.filter { $0 < 20 } == [10, 11], "\(seen)")
        try Wrong.unless(seen.filter { $0 >= 20 } == [20, 21], "\(seen)")
        withExtendedLifetime(token) {}
      }
    }

    @Test(.guarantee(.replacingReplacesTheHandler), arguments: [nil] + rules)
    func `an event reaches the handler that is replaced or the one that replaces it`(
      rule: PersistenceRule?
    ) throws {
      try forEveryInterleaving(deviations: 4) {
        let (bus, notes) = (EventBus(), Notes())
        bus.observe(id: 1, News.self) { news in
          notes.add("old \(news.number)")
          return .failed
        }
        let poster = Task {
          await bus.postAndWait(News(1))
          await bus.postAndWait(News(2, rule))
        }
        let replacer = Task {
          await hop()
          bus.observe(id: 1, News.self, replacing: true) { news in
            notes.add("new \(news.number)")
            return .failed
          }
        }
        await poster.value
        await replacer.value
        await bus.postAndWait(News(3))
        for number in 1...3 {
          let count = notes.count("old \(number)") + notes.count("new \(number)")
          // The queue of the old one is discarded with it, except retained events.
          try Wrong.unless(count <= 1 || number == 2 && rule != nil, "\(notes.all)")
          if number == 3 || number == 2 && rule != nil {
            try Wrong.unless(count >= 1, "\(notes.all)")
          }
        }
        try Wrong.unless(bus.subscriberCount(for: News.self) == 1, "there are others")
      }
    }

    @Test(.guarantee(.nestedPostsAreQueued))
    func `handlers that post to each other and wait do not deadlock`() throws {
      try forEveryInterleaving(deviations: 2) {
        let (bus, notes) = (EventBus(), Notes())
        let news = bus.observe(News.self) { news async in
          guard news.number == 1 else { return }
          await hop()
          let outcome = await bus.postAndWait(Echo())
          notes.add("news \(outcome.isDeferred)")
        }
        let echo = bus.observe(Echo.self) { _ async in
          let outcome = await bus.postAndWait(News(2))
          notes.add("echo \(outcome.isDeferred)")
        }
        let one = Task { await bus.postAndWait(News(1)) }
        let other = Task { await bus.postAndWait(Echo()) }
        _ = await (one.value, other.value)
        let isDeferred = notes.all.map { $0.hasSuffix("true") }
        try Wrong.unless(isDeferred.contains(true), "nobody would have had to wait: \(notes.all)")
        try Wrong.unless(isDeferred.contains(false), "nobody has waited: \(notes.all)")
        withExtendedLifetime((news, echo)) {}
      }
    }

    @Test(arguments: [nil] + rules)
    func `the release of a bus ends its streams and handlers, also during a post`(
      rule: PersistenceRule?
    ) throws {
      try forEveryInterleaving(deviations: 3) {
        let notes = Notes()
        var bus: EventBus? = EventBus()
        weak let released = bus
        let token = bus.map { Self.observe($0, "handler", notes, succeeds: false) }
        let stream = bus?.subscription(to: News.self)
        let reader = Task {
          var seen: [Int] = []
          if let stream { for await news in stream { seen.append(news.number) } }
          return seen
        }
        let poster = Task { [bus] in
          bus?.post(News(1, rule))
          await hop()
          bus?.post(News(2, rule))
        }
        bus = nil
        await poster.value
        let seen = await reader.value
        try Wrong.unless([1, 2].starts(with: seen), "\(seen)")
        if rule == nil { try Wrong.unless(seen == [1, 2], "\(seen)") }
        while notes.count("handler ends 2") == 0 { await hop() }
        try Wrong.unless(notes.count("handler ends 1") == 1, "\(notes.all)")
        try Wrong.unless(released == nil, "something keeps the bus alive")
        withExtendedLifetime(token) {}
      }
    }

    @Test func `a scope that is left and entered at the same time loses no event`() throws {
      try forEveryInterleaving(deviations: 6) {
        let bus = EventBus()
        let old = Mutex<Subscription<News>?>(bus.subscription(to: News.self, scope: "s"))
        let leaver = Task { old.withLock { $0 = nil } }
        let poster = Task {
          bus.post(News(1, .clearImmediately), scope: "s")
          await hop()
          bus.post(News(2, .clearImmediately), scope: "s")
        }
        let new = Task {
          await hop()
          return bus.subscription(to: News.self, scope: "s")
        }
        await leaver.value
        await poster.value
        let stream = await new.value
        bus.post(News(3), scope: "s")
        var seen: [Int] = []
        for await news in stream {
          seen.append(news.number)
          if news.number == 3 { break }
        }
        try Wrong.unless([1, 2, 3].suffix(seen.count) == seen[...], "\(seen)")
        let pending = bus.pendingEvents(of: News.self, scope: "s")
        try Wrong.unless(pending.isEmpty, "\(pending)")
      }
    }

    // The fetch starts in its own task when the handler waits for it, so that no order reverses the two.

    @Test(.guarantee(.ownKeyRequestsThrow), arguments: [nil, PersistenceRule.clearImmediately])
    func `a post of a fetch does not wait behind a handler that waits for the fetch`(
      rule: PersistenceRule?
    ) throws {
      try forEveryInterleaving(deviations: 3) {
        let (bus, notes, own) = (EventBus(), Notes(), Guarded<Multiplexer<Bool>?>(nil))
        let token = bus.observe(News.self) { news async throws -> Void in
          if news.number == 1, let cache = own.withLock({ $0 }) {
            notes.add("\(try await cache.request())")
          }
        }
        let cache = Multiplexer<Bool> { await bus.postAndWait(News(2, rule)).isDeferred }
        own.withLock { $0 = cache }
        await bus.postAndWait(News(1, rule))
        own.withLock { $0 = nil }
        try Wrong.unless(notes.all == ["true"], "\(notes.all)")
        withExtendedLifetime(token) {}
      }
    }

    @Test(.guarantee(.ownKeyRequestsThrow))
    func `a post of a fetch does not wait behind a handler that has removed itself`()
      throws
    {
      try forEveryInterleaving(deviations: 3) {
        let (bus, notes, own) = (EventBus(), Notes(), Guarded<Multiplexer<Bool>?>(nil))
        bus.observe(id: 1, News.self) { news async throws -> HandlerResult in
          bus.removeObserver(id: 1)
          // The removal has cancelled the handler, which still has to return.
          if let cache = own.withLock({ $0 }) {
            notes.add("\(try await Task { try await cache.request() }.value)")
          }
          return .handledSuccessfully
        }
        let cache = Multiplexer<Bool> {
          await bus.postAndWait(News(2, .neverClear)).isDeferred
        }
        own.withLock { $0 = cache }
        await bus.postAndWait(News(1, .neverClear))
        own.withLock { $0 = nil }
        try Wrong.unless(notes.all == ["true"], "\(notes.all)")
      }
    }

    @Test(.guarantee(.ownKeyRequestsThrow))
    func `a post inside the action of a debouncer that the handler flushes is deferred`()
      throws
    {
      try forEveryInterleaving(deviations: 3) {
        let (bus, notes) = (EventBus(), Notes())
        let debouncer = Debouncer(delay: .seconds(1), clock: ManualClock()) {
          notes.add("\(await bus.postAndWait(News(2)).isDeferred)")
        }
        let token = bus.observe(News.self) { news async in
          guard news.number == 1 else { return }
          debouncer.touch()
          await debouncer.flush()
        }
        await bus.postAndWait(News(1))
        try Wrong.unless(notes.all == ["true"], "\(notes.all)")
        withExtendedLifetime(token) {}
      }
    }
  }
}
