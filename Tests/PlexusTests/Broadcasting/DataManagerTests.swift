import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A data manager` {
  struct NumberManager: DataManager {
    let publisher: DataPublisher<Int>
    let fetcher: ScriptedFetcher<Int>

    func fetch() async throws -> Int { try await fetcher.fetch() }
  }

  /// A manager that is an actor, and fetches on itself.
  actor CountingManager: DataManager {
    nonisolated let publisher = DataPublisher<Int>()
    private var count = 0

    func fetch() async throws -> Int {
      count += 1
      return count
    }
  }

  @MainActor final class MainActorManager: DataManager {
    nonisolated let publisher = DataPublisher<Int>()
    private var count = 0

    @MainActor func fetch() async throws -> Int {
      MainActor.assertIsolated()
      count += 1
      return count
    }
  }

  let clock = ManualClock()
  let manager: NumberManager

  init() {
    manager = NumberManager(
      publisher: DataPublisher(staleAfter: .seconds(10), clock: clock),
      fetcher: ScriptedFetcher([
        .success(1), .success(2), .failure(LoadingFailure.first), .success(3), .success(4),
      ])
    )
  }

  @Test(.guarantee(.managersPublishWhatTheyFetch))
  func `a data manager publishes what it fetches, and fetches nothing for a subscriber`()
    async throws
  {
    let states = manager.subscribe(bufferingPolicy: .unbounded)
    #expect(manager.fetcher.count == 0)
    #expect(try await manager.refresh() == 1)
    #expect(try await manager.refresh() == 2)
    await #expect(throws: LoadingFailure.first) { try await manager.refresh() }
    let expected = [
      "unknown", "loading(-)", "loaded(1)", "loading(1)", "loaded(2)", "loading(2)",
      "failed(first, 2)",
    ]
    #expect(await states.first(7).map(words) == expected)
  }

  @Test func `a data manager delivers the newest state to a slow subscriber by default`()
    async throws
  {
    let states = manager.subscribe()
    try await manager.refresh()
    #expect(await states.first(1).map(words) == ["loaded(1)"])
  }

  @Test(.guarantee(.managersPublishWhatTheyFetch))
  func `a data manager refreshes if needed what is unknown, failed or stale, and nothing else`()
    async throws
  {
    #expect(try await manager.refreshIfNeeded() == 1)
    clock.advance(by: .seconds(9))
    #expect(try await manager.refreshIfNeeded() == 1)
    clock.advance(by: .seconds(1))
    #expect(try await manager.refreshIfNeeded() == 2)
    await #expect(throws: LoadingFailure.first) { try await manager.refresh() }
    #expect(try await manager.refreshIfNeeded() == 3)
    #expect(try await manager.refreshIfNeeded() == 3)
    #expect(manager.fetcher.count == 4)
  }

  @Test(.guarantee(.managersPublishWhatTheyFetch))
  func `a data manager that is logged out has dropped the data, and does not get it back`()
    async throws
  {
    let gate = Gate()
    let manager = NumberManager(
      publisher: DataPublisher(),
      fetcher: ScriptedFetcher([.success(1), .success(2), .success(3)], gate: gate)
    )
    gate.admit(1)
    try await manager.refresh()
    let states = manager.subscribe(bufferingPolicy: .unbounded)
    let late = Task { try await manager.refresh() }
    await gate.arrivals(2)
    #expect(await states.first(2).map(words) == ["loaded(1)", "loading(1)"])
    manager.logOut()
    #expect(words(manager.publisher.state) == "unknown")
    gate.open()
    #expect(try await late.value == 2)
    #expect(words(manager.publisher.state) == "unknown")
    try await manager.refreshIfNeeded()
    #expect(await states.first(3).map(words) == ["unknown", "loading(-)", "loaded(3)"])
  }

  @MainActor @Test func `a data manager joins refreshes at the same time`() async throws {
    let gate = Gate()
    let manager = NumberManager(
      publisher: DataPublisher(),
      fetcher: ScriptedFetcher([.success(1), .success(2)], gate: gate)
    )
    let tasks = [
      Task { try await manager.refresh() }, Task { try await manager.refreshIfNeeded() },
      Task { try await manager.refresh() },
    ]
    await everybodyHasBegun()
    gate.open()
    for task in tasks { #expect(try await task.value == 1) }
    #expect(manager.fetcher.count == 1)
  }

  @Test func `a data manager may be an actor, or belong to the main actor`() async throws {
    let actor = CountingManager()
    #expect(try await actor.refresh() == 1)
    #expect(try await actor.refreshIfNeeded() == 1)
    let main = MainActorManager()
    #expect(try await main.refresh() == 1)
    main.logOut()
    #expect(try await main.refreshIfNeeded() == 2)
    #expect(words(main.publisher.state) == "loaded(2)")
  }

  @Test func `a data manager can be stored as any manager of its data`() async throws {
    let stored: any DataManager<Int> = manager
    let states = stored.subscribe()
    #expect(try await stored.refresh() == 1)
    #expect(await states.first(1).map(words) == ["loaded(1)"])
    stored.logOut()
    #expect(words(stored.publisher.state) == "unknown")
  }
}
