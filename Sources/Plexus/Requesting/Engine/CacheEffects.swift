/// The work that a change under a lock leaves to be done after unlocking, because it can run user code or
/// resume tasks.
///
/// Most changes leave nothing or one flight to launch, which needs no allocation. They are noncopyable, so that
/// they are performed once, and are passed on without reference counting.
@usableFromInline
struct CacheEffects: ~Copyable, Sendable {
  /// Flights to launch.
  @usableFromInline var launched = FlightList.none
  /// The effects that few changes have; in an array, so that effects without any of them are small.
  @usableFromInline private(set) var rare: [Rare]?
  /// Whether the cacher has pending work that no call of `flush` or `clear` is about to do.
  @usableFromInline var callsCacher = false
  /// Whether there is a value that the cacher does not have.
  @usableFromInline var hasChange = false
  /// Whether there are listeners to the events of the cache.
  @usableFromInline let tellsEvents: Bool

  @usableFromInline
  init(tellsEvents: Bool) {
    self.tellsEvents = tellsEvents
  }

  /// Adds a delivery to the subscribers of a key, after the earlier ones.
  @usableFromInline
  mutating func deliver(_ delivery: @escaping @Sendable () -> Void) {
    added.deliveries.append(delivery)
  }

  /// Adds an event about a key for the listeners of the cache, if there are any, after the earlier ones.
  @inlinable
  mutating func tell<Key: Sendable>(
    of key: Key,
    _ event: @escaping @Sendable (_ key: String) -> CacheEvent
  ) {
    if tellsEvents { add(event, of: key) }
  }

  @usableFromInline
  @inline(never)
  mutating func add<Key: Sendable>(
    _ event: @escaping @Sendable (_ key: String) -> CacheEvent,
    of key: Key
  ) {
    added.events.append { $0.tell(event($0.source.name(of: key))) }
  }

  /// Adds an outcome for the callers of a flight.
  mutating func answer(_ flight: Flight, with outcome: Outcome) {
    added.answered.append((flight, outcome))
  }

  /// Adds a flight to cancel.
  @usableFromInline
  mutating func cancel(_ flight: Flight) {
    added.cancelled.append(flight)
  }

  /// Keeps an object alive until the lock is released.
  mutating func release(object: some AnyObject & Sendable) {
    added.released.append(object)
  }

  /// Keeps a value alive until the lock is released.
  @usableFromInline
  mutating func release<Content: Sendable>(_ content: Content) {
    release(object: Released(content))
  }

  /// The effects that few changes have, created when the first one is added.
  private var added: Rare {
    get { rare?.first ?? Rare() }
    _modify {
      var all = rare.take() ?? [Rare()]
      defer { rare = all }
      yield &all[0]
    }
  }

  /// Performs the work.
  ///
  /// - Parameter engine: The cache that has been changed.
  @inlinable
  @inline(__always)
  consuming func perform(in engine: CacheEngine) {
    if rare != nil { performRare(in: engine) }
    if !launched.isEmpty { engine.launch(launched) }
    if callsCacher { engine.scheduleWriting() }
    if hasChange { engine.scheduleChanges() }
  }

  /// Performs the work except for launching flights.
  ///
  /// - Parameter engine: The cache that has been changed.
  /// - Returns: The flights to launch.
  @inlinable
  consuming func performWithoutLaunching(in engine: CacheEngine) -> [Flight] {
    if launched.isEmpty {
      perform(in: engine)
      return []
    }
    let flights = launched.array
    launched = .none
    perform(in: engine)
    return flights
  }

  @usableFromInline
  func performRare(in engine: CacheEngine) {
    guard let rare = rare?.first else { return }
    for deliver in rare.deliveries { deliver() }
    for tell in rare.events { tell(engine) }
    for (flight, outcome) in rare.answered { flight.finish(outcome) }
    for flight in rare.cancelled where flight.cancel() {
      engine.countFetch(flight, -1)
    }
  }
}

extension CacheEffects {
  @usableFromInline
  struct Rare: Sendable {
    /// Deliveries to the subscribers of keys, in order.
    var deliveries: [@Sendable () -> Void] = []
    /// Events for the listeners of the cache, in order.
    var events: [@Sendable (CacheEngine) -> Void] = []
    /// Flights whose callers get an outcome.
    var answered: [(flight: Flight, outcome: Outcome)] = []
    /// Flights to cancel.
    var cancelled: [Flight] = []
    /// Objects that were taken out, to be released.
    var released: [any AnyObject & Sendable] = []
  }

  /// A value that was taken out of a table under its lock.
  private final class Released<Content: Sendable>: Sendable {
    private let content: Content

    init(_ content: Content) {
      self.content = content
    }
  }
}

extension CacheEffects {
  /// Flights in order; the first one needs no array.
  @usableFromInline
  enum FlightList: Sendable {
    case none
    case one(Flight)
    case several([Flight])

    @inlinable var isEmpty: Bool {
      if case .none = self { true } else { false }
    }

    /// The flights.
    @usableFromInline var array: [Flight] {
      switch self {
      case .none: []
      case .one(let flight): [flight]
      case .several(let flights): flights
      }
    }

    @usableFromInline
    mutating func append(_ flight: Flight) {
      switch self {
      case .none:
        self = .one(flight)
      case .one(let first):
        self = .several([first, flight])
      case .several(var flights):
        self = .none
        flights.append(flight)
        self = .several(flights)
      }
    }
  }
}
