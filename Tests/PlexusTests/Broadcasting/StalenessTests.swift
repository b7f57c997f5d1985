import Plexus
import PlexusTesting
import TestSupport
import Testing

/// The elements that subscribers receive when a loaded value becomes stale.
@Suite(.fewAtOnce) struct `A data publisher that publishes staleness` {
  let clock = ManualClock()
  let publisher: DataPublisher<Int>

  init() {
    publisher = DataPublisher(staleAfter: .seconds(10), publishesStaleness: true, clock: clock)
  }

  /// The states, each with its staleness at the time of its delivery.
  func observe() -> (Log<String>, ObservationToken) {
    let log = Log<String>()
    let token = publisher.observe { [weak publisher] (state: LoadState<Int>) in
      log.append(words(state) + (publisher?.isStale == true ? ", stale" : ""))
    }
    return (log, token)
  }

  @Test func `a data publisher publishes a loaded value once more at exactly the age of staleness`()
    async
  {
    let (log, token) = observe()
    publisher.update(1)
    #expect(await log.first(2).last == "loaded(1)")
    await clock.sleepers(1)
    clock.advance(by: .seconds(9))
    #expect(clock.sleeperCount == 1)
    #expect(log.count == 2)
    clock.advance(by: .seconds(1))
    #expect(await log.first(3) == ["unknown", "loaded(1)", "loaded(1), stale"])
    // Only once.
    clock.advance(by: .seconds(1000))
    #expect(clock.sleeperCount == 0)
    publisher.reset()
    #expect(await log.first(4).last == "unknown")
    withExtendedLifetime(token) {}
  }

  @Test func `staleness is published to bounded readers and to loops, too`() async {
    let states = publisher.subscribe()
    let all = publisher.subscription(bufferingPolicy: .unbounded)
    publisher.update(1)
    #expect(await states.first(1).map(words) == ["loaded(1)"])
    await clock.sleepers(1)
    clock.advance(by: .seconds(10))
    #expect(await all.first(3).map(words) == ["unknown", "loaded(1)", "loaded(1)"])
    #expect(await states.first(1).map(words) == ["loaded(1)"])
  }

  @Test func `a publisher of staleness restarts the age with every value, loaded or updated`()
    async throws
  {
    let (log, token) = observe()
    publisher.update(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(6))
    await log.first(2)
    publisher.update(2)
    await log.first(3)
    clock.advance(by: .seconds(6))
    // The timer has fired early, and sleeps again.
    await clock.sleepers(1)
    #expect(!publisher.isStale)
    try await publisher.load { 3 }
    await clock.sleepers(1)
    clock.advance(by: .seconds(9))
    await clock.sleepers(1)
    #expect(!publisher.isStale)
    await log.first(5)
    clock.advance(by: .seconds(1))
    let expected = [
      "unknown", "loaded(1)", "loaded(2)", "loading(2)", "loaded(3)", "loaded(3), stale",
    ]
    #expect(await log.first(6) == expected)
    withExtendedLifetime(token) {}
  }

  @Test(arguments: ["startLoading", "fail", "reset"])
  func `a data publisher publishes no staleness in another state than loaded`(change: String) async
  {
    publisher.update(1)
    await clock.sleepers(1)
    switch change {
    case "startLoading": publisher.startLoading()
    case "fail": publisher.fail(LoadingFailure.first)
    default: publisher.reset()
    }
    #expect(clock.sleeperCount == 0)
    let states = publisher.subscription(bufferingPolicy: .unbounded)
    clock.advance(by: .seconds(1000))
    publisher.update(2)
    #expect(await states.first(2).map(words).last == "loaded(2)")
  }

  @Test func `a publisher of staleness keeps the old age when a reload was abandoned`() async {
    publisher.update(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(6))
    let gate = Gate()
    let reload = Task {
      try await publisher.load {
        try await gate.wait()
        return 2
      }
    }
    await gate.arrivals(1)
    #expect(clock.sleeperCount == 0)
    reload.cancel()
    await #expect(throws: CancellationError.self) { try await reload.value }
    let (log, token) = observe()
    await log.first(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(4))
    #expect(await log.first(2) == ["loaded(1)", "loaded(1), stale"])
    withExtendedLifetime(token) {}
  }

  @Test
  func `staleness is not published again when a reload of a value already stale is abandoned`()
    async
  {
    publisher.update(1)
    await clock.sleepers(1)
    let gate = Gate()
    let reload = Task {
      try await publisher.load {
        try await gate.wait()
        return 2
      }
    }
    await gate.arrivals(1)
    clock.advance(by: .seconds(20))
    reload.cancel()
    await #expect(throws: CancellationError.self) { try await reload.value }
    #expect(publisher.isStale)
    #expect(clock.sleeperCount == 0)
  }

