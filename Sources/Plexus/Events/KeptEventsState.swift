/// The events of a channel that are kept for those who subscribe later.
///
/// Whatever leaves is handed out, so that it can be freed without a lock.
struct KeptEventsState<Element: Sendable>: Sendable {
  private struct Entry: Sendable {
    let post: Int
    let rule: PersistenceRule
    let deadline: Nanoseconds
    /// `nil` once it is kept no longer.
    var element: Element?
  }

  /// In posting order; what is kept no longer stays as a gap for a while.
  private var entries: ContiguousArray<Entry> = []
  /// Where the gaps at the front end.
  private var start = 0
  /// The deadlines of what is kept, and for a while of what is kept no longer.
  private var deadlines = EventDeadlinesState()

  /// The number of events.
  private(set) var count = 0

  /// The number of places that events have left behind which are kept no longer.
  var gapCount: Int { entries.count - count }

  /// The number of deadlines that are remembered.
  var deadlineCount: Int { deadlines.count }

  /// The events in posting order.
  var elements: [Element] { entries[start...].compactMap(\.element) }

  /// Whether the event of a post is kept.
  func contains(post: Int, at now: Nanoseconds) -> Bool {
    guard let index = index(of: post) else { return false }
    return entries[index].element != nil && entries[index].deadline > now
  }

  /// The first event of the posts after the one given and up to the last.
  func first(
    after post: Int,
    upTo last: Int,
    at now: Nanoseconds
  ) -> (post: Int, element: Element)? {
    for entry in entries[max(firstIndex(from: post + 1), start)...] {
      guard entry.post <= last else { return nil }
      guard let element = entry.element, entry.deadline > now else { continue }
      return (entry.post, element)
    }
    return nil
  }

  /// Adds the event of the latest post.
  ///
  /// - Parameters:
  ///   - element: The event.
  ///   - post: The number of the post.
  ///   - rule: When the event is kept no longer.
  ///   - deadline: When its time is over; `nil` is never.
  mutating func append(
    _ element: Element,
    of post: Int,
    rule: PersistenceRule,
    deadline: Nanoseconds?
  ) {
    entries.append(Entry(post: post, rule: rule, deadline: deadline ?? .max, element: element))
    count += 1
    if let deadline { deadlines.insert(deadline, of: post) }
  }

  /// The event of a post has been handled: it is kept no longer, unless its rule is to keep it.
  mutating func clear(post: Int, into released: inout ContiguousArray<Element>) {
    guard let index = index(of: post), entries[index].rule != .neverClear else { return }
    drop(at: index, into: &released)
  }

  /// Keeps the newest events only.
  mutating func limit(to limit: Int, into released: inout ContiguousArray<Element>) {
    while count > max(limit, 0) { drop(at: start, into: &released) }
  }

  /// Keeps the events no longer whose time is over.
  mutating func dropExpired(at now: Nanoseconds, into released: inout ContiguousArray<Element>) {
    while let post = deadlines.popExpired(at: now) {
      if let index = index(of: post) { drop(at: index, into: &released) }
    }
  }

  /// Keeps nothing any longer.
  mutating func removeAll(into released: inout ContiguousArray<Element>) {
    released += entries.compactMap(\.element)
    (entries, start, count) = ([], 0, 0)
    deadlines.removeAll()
  }

  private func index(of post: Int) -> Int? {
    let index = firstIndex(from: post)
    return index < entries.count && entries[index].post == post ? index : nil
  }

  /// The index of the first entry that is not from before the given post.
  private func firstIndex(from post: Int) -> Int {
    entries.firstSortedIndex { $0.post >= post }
  }

  private mutating func drop(at index: Int, into released: inout ContiguousArray<Element>) {
    guard let element = entries[index].element else { return }
    released.append(element)
    entries[index].element = nil
    count -= 1
    while start < entries.count, entries[start].element == nil { start += 1 }
    guard count == 0 else { return closeGaps() }
    (entries, start) = ([], 0)
    deadlines.removeAll()
  }

  /// Forgets what is kept no longer, once that is more than what is.
  private mutating func closeGaps() {
    if gapCount > count + 32 {
      entries.removeAll { $0.element == nil }
      start = 0
    }
    if deadlines.count > 2 * count + 32 {
      var remaining = EventDeadlinesState()
      swap(&remaining, &deadlines)
      remaining.keep { contains(post: $0, at: .min) }
      deadlines = remaining
    }
  }
}
