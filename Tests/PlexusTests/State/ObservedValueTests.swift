import Observation
import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) @MainActor struct `An observed value` {
  struct Form: Sendable, Equatable {
    var text = ""
    var count = 0
  }

  enum FormAction: Sendable {
    case typed(String)
    case counted
  }

  private func makeStore() -> Store<Form, FormAction> {
    Store(Form()) { form, action in
      switch action {
      case .typed(let text): form.text = text
      case .counted: form.count += 1
      }
    }
  }

  /// A view, which reads, and reads again when it is notified of a change.
  @MainActor
  final class Screen<Value: Sendable> {
    private let observed: ObservedValue<Value>
    let invalidations = Log<Void>()
    private(set) var isInvalid = false
    /// The value that was read last.
    private(set) var shown: Value?

    init(_ observed: ObservedValue<Value>) {
      self.observed = observed
    }

    /// Reads the value, and is notified of the next change.
    @discardableResult
    func draw() -> Value {
      isInvalid = false
      let value = withObservationTracking {
        observed.value
      } onChange: {
        MainActor.assumeIsolated { self.isInvalid = true }
        self.invalidations.append(())
      }
      shown = value
      return value
    }
  }

  @Test(.guarantee(.observedValuesAreCurrent))
  func `an observed value is the new value as soon as the call that changes it has returned`()
    async throws
  {
    let store = makeStore()
    let text = ObservedValue(store.select(\.text))
    let all = ObservedValue(store)
    store.dispatch(.typed("h"))
    #expect(text.value == "h")
    #expect(all.value.text == "h")
    let volume = CurrentValue(1)
    let observed = ObservedValue(volume)
    volume.update { $0 += 1 }
    #expect(observed.value == 2)
    let cache = Multiplexer<Int> { 1 }
    let state = ObservedValue(cache)
    cache.store(7)
    #expect(state.value.value == 7)
    let publisher = DataPublisher<Int>()
    let published = ObservedValue(publisher)
    publisher.update(8)
    #expect(published.value.value == 8)
  }

  @Test(.guarantee(.observersAreNotifiedInTime))
  func `an observed value invalidates before the call returns that changes it on the main actor`() {
    let store = makeStore()
    let screen = Screen(ObservedValue(store.select(\.text)))
    screen.draw()
    store.dispatch(.typed("h"))
    #expect(screen.isInvalid)
    #expect(screen.draw() == "h")
    let volume = CurrentValue(1)
    let other = Screen(ObservedValue(volume))
    other.draw()
    volume.value = 2
    #expect(other.isInvalid)
    #expect(other.draw() == 2)
  }

  @Test(.guarantee(.observersAreNotifiedInTime))
  func `an observed value invalidates on the main actor what is changed elsewhere`() async {
    let store = makeStore()
    let screen = Screen(ObservedValue(store.select(\.text)))
    screen.draw()
    let change = Task.detached { store.dispatch(.typed("h")) }
    // It asserts that it runs on the main actor.
    await screen.invalidations.first(1)
    await change.value
    #expect(screen.draw() == "h")
    for number in 0..<50 {
      Task.detached { store.dispatch(.typed("\(number)")) }
      await screen.invalidations.first(number + 2)
      #expect(screen.draw() == "\(number)")
    }
  }

  @Test(.guarantee(.equalPartsInvalidateNothing))
  func `an observed value does not invalidate for an equal value`() {
    let volume = CurrentValue(1)
    let screen = Screen(ObservedValue(volume))
    screen.draw()
    volume.value = 1
    #expect(!screen.isInvalid)
    volume.value = 2
    #expect(screen.isInvalid)
    let optional = CurrentValue<[Int]?>(nil)
    let other = Screen(ObservedValue(optional))
    other.draw()
    optional.value = nil
    #expect(!other.isInvalid)
    optional.value = []
    #expect(other.isInvalid)
  }

  @Test(.guarantee(.equalPartsInvalidateNothing))
  func `an observed value does not invalidate for the same state of a publisher`() {
    let publisher = DataPublisher<Int>()
    let screen = Screen(ObservedValue(publisher))
    screen.draw()
    publisher.update(1)
    #expect(screen.isInvalid)
    screen.draw()
    publisher.update(1)
    #expect(!screen.isInvalid)
    publisher.startLoading()
    #expect(screen.isInvalid)
    screen.draw()
    publisher.startLoading()
    #expect(!screen.isInvalid)
    publisher.fail(Broken())
    #expect(screen.isInvalid)
    #expect(screen.invalidations.count == 3)
  }

  @Test(.guarantee(.equalPartsInvalidateNothing))
  func `an observed value invalidates once for each new state of a cache only`() async throws {
    let map = MultiplexerMap<Int, Int> { _ in throw Broken() }
    let cache = Multiplexer<Int> { throw Broken() }
    let screens = [Screen(ObservedValue(cache)), Screen(ObservedValue(map[7]))]
    /// Expects a number of invalidations so far, and redraws the screens that are invalid.
    func expect(_ state: String, after number: Int) {
      for screen in screens {
        #expect(screen.invalidations.count == number)
        if screen.isInvalid { #expect(screen.draw().name == state) }
      }
    }
    for screen in screens { screen.draw() }
    cache.store(1)
    map[7].store(1)
    expect("loaded 1", after: 1)
    cache.store(1)
    map.store([7: 1, 8: 2])
    #expect(try await cache.request() == 1)
    #expect(try await map.request(7) == 1)
    cache.refresh()
    map.refreshAll()
    expect("loaded 1", after: 1)
    cache.update { $0 += 1 }
    map.update(7) { $0 += 1 }
    expect("loaded 2", after: 2)
    await #expect(throws: Broken.self) {
      try await cache.update(optimistically: { $0 = 9 }, commit: { throw Broken() })
    }
    await #expect(throws: Broken.self) {
      try await map.update(7, optimistically: { $0 = 9 }, commit: { throw Broken() })
    }
    // Both changes of a turn are one invalidation.
    expect("loaded 2", after: 3)
    try await map.clear()
    try await cache.clear()
    expect("unknown", after: 4)
    try await map.clear(7)
    cache.clearMemory()
    expect("unknown", after: 4)
  }

  @Test func `an observed value of an entry fetches nothing, and shows what a live one fetches`()
    async
  {
    let map = MultiplexerMap<Int, Int>(clock: ManualClock()) { $0 * 10 }
    let screen = Screen(ObservedValue(map[7]))
    #expect(screen.draw().name == "unknown")
    #expect(map.statistics.fetches == 0)
    let live = map[7].subscription(refetching: .whenStale)
    for await state in live where state.value == 70 { break }
    #expect(screen.draw().name == "loaded 70")
    #expect(!screen.isInvalid)
  }

  @Test func `an observed value shows the pages of a list`() async throws {
    let publisher = Catalog().publisher()
    let observed = ObservedValue(publisher)
    #expect(words(observed.value) == "unknown")
    try await publisher.loadFirstPage()
    #expect(words(observed.value) == "loaded(a0 b0)")
  }

  @Test(.guarantee(.observersSeeNestedChanges))
  func `an observed value notifies of each change, also of one inside a notification`() {
    let volume = CurrentValue(10)
    let observed = ObservedValue(volume)
    let screen = Screen(observed)
    screen.draw()
    limit(observed) { if $0 > 10 { volume.value = 10 } }
    for _ in 0..<3 {
      volume.value = 11
      #expect(volume.value == 10)
      #expect(screen.isInvalid)
      #expect(screen.draw() == 10)
      // Set without a limit, it is the next change.
      volume.value = 9
      #expect(screen.isInvalid)
      #expect(screen.draw() == 9)
      volume.value = 10
      #expect(screen.draw() == 10)
    }
  }

  @Test func `an observed value notifies an observer of each value that it replaces`() {
    let volume = CurrentValue(10)
    let observed = ObservedValue(volume)
    limit(observed) { if $0 > 10 { volume.value = 10 } }
    for _ in 0..<3 {
      volume.value = 11
      #expect(volume.value == 10)
    }
    #expect(observed.value == 10)
  }

  @Test
  func `an observed value notifies of an equal value again after an observer set another one`() {
    let volume = CurrentValue(10)
    let observed = ObservedValue(volume)
    let screen = Screen(observed)
    screen.draw()
    let limits = Guarded(1)
    limit(observed) { value in
      let isLimited = limits.withLock { limits in
        defer { if value > 10 { limits -= 1 } }
        return value > 10 && limits > 0
      }
      if isLimited { volume.value = 10 }
    }
    volume.value = 11
    #expect(screen.draw() == 10)
    volume.value = 11
    #expect(screen.isInvalid)
    #expect(screen.draw() == 11)
  }

  @Test(.guarantee(.observersSeeNestedChanges), arguments: 0..<200)
  func `an observed value is right after any sequence of changes, also by its observers`(seed: Int)
  {
    var random = SeededRandom(seed: UInt64(seed))
    let value = CurrentValue(0)
    let part = value.select { $0 % 7 }
    let observed = ObservedValue(part)
    let screen = Screen(observed)
    screen.draw()
    let others = [1, 2, 3].map { _ in Int.random(in: 0..<7, using: &random) }
    for other in others {
      limit(observed) { if $0 == other { value.value = other + 1 } }
    }
    for _ in 0..<30 {
      value.value = Int.random(in: 0..<40, using: &random)
      if screen.isInvalid { screen.draw() }
      #expect(screen.shown == part.current, "\(others)")
      #expect(part.current == value.value % 7)
    }
  }

  /// Calls a closure with each value, inside the notification.
  private func limit(_ observed: ObservedValue<Int>, _ body: @escaping (Int) -> Void) {
    Limiter(observed, body).watch()
  }

  @MainActor
  private final class Limiter {
    private let observed: ObservedValue<Int>
    private let body: (Int) -> Void
    private var registrations = 0

    init(_ observed: ObservedValue<Int>, _ body: @escaping (Int) -> Void) {
      self.observed = observed
      self.body = body
    }

    func watch() {
      registrations += 1
      let own = registrations
      withObservationTracking {
        _ = observed.value
      } onChange: {
        MainActor.assumeIsolated {
          // A notification inside a notification has been first.
          guard own == self.registrations else { return }
          self.watch()
          self.body(self.observed.value)
        }
      }
    }
  }

  @Test(.guarantee(.equalPartsInvalidateNothing))
  func `an observed value of a part is not invalidated by other parts`() {
    let store = makeStore()
    let text = Screen(ObservedValue(store.select(\.text)))
    let count = Screen(ObservedValue(store.select { $0.count }))
    let all = Screen(ObservedValue(store))
    text.draw()
    count.draw()
    all.draw()
    store.dispatch(.counted)
    #expect(!text.isInvalid)
    #expect(count.isInvalid)
    #expect(all.isInvalid)
  }

  @Test(.guarantee(.equalPartsInvalidateNothing))
  func `observed values redraw only the changed ones of a thousand rows`() {
    let store = Store<[Int], Int>(Array(repeating: 0, count: 1000)) { rows, index in
      rows[index] += 1
    }
    let screens = (0..<1000).map { row in Screen(ObservedValue(store.select { $0[row] })) }
    for screen in screens { screen.draw() }
    store.dispatch(7)
    store.dispatch(400)
    #expect(screens.indices.filter { screens[$0].isInvalid } == [7, 400])
    #expect(screens[7].draw() == 1)
  }

  @Test(.guarantee(.equalPartsInvalidateNothing))
  func `an observed value publishes every change of a type that cannot be compared`() {
    struct Opaque: Sendable { var number: Int }
    let value = CurrentValue(Opaque(number: 1))
    let screen = Screen(ObservedValue(value))
    for _ in 0..<3 {
      screen.draw()
      value.value = Opaque(number: 1)
      #expect(screen.isInvalid)
    }
  }

  @Test(.guarantee(.observersAreNotifiedInTime))
  func `an observed value notifies an observer that has read another value of the return`() async {
    let volume = CurrentValue(1)
    let observed = ObservedValue(volume)
    let (first, second) = (Screen(observed), Screen(observed))
    first.draw()
    // This test occupies the main actor meanwhile: its next turn comes afterwards.
    withoutLocks { volume.value = 2 }
    #expect(second.draw() == 2)
    withoutLocks { volume.value = 1 }
    await second.invalidations.first(1)
    #expect(second.draw() == 1)
  }

  @Test(.guarantee(.observedValuesKeepTheirState))
  func `an observed value keeps its source, and ends with its owner`() {
    weak var weakStore: Store<Form, FormAction>?
    weak var weakObserved: ObservedValue<String>?
    var observed: ObservedValue<String>?
    do {
      let store = makeStore()
      weakStore = store
      observed = ObservedValue(store.select(\.text))
      weakObserved = observed
      #expect(store.subscriberCount == 1)
    }
    #expect(weakStore != nil)
    weakStore?.dispatch(.typed("h"))
    #expect(observed?.value == "h")
    observed = nil
    #expect(weakObserved == nil)
    #expect(weakStore == nil)
  }

  @Test(.guarantee(.observedValuesKeepTheirState))
  func `an observed value keeps its last value when its source has finished`() {
    let volume = CurrentValue(1)
    let observed = ObservedValue(volume)
    volume.value = 2
    volume.finish()
    volume.value = 3
    #expect(observed.value == 2)
  }

  @Test(.guarantee(.observedValuesKeepTheirState))
  func `an observed value follows a messenger from an initial value on, and does not keep it`() {
    weak var weakMessenger: Messenger<String>?
    var messenger: Messenger<String>? = Messenger()
    weakMessenger = messenger
    guard let source = messenger else { return }
    let observed = ObservedValue(source, initial: "")
    let screen = Screen(observed)
    #expect(screen.draw().isEmpty)
    source.send("a")
    #expect(screen.isInvalid)
    #expect(screen.draw() == "a")
    _ = consume source
    messenger = nil
    #expect(weakMessenger == nil)
    #expect(observed.value == "a")
  }
}
