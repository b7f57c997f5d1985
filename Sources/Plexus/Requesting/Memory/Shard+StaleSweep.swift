extension Shard {
  /// The number of entries that each value of a new key examines.
  ///
  /// While a map of *n* entries is examined once, it grows by at most a quarter.
  private static var stride: Int { 4 }

  /// Removes values that are stale for longer than the policy keeps them, among the next few entries.
  ///
  /// Indices are invalid after this call.
  @usableFromInline
  @inline(never)
  mutating func sweepStaleValues(
    at now: Nanoseconds,
    staleTimeToLive: Nanoseconds,
    _ staleTime: Nanoseconds,
    _ effects: inout CacheEffects
  ) {
    for _ in 0..<min(Self.stride, keys.count) {
      if staleSweepPosition >= keys.count { staleSweepPosition = 0 }
      guard
        isTooOld(
          staleSweepPosition,
          at: now,
          staleTimeToLive: staleTimeToLive,
          staleTime: staleTime
        )
      else {
        staleSweepPosition += 1
        continue
      }
      effects.tell(of: keys.entries[staleSweepPosition].key) {
        .removed(key: $0, cause: .expired)
      }
      // The last entry takes its place, and is examined next.
      effects.release(remove(at: staleSweepPosition))
    }
  }

  /// Returns whether a value is past all times for which it is kept, and nothing else refers to it.
  private func isTooOld(
    _ index: Int,
    at now: Nanoseconds,
    staleTimeToLive: Nanoseconds,
    staleTime: Nanoseconds
  ) -> Bool {
    let entry = keys.entries[index]
    let idleDeadline = extras?.idleTimes?.deadline(of: index)
    guard entry.element.value != nil,
      entry.element.state.isExpired(at: now) || now >= idleDeadline ?? .max,
      entry.element.state.isForgettable(at: now),
      now
        >= entry.element.state.keptUntil(
          staleTimeToLive: staleTimeToLive,
          staleTime: staleTime,
          idleDeadline: idleDeadline
        )
    else { return false }
    guard let extras else { return true }
    return extras.hubs.index(of: entry.key, hash: entry.hash) == nil
      && extras.lives.index(of: entry.key, hash: entry.hash) == nil
      && extras.edits.index(of: entry.key, hash: entry.hash) == nil
      && extras.pendingWrites?.isUnwritten(entry.key, hash: entry.hash) != true
  }
}
