import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Rule 0.9: user code that is released, resumed or called can use the broadcaster.
///
/// A lock that is held would never be released, so that such code runs through ``withoutLocks(_:)``.
@Suite(.fewAtOnce) struct `User code never runs under a lock` {
  /// Calls everything of a messenger that user code can call.
  @Sendable func use(_ messenger: Messenger<Parcel>) {
    withoutLocks {
      messenger.send(Parcel(-1))
      _ = messenger.subscription()
      _ = messenger.subscription(bufferingPolicy: .bufferingNewest(2))
      _ = messenger.subscription(ignoring: Author())
      _ = messenger.observe { (_: Parcel) in }
      _ = messenger.observe { (_: Parcel) async in }
      _ = messenger.subscriberCount
    }
  }

  /// Calls everything of a data publisher that user code can call.
  @Sendable func use(_ publisher: DataPublisher<Parcel>) {
    withoutLocks {
      publisher.startLoading()
      publisher.fail(LoadingFailure.first)
      publisher.update(Parcel(-1))
      _ = publisher.subscription()
      _ = publisher.observe { (_: LoadState<Parcel>) in }
      _ = (publisher.state, publisher.isStale, publisher.subscriberCount)
    }
  }

  /// Creates a parcel that uses the messenger when it is released.
  func parcel(_ census: Census, _ messenger: Messenger<Parcel>, _ released: Log<Void>) -> Parcel {
    census.parcel { [weak messenger] in
      if let messenger { use(messenger) }
      released.append(())
    }
  }

  @Test(
    .guarantee(.noLockWhileUserCodeRuns),
    arguments: [Policy.unbounded, .newest(1), .newest(3), .newest(0), .oldest(0), .oldest(2)]
  )
  func `no lock is held when an element is displaced, read or left unread`(policy: Policy) async {
    let messenger = Messenger<Parcel>()
    let (census, released) = (Census(), Log<Void>())
    var subscription: Subscription<Parcel>? = messenger.subscription(bufferingPolicy: policy())
    for _ in 0..<40 { messenger.send(parcel(census, messenger, released)) }
    if policy != .newest(0), policy != .oldest(0) {
      _ = await subscription?.first(1)
      messenger.send(parcel(census, messenger, released))
    }
    subscription = nil
    #expect(census.living == 0)
    #expect(released.count >= 40)
  }

  @Test func `no lock is held when an ignored message or one without subscribers is released`() {
    let messenger = Messenger<Parcel>()
    let (census, released, author) = (Census(), Log<Void>(), Author())
    messenger.send(parcel(census, messenger, released))
    let subscription = messenger.subscription(ignoring: author)
    messenger.send(parcel(census, messenger, released), from: author)
    #expect(released.count == 2)
    messenger.finish()
    messenger.send(parcel(census, messenger, released))
    #expect(released.count == 3)
    withExtendedLifetime(subscription) {}
  }

  @Test(arguments: [Policy.unbounded, .newest(0), .newest(3), .oldest(3)])
  func `no lock is held when a subscriber that ignores an author loses an element`(
    policy: Policy
  ) async {
    let messenger = Messenger<Parcel>()
    let (census, released) = (Census(), Log<Void>())
    var subscription: Subscription<Parcel>? = messenger.subscription(
      ignoring: Author(),
      bufferingPolicy: policy()
    )
    for _ in 0..<20 { messenger.send(parcel(census, messenger, released)) }
    if policy != .newest(0) { _ = await subscription?.first(1) }
    subscription = nil
    #expect(census.living == 0)
    #expect(released.count == 20)
  }

  @Test(arguments: [
    (BufferingPolicy<Parcel>.bufferingNewest(2), 2), (.bufferingOldest(2), 2), (.unbounded, 20),
  ])
  func `no lock is held when a handler is too slow for an element`(
    policy: BufferingPolicy<Parcel>,
    handled: Int
  ) async {
    let (messenger, host) = (Messenger<Parcel>(), SteppedHost())
    let (census, released) = (Census(), Log<Void>())
    let calls = Log<Void>()
    let token = await host.observe(messenger, policy) { _ in calls.append(()) }
    for _ in 0..<20 { messenger.send(parcel(census, messenger, released)) }
    // On a busy machine the handler yields its actor in between.
    while calls.count < handled, !Task.isCancelled { await host.executor.step() }
    await census.falls(to: 0)
    #expect(released.count == 20)
    token.cancel()
  }

