/// Lists by key, each of which is loaded page by page, such as the results of searches.
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
/// A key has one ``PagedPublisher``, which the map creates when it is first accessed. The map keeps the lists that were
/// accessed last, as many as its capacity, and all others that have subscribers. A list that someone else holds, such as a
/// caller that waits for a page, is still that of its key. The others are released, and begin as `.unknown` when they are
/// accessed again.
///
/// ## Sign-out
///
/// ``clear()`` and a ``MuxRepository`` reset all lists, also those that only others hold: their pages are dropped before
/// `.unknown` is published, and pages in flight are not used.
///
/// ## Release
///
/// The lists that nobody else holds are released with the map, which ends their streams.
///
/// ## Topics
///
/// ### Creating a map
/// - ``init(capacity:maximumPageCount:fetch:)``
///
/// ### Accessing lists
/// - ``subscript(_:)``
///
/// ### Signing out
/// - ``clear()``
/// - ``register(in:)``
public final actor PagedMap<
  Key: Hashable & Sendable, Item: Sendable, Cursor: Equatable & Sendable
> {
  private let lists: PagedLists<Key, Item, Cursor>

  /// Creates a map without lists.
  ///
  /// - Precondition: The capacity is not negative, and the maximum is at least 1.
  ///
  /// - Parameters:
  ///   - capacity: The number of lists that the map keeps even if they have no subscribers.
  ///   - maximumPageCount: The number of pages that each list stores at most; `nil` for no limit.
  ///   - fetch: Fetches the page of a key at a cursor, or the first page for `nil`. For details, see
  ///     ``PagedPublisher/init(maximumPageCount:fetch:)``.
  public init(
    capacity: Int,
    maximumPageCount: Int? = nil,
    fetch: @escaping @concurrent @Sendable (Key, Cursor?) async throws -> Page<Item, Cursor>
  ) {
    precondition(capacity >= 0, "The capacity of a PagedMap is a number of lists: 0 or more.")
    lists = PagedLists(capacity: capacity) { key in
      PagedPublisher(maximumPageCount: maximumPageCount) { try await fetch(key, $0) }
    }
  }

  /// The list of a key.
  public nonisolated subscript(key: Key) -> PagedPublisher<Item, Cursor> {
    lists.list(of: key)
  }

  /// Drops the pages of all lists, and publishes `.unknown`.
  ///
  /// For details, see ``PagedPublisher/reset()``.
  public nonisolated func clear() {
    lists.invalidate()
  }

  /// Adds the map to a repository, which does not keep it alive.
  ///
  /// - Parameter repository: The repository.
  /// - Returns: The map itself.
  @discardableResult
  public nonisolated func register(in repository: MuxRepository = .shared) -> Self {
    repository.register(lists)
    return self
  }
}
