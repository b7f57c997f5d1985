/// How much a map keeps in memory.
///
/// When there is too much, values have to go that are not likely to be asked for again: which ones,
/// S3-FIFO decides (Yang et al., "FIFO Queues are All You Need for Cache Eviction", SOSP 2023), with a
/// small queue that grows and shrinks with what returns.
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
/// A value that has gone is fetched again when it is asked for, or read from the cacher if the policy says
/// so; one that the cacher does not have yet is written to it first. A fetch under way and its callers
/// notice nothing.
///
/// Without a capacity a value stays until it is cleared, also when its time to live is over: see ``CachePolicy``.
public enum CacheCapacity<Value: Sendable>: Sendable {
  /// Everything.
  case unbounded
  /// So many values, never more.
  ///
  /// With 0 nothing is kept, and callers still share fetches.
  case count(Int)
  /// Values that cost no more than so much together.
  ///
  /// The closure is called once for each new value, under no lock; a negative cost counts as 0. A value
  /// that costs more than the whole limit is returned to those who wait for it, not kept, and nothing has
  /// to go for it.
  case cost(Int, of: @Sendable (Value) -> Int)

  /// Stops the program where the limit makes no sense.
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

  /// What all values may cost together, if there is a limit.
  @usableFromInline var limit: Int? {
    switch self {
    case .unbounded: nil
    // Two of them still have a sum.
    case .count(let limit), .cost(let limit, _): min(limit, .max / 4)
    }
  }

  /// The number of shards of a map of this capacity: a power of two.
  ///
  /// A limit is divided among them. There are few as long as that could be noticed, and one where a single
  /// value may take all of it.
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
