/// A limit for the values that a map keeps in memory.
///
/// At the limit, the map evicts values that are unlikely to be requested again, by S3-FIFO (Yang et al., "FIFO Queues
/// are All You Need for Cache Eviction", SOSP 2023) with a small queue that adapts to returning keys.
///
/// ```swift
/// var policy = CachePolicy()
/// policy.timeToLive = .seconds(3600)
/// let pages = MultiplexerMap<String, [UInt8]>(
///   policy: policy,
///   capacity: .cost(64 * 1024 * 1024, of: { page in page.count })
/// ) { url in Array(url.utf8) }
/// ```
///
/// An evicted value is fetched again when it is requested, or read from the cacher if the policy says so. It is first
/// written to the cacher if it has unwritten changes. Fetches in flight and their callers are not affected. Keys with
/// live subscriptions are not evicted, and do not count towards the capacity.
///
/// Without a capacity, a value stays in memory until it is cleared, even after its time to live, unless the policy has
/// a ``CachePolicy/staleTimeToLive``.
public enum CacheCapacity<Value: Sendable>: Sendable {
  /// No limit.
  case unbounded
  /// A maximum number of values.
  ///
  /// With 0, nothing is stored, but callers still share fetches.
  case count(Int)
  /// A maximum for the total cost of all values.
  ///
  /// The closure is called once for each new value, with no lock held; a negative cost counts as 0. A value that costs
  /// more than the whole limit is returned to its callers, is not stored, and evicts nothing.
  case cost(Int, of: @Sendable (Value) -> Int)

  /// Stops the program if the limit is invalid.
  @usableFromInline
  func validate() {
    switch self {
    case .unbounded:
      break
    case .count(let limit), .cost(let limit, _):
      precondition(
        limit >= 0,
        "The capacity of a map cannot be negative; use .unbounded for no limit"
      )
    }
  }

  /// The maximum total cost of all values, if there is a limit.
  @usableFromInline var limit: Int? {
    switch self {
    case .unbounded: nil
    // The sum of two limits does not overflow.
    case .count(let limit), .cost(let limit, _): min(limit, .max / 4)
    }
  }

  /// The number of shards of a map of this capacity, a power of two.
  ///
  /// The limit is divided among them. There are few shards as long as the division could be noticed, and only one if a
  /// single value can take the whole limit.
  @usableFromInline var shardCount: Int {
    switch self {
    case .unbounded:
      return 16
    case .count(let limit):
      var count = 1
      while count < 16, limit / (2 * count) >= 8192 { count *= 2 }
      return count
    case .cost:
      return 1
    }
  }
}