  @Test func `staleness is published although something else happens at the same time`()
    async throws
  {
    // It wakes its sleepers late.
    struct Drowsy: Clock {
      let manual: ManualClock
      let gate = Gate()
      let log = Log<String>()
      var now: ManualClock.Instant { manual.now }
      var minimumResolution: Duration { manual.minimumResolution }

      func sleep(until deadline: ManualClock.Instant, tolerance: Duration?) async throws {
        try await manual.sleep(until: deadline, tolerance: tolerance)
        do { try await gate.wait() } catch { log.append("cancelled") }
        log.append("awake")
      }
    }
    let drowsy = Drowsy(manual: clock)
    let publisher = DataPublisher<Int>(
      staleAfter: .seconds(10),
      publishesStaleness: true,
      clock: drowsy
    )
    let states = publisher.subscription(bufferingPolicy: .unbounded)
    let gate = Gate()
    let load = Task {
      try await publisher.load {
        try await gate.wait()
        return 2
      }
    }
    await gate.arrivals(1)
    // The load is outdated from now on.
    publisher.update(1)
    await clock.sleepers(1)
    clock.advance(by: .seconds(10))
    await drowsy.gate.arrivals(1)
    #expect(publisher.isStale)
    load.cancel()
    await #expect(throws: CancellationError.self) { try await load.value }
    drowsy.gate.open()
    try #require(await drowsy.log.first(1) == ["awake"])
    let expected = ["unknown", "loading(-)", "loaded(1)", "loaded(1)"]
    #expect(await states.first(4).map(words) == expected)
  }

  @Test
  func `a data publisher that publishes staleness starts one timer for any number of updates`()
    async
  {
    for value in 0..<1000 { publisher.update(value) }
    await clock.sleepers(1)
    for value in 0..<1000 { publisher.update(value) }
    #expect(clock.sleeperCount == 1)
  }

  @Test func `a publisher of staleness is not kept alive by its timer, which ends with it`() async {
    let clock = ManualClock()
    let census = Census()
    var publisher: DataPublisher<Parcel>? = DataPublisher(
      staleAfter: .seconds(10),
      publishesStaleness: true,
      clock: clock
    )
    publisher?.update(census.parcel())
    await clock.sleepers(1)
    weak let weakPublisher = publisher
    publisher = nil
    #expect(weakPublisher == nil)
    #expect(clock.sleeperCount == 0)
    await census.falls(to: 0)
  }

  @Test func `a released publisher of staleness starts no timer, whatever an abandoned load does`()
    async
  {
    let clock = ManualClock()
    let census = Census()
    let (begun, released) = (Log<Void>(), Log<Void>())
    var publisher: DataPublisher<Int>? = DataPublisher(
      staleAfter: .seconds(10),
      publishesStaleness: true,
      clock: clock
    )
    publisher?.update(1)
    let states = publisher?.subscription()
    do {
      let parcel = census.parcel()
      let reload = Task { [publisher] in
        try await publisher?.load {
          begun.append(())
          // It ignores cancellation.
          await Task.detached { _ = await released.first(1) }.value
          return parcel.number
        }
      }
      await begun.first(1)
      reload.cancel()
      await #expect(throws: CancellationError.self) { try await reload.value }
    }
    publisher = nil
    if let states { for await _ in states {} }
    released.append(())
    await census.falls(to: 0)
    for _ in 0..<100 { await Task.detached {}.value }
    #expect(clock.sleeperCount == 0)
  }

  @Test func `a publisher of staleness works with a clock that does not let it sleep`() async {
    struct Sleepless: Clock {
      let manual: ManualClock
      var now: ManualClock.Instant { manual.now }
      var minimumResolution: Duration { manual.minimumResolution }

      func sleep(until deadline: ManualClock.Instant, tolerance: Duration?) async throws {
        throw LoadingFailure.first
      }
    }
    let publisher = DataPublisher<Int>(
      staleAfter: .seconds(10),
      publishesStaleness: true,
      clock: Sleepless(manual: clock)
    )
    let states = publisher.subscription(bufferingPolicy: .unbounded)
    publisher.update(1)
    clock.advance(by: .seconds(9))
    publisher.update(2)
    #expect(await states.first(3).map(words) == ["unknown", "loaded(1)", "loaded(2)"])
  }

  @Test func `a data publisher without the option publishes no staleness and starts no timer`()
    async
  {
    let silent = (0..<50).flatMap { _ in
      [
        DataPublisher<Int>(staleAfter: .seconds(10), clock: clock),
        DataPublisher<Int>(publishesStaleness: true, clock: clock),
      ]
    }
    for publisher in silent { publisher.update(1) }
    publisher.update(1)
    await clock.sleepers(1)
    #expect(clock.sleeperCount == 1)
    withExtendedLifetime(silent) {}
  }

  @Test(arguments: [Duration.zero, .seconds(-5)])
  func `staleness is not published for a value that is stale from the beginning`(
    age: Duration
  ) async {
    let publisher = DataPublisher<Int>(staleAfter: age, publishesStaleness: true, clock: clock)
    let states = publisher.subscription(bufferingPolicy: .unbounded)
    publisher.update(1)
    #expect(publisher.isStale)
    publisher.update(2)
    #expect(await states.first(3).map(words) == ["unknown", "loaded(1)", "loaded(2)"])
  }

  @Test func `a data publisher that publishes staleness accepts an age beyond all clocks`() async {
    let publisher = DataPublisher<Int>(
      staleAfter: .seconds(Int64.max),
      publishesStaleness: true,
      clock: clock
    )
    publisher.update(1)
    await clock.sleepers(1)
    #expect(!publisher.isStale)
  }
}
