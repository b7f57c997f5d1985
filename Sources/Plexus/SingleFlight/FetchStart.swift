/// The point in time at which the fetch of a value began, or at which it was stored, in orders that depend on no clock.
@usableFromInline
struct FetchStart: Hashable, Sendable {
  /// The generation of the cacher, if it counts removals.
  var generation: CacheGeneration?
  /// Whether the value is a fallback of a shared tier: others may have changed its key before.
  @usableFromInline var isContested = false
  /// The number of marks that this process had noted for the cacher.
  var order: UInt64 = 0

  @usableFromInline
  init() {}

  init(generation: CacheGeneration?, order: UInt64) {
    self.generation = generation
    self.order = order
  }

  /// The start of an outdated value, of which it is not known how old it is: no change of it satisfies a refresh.
  var beforeAllMarks: FetchStart {
    var start = FetchStart(generation: generation, order: 0)
    start.generation?.marks = 0
    return start
  }
}
