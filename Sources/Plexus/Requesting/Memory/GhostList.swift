/// The hashes of the keys of evicted values, in the order of eviction.
struct GhostList: Sendable {
  struct Ghost: Sendable {
    let hash: UInt64
    let turn: UInt32
  }

  /// The hashes by turn; a hash that was removed or added again stays here with an outdated turn.
  private(set) var order = Ring<Ghost>()
  private var turns: [UInt64: UInt32] = [:]
  private var lastTurn: UInt32 = 0

  init() {}

  /// The number of hashes.
  var count: Int { turns.count }

  /// Adds a hash as the newest one.
  mutating func append(_ hash: UInt64) {
    lastTurn &+= 1
    turns[hash] = lastTurn
    order.append(Ghost(hash: hash, turn: lastTurn))
    if order.count > 2 * turns.count + 64 { compact() }
  }

  /// Removes a hash.
  ///
  /// - Returns: Whether it was there.
  mutating func remove(_ hash: UInt64) -> Bool {
    turns.removeValue(forKey: hash) != nil
  }

  /// Removes the oldest hash.
  ///
  /// - Returns: Whether there was one.
  mutating func removeOldest() -> Bool {
    while let oldest = order.popFirst() {
      if turns[oldest.hash] == oldest.turn {
        turns[oldest.hash] = nil
        return true
      }
    }
    return false
  }

  private mutating func compact() {
    var rest = Ring<Ghost>()
    while let next = order.popFirst() {
      if turns[next.hash] == next.turn { rest.append(next) }
    }
    order = rest
  }
}
