extension EventChannel {
  /// The deadlines of posts, earliest first.
  ///
  /// A binary heap: the parent of an entry is never later than the entry.
  struct ExpiriesState: Sendable {
    private struct Entry: Sendable {
      let deadline: Nanoseconds
      let post: Int
    }

    private var entries: ContiguousArray<Entry> = []

    /// The number of deadlines.
    var count: Int { entries.count }

    /// Adds the deadline of a post.
    mutating func insert(_ deadline: Nanoseconds, of post: Int) {
      entries.append(Entry(deadline: deadline, post: post))
      var index = entries.count - 1
      while index > 0, entries[index].deadline < entries[(index - 1) / 2].deadline {
        entries.swapAt(index, (index - 1) / 2)
        index = (index - 1) / 2
      }
    }

    /// Removes and returns the post with the earliest deadline if that has passed.
    mutating func popExpired(at now: Nanoseconds) -> Int? {
      guard let first = entries.first, first.deadline <= now else { return nil }
      let last = entries.removeLast()
      if !entries.isEmpty {
        entries[0] = last
        sink(from: 0)
      }
      return first.post
    }

    /// Removes the posts that do not satisfy a predicate.
    mutating func keep(where isKept: (Int) -> Bool) {
      entries.removeAll { !isKept($0.post) }
      for index in (0..<entries.count / 2).reversed() { sink(from: index) }
    }

    /// Removes all posts.
    mutating func removeAll() {
      entries = []
    }

    private mutating func sink(from start: Int) {
      var index = start
      while true {
        var earliest = index
        for child in 2 * index + 1...2 * index + 2
        where child < entries.count && entries[child].deadline < entries[earliest].deadline {
          earliest = child
        }
        guard earliest != index else { return }
        entries.swapAt(index, earliest)
        index = earliest
      }
    }
  }
}
