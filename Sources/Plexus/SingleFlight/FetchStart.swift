/// The point in time at which the fetch of a value began, or at which it was stored, in orders that depend on no clock.
@usableFromInline
struct FetchStart: Hashable, Sendable {
  /// The generation of the cacher, if it counts removals.
  var generation: CacheGeneration?
  /// Whether the value is a fallback of a shared tier: others may have changed its key before.
  @usableFromInline var isContested = false
  /// Whether the value was outdated even then: a change of it satisfies no refresh.
  var isOutdated = false
  /// The number of marks that this process had noted for the cacher.
  var order: UInt64 = 0

  @usableFromInline
  init() {}

  init(generation: CacheGeneration?, order: UInt64) {
    self.generation = generation
    self.order = order
  }
}
