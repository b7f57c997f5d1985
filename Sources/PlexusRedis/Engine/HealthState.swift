/// The state of some connections, some of which count while they are not connected.
struct HealthState: Sendable {
  /// The connections that count, with the reasons why they are not there.
  private var links: [Int: RedisConnectionError?] = [:]
  private var isClosed = false
  /// The refusals of the servers on each connection.
  private var refusals: [Int: RedisEngineError] = [:]

  /// The reason why a connection is not there: if possible, one that only a change of the settings ends.
  var failure: RedisConnectionError? {
    let failures = links.sorted { $0.key < $1.key }.compactMap(\.value)
    return failures.first { !$0.isTemporary } ?? failures.first
  }

  /// The state of all connections together.
  var health: EngineHealth {
    if isClosed { return .closed }
    if let failure { return .isolated(reason: RedisEngineError(failure).description) }
    if links.isEmpty { return .connecting }
    let refusal = refusals.min { $0.key < $1.key }
    return refusal.map { .degraded(reason: $0.value.description) } ?? .connected
  }

  mutating func connect(on connection: Int = 0) {
    links[connection] = .some(nil)
  }

  mutating func disconnect(_ error: RedisConnectionError, on connection: Int = 0) {
    links[connection] = error
  }

  /// Records whether something that counts as a connection is not there.
  mutating func note(_ failure: RedisConnectionError?, on connection: Int) {
    links[connection] = failure.map { .some($0) }
  }

  mutating func refuse(_ refusal: RedisEngineError?, on connection: Int = 0) {
    refusals[connection] = refusal
  }

  /// A connection is no longer in use.
  mutating func remove(_ connection: Int) {
    (links[connection], refusals[connection]) = (nil, nil)
  }

  mutating func close() {
    isClosed = true
  }
}
