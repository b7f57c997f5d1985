extension S3FIFO {
  /// The hashes of the keys of evicted values, in the order of eviction.
  struct GhostList: Sendable {
    struct Ghost: Sendable {
      let hash: UInt64
      let turn: UInt32
    }

    /// The hashes by turn; a hash that was removed or added again stays here with an outdated turn.
    private(set) var order = Ring<Ghost>()
    private var turns = KeyTable<UInt64, UInt32>()
    private var lastTurn: UInt32 = 0

    init() {}

    /// The number of hashes.
    var count: Int { turns.count }

    /// Adds a hash as the newest one.
    mutating func append(_ hash: UInt64) {
      lastTurn &+= 1
      if let index = turns.index(of: hash, hash: hash) {
        turns.entries[index].element = lastTurn
      } else {
        _ = turns.insert(lastTurn, for: hash, hash: hash)
      }
      order.append(Ghost(hash: hash, turn: lastTurn))
      if order.count > 2 * turns.count + 64 { compact() }
    }

    /// Removes a hash.
    ///
    /// - Returns: Whether it was there.
    mutating func remove(_ hash: UInt64) -> Bool {
      guard let index = turns.index(of: hash, hash: hash) else { return false }
      _ = turns.remove(at: index)
      return true
    }

    /// Removes the oldest hash.
    ///
    /// - Returns: Whether there was one.
    mutating func removeOldest() -> Bool {
      while let oldest = order.popFirst() {
        guard let index = index(of: oldest) else { continue }
        _ = turns.remove(at: index)
        return true
      }
      return false
    }

    /// Returns the index of a ghost among the turns, unless it is outdated.
    private func index(of ghost: Ghost) -> Int? {
      turns.index(of: ghost.hash, hash: ghost.hash)
        .flatMap { turns.entries[$0].element == ghost.turn ? $0 : nil }
    }

    private mutating func compact() {
      var rest = Ring<Ghost>()
      while let next = order.popFirst() {
        if index(of: next) != nil { rest.append(next) }
      }
      order = rest
    }
  }
}
