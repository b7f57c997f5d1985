/// The pure state of a publisher that loads, which a ``LoadingCore`` guards and publishes.
@usableFromInline
protocol LoadingModel: Sendable {
  associatedtype Value: Sendable
  /// The part that a caller requests.
  associatedtype Request: Sendable
  /// The place at which a load begins.
  associatedtype Start: Sendable
  /// The parts that a change has replaced.
  associatedtype Former: Sendable

  /// The state for subscribers.
  var current: LoadState<Value> { get }

  /// Returns the parts that the last change has replaced: their release can run other code.
  mutating func takeFormer() -> Former

  /// Returns whether the loaded value has reached an age.
  func isStale(after age: Duration?, at now: Duration) -> Bool

  /// Returns the time until the loaded value reaches an age, if it has not yet.
  func timeUntilStale(after age: Duration?, at now: Duration) -> Duration?

  /// Returns the answer to a request.
  ///
  /// - Parameters:
  ///   - request: The requested part.
  ///   - isStale: Whether the loaded value is stale.
  /// - Returns: The answer.
  func answer(to request: Request, isStale: Bool) -> LoadingAnswer<Value>

  /// Starts a load for a request.
  ///
  /// - Returns: The place at which it begins.
  mutating func begin(_ flight: Flight, for request: Request) -> Start

  /// Returns whether the result of a load will be used.
  func isCurrent(_ flight: Flight) -> Bool

  /// Abandons a load after its last caller has left.
  ///
  /// - Returns: Whether the state has changed.
  mutating func abandon(_ flight: Flight) -> Bool
}

/// The answer to a request of a ``LoadingModel``.
@usableFromInline
enum LoadingAnswer<Value: Sendable>: Sendable {
  /// There is nothing to load.
  case known(Value)
  /// The request waits for a load in flight.
  case joins(Flight)
  /// The request starts a load.
  case begins
}
