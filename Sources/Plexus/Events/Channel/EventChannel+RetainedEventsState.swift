extension EventChannel {
  /// The events of a channel that are retained for later subscribers.
  ///
  /// Removed elements are returned to the caller, so that they are released without a lock.
  struct RetainedEventsState<Element: Sendable>: Sendable {
    private struct Entry: Sendable {
      let post: Int
      let rule: PersistenceRule
      let deadline: Nanoseconds
      /// The event, or `nil` once it is no longer retained.
      var element: Element?
    }

    /// The entries in posting order; removed events leave gaps for a while.
    private var entries: ContiguousArray<Entry> = []
    /// The index of the first entry without a leading gap.
    private var start = 0
    /// The deadlines of retained events and, for a while, of removed ones.
    private var deadlines = ExpiriesState()

    /// The number of events.
    private(set) var count = 0

    /// The number of gaps that removed events have left.
    var gapCount: Int { entries.count - count }

    /// The number of stored deadlines.
    var deadlineCount: Int { deadlines.count }

    /// The events in posting order.
    var elements: [Element] { entries[start...].compactMap(\.element) }

    /// Returns whether the event of a post is retained.
    func contains(post: Int, at now: Nanoseconds) -> Bool {
      guard let index = index(of: post) else { return false }
      return entries[index].element != nil && entries[index].deadline > now
    }

    /// Returns the first event of the posts after one number and up to another.
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
    ///   - rule: The rule that ends the retention.
    ///   - deadline: The time at which the event expires, or `nil` for never.
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

    /// The conditions under which a removed event was retained.
    struct Cleared: Sendable {
      fileprivate let post: Int
      fileprivate let rule: PersistenceRule
      fileprivate let deadline: Nanoseconds
    }

    /// Removes the event of a post after a success, unless its rule is `neverClear`.
    ///
    /// - Returns: The conditions under which it was retained; `nil` if it was not, or still is.
    @discardableResult
    mutating func clear(post: Int, into released: inout ContiguousArray<Element>) -> Cleared? {
      guard let index = index(of: post), entries[index].rule != .neverClear,
        entries[index].element != nil
      else { return nil }
      let entry = entries[index]
      drop(at: index, into: &released)
      return Cleared(post: post, rule: entry.rule, deadline: entry.deadline)
    }

    /// Retains a removed event again, in its former place.
    mutating func restore(_ element: Element, as cleared: Cleared) {
      let index = firstIndex(from: cleared.post)
      if index < entries.count, entries[index].post == cleared.post {
        entries[index].element = element
      } else {
        let entry = Entry(
          post: cleared.post,
          rule: cleared.rule,
          deadline: cleared.deadline,
          element: element
        )
        entries.insert(entry, at: index)
      }
      start = min(start, index)
      count += 1
      if cleared.deadline < .max { deadlines.insert(cleared.deadline, of: cleared.post) }
    }

    /// Removes the oldest events beyond a limit.
    mutating func limit(to limit: Int, into released: inout ContiguousArray<Element>) {
      while count > max(limit, 0) { drop(at: start, into: &released) }
    }

    /// Removes expired events.
    mutating func dropExpired(at now: Nanoseconds, into released: inout ContiguousArray<Element>) {
      while let post = deadlines.popExpired(at: now) {
        if let index = index(of: post) { drop(at: index, into: &released) }
      }
    }

    /// Removes all events.
    mutating func removeAll(into released: inout ContiguousArray<Element>) {
      released += entries.compactMap(\.element)
      (entries, start, count) = ([], 0, 0)
      deadlines.removeAll()
    }

    private func index(of post: Int) -> Int? {
      // Most often, it is the latest post.
      if let last = entries.last, last.post <= post {
        return last.post == post ? entries.count - 1 : nil
      }
      let index = firstIndex(from: post)
      return index < entries.count && entries[index].post == post ? index : nil
    }

    /// Returns the index of the first entry at or after a post.
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

    /// Removes the gaps and stale deadlines once they outnumber the retained events.
    private mutating func closeGaps() {
      if gapCount > count + 32 {
        entries.removeAll { $0.element == nil }
        start = 0
      }
      if deadlines.count > 2 * count + 32 {
        var remaining = ExpiriesState()
        swap(&remaining, &deadlines)
        remaining.keep { contains(post: $0, at: .min) }
        deadlines = remaining
      }
    }
  }
}