  @Test(arguments: [Policy.unbounded, .newest(5), .oldest(5)])
  func `no lock is held when finish or the release of the messenger gives a backlog back`(
    policy: Policy
  ) async {
    for finishes in [true, false] {
      let (census, released) = (Census(), Log<Void>())
      var messenger: Messenger<Parcel>? = Messenger()
      var subscriptions = (0..<3).map { _ in messenger?.subscription(bufferingPolicy: policy()) }
      for _ in 0..<20 {
        if let messenger { messenger.send(parcel(census, messenger, released)) }
      }
      if finishes { messenger?.finish() }
      if !finishes { messenger = nil }
      #expect(await subscriptions[0]?.all().count == (policy == .unbounded ? 20 : 5))
      subscriptions = []
      #expect(census.living == 0)
      #expect(released.count == 20)
    }
  }

  @Test(arguments: [Policy.unbounded, .newest(50), .oldest(50)])
  func `no lock is held when a cancelled loop gives its backlog back`(policy: Policy) async {
    let messenger = Messenger<Parcel>()
    let (census, released) = (Census(), Log<Void>())
    let subscription = messenger.subscription(bufferingPolicy: policy())
    for _ in 0..<40 { messenger.send(parcel(census, messenger, released)) }
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await subscription.all().count
    }
    #expect(await task.value == 0)
    await census.falls(to: 0)
    #expect(released.count == 40)
  }

  @Test(.guarantee(.noLockWhileUserCodeRuns), arguments: HandlerSite.allCases)
  func `no lock is held when a handler is released, with or without a backlog`(
    site: HandlerSite
  ) async {
    let stage = ContractStage(MessengerSubject(finishes: true))
    let messenger = stage.source
    let (census, released) = (Census(), Log<Void>())
    for ending in 0..<3 {
      var token: ObservationToken? = await observe(
        stage,
        site,
        holding: parcel(census, messenger, released)
      )
      if ending > 0 { for _ in 0..<100 { messenger.send(census.parcel()) } }
      if ending < 2 { token?.cancel() }
      token = nil
      await census.falls(to: 0)
      #expect(released.count == ending + 1)
    }
  }

  @Test func `no lock is held when a handler that is cancelled gives its backlog back`() async {
    let (messenger, host) = (Messenger<Parcel>(), SteppedHost())
    let (census, released) = (Census(), Log<Void>())
    let token = await host.observe(messenger, .unbounded) { _ in }
    for _ in 0..<20 { messenger.send(parcel(census, messenger, released)) }
    // The handler is behind, and has received none of this.
    token.cancel()
    #expect(census.living == 0)
    #expect(released.count == 20)
    await host.executor.step()
  }

  @Test(arguments: HandlerSite.allCases)
  func `no lock is held when finish releases the handlers`(site: HandlerSite) async {
    let stage = ContractStage(MessengerSubject(finishes: true))
    let messenger = stage.source
    let (census, released) = (Census(), Log<Void>())
    let token = await observe(stage, site, holding: parcel(census, messenger, released))
    messenger.send(census.parcel())
    messenger.finish()
    await census.falls(to: 0)
    #expect(released.count == 1)
    withExtendedLifetime(token) {}
  }

  private func observe(
    _ stage: ContractStage<MessengerSubject>,
    _ site: HandlerSite,
    holding captured: Parcel
  ) async -> ObservationToken {
    await stage.observe(site) { _ in withExtendedLifetime(captured) {} }
  }

  @Test(arguments: [false, true])
  func `no lock is held when an owner is released inside of its handler`(isAsync: Bool) async {
    let messenger = Messenger<Parcel>()
    let (census, released) = (Census(), Log<Void>())
    let owner = Guarded<Parcel?>(parcel(census, messenger, released))
    if let owning = owner.withLock({ $0 }) {
      if isAsync {
        messenger.observe(as: owning) { _, _ async in _ = owner.withLock { $0.take() } }
      } else {
        messenger.observe(as: owning) { _, _ in _ = owner.withLock { $0.take() } }
      }
    }
    #expect(messenger.subscriberCount == 1)
    messenger.send(Parcel(1))
    await released.first(1)
    await census.falls(to: 0)
    #expect(census.living == 0)
    #expect(messenger.subscriberCount == 0)
  }

  @Test func `no lock is held when the count finds released owners`() async {
    let messenger = Messenger<Parcel>()
    let (census, released) = (Census(), Log<Void>())
    for _ in 0..<10 { observeAsNobody(messenger, holding: parcel(census, messenger, released)) }
    // Reading the count removes the handlers. Their contents are released here or by their task, and subscribe for a
    // moment when that happens.
    _ = messenger.subscriberCount
    await released.first(10)
    await census.falls(to: 0)
    #expect(census.living == 0)
    #expect(messenger.subscriberCount == 0)
  }

  private func observeAsNobody(_ messenger: Messenger<Parcel>, holding captured: Parcel) {
    messenger.observe(as: Parcel(0)) { _, _ in withExtendedLifetime(captured) {} }
  }

  @Test(.guarantee(.noLockWhileUserCodeRuns), arguments: [false, true])
  func `no lock is held when a state gives way to another`(isObserved: Bool) async throws {
    let publisher = DataPublisher<Parcel>()
    let (census, released) = (Census(), Log<Void>())
    func parcel() -> Parcel {
      census.parcel { [weak publisher] in
        // Parcels that are made here are released here: once is enough.
        if let publisher, released.count < 100 {
          released.append(())
          use(publisher)
        }
      }
    }
    // Subscribers release states that they have not read yet.
    let policies = isObserved ? [Policy.newest(1), .newest(3), .oldest(1), .unbounded] : []
    var subscriptions = policies.map { publisher.subscription(bufferingPolicy: $0()) }
    let changes: [(DataPublisher<Parcel>) -> Void] = [
      { $0.update(Parcel(0)) }, { $0.reset() },
      {
        $0.startLoading()
        $0.reset()
      },
      {
        $0.fail(LoadingFailure.first)
        $0.reset()
      },
    ]
    for change in changes {
      publisher.update(parcel())
      change(publisher)
      for subscription in subscriptions { _ = await subscription.first(1) }
    }
    try await publisher.load { Parcel(1) }
    publisher.update(parcel())
    try await publisher.load { Parcel(2) }
    publisher.reset()
    subscriptions = []
    await census.falls(to: 0)
    #expect(released.count == changes.count + 1)
  }

  @Test func `no lock is held when an error gives way to another state`() async {
    final class Trouble: Error, Sendable {
      let onRelease: @Sendable () -> Void
      init(onRelease: @escaping @Sendable () -> Void) { self.onRelease = onRelease }
      deinit { onRelease() }
    }
    let publisher = DataPublisher<Parcel>()
    let released = Log<Void>()
    @Sendable func trouble() -> Trouble {
      Trouble { [weak publisher] in
        released.append(())
        if let publisher { use(publisher) }
      }
    }
    let subscription = publisher.subscription()
    publisher.fail(trouble())
    publisher.startLoading()
    #expect(released.count == 1)
    publisher.fail(trouble())
    publisher.update(Parcel(1))
    #expect(released.count == 2)
    _ = try? await publisher.load { throw trouble() }
    _ = try? await publisher.load { Parcel(2) }
    await released.first(3)
    publisher.fail(trouble())
    publisher.reset()
    #expect(released.count == 4)
    withExtendedLifetime(subscription) {}
  }

  @Test func `no lock is held when the result of a load is dropped`() async throws {
    let publisher = DataPublisher<Parcel>()
    let (census, released, gate) = (Census(), Log<Void>(), Gate())
    let load = Task {
      try await publisher.load {
        try await gate.wait()
        return census.parcel { [weak publisher] in
          if let publisher { use(publisher) }
          released.append(())
        }
      }.number
    }
    await gate.arrivals(1)
    publisher.reset()
    gate.open()
    #expect(try await load.value == 0)
    await released.first(1)
    await census.falls(to: 0)
  }

  @Test(.guarantee(.noLockWhileUserCodeRuns))
  func `no lock is held when a task is resumed on an executor of the user`() async {
    let messenger = Messenger<Parcel>()
    let publisher = DataPublisher<Parcel>()
    let executor = InquisitiveExecutor {
      withoutLocks {
        _ = (messenger.subscriberCount, publisher.subscriberCount, publisher.state)
      }
    }
    let log = Log<Int>()
    let messages = messenger.subscription()
    let skipped = messenger.subscription(bufferingPolicy: .bufferingNewest(1))
    let kept = messenger.subscription(bufferingPolicy: .bufferingOldest(1))
    let states = publisher.subscription()
    let tasks = [messages, skipped, kept].map { subscription in
      Task(executorPreference: executor) {
        for await parcel in subscription { log.append(parcel.number) }
      }
    }
    let last = Task(executorPreference: executor) {
      for await state in states { log.append(state.value?.number ?? 0) }
    }
    let loading = Gate()
    let load = Task(executorPreference: executor) {
      try await publisher.load {
        try await loading.wait()
        return Parcel(3)
      }.number
    }
    await loading.arrivals(1)
    messenger.send(Parcel(1))
    await log.wait { $0.count { $0 == 1 } == 3 }
    loading.open()
    _ = await load.result
    messenger.finish()
    last.cancel()
    for task in tasks + [last] { await task.value }
  }
}

/// An executor that calls a closure whenever it receives a job.
private final class InquisitiveExecutor: TaskExecutor {
  private let ask: @Sendable () -> Void

  init(ask: @escaping @Sendable () -> Void) {
    self.ask = ask
  }

  func enqueue(_ job: consuming ExecutorJob) {
    ask()
    let job = UnownedJob(job)
    Task.detached { onOwnThread { job.runSynchronously(on: self.asUnownedTaskExecutor()) } }
  }
}
