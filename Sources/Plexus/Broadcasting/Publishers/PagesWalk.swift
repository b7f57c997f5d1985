/// The way through the pages of a whole list while it is loaded.
///
/// A page is loaded by the cursor that the new page before it gives. If the old page before it gave none, it is loaded by
/// its old cursor.
struct PagesWalk<Item: Sendable, Cursor: Equatable & Sendable>: Sendable {
  typealias Loaded = LoadedPage<Item, Cursor>

  /// A page to load.
  private struct Step: Sendable {
    let cursor: Cursor?
    /// Whether the old page before it gave no cursor for it.
    let isOnlyLink: Bool
  }

  /// The edge towards which the pages are loaded.
  let direction: PagesEdge
  private let steps: [Step]
  /// The cursors of the pages before the first one, which are not loaded.
  private let passed: [Cursor?]
  /// The pages so far, in the order of loading.
  private(set) var pages: [Loaded] = []
  /// The number of edits that the pages have received.
  private(set) var editCount = 0
  /// The cursor of the page to load next; `nil` at the end.
  private(set) var next: Cursor??

  /// A walk to the first page.
  init() {
    direction = .end
    steps = [Step(cursor: nil, isOnlyLink: true)]
    passed = []
    next = .some(nil)
  }

  /// A walk through pages that are loaded already.
  ///
  /// - Parameters:
  ///   - old: The pages, in the order of loading.
  ///   - direction: The edge towards which they are loaded.
  ///   - passed: The cursors of the pages before the first one.
  init(refreshing old: [Loaded], towards direction: PagesEdge, passed: [Cursor?]) {
    self.direction = direction
    self.passed = passed
    steps = old.indices.map { index in
      let isOnlyLink = index == 0 || old[index - 1].links[direction] == nil
      return Step(cursor: old[index].cursor, isOnlyLink: isOnlyLink)
    }
    next = steps.first.map { .some($0.cursor) } ?? nil
  }

  /// Adds the page that was loaded.
  ///
  /// - Returns: Whether the cursors of its neighbors are new. If not, the walk cannot continue.
  mutating func add(_ page: Page<Item, Cursor>) -> Bool {
    guard let cursor = next else { return true }
    let page = Loaded(cursor: cursor, page)
    pages.append(page)
    next = nil
    // The page before the first one is not one of the following ones.
    if let first = pages.first?.links[direction.opposite],
      pages.contains(where: { $0.cursor == first })
    {
      return false
    }
    let step = pages.count < steps.count ? steps[pages.count] : nil
    let following: Cursor??
    if let link = page.links[direction] {
      following = .some(link)
    } else if let step, step.isOnlyLink {
      following = .some(step.cursor)
    } else {
      following = nil
    }
    guard let following else { return true }
    let isNamed = pages.dropFirst().contains { page in
      page.links[direction.opposite].map { .some($0) == following } ?? false
    }
    guard !isNamed, !passed.contains(following),
      !pages.contains(where: { $0.cursor == following })
    else { return false }
    if step != nil { next = .some(following) }
    return true
  }

  /// Changes the items of every page.
  mutating func edit(_ body: (inout [Item]) -> Void) {
    for index in inListOrder { body(&pages[index].items) }
    editCount += 1
  }

  private var inListOrder: [Int] {
    direction == .end ? Array(pages.indices) : pages.indices.reversed()
  }
}
