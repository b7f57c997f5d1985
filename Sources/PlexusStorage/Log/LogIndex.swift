/// The positions of the entries in a log.
struct LogIndex: Sendable {
  /// The position of a record.
  struct Place: Hashable, Sendable {
    let offset: Int
    let byteCount: Int
    let storedAt: Duration
  }

  /// The position of each key's entry.
  private(set) var places: [String: Place] = [:]
  /// The total size of these records.
  private(set) var liveByteCount = 0
  /// Whether the file has records of removals, and so the bytes of removed entries.
  private(set) var hasRemovals = false

  /// Sets the position of a key's entry.
  mutating func put(_ key: String, _ place: Place) {
    let old = places.updateValue(place, forKey: key)
    liveByteCount += place.byteCount - (old?.byteCount ?? 0)
  }

  /// Removes a key.
  mutating func remove(_ key: String) {
    liveByteCount -= places.removeValue(forKey: key)?.byteCount ?? 0
    hasRemovals = true
  }

  /// Adds the records of a file from a position onward.
  ///
  /// Damage is followed by complete records; a write that a crash interrupted is not. Damage drops the
  /// entries that the damaged record may have replaced or removed: one entry if the key is known,
  /// otherwise all entries before it. A removed value therefore never reappears.
  ///
  /// - Parameters:
  ///   - window: The file.
  ///   - start: The end of the indexed records.
  ///   - stopsAtDamage: Whether to stop at the first incomplete record. Without the lock, it may be a record
  ///     that is being written.
  /// - Returns: The end of the last complete record.
  /// - Throws: The error of reading the file. The index is then unusable.
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

  /// Returns the entries to evict, oldest first, to free a number of bytes.
  ///
  /// - Parameters:
  ///   - excess: The number of bytes to free.
  ///   - keys: Keys that are dropped anyway and do not count.
  ///   - now: The current wall-clock time. An entry with a later time counts as the oldest, so that a
  ///     wrong clock cannot keep it forever.
  /// - Returns: The keys of the entries to evict.
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
