/// A page of a list, and the cursor by which it was fetched.
struct LoadedPage<Item: Sendable, Cursor: Equatable & Sendable>: Sendable {
  /// The cursor; `nil` for the first page.
  let cursor: Cursor?
  var items: [Item]
  /// The cursors of the neighbors that the page has given.
  var links: PagesEdge.Pair<Cursor?>

  init(cursor: Cursor?, _ page: Page<Item, Cursor>) {
    self.cursor = cursor
    items = page.items
    links = PagesEdge.Pair(start: page.previous, end: page.next)
  }
}

/// The loaded pages of a list, and the cursors of pages that have left at its edges.
///
/// Invariants:
///
/// - No two pages have the same cursor, nor has one of them that of a page that has left.
/// - The pages that have left at an edge follow the loaded ones there; the last one to leave is the first to follow.
struct PagesList<Item: Sendable, Cursor: Equatable & Sendable>: Sendable {
  typealias Loaded = LoadedPage<Item, Cursor>

  /// The cursor of a page that has left.
  struct Departed: Sendable {
    let cursor: Cursor?
    /// Whether its neighbor on the inner side gives no cursor for it, so that it is found only by this one.
    let isOnlyLink: Bool
  }

  private(set) var pages: [Loaded] = []
  private(set) var departed = PagesEdge.Pair<[Departed]>(start: [], end: [])

  /// The pages as one; `nil` without pages.
  var value: Pages<Item>? {
    guard !pages.isEmpty else { return nil }
    return Pages(
      items: pages.flatMap(\.items),
      isComplete: isComplete(at: .end),
      isCompleteAtStart: isComplete(at: .start),
      pageCount: pages.count
    )
  }

  private func outermost(at edge: PagesEdge) -> Int? {
    edge == .start ? pages.indices.first : pages.indices.last
  }

  /// Returns the cursor of the page beyond an edge; `nil` if there is none.
  func cursor(beyond edge: PagesEdge) -> Cursor?? {
    guard let index = outermost(at: edge) else { return nil }
    if let link = pages[index].links[edge] { return .some(link) }
    guard let left = departed[edge].last, left.isOnlyLink else { return nil }
    return .some(left.cursor)
  }

  /// Returns whether there is no page beyond an edge.
  func isComplete(at edge: PagesEdge) -> Bool {
    cursor(beyond: edge) == nil
  }

  /// Ends the list at an edge.
  private mutating func close(_ edge: PagesEdge) {
    departed[edge] = []
    if let index = outermost(at: edge) { pages[index].links[edge] = nil }
  }

  /// Adds the page beyond an edge, unless it is there already: then it replaces that one.
  ///
  /// - Returns: Whether the list can continue there. If not, the page or the one after it is there already, and the list
  ///   is complete at this edge.
  mutating func add(_ page: Loaded, at edge: PagesEdge) -> Bool {
    let others = departed[edge.opposite]
    if let index = pages.firstIndex(where: { $0.cursor == page.cursor }) {
      pages[index].items = page.items
      close(edge)
      return false
    }
    guard !others.contains(where: { $0.cursor == page.cursor }) else {
      close(edge)
      return false
    }
    _ = departed[edge].popLast()
    pages.insert(page, at: edge == .start ? 0 : pages.count)
    guard let link = page.links[edge] else {
      // The page is the last one, whatever had followed it.
      if isComplete(at: edge) { close(edge) }
      return true
    }
    let isRepeated =
      isLoaded(link, beyond: edge) || others.contains { $0.cursor == link }
    if isRepeated { close(edge) }
    return !isRepeated
  }

  /// Returns whether a cursor is that of a loaded page, also if only a neighbor has named the page so.
  private func isLoaded(_ cursor: Cursor, beyond edge: PagesEdge) -> Bool {
    let followers = edge == .end ? pages.dropFirst() : pages.dropLast()
    return pages.contains { $0.cursor == cursor }
      || followers.contains { $0.links[edge.opposite] == cursor }
  }

  /// Removes the outermost of several pages.
  mutating func removePage(at edge: PagesEdge) {
    guard pages.count > 1 else { return }
    let page = edge == .start ? pages.removeFirst() : pages.removeLast()
    let neighbor = edge == .start ? pages[0] : pages[pages.count - 1]
    let isOnlyLink = neighbor.links[edge] == nil
    departed[edge].append(Departed(cursor: page.cursor, isOnlyLink: isOnlyLink))
  }

  /// Changes the items of every page.
  mutating func edit(_ body: (inout [Item]) -> Void) {
    for index in pages.indices { body(&pages[index].items) }
  }
}

// MARK: - All pages again

extension PagesList {
  /// A walk that loads all pages again.
  var refreshingWalk: PagesWalk<Item, Cursor> {
    // Pages that only give the cursors of those before them are loaded in that direction, or changes would leave gaps.
    let isForward = pages.dropLast().allSatisfy { $0.links.end != nil }
    let isBackward = pages.dropFirst().allSatisfy { $0.links.start != nil }
    let direction: PagesEdge = !isForward && isBackward ? .start : .end
    return PagesWalk(
      refreshing: direction == .end ? pages : pages.reversed(),
      towards: direction,
      passed: departed[direction.opposite].map(\.cursor)
    )
  }

  /// Replaces all pages by those of a walk that has ended.
  mutating func replace(by walk: PagesWalk<Item, Cursor>, isRefresh: Bool) {
    let old = pages
    pages = walk.direction == .end ? walk.pages : walk.pages.reversed()
    guard isRefresh else {
      departed = PagesEdge.Pair(start: [], end: [])
      return
    }
    for edge in PagesEdge.allCases {
      // A page that has given a cursor and no longer does is the last one, and so is the last one of a shorter list.
      let formerLink = (edge == .start ? old.first : old.last)?.links[edge]
      let isShorter = edge == walk.direction && pages.count < old.count
      let hasLink = outermost(at: edge).map { pages[$0].links[edge] != nil } ?? false
      if isShorter || formerLink != nil && !hasLink { departed[edge] = [] }
    }
  }
}
