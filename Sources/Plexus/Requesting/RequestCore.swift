internal import Synchronization

/// What a multiplexer or a map consists of, apart from its life: flights use it without keeping the
/// streams of its owners open.
@usableFromInline
final class RequestCore<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  typealias Fetch =
    @concurrent @Sendable (Key, FetchContext<Value>) async throws -> FetchResult<Value>
  typealias BulkFetch = @concurrent @Sendable ([Key]) async throws -> [Key: Value]

  @usableFromInline let stripes: Stripes<Stripe<Key, Value>>
  @usableFromInline let hasher = KeyHasher()
  @usableFromInline let time: TimeSource
  let clock: any Clock<Duration>
  let policy: CachePolicy
  let staleTime: Nanoseconds
  let source: FlightSource
  let fetch: Fetch
  /// What fetches several keys at once, if there is something.
  let bulkFetch: BulkFetch?
  let capacity: CacheCapacity<Value>
  let storage: Storage<Key, Value>?
  let events = BroadcastHub<CacheEvent>()
  private let lastTicket = Atomic<UInt64>(0)

  init(
    name: String,
    namesKeys: Bool,
    policy: CachePolicy,
    capacity: CacheCapacity<Value> = .unbounded,
    storage: Storage<Key, Value>? = nil,
    clock: any Clock<Duration>,
    bulkFetch: BulkFetch? = nil,
    fetch: @escaping Fetch
  ) {
    policy.validate()
    capacity.validate()
    let stripeCount = namesKeys ? capacity.stripeCount : 1
    var rest = capacity.limit.map { $0 % stripeCount } ?? 0
    stripes = Stripes(count: stripeCount) {
      rest -= 1
      return Stripe(
        limit: capacity.limit.map { $0 / stripeCount + (rest >= 0 ? 1 : 0) },
        ledger: storage.map { storage in
          StorageLedger(
            isReadFirst: policy.cacherRead == .beforeFetch,
            onlyName: storage.onlyName
          )
        }
      )
    }
    self.capacity = capacity
    self.storage = storage
    self.bulkFetch = bulkFetch
    time = TimeSource(clock)
    self.clock = clock
    self.policy = policy
    staleTime = Nanoseconds(saturating: policy.staleWhileRevalidate)
    source = FlightSource(name: name, namesKeys: namesKeys)
    self.fetch = fetch
  }

  /// The value of a key, if it is fresh and satisfies a caller who insists on a refresh.
  @inlinable
  func hit(_ key: Key, hash: UInt64, ticket: RefreshTicket) -> Value? {
    let now = time.now()
    return stripes.withLock(hash: hash) { $0.hit(key, hash: hash, ticket: ticket, at: now) }
  }

  /// The value of a key, fresh or stale.
  @inlinable
  func value(of key: Key, hash: UInt64) -> Value? {
    stripes.withLock(hash: hash) { $0.value(of: key, hash: hash) }
  }

  var statistics: CacheStatistics {
    var sum = CacheStatistics()
    stripes.withEachLock { sum = sum + $0.statistics }
    return sum
  }

  func drawTicket() -> RefreshTicket {
    RefreshTicket(rawValue: lastTicket.add(1, ordering: .relaxed).newValue)
  }

  /// How long a value is fresh.
  ///
  /// - Parameter terms: What came with it.
  /// - Returns: Its own time to live, or that of the policy with jitter.
  func lifetime(_ terms: ValueTerms = ValueTerms()) -> FlightState<Value>.Lifetime {
    if let own = terms.timeToLive { return .init(duration: own, terms: terms) }
    let duration = Nanoseconds(saturating: policy.timeToLive)
    guard policy.expiryJitter > 0 else { return .init(duration: duration, terms: terms) }
    let factor = 1 + policy.expiryJitter * .random(in: -1...1)
    return .init(duration: duration.scaled(by: factor), terms: terms)
  }

  /// What a change will leave to be done.
  func makeAftermath() -> Aftermath<Key, Value> {
    Aftermath(tellsEvents: events.subscriberCount > 0)
  }

  /// Does what a change has left to be done.
  func carryOut(_ aftermath: Aftermath<Key, Value>) {
    for delivery in aftermath.deliveries { delivery.deliver() }
    for (key, event) in aftermath.events { tell(event(source.name(of: key))) }
    for (flight, outcome) in aftermath.settles { flight.settle(outcome) }
    for flight in aftermath.cancels { flight.work.cancel() }
    for launch in aftermath.launches { self.launch(launch) }
    if aftermath.callsCacher, let storage { storage.scheduleWriting(in: self) }
  }

  /// Tells those who keep a log.
  func tell(_ event: CacheEvent) {
    events.send(event)
  }
}
