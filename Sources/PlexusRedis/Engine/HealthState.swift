/// The state of some connections to one server, of which the first one counts while it is not connected.
struct HealthState: Sendable {
  private var link = EngineHealth.connecting
  /// The reason why the first connection is not there.
  private(set) var failure: RedisConnectionError?
  /// The refusals of the server on each connection.
  private var refusals: [Int: RedisEngineError] = [:]

  /// The state of all connections together.
  var health: EngineHealth {
    guard link == .connected, let refusal = refusals.min(by: { $0.key < $1.key }) else {
      return link
    }
    return .degraded(reason: refusal.value.description)
  }

  mutating func connect() {
    (link, failure) = (.connected, nil)
  }

  mutating func disconnect(_ error: RedisConnectionError) {
    (link, failure) = (.isolated(reason: RedisEngineError(error).description), error)
  }

  mutating func refuse(_ refusal: RedisEngineError?, on connection: Int = 0) {
    refusals[connection] = refusal
  }

  mutating func close() {
    link = .closed
  }
}
