/// A value in a ``Cacher``, with the data to judge and renew it later.
///
/// ## Topics
///
/// ### Creating an entry
/// - ``init(value:storedAt:validator:timeToLive:)``
/// - ``init(value:storedAt:validator:directives:)``
///
/// ### Reading
/// - ``value``
/// - ``storedAt``
/// - ``validator``
/// - ``directives``
/// - ``timeToLive``
/// - ``generation``
/// - ``tags``
public struct CacheEntry<Value: Sendable>: Sendable {
  /// The value.
  public var value: Value
  /// The time at which the fetch of the value began or at which it was stored, since 1970-01-01T00:00Z.
  ///
  /// It is the time of the wall clock, so that it is meaningful after a restart. A cacher stores it unchanged, even if
  /// it is in the future: the reader decides whether an entry is fresh.
  public var storedAt: Duration
  /// The validator with which the origin can tell whether the value has changed, such as an entity tag.
  public var validator: String?
  /// The caching rules that came with the value.
  ///
  /// If a cacher does not store them, the policy of the reader decides.
  public var directives: CacheDirectives
  /// The ``Cacher/generation`` from before the value was fetched or stored, if the cacher has one.
  ///
  /// A cacher that counts removals does not store the entry if its key has been removed since. With `nil`, it stores
  /// the entry in any case. The generation is not stored: entries that are read have none.
  public var generation: CacheGeneration?
  /// The tags of the key and of the value.
  ///
  /// A cacher that records clears by tag does not store the entry if one of its tags has been cleared since its
  /// ``generation``. Entries that are read have none.
  public var tags: [CacheTag] = []
  /// The time for which its cache can use the value, fresh or stale, once it is stored; `nil` for no limit.
  ///
  /// Entries that are read have none.
  package var usableTime: Duration?
  /// The state of the engine since which the key must not have changed, by ``CacheGeneration/marks``.
  ///
  /// With `nil`, the entry is stored in any case. An entry that is read as a fallback has the state in which it was stored.
  package var unchangedSince: UInt64?
  /// The identity of the store, if the entry is stored in a shared cacher without a lease.
  package var storeID: SharedCache.StoreID?
  /// Whether the value has changed at its origin since its fetch began, according to the cacher.
  package var isOutdated = false
  /// Whether one of its tags has been cleared since its fetch began, according to the cacher.
  package var isCleared = false

  /// Creates an entry.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - storedAt: The time at which it was fetched or stored, since 1970-01-01T00:00Z.
  ///   - validator: The validator that came with it.
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

  /// Creates an entry with directives.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - storedAt: The time at which it was fetched or stored, since 1970-01-01T00:00Z.
  ///   - validator: The validator that came with it.
  ///   - directives: The caching rules that came with it.
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

  /// The time to live of the ``directives``; `nil` if the policy of the reader decides.
  public var timeToLive: Duration? {
    get { directives.timeToLive }
    set { directives.timeToLive = newValue }
  }
}

extension CacheEntry {
  /// Creates the entry of a copy that has some age at some time.
  init(_ copy: ValueOutcome<Value>, age: Duration, at time: Duration) {
    self.init(
      value: copy.value,
      storedAt: time - age,
      validator: copy.validator,
      directives: copy.terms.directives
    )
  }
}

extension CacheEntry: Equatable where Value: Equatable {}
extension CacheEntry: Hashable where Value: Hashable {}
