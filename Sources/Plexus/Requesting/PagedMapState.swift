/// The pure state of a ``PagedMap``: its lists, and the order in which they were accessed.
///
/// Invariants:
///
/// - There is one list for a key as long as the map or another part of the program holds it.
/// - A list is evicted only if nothing but the map holds it, and it has no subscribers.
///
/// Nothing is released here: removed entries and lists are returned.
struct PagedMapState<Key: Hashable & Sendable, List: AnyObject & Sendable>: Sendable {
  typealias Table = KeyTable<Key, Entry>

  /// An evicted list, which another part of the program can have reached by a weak reference.
  final class Evicted: Sendable {
    weak let list: List?

    init(_ list: List) {
      self.list = list
    }
  }

  /// The list of a key.
  struct Entry: Sendable {
    /// The list; `nil` during its eviction.
    var list: List?
    var evicted: Evicted?
    /// The number of its last access.
    var lastAccess: UInt64

    /// The list, as long as anything holds it.
    var living: List? { list ?? evicted?.list }
  }

  private var table = Table()
  private var lastAccess: UInt64 = 0

  var count: Int { table.count }

  /// All lists, also during their eviction if anything holds them.
  var lists: [List] { table.entries.compactMap(\.element.living) }

  /// Returns the list of a key, if there is one.
  mutating func access(_ key: Key, hash: UInt64) -> List? {
    guard let index = table.index(of: key, hash: hash),
      let list = table.entries[index].element.living
    else { return nil }
    use(list, at: index)
    return list
  }

  /// Adds the list of a key, unless there is one.
  ///
  /// - Returns: The list of the key.
  mutating func insert(_ new: List, for key: Key, hash: UInt64) -> List {
    if let list = access(key, hash: hash) { return list }
    if let index = table.index(of: key, hash: hash) {
      use(new, at: index)
    } else {
      lastAccess += 1
      let entry = Entry(list: new, lastAccess: lastAccess)
      _ = table.insert(entry, for: key, hash: hash)
    }
    return new
  }

  private mutating func use(_ list: List, at index: Int) {
    lastAccess += 1
    table.entries[index].element.list = list
    table.entries[index].element.evicted = nil
    table.entries[index].element.lastAccess = lastAccess
  }

  /// Evicts the lists that are not in use, except the ones that were accessed last.
  ///
  /// - Parameters:
  ///   - capacity: The number of unused lists that stay.
  ///   - hasSubscribers: Returns whether a list has subscribers.
  /// - Returns: The lists, to be released before ``remove(_:)`` is called with them.
  mutating func evict(
    to capacity: Int,
    hasSubscribers: (List) -> Bool
  ) -> [(key: Key, hash: UInt64, list: List)] {
    guard table.count > capacity else { return [] }
    var unused: [(lastAccess: UInt64, index: Int)] = []
    for index in table.entries.indices {
      guard let isWatched = table.entries[index].element.list.map(hasSubscribers), !isWatched,
        isKnownUniquelyReferenced(&table.entries[index].element.list)
      else { continue }
      unused.append((table.entries[index].element.lastAccess, index))
    }
    guard unused.count > capacity else { return [] }
    unused.sort { $0.lastAccess < $1.lastAccess }
    return unused.dropLast(capacity).compactMap { _, index in
      guard let list = table.entries[index].element.list.take() else { return nil }
      table.entries[index].element.evicted = Evicted(list)
      return (table.entries[index].key, table.entries[index].hash, list)
    }
  }

  /// Ends an eviction, after the map has released the list.
  ///
  /// - Parameters:
  ///   - key: The key of the list.
  ///   - hash: The hash of the key.
  /// - Returns: The removed entry; `nil` if the list is in use again.
  mutating func remove(_ key: Key, hash: UInt64) -> Table.Entry? {
    guard let index = table.index(of: key, hash: hash),
      table.entries[index].element.list == nil
    else { return nil }
    guard let list = table.entries[index].element.evicted?.list else {
      return table.remove(at: index)
    }
    table.entries[index].element.list = list
    table.entries[index].element.evicted = nil
    return nil
  }
}
