import Plexus
import PlexusTesting
import TestSupport
import Testing

extension `Every order of jobs` {
  /// A thousand of each are sent, and the scenario is limited to 300 jobs: a task for each of them would take a
  /// thousand.
  @Suite(.serialized)
  struct `No task is started` {
    static let limit = 300

    /// Runs a scenario in one order, and lets the tasks that it has started run before it ends.
    private func withFewJobs<Kept: Sendable>(
      _ scenario: nonisolated(nonsending) @escaping @Sendable () async throws -> Kept
    ) throws {
      try forEveryInterleaving(deviations: 0, jobLimit: Self.limit) {
        let kept = try await scenario()
        for _ in 0..<5 { await hop() }
        withExtendedLifetime(kept) {}
      }
    }

    @Test func `the count of jobs shows whether tasks are started`() {
      let failure = #expect(throws: InterleavingFailure.self) {
        try withFewJobs { for _ in 0..<1000 { Task {} } }
      }
      #expect(failure?.description.contains("still not done after 300 jobs") == true)
    }

    @Test(.guarantee(.sendingStartsNoTask)) func `sending a message starts no task`() throws {
      try withFewJobs {
        let messenger = Messenger<Int>()
        let subscriptions = [
          messenger.subscription(), messenger.subscription(bufferingPolicy: .bufferingNewest(2)),
          messenger.subscription(ignoring: Author()),
        ]
        let stream = messenger.subscribe()
        await hop()
        for number in 0..<1000 { messenger.send(number) }
        return (messenger, subscriptions, stream)
      }
    }

    @Test(.guarantee(.sendingStartsNoTask)) func `changing a state starts no task`() throws {
      try withFewJobs {
        let publisher = DataPublisher<Int>(staleAfter: .seconds(1), clock: ManualClock())
        let cache = Multiplexer { 0 }
        let map = MultiplexerMap<Int, Int> { $0 }
        let store = Store<Int, Int>(0) { $0 = $1 }
        let page = store.page({ _ in 0 }, reducer: { (state: inout Int, new: Int) in state = new })
        let states = (publisher.subscription(), cache.subscription(), map.subscription(to: 1))
        let changes = (store.changes(of: \.self), page.changes(of: \.self), page.subscribe())
        await hop()
        for number in 1...1000 {
          publisher.update(number)
          cache.store(number)
          map.store(number, for: 1)
          store.dispatch(number)
          page.dispatch(number)
        }
        return (publisher, cache, map, page, states, changes)
      }
    }

    @Test(.guarantee(.sendingStartsNoTask)) func `posting an event starts no task`() throws {
      struct Ping: Event {}
      try withFewJobs {
        let bus = EventBus()
        let streams = (bus.subscribe(to: Ping.self), bus.subscribe(to: Ping.self, scope: "left"))
        await hop()
        for _ in 0..<1000 {
          bus.post(Ping())
          bus.post(Ping(), scope: "left")
        }
        return (bus, streams)
      }
    }

    @Test(.guarantee(.sendingStartsNoTask)) func `a touch starts no task`() throws {
      try withFewJobs {
        let clock = ManualClock()
        let debouncer = Debouncer(delay: .seconds(1), clock: clock)
        let variable = DebouncerVar(0, delay: .seconds(1), clock: clock)
        let throttler = Throttler(interval: .seconds(1), clock: clock)
        let values = Recorder(variable.subscription())
        for number in 1...1000 {
          debouncer.touch()
          variable.value = number
          throttler.touch()
        }
        await clock.sleepers(3)
        clock.advance(by: .seconds(1))
        guard await values.first(1) == [1000] else { throw Wrong() }
        return (debouncer, variable, throttler)
      }
    }
  }
}
