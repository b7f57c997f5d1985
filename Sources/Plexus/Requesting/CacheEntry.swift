/// A value in a ``Cacher``, with what is needed to judge and renew it later.
public struct CacheEntry<Value: Sendable>: Sendable {
  /// The value.
  public var value: Value
  /// The time at which the value was fetched or stored, since 1970-01-01T00:00Z.
  ///
  /// It is the wall clock's, because it has to mean something after a restart. A cacher keeps it as it
  /// is, times in the future included: whether an entry is fresh is decided by who reads it.
  public var storedAt: Duration
  /// What came with the value to ask the origin whether it has changed, such as an entity tag.
  public var validator: String?
  /// What came with the value about keeping it.
  ///
  /// A cacher that does not keep it leaves everything to the policy of whoever reads the entry.
  public var directives: CacheDirectives
  /// The ``Cacher/generation`` before the value was fetched or stored, if the cacher has told it.
  ///
  /// A cacher that counts removals does not store the entry if its key has been removed since. `nil` stores it in any
  /// case. It is not kept: entries that are read have none.
  public var generation: CacheGeneration?

  /// Creates an entry.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - storedAt: The time at which it was fetched or stored, since 1970-01-01T00:00Z.
  ///   - validator: What came with it to ask the origin whether it has changed.
  ///   - timeToLive: The time to live that came with it.
  public init(
    value: Value,
    storedAt: Duration,
    validator: String? = nil,
    timeToLive: Duration? = nil
  ) {
    self.init(
      value: value,
      storedAt: storedAt,
      validator: validator,
      directives: CacheDirectives(timeToLive: timeToLive)
    )
  }

  /// Creates an entry with all that came with its value about keeping it.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - storedAt: The time at which it was fetched or stored, since 1970-01-01T00:00Z.
  ///   - validator: What came with it to ask the origin whether it has changed.
  ///   - directives: What came with it about keeping it.
  public init(
    value: Value,
    storedAt: Duration,
    validator: String? = nil,
    directives: CacheDirectives
  ) {
    self.value = value
    self.storedAt = storedAt
    self.validator = validator
    self.directives = directives
  }

  /// The time to live that came with the value; `nil` if the policy of whoever reads it decides.
  ///
  /// It is the one of the ``directives``.
  public var timeToLive: Duration? {
    get { directives.timeToLive }
    set { directives.timeToLive = newValue }
  }
}

extension CacheEntry: Equatable where Value: Equatable {}
extension CacheEntry: Hashable where Value: Hashable {}
