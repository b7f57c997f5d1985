import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A data publisher` {
  @Test(.guarantee(.newSubscribersReceiveTheState))
  func `a data publisher gives a new subscriber the current state at once, unknown included`() async
  {
    let publisher = DataPublisher<Int>()
    let steps: [(String, (DataPublisher<Int>) -> Void)] = [
      ("unknown", { _ in }),
      ("loading(-)", { $0.startLoading() }),
      ("loaded(1)", { $0.update(1) }),
      ("failed(first, 1)", { $0.fail(LoadingFailure.first) }),
      ("unknown", { $0.reset() }),
    ]
    for (expected, step) in steps {
      step(publisher)
      #expect(words(publisher.state) == expected)
      for policy in [Policy.unbounded, .newest(1), .newest(5), .oldest(1)] {
        let stream = publisher.subscribe(bufferingPolicy: policy())
        let subscription = publisher.subscription(bufferingPolicy: policy())
        #expect(await stream.first(1).map(words) == [expected])
        #expect(await subscription.first(1).map(words) == [expected])
      }
      let log = Log<String>()
      let token = publisher.observe { (state: LoadState<Int>) in log.append(words(state)) }
      let asyncToken = publisher.observe { (state: LoadState<Int>) async in
        log.append(words(state))
      }
      #expect(await log.first(2) == [expected, expected])
      withExtendedLifetime((token, asyncToken)) {}
    }
  }

  @Test(.guarantee(.equalValuesArePublished))
  func `a data publisher publishes every change, equal or not`() async {
    var publisher: DataPublisher<Int>? = DataPublisher()
    let states = publisher?.subscription(bufferingPolicy: .unbounded)
    // Unread states are skipped after a reset.
    #expect(await states?.first(1).map(words) == ["unknown"])
    publisher?.reset()
    publisher?.update(1)
    publisher?.update(1)
    publisher?.startLoading()
    publisher?.startLoading()
    publisher?.fail(LoadingFailure.first)
    publisher?.fail(LoadingFailure.first)
    let expected = [
      "unknown", "loaded(1)", "loaded(1)", "loading(1)", "loading(1)", "failed(first, 1)",
      "failed(first, 1)",
    ]
    #expect(await states?.first(7).map(words) == expected)
    publisher?.reset()
    #expect(await states?.first(1).map(words) == ["unknown"])
    publisher?.reset()
    publisher = nil
    #expect(await states?.all().map(words) == ["unknown"])
  }

  @Test
  func `a data publisher counts what is overwritten before and after a reset, read or not yet`()
    async
  {
    let publisher = DataPublisher<Int>()
    let subscription = publisher.subscription(bufferingPolicy: .bufferingNewest(2))
    for value in 1...3 { publisher.update(value) }
    #expect(subscription.droppedCount == 2)
    publisher.reset()
    #expect(subscription.droppedCount == 2)
    for value in 4...6 { publisher.update(value) }
    #expect(subscription.droppedCount == 4)
    #expect(await subscription.first(2).map(words) == ["loaded(5)", "loaded(6)"])
    #expect(subscription.droppedCount == 4)
  }

  @Test(.guarantee(.droppedCountIncludesReplays))
  func `a data publisher counts a replay that was overwritten before it was read`() async {
    let publisher = DataPublisher<Int>()
    let subscription = publisher.subscription()
    #expect(subscription.droppedCount == 0)
    publisher.update(1)
    #expect(subscription.droppedCount == 1)
    let wider = publisher.subscription(bufferingPolicy: .bufferingNewest(2))
    publisher.update(2)
    #expect(wider.droppedCount == 0)
    publisher.update(3)
    #expect(wider.droppedCount == 1)
    #expect(await wider.first(2).map(words) == ["loaded(2)", "loaded(3)"])
    let oldest = publisher.subscription(bufferingPolicy: .bufferingOldest(1))
    publisher.update(4)
    #expect(oldest.droppedCount == 1)
    #expect(await oldest.first(1).map(words) == ["loaded(3)"])
    let none = publisher.subscription(bufferingPolicy: .bufferingNewest(0))
    #expect(none.droppedCount == 1)
  }

  @Test(
    .guarantee(.droppedCountIncludesReplays),
    arguments: [Policy.newest(1), .newest(3), .oldest(1)]
  )
  func `a data publisher counts as dropped exactly what an ended subscription had lost`(
    policy: Policy
  ) async {
    let publisher = DataPublisher<Int>()
    let subscription = publisher.subscription(bufferingPolicy: policy())
    for value in 0..<10 { publisher.update(value) }
    let count = subscription.droppedCount
    #expect(count > 0)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await subscription.all().count
    }
    #expect(await task.value == 0)
    #expect(subscription.droppedCount == count)
    for value in 0..<10 { publisher.update(value) }
    #expect(subscription.droppedCount == count)
  }

  @Test(.guarantee(.newestValueSurvivesLoading))
  func `a data publisher keeps the previous value through loading, failing and reloading`() {
    let publisher = DataPublisher<Int>()
    publisher.update(1)
    publisher.startLoading()
    publisher.startLoading()
    #expect(words(publisher.state) == "loading(1)")
    publisher.fail(LoadingFailure.first)
    #expect(words(publisher.state) == "failed(first, 1)")
    publisher.fail(LoadingFailure.second)
    #expect(words(publisher.state) == "failed(second, 1)")
    publisher.startLoading()
    #expect(words(publisher.state) == "loading(1)")
    publisher.update(2)
    #expect(words(publisher.state) == "loaded(2)")
    publisher.reset()
    #expect(words(publisher.state) == "unknown")
    publisher.startLoading()
    #expect(words(publisher.state) == "loading(-)")
    publisher.fail(LoadingFailure.first)
    #expect(words(publisher.state) == "failed(first, -)")
  }

  @Test(.guarantee(.newestValueSurvivesLoading))
  func `a data publisher has dropped the value when a reset is published`() async {
    let publisher = DataPublisher<Int>()
    publisher.update(1)
    let seen = Log<String>()
    let token = publisher.observe { (state: LoadState<Int>) in
      guard case .unknown = state else { return }
      seen.append(words(publisher.state))
    }
    let skipping = publisher.subscription()
    publisher.reset()
    #expect(await seen.first(1) == ["unknown"])
    #expect(await skipping.first(1).map(words) == ["unknown"])
    #expect(
      await publisher.subscription(bufferingPolicy: .unbounded).first(1).map(words) == ["unknown"]
    )
    publisher.startLoading()
    publisher.fail(LoadingFailure.first)
    #expect(publisher.state.value == nil)
    withExtendedLifetime(token) {}
  }

  @Test(.guarantee(.newestValueSurvivesLoading))
  func `a data publisher releases the value with the reset, once no subscriber can read it`() async
  {
    let publisher = DataPublisher<Parcel>()
    let census = Census()
    let subscription = publisher.subscription()
    publisher.update(census.parcel(1))
    publisher.startLoading()
    publisher.fail(LoadingFailure.first)
    #expect(census.living == 1)
    publisher.reset()
    #expect(census.living == 0)
    #expect(await subscription.first(1).first?.value == nil)
  }

  @Test(.guarantee(.timeComesFromTheInjectedClock))
  func `a data publisher calls a loaded value stale from exactly the age given on`() {
    let clock = ManualClock()
    let publisher = DataPublisher<Int>(staleAfter: .seconds(60), clock: clock)
    #expect(!publisher.isStale)
    publisher.update(1)
    #expect(!publisher.isStale)
    clock.advance(by: .seconds(60) - .nanoseconds(1))
    #expect(!publisher.isStale)
    clock.advance(by: .nanoseconds(1))
    #expect(publisher.isStale)
    clock.advance(by: .seconds(1000))
    #expect(publisher.isStale)
    publisher.update(1)
    #expect(!publisher.isStale)
  }

  @Test(.guarantee(.onlyLoadedValuesBecomeStale))
  func `a data publisher is stale in the loaded state only`() {
    let clock = ManualClock()
    let publisher = DataPublisher<Int>(staleAfter: .zero, clock: clock)
    #expect(!publisher.isStale)
    publisher.update(1)
    #expect(publisher.isStale)
    publisher.startLoading()
    #expect(!publisher.isStale)
    publisher.fail(LoadingFailure.first)
    #expect(!publisher.isStale)
    publisher.update(2)
    #expect(publisher.isStale)
    publisher.reset()
    #expect(!publisher.isStale)
  }

  @Test(.guarantee(.onlyLoadedValuesBecomeStale))
  func `a data publisher never calls anything stale if no age was given`() {
    let clock = ManualClock()
    let publisher = DataPublisher<Int>(clock: clock)
    publisher.update(1)
    clock.advance(by: .seconds(1_000_000))
    #expect(!publisher.isStale)
  }

  @Test func `a data publisher shows subscribers of any policy the states of one order`() async {
    let publisher = DataPublisher<Int>()
    let all = publisher.subscription(bufferingPolicy: .unbounded)
    let log = Log<Int>()
    let skipping = Task {
      var last = -1
      for await state in publisher.subscription() {
        guard let value = state.value else { continue }
        // Skips ahead, never back.
        #expect(value > last)
        last = value
        if value == 999 { break }
      }
      return last
    }
    let token = publisher.observe(bufferingPolicy: .bufferingNewest(1)) {
      (state: LoadState<Int>) in
      if let value = state.value { log.append(value) }
    }
    for value in 0..<1000 { publisher.update(value) }
    #expect(await skipping.value == 999)
    await log.contains(999)
    #expect(log.entries == log.entries.sorted())
    #expect(await all.first(1001).compactMap(\.value) == Array(0..<1000))
    withExtendedLifetime(token) {}
  }
}
