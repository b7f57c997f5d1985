/// The lists of a ``PagedMap``, as a member of a ``MuxRepository``.
final class PagedLists<
  Key: Hashable & Sendable, Item: Sendable, Cursor: Equatable & Sendable
>: RepositoryMember {
  typealias List = PagedPublisher<Item, Cursor>

  /// The list of a key, as long as someone holds it.
  private struct Entry: Sendable {
    weak var list: List?
    /// The place among the lists that the map keeps; `nil` if only others hold it.
    var place: Int?
  }

  private struct State: Sendable {
    var entries = KeyTable<Key, Entry>()
    /// The lists that the map keeps, in the order of their last access.
    var kept = StableList<Kept>()
    var keptCount = 0
    /// The number of entries at which those of released lists are removed.
    var sweepThreshold = 64

    /// Drops all lists but a number of those that were accessed last, and those with subscribers.
    mutating func evict(to capacity: Int, _ garbage: inout Garbage) {
      var rest = keptCount - capacity
      for place in kept.places where rest > 0 {
        guard let member = place.member else { continue }
        rest -= 1
        // Counting removes no handlers of released owners, which would run other code.
        guard member.list.core.hub.count == 0 else { continue }
        garbage.lists.append(kept.remove(place.number))
        keptCount -= 1
        if let index = entries.index(of: member.key, hash: member.hash) {
          entries.entries[index].element.place = nil
        }
      }
      guard entries.count >= sweepThreshold else { return }
      for index in entries.entries.indices.reversed() {
        let entry = entries.entries[index].element
        guard entry.place == nil, entry.list == nil else { continue }
        garbage.entries.append(entries.remove(at: index))
      }
      sweepThreshold = max(64, 2 * entries.count)
    }
  }

  private struct Kept: Sendable {
    let key: Key
    let hash: UInt64
    let list: List
  }

  /// What a change has removed, to be released with no lock held.
  private struct Garbage {
    var lists: [Kept?] = []
    var entries: [KeyTable<Key, Entry>.Entry] = []
  }

  private let capacity: Int
  private let hasher = KeyHasher()
  private let make: @Sendable (Key) -> List
  private let state = Locked(State())

  init(capacity: Int, _ make: @escaping @Sendable (Key) -> List) {
    self.capacity = capacity
    self.make = make
  }

  var name: String { "\(PagedMap<Key, Item, Cursor>.self)" }

  /// Returns the list of a key, which is the one that was accessed last.
  func list(of key: Key) -> List {
    let hash = hasher.hash(key)
    if let list = access(key, hash, orInserting: nil) { return list }
    let new = make(key)
    return access(key, hash, orInserting: new) ?? new
  }

  private func access(_ key: Key, _ hash: UInt64, orInserting new: List?) -> List? {
    var garbage = Garbage()
    let list = state.withLock { state -> List? in
      let index = state.entries.index(of: key, hash: hash)
      let known = index.flatMap { state.entries.entries[$0].element }
      guard let list = known?.list ?? new else { return nil }
      if let place = known?.place { garbage.lists.append(state.kept.remove(place)) }
      let place = state.kept.append(Kept(key: key, hash: hash, list: list))
      if known?.place == nil { state.keptCount += 1 }
      let entry = Entry(list: list, place: place)
      if let index {
        state.entries.entries[index].element = entry
      } else {
        _ = state.entries.insert(entry, for: key, hash: hash)
      }
      state.evict(to: capacity, &garbage)
      return list
    }
    withExtendedLifetime(garbage) {}
    return list
  }

  func invalidate() {
    for list in all { list.reset() }
  }

  /// Drops the lists that have no subscribers.
  func clearMemory() {
    var garbage = Garbage()
    state.withLock { $0.evict(to: 0, &garbage) }
    withExtendedLifetime(garbage) {}
  }

  /// All lists that someone holds.
  private var all: [List] {
    state.withLock { $0.entries.entries.compactMap(\.element.list) }
  }
}
