/// A hash table whose callers compute the hashes of the keys.
///
/// The entries are in one array. The slots, of which at most three quarters are taken, are small: a slot
/// has the index of an entry, and in its upper bits a part of the hash, so that a look-up rarely accesses
/// another entry than the right one. Removing an entry moves up the slots after its own and leaves no
/// tombstones; the table shrinks when it is nearly empty.
///
/// Removed entries are returned, so that a caller with a lock can release them after unlocking. Of a key
/// only `==` is called.
@usableFromInline
struct KeyTable<Key: Hashable & Sendable, Element: Sendable>: Sendable {
  @usableFromInline
  struct Entry: Sendable {
    @usableFromInline let hash: UInt64
    @usableFromInline let key: Key
    @usableFromInline var element: Element

    @inlinable
    init(hash: UInt64, key: Key, element: Element) {
      self.hash = hash
      self.key = key
      self.element = element
    }
  }

  /// The entries, in no particular order.
  @usableFromInline var entries: ContiguousArray<Entry> = []

  /// Zero for a free slot, else bits of the hash above the index of the entry plus one.
  ///
  /// There are fewer entries than slots, so that the mask of the slots is also the mask of the indices.
  @usableFromInline var slots: ContiguousArray<UInt32> = []

  @inlinable
  init() {}

  @inlinable var count: Int { entries.count }

  @inlinable var isEmpty: Bool { entries.isEmpty }

  /// Returns the index of a key among the entries, if it is present.
  ///
  /// The next removal can change it.
  @inlinable
  func index(of key: Key, hash: UInt64) -> Int? {
    guard !slots.isEmpty else { return nil }
    let mask = slots.count &- 1
    let tagMask = ~UInt32(truncatingIfNeeded: mask)
    let tag = UInt32(truncatingIfNeeded: hash) & tagMask
    var slot = Self.home(of: hash, mask: mask)
    while true {
      let content = slots[slot]
      if content == 0 { return nil }
      if content & tagMask == tag {
        let index = Self.index(in: content, mask: mask)
        if entries[index].key == key { return index }
      }
      slot = (slot &+ 1) & mask
    }
  }

  /// Adds a new key.
  ///
  /// - Returns: Its index among the entries.
  @inlinable
  mutating func insert(_ element: Element, for key: Key, hash: UInt64) -> Int {
    if (entries.count + 1) * 4 > slots.count * 3 {
      rebuild(slotCount: max(8, slots.count * 2))
    }
    if entries.count == entries.capacity {
      // By a quarter, because doubling would waste memory in large tables.
      entries.reserveCapacity(entries.count + max(8, entries.count / 4))
    }
    entries.append(Entry(hash: hash, key: key, element: element))
    place(entries.count - 1)
    return entries.count - 1
  }

  /// Removes the entry at an index; the last entry takes that index.
  @inlinable
  mutating func remove(at index: Int) -> Entry {
    vacate(slot(of: index))
    let last = entries.count - 1
    if index != last {
      let moved = slot(of: last)
      slots[moved] = content(hash: entries[last].hash, index: index)
    }
    var removed = entries.removeLast()
    if index != last { swap(&removed, &entries[index]) }
    if slots.count > 64, entries.count * 8 < slots.count {
      rebuild(slotCount: slots.count / 4)
    }
    return removed
  }

  /// Removes and returns all entries.
  @inlinable
  mutating func removeAll() -> ContiguousArray<Entry> {
    let removed = entries
    entries = []
    slots = []
    return removed
  }

  // MARK: - Slots

  /// Returns the slot in which the search for a hash begins.
  ///
  /// The uppermost bits are left to choose a shard.
  @inlinable
  static func home(of hash: UInt64, mask: Int) -> Int {
    Int(truncatingIfNeeded: hash &>> 28) & mask
  }

  /// Returns the index of the entry that a taken slot belongs to.
  @inlinable
  static func index(in content: UInt32, mask: Int) -> Int {
    (Int(truncatingIfNeeded: content) & mask) &- 1
  }

  @inlinable
  func content(hash: UInt64, index: Int) -> UInt32 {
    let mask = UInt32(truncatingIfNeeded: slots.count - 1)
    return UInt32(truncatingIfNeeded: hash) & ~mask | UInt32(truncatingIfNeeded: index + 1)
  }

  @inlinable
  func slot(of index: Int) -> Int {
    let mask = slots.count - 1
    let content = self.content(hash: entries[index].hash, index: index)
    var slot = Self.home(of: entries[index].hash, mask: mask)
    while slots[slot] != content { slot = (slot + 1) & mask }
    return slot
  }

  @inlinable
  mutating func place(_ index: Int) {
    let mask = slots.count - 1
    let hash = entries[index].hash
    var slot = Self.home(of: hash, mask: mask)
    while slots[slot] != 0 { slot = (slot + 1) & mask }
    slots[slot] = content(hash: hash, index: index)
  }

  /// Frees a slot and moves up every following slot that would otherwise not be found.
  @inlinable
  mutating func vacate(_ slot: Int) {
    let mask = slots.count - 1
    var gap = slot
    var next = (gap + 1) & mask
    while slots[next] != 0 {
      let home = Self.home(of: entries[Self.index(in: slots[next], mask: mask)].hash, mask: mask)
      if (next - home) & mask >= (next - gap) & mask {
        slots[gap] = slots[next]
        gap = next
      }
      next = (next + 1) & mask
    }
    slots[gap] = 0
  }

  @inlinable
  mutating func rebuild(slotCount: Int) {
    slots = ContiguousArray(repeating: 0, count: slotCount)
    if entries.capacity > slotCount {
      var smaller: ContiguousArray<Entry> = []
      smaller.reserveCapacity(slotCount)
      smaller.append(contentsOf: entries)
      entries = smaller
    }
    for index in entries.indices { place(index) }
  }
}
