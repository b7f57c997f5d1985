internal import Synchronization

/// Lists by key that are loaded page by page, such as the results of searches.
///
/// ```swift
/// let searches = PagedMap<String, String, Int>(capacity: 20) { term, cursor in
///   let page = cursor ?? 0
///   return Page(items: ["\(term)\(page)"], next: page < 2 ? page + 1 : nil)
/// }
/// try await searches["a"].loadFirstPage()
/// print(searches["a"].state.value?.items ?? [])  // Prints "["a0"]"
/// ```
///
/// Each key has one ``PagedPublisher``. The map creates it at the first access, and keeps it.
///
/// ## Memory
///
/// A list is in use while it has subscribers, or while your code holds it: in a variable, or in a call that waits for a
/// page. Lists in use are never evicted. Of the others, the map keeps as many as its capacity, and evicts the least recently
/// accessed ones. The map counts them whenever it creates a list, which takes time proportional to the number of lists.
/// The list of an evicted key is created again, in the state `.unknown`, at the next access.
///
/// ## Sign-out
///
/// ``clear()`` resets every list, also the lists that your code holds. Register the map in a ``MuxRepository`` to clear it
/// together with others. ``MuxRepository/clearMemory()`` evicts the lists that are not in use, and leaves the others
/// unchanged.
///
/// ## Keys
///
/// The map calls `hash(into:)` of keys with no lock held, but compares keys with a lock held: the `==` of the type must be
/// fast and must not use the map.
///
/// ## Release
///
/// Releasing the last reference to a map releases its lists, which ends their streams. A list that your code holds
/// stays usable, but is no longer cleared with the map.
///
/// ## Topics
///
/// ### Creating a map
/// - ``init(capacity:maximumPageCount:fetch:)``
///
/// ### Accessing lists
/// - ``subscript(_:)``
/// - ``count``
///
/// ### Signing out
/// - ``clear()``
/// - ``register(in:)``
///
/// ### Acting as a member of a repository
/// - ``invalidate()``
/// - ``clearMemory()``
public final actor PagedMap<
  Key: Hashable & Sendable,
  Item: Sendable,
  Cursor: Equatable & Sendable
> {
  private let capacity: Int
  private let maximumPageCount: Int?
  private let fetch: @concurrent @Sendable (Key, Cursor?) async throws -> Page<Item, Cursor>
  private let hasher = KeyHasher()
  private let state = Locked(PagedMapState<Key, PagedPublisher<Item, Cursor>>())

  /// Creates a map without lists.
  ///
  /// - Parameters:
  ///   - capacity: The number of lists that stay in memory while they are not in use.
  ///   - maximumPageCount: The maximum number of loaded pages of a list; `nil` for no limit.
  ///   - fetch: Fetches the page of a key at a cursor, or the first page for `nil`, as for
  ///     ``PagedPublisher/init(maximumPageCount:fetch:)``.
  /// - Precondition: The capacity is not negative, and the maximum number of pages is at least 1.
  public init(
    capacity: Int,
    maximumPageCount: Int? = nil,
    fetch: @escaping @concurrent @Sendable (Key, Cursor?) async throws -> Page<Item, Cursor>
  ) {
    precondition(capacity >= 0, "The capacity of a map of lists cannot be negative")
    precondition(
      maximumPageCount ?? 1 >= 1,
      "A list needs room for one page; use nil for no limit"
    )
    self.capacity = capacity
    self.maximumPageCount = maximumPageCount
    self.fetch = fetch
  }

  /// The list of a key.
  ///
  /// - Parameter key: The key.
  public nonisolated subscript(key: Key) -> PagedPublisher<Item, Cursor> {
    let hash = hasher.hash(key)
    if let list = state.withLock({ $0.access(key, hash: hash) }) { return list }
    let new = PagedPublisher<Item, Cursor>(maximumPageCount: maximumPageCount) { [fetch] cursor in
      try await fetch(key, cursor)
    }
    let list = state.withLock { $0.insert(new, for: key, hash: hash) }
    evict(to: capacity)
    return list
  }

  /// The number of lists in memory.
  public nonisolated var count: Int {
    state.withLock { $0.count }
  }

  /// Drops the pages of all lists, and publishes `.unknown` to their subscribers.
  ///
  /// All lists are reset before this call suspends, as by ``PagedPublisher/reset()``: pages in flight are not used. A
  /// subscriber that receives `.unknown` finds no pages in any of the lists.
  ///
  /// - Throws: Nothing at present, since lists have no stored copies.
  public nonisolated func clear() async throws {
    invalidate()
  }

  /// Adds the map to a repository, which does not keep it alive.
  ///
  /// - Parameter repository: The repository.
  /// - Returns: The map itself.
  @discardableResult
  public nonisolated func register(in repository: MuxRepository = .shared) -> Self {
    repository.register(self)
    return self
  }

  private nonisolated func evict(to capacity: Int) {
    endSubscriptionsOfReleasedOwners()
    let keys = state.withLock { state in
      state.evict(to: capacity) { $0.core.hub.hasSubscribers.load(ordering: .relaxed) }
    }.map { (key: $0.key, hash: $0.hash) }
    // The lists have been released with no lock held, unless they were reached by a weak reference.
    for (key, hash) in keys { state.release { $0.remove(key, hash: hash) } }
  }

  /// Removes the handlers whose owners were released, which would keep their lists in use.
  private nonisolated func endSubscriptionsOfReleasedOwners() {
    let watched = state.withLock { state in
      state.lists.filter { $0.core.hub.hasSubscribers.load(ordering: .relaxed) }
    }
    for list in watched { list.core.hub.removeOrphans() }
  }
}

extension PagedMap: RepositoryMember {
  /// Drops the pages of all lists, as ``clear()`` does.
  public nonisolated func invalidate() {
    PageLoader.reset(state.withLock { $0.lists }.map(\.loader))
  }

  /// Evicts all lists that are not in use.
  public nonisolated func clearMemory() {
    evict(to: 0)
  }
}
