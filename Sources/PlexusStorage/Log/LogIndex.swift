/// Where the entries of a log are.
struct LogIndex: Sendable {
  /// Where a record is.
  struct Place: Hashable, Sendable {
    let offset: Int
    let byteCount: Int
    let storedAt: Duration
  }

  /// The record of each key that has an entry.
  private(set) var places: [String: Place] = [:]
  /// How many bytes those records have together.
  private(set) var liveByteCount = 0

  /// A key has a new entry.
  mutating func put(_ key: String, _ place: Place) {
    let old = places.updateValue(place, forKey: key)
    liveByteCount += place.byteCount - (old?.byteCount ?? 0)
  }

  /// A key has no entry any more.
  mutating func remove(_ key: String) {
    liveByteCount -= places.removeValue(forKey: key)?.byteCount ?? 0
  }

  /// Takes up what a file has after a place up to which it is known.
  ///
  /// Damage is told from the end of a write that a crash cut short by what follows: whole records or
  /// none. After damage those entries are given up that it may have replaced or removed: one if it is
  /// known whose payload it hit, else all before it. So no value comes back that was removed.
  ///
  /// - Parameters:
  ///   - window: The file.
  ///   - start: How far it is known.
  ///   - stopsAtDamage: Whether the end is the first record that is not whole. It may be one that is just being
  ///     written, if the file is not locked.
  /// - Returns: Where its last whole record ends.
  /// - Throws: What reading the file throws; the index must not be used any more then.
  mutating func scan(
    _ window: inout LogWindow,
    from start: Int,
    stopsAtDamage: Bool = false
  ) throws -> Int {
    var end = start
    var position = start
    var damagedKeys: [String] = []
    var isDamagedAnywhere = false
    while position < window.size {
      guard let label = try LogRecord.Label(at: position, in: &window) else {
        if stopsAtDamage { break }
        isDamagedAnywhere = true
        position += 1
        continue
      }
      let place = position
      position += label.recordByteCount
      let payload = try window.bytes(at: place + label.byteCount, count: label.payloadCount)
      guard CRC32C.checksum(payload) == label.payloadChecksum else {
        if stopsAtDamage { break }
        damagedKeys.append(label.key)
        continue
      }
      if isDamagedAnywhere { self = LogIndex() }
      for key in damagedKeys { remove(key) }
      damagedKeys = []
      isDamagedAnywhere = false
      end = position
      switch label.kind {
      case .entry:
        let byteCount = label.recordByteCount
        put(label.key, Place(offset: place, byteCount: byteCount, storedAt: label.storedAt))
      case .removal: remove(label.key)
      case .seal: break
      }
    }
    return end
  }

  /// Returns which entries must go, the oldest first, to get rid of some bytes.
  ///
  /// - Parameters:
  ///   - excess: How many bytes must go.
  ///   - keys: Those that go anyway and do not count.
  ///   - now: The wall clock's time. An entry from the future counts as the oldest: a clock that was
  ///     once wrong must not make it stay for ever.
  /// - Returns: The keys of those that must go.
  func victims(freeing excess: Int, besides keys: Set<String>, now: Duration) -> [String] {
    guard excess > 0 else { return [] }
    var victims: [String] = []
    var excess = excess
    let oldest = places.filter { !keys.contains($0.key) }
      .map { key, place in
        let isFromTheFuture = place.storedAt > now + .seconds(60)
        let age = isFromTheFuture ? Duration.seconds(Int64.min) : place.storedAt
        return (age: age, offset: place.offset, key: key, byteCount: place.byteCount)
      }
      .sorted { ($0.age, $0.offset) < ($1.age, $1.offset) }
    for entry in oldest where excess > 0 {
      victims.append(entry.key)
      excess -= entry.byteCount
    }
    return victims
  }
}
