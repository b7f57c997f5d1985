import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Effects of a store` {
  enum Order: Sendable, Equatable {
    case start
    case found(Int)
    case other
  }

  /// A store whose `.start` has an effect.
  func makeStore(
    _ effect:
      @escaping @concurrent @Sendable (Middleware<[Int], Order>.Context) async -> Void
  ) -> Store<[Int], Order> {
    let middleware = Middleware<[Int], Order> { action, context, next in
      next(action)
      if action == .start { context.run { await effect(context) } }
    }
    return Store([], middleware: [middleware]) { state, action in
      if case .found(let number) = action { state.append(number) }
    }
  }

  @Test(.guarantee(.dispatchAndWaitIncludesEffects))
  func `dispatchAndWait waits for the effects of an action`()
    async
  {
    let gate = Gate()
    let log = Log<String>()
    let store = makeStore { context in
      try? await gate.wait()
      log.append("effect")
      context.dispatch(.found(1))
    }
    let waiting = Task {
      await store.dispatchAndWait(.start)
      log.append("waited")
      return store.state
    }
    await gate.arrivals(1)
    #expect(log.count == 0)
    gate.open()
    #expect(await waiting.value == [1])
    #expect(log.entries == ["effect", "waited"])
  }

  @Test func `dispatch does not wait for effects`() async {
    let gate = Gate()
    let store = makeStore { context in
      try? await gate.wait()
      context.dispatch(.found(1))
    }
    let changes = store.changes(of: { $0 })
    store.dispatch(.start)
    #expect(store.state == [])
    gate.open()
    #expect(await changes.first(2).map(\.new) == [[], [1]])
  }

  @Test(.guarantee(.dispatchAndWaitIncludesEffects))
  func `the effects that an effect's actions start are waited for, too`() async {
    let first = Gate()
    let second = Gate()
    let middleware = Middleware<[Int], Order> { action, context, next in
      next(action)
      switch action {
      case .start:
        context.run {
          try? await first.wait()
          context.dispatch(.other)
        }
      case .other:
        context.run {
          try? await second.wait()
          context.dispatch(.found(2))
        }
      case .found:
        break
      }
    }
    let store = Store<[Int], Order>([], middleware: [middleware]) { state, action in
      if case .found(let number) = action { state.append(number) }
    }
    let done = Log<[Int]>()
    let waiting = Task {
      await store.dispatchAndWait(.start)
      done.append(store.state)
    }
    await first.arrivals(1)
    first.open()
    await second.arrivals(1)
    #expect(done.count == 0)
    second.open()
    await waiting.value
    #expect(done.entries == [[2]])
  }

  @Test func `the effects of other actions are not waited for`() async {
    let gate = Gate()
    let store = makeStore { _ in try? await gate.wait() }
    store.dispatch(.start)
    await gate.arrivals(1)
    await store.dispatchAndWait(.found(1))
    #expect(store.state == [1])
    gate.open()
  }

  @Test func `a wait for an action that is dropped ends at once`() async {
    let store = Store<Int, Int>(0, middleware: [Middleware { _, _, _ in }]) { $0 += $1 }
    await store.dispatchAndWait(1)
    #expect(store.state == 0)
  }

  @Test func `effects of a store are waited for by each of several callers`() async {
    let gate = Gate()
    let store = makeStore { context in
      try? await gate.wait()
      context.dispatch(.found(1))
    }
    await withTaskGroup { group in
      for _ in 0..<10 {
        group.addTask {
          await store.dispatchAndWait(.start)
          #expect(store.state.count >= 1)
        }
      }
      await gate.arrivals(10)
      gate.open()
    }
    #expect(store.state == Array(repeating: 1, count: 10))
  }

  @Test
  func `effects of a store continue when a waiting caller is cancelled, which returns at once`()
    async
  {
    let gate = Gate()
    let store = makeStore { context in
      try? await gate.wait()
      context.dispatch(.found(Task.isCancelled ? -1 : 1))
    }
    let changes = store.changes(of: { $0 })
    let caller = Task { await store.dispatchAndWait(.start) }
    await gate.arrivals(1)
    caller.cancel()
    await caller.value
    #expect(store.state == [])
    gate.open()
    #expect(await changes.first(2).map(\.new) == [[], [1]])
  }

  @Test func `the effects for a caller that was cancelled before are started all the same`() async {
    let gate = Gate()
    let store = makeStore { context in
      try? await gate.wait()
      context.dispatch(.found(1))
    }
    let changes = store.changes(of: { $0 })
    let caller = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      await store.dispatchAndWait(.start)
    }
    await caller.value
    gate.open()
    #expect(await changes.first(2).map(\.new) == [[], [1]])
  }

  @Test func `effects of a store may wait for actions themselves`() async {
    let later = Later<Store<[Int], Order>>()
    let store = makeStore { _ in
      await later.value?.dispatchAndWait(.found(1))
      await later.value?.dispatchAndWait(.found(2))
    }
    later.value = store
    await store.dispatchAndWait(.start)
    #expect(store.state == [1, 2])
  }

  @Test(.guarantee(.storesEndTheirStreams))
  func `effects of a store are cancelled when the store is released`() async {
    let begun = Gate()
    let ended = Log<Bool>()
    var store: Store<[Int], Order>? = makeStore { context in
      // Not opened: only cancellation ends the wait.
      try? await begun.wait()
      ended.append(Task.isCancelled)
      context.dispatch(.found(1))
      ended.append(context.state.isEmpty)
    }
    store?.dispatch(.start)
    await begun.arrivals(1)
    store = nil
    #expect(await ended.first(2) == [true, true])
  }

  @Test func `effects of a store do not keep the store, nor does a context that is kept`() async {
    let kept = Guarded<Middleware<[Int], Order>.Context?>(nil)
    let gate = Gate()
    let census = Census()
    weak var weakStore: Store<[Int], Order>?
    do {
      let (ofMiddleware, ofReducer) = (census.parcel(), census.parcel())
      let middleware = Middleware<[Int], Order> { action, context, next in
        kept.withLock { $0 = context }
        next(action)
        context.run { try? await gate.wait() }
        withExtendedLifetime(ofMiddleware) {}
      }
      let store = Store<[Int], Order>([7], middleware: [middleware]) { _, _ in
        withExtendedLifetime(ofReducer) {}
      }
      weakStore = store
      store.dispatch(.start)
      await gate.arrivals(1)
    }
    #expect(weakStore == nil)
    // User objects are released, though middleware that keeps a context would retain itself.
    await census.falls(to: 0)
    #expect(census.living == 0)
    let context = kept.withLock { $0 }
    context?.dispatch(.found(1))
    #expect(context?.state == [7])
  }

  @Test func `effects of a store are not started after the release of the store`() {
    let kept = Guarded<Middleware<[Int], Order>.Context?>(nil)
    do {
      let middleware = Middleware<[Int], Order> { _, context, _ in
        kept.withLock { $0 = context }
      }
      let store = Store<[Int], Order>([], middleware: [middleware]) { _, _ in }
      store.dispatch(.start)
    }
    let census = Census()
    do {
      let parcel = census.parcel()
      kept.withLock { $0 }?.run {
        Issue.record("An effect was started after the end")
        withExtendedLifetime(parcel) {}
      }
    }
    #expect(census.living == 0)
  }

  @Test func `effects that a store ends release their objects`() async {
    let census = Census()
    let gate = Gate()
    do {
      let parcel = census.parcel()
      let store = makeStore { _ in
        try? await gate.wait()
        withExtendedLifetime(parcel) {}
      }
      store.dispatch(.start)
      await gate.arrivals(1)
    }
    await census.falls(to: 0)
    #expect(census.living == 0)
  }

  enum Local {
    @TaskLocal static var value = 0
  }

  @Test @MainActor
  func `effects of a store run off every actor and apart from the dispatching task`() async {
    let seen = Log<[Int]>()
    let store = makeStore { _ in
      seen.append([Local.value, Task.isCancelled ? 1 : 0])
    }
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      Local.$value.withValue(3) { store.dispatch(.start) }
    }
    await task.value
    #expect(await seen.first(1) == [[0, 0]])
  }

  @Test func `effects that wait for themselves through a load fail`() async {
    let publisher = DataPublisher<Int>()
    let failures = Log<String>()
    let store = makeStore { _ in
      do {
        try await publisher.load { 1 }
      } catch {
        failures.append("\(error is LoadError)")
      }
    }
    _ = try? await publisher.load {
      await store.dispatchAndWait(.start)
      return 2
    }
    #expect(failures.entries == ["true"])
    #expect(publisher.state.value == 2)
  }

  // MARK: - Effects by id

  /// A command about effects with ids.
  enum Command: Sendable, Equatable {
    case run(String, Int, cancels: Bool)
    case cancel(String)
    case done(Int)
  }

  /// A store whose effects wait at a gate and report whether they were cancelled.
  func makeStore(_ gate: Gate, _ log: Log<String>) -> Store<[Int], Command> {
    let middleware = Middleware<[Int], Command> { action, context, next in
      next(action)
      switch action {
      case .run(let id, let number, let cancels):
        context.run(id: id, cancelsInFlight: cancels) {
          do {
            try await gate.wait()
            context.dispatch(.done(number))
            log.append("\(number) done")
          } catch {
            log.append("\(number) cancelled")
          }
        }
      case .cancel(let id): context.cancel(id: id)
      case .done: break
      }
    }
    return Store([], middleware: [middleware]) { state, action in
      if case .done(let number) = action { state.append(number) }
    }
  }

  /// An id whose comparison runs a closure, once.
  struct ComparingID: Hashable, Sendable {
    let action: Guarded<(@Sendable () -> Void)?>

    static func == (left: Self, right: Self) -> Bool {
      let action = left.action.withLock { $0.take() }
      action?()
      return true
    }

    func hash(into hasher: inout Hasher) {}
  }

  @Test(.guarantee(.effectIDsCancelEarlierEffects))
  func `effects with an id can be cancelled while they are being started`() async {
    let contexts = Guarded<[Middleware<Int, Int>.Context]>([])
    let log = Log<Bool>()
    let gate = Gate()
    let id = ComparingID(action: Guarded(nil))
    let store = Store<Int, Int>(
      0,
      middleware: [
        Middleware { _, context, next in
          contexts.withLock { $0.append(context) }
          context.run(id: id, cancelsInFlight: true) {
            try? await gate.wait()
            log.append(Task.isCancelled)
          }
        }
      ]
    ) { _, _ in }
    store.dispatch(1)
    // The second effect is cancelled while its id is compared with that of the first.
    id.action.withLock { action in
      action = { contexts.withLock { $0.first }?.cancel(id: id) }
    }
    store.dispatch(2)
    gate.open()
    #expect(await log.first(2) == [true, true])
    withExtendedLifetime(store) {}
  }

  @Test(.guarantee(.effectIDsCancelEarlierEffects))
  func `effects with an id cancel those before them with the same id, and no others`() async {
    let (gate, log) = (Gate(), Log<String>())
    let store = makeStore(gate, log)
    let other = makeStore(gate, log)
    store.dispatch(.run("search", 1, cancels: true))
    store.dispatch(.run("save", 2, cancels: true))
    other.dispatch(.run("search", 3, cancels: true))
    await gate.arrivals(3)
    store.dispatch(.run("search", 4, cancels: true))
    #expect(await log.first(1) == ["1 cancelled"])
    gate.open()
    await log.first(4)
    #expect(store.state.sorted() == [2, 4])
    #expect(other.state == [3])
  }

  @Test(.guarantee(.effectIDsCancelEarlierEffects))
  func `effects with an id run beside each other if they are not to cancel`() async {
    let (gate, log) = (Gate(), Log<String>())
    let store = makeStore(gate, log)
    for number in 1...3 { store.dispatch(.run("search", number, cancels: false)) }
    gate.open()
    await log.first(3)
    #expect(store.state.sorted() == [1, 2, 3])
  }

  @Test(.guarantee(.effectIDsCancelEarlierEffects))
  func `effects with an id are cancelled all together by it`() async {
    let (gate, log) = (Gate(), Log<String>())
    let store = makeStore(gate, log)
    for number in 1...3 { store.dispatch(.run("search", number, cancels: false)) }
    store.dispatch(.run("save", 4, cancels: true))
    store.dispatch(.cancel("search"))
    store.dispatch(.cancel("unknown"))
    #expect(await log.first(3).sorted() == ["1 cancelled", "2 cancelled", "3 cancelled"])
    gate.open()
    await log.first(4)
    #expect(store.state == [4])
  }

  @Test(arguments: [TaskPriority.high, .low, .background, nil])
  func `effects with an id have their priority, or that of the dispatching task`(
    priority: TaskPriority?
  ) async {
    let log = Log<TaskPriority>()
    let middleware = Middleware<Int, Int> { _, context, _ in
      context.run(id: "effect", priority: priority) { log.append(Task.currentPriority) }
    }
    let store = Store(0, middleware: [middleware]) { $0 += $1 }
    let sender = Task.detached(priority: .utility) { store.dispatch(1) }
    #expect(await log.first(1) == [priority ?? .utility])
    await sender.value
  }

  @Test(.guarantee(.effectIDsCancelEarlierEffects))
  func `effects with ids of different types do not cancel each other`() async {
    let (gate, log) = (Gate(), Log<Int>())
    let middleware = Middleware<Int, Int> { action, context, next in
      next(action)
      let effect: @concurrent @Sendable () async -> Void = {
        if (try? await gate.wait()) != nil { log.append(action) }
      }
      if action == 1 { context.run(id: 7, priority: .high, effect) }
      if action == 2 { context.run(id: Int8(7), effect) }
      if action == 3 { context.run(id: Optional(7), effect) }
    }
    let store = Store(0, middleware: [middleware]) { $0 += $1 }
    for number in 1...3 { store.dispatch(number) }
    await gate.arrivals(3)
    gate.open()
    #expect(await log.first(3).sorted() == [1, 2, 3])
  }

  @Test(.guarantee(.effectIDsCancelEarlierEffects))
  func `effects with an id are waited for by dispatchAndWait, and end with the store`() async {
    let (gate, log) = (Gate(), Log<String>())
    var store: Store<[Int], Command>? = makeStore(gate, log)
    let first = Task { [store] in await store?.dispatchAndWait(.run("a", 1, cancels: true)) }
    await gate.arrivals(1)
    store?.dispatch(.run("a", 2, cancels: true))
    await first.value
    #expect(log.entries.first == "1 cancelled")
    await gate.arrivals(1)
    store = nil
    #expect(await log.first(2).last == "2 cancelled")
  }
}
