/// The marks that the caches of this process have noted for one cacher, by which its entries are judged.
///
/// Values that are written here are compared by the order of their fetches and of the marks. Their times of storage are
/// adjusted to that order when they are written, so that entries can be judged by their times when they are read, also
/// if the clock was changed in between.
///
/// Marks are recorded one by one up to a limit. Beyond it, the latest of them applies to all entries: this costs fetches,
/// and never brings back a cleared value.
@usableFromInline
struct OwnMarksState: Sendable {
  /// The verdict on a stored copy, or on the result of a fetch.
  @usableFromInline
  enum Verdict: Hashable, Sendable {
    case usable, outdated, cleared
  }

  private struct Mark: Sendable {
    var order: UInt64 = 0
    var time = .zero - Duration.longest

    mutating func formUnion(_ other: Mark) {
      order = max(order, other.order)
      time = max(time, other.time)
    }
  }

  /// Marks that were written to the cacher, in consecutive numbers.
  private struct Span: Sendable {
    let epoch: UInt64
    let start: UInt64
    /// The order of each of them, ascending.
    let orders: [UInt64]

    var end: UInt64 { start + UInt64(orders.count) }

    /// Returns whether it begins before a value.
    func isOlder(than value: UInt64, in epoch: UInt64) -> Bool {
      self.epoch == epoch && orders[0] <= value
    }
  }

  /// The largest number of marks that are recorded one by one.
  static var limit: Int { 4_096 }

  /// The number of marks so far.
  private(set) var lastOrder: UInt64 = 0
  private var marks: [CacheMark: Mark] = [:]
  /// The marks beyond the limit: those of refreshes, and those of clears by tag.
  private var refreshes: Mark?
  private var clears: Mark?
  private var spans: [Span] = []
  /// The latest time of all entries that were written here.
  private var newestWrite = Duration.zero

  /// Notes a mark.
  ///
  /// - Returns: The time up to which stored copies are affected.
  mutating func note(_ mark: CacheMark, at time: Duration) -> (order: UInt64, time: Duration) {
    lastOrder += 1
    // The clock can have been set back since a copy was written.
    let earlier = marks[mark]?.time ?? time
    let new = Mark(order: lastOrder, time: max(time, newestWrite, earlier))
    marks[mark] = new
    if marks.count > Self.limit { fold() }
    return (new.order, new.time)
  }

  private mutating func fold() {
    for (mark, point) in marks {
      if case .clearedTag = mark {
        clears = clears ?? Mark()
        clears?.formUnion(point)
      } else {
        refreshes = refreshes ?? Mark()
        refreshes?.formUnion(point)
      }
    }
    marks = [:]
  }

  /// Returns the latest refresh and the latest clear that concern an entry.
  private func latest(_ name: String, _ tags: [CacheTag]) -> (refresh: Mark?, clear: Mark?) {
    var (refresh, clear) = (refreshes, tags.isEmpty ? nil : clears)
    guard !marks.isEmpty else { return (refresh, clear) }
    func add(_ mark: CacheMark, to result: inout Mark?) {
      guard let found = marks[mark] else { return }
      result = result ?? Mark()
      result?.formUnion(found)
    }
    let prefix = CacheMark.prefix(ofName: name)
    add(.refreshedKey(name), to: &refresh)
    add(.refreshedPrefix(""), to: &refresh)
    if !prefix.isEmpty { add(.refreshedPrefix(prefix), to: &refresh) }
    for tag in tags {
      add(.refreshedTag(tag, prefix: prefix), to: &refresh)
      add(.clearedTag(tag, prefix: prefix), to: &clear)
    }
    return (refresh, clear)
  }

  /// Judges a stored copy.
  ///
  /// - Parameters:
  ///   - name: The name of its key.
  ///   - tags: The tags of its key.
  ///   - storedAt: The time at which it was stored.
  /// - Returns: The verdict.
  func judge(_ name: String, _ tags: [CacheTag], storedAt: Duration) -> Verdict {
    let (refresh, clear) = latest(name, tags)
    if let clear, storedAt <= clear.time { return .cleared }
    if let refresh, storedAt <= refresh.time { return .outdated }
    return .usable
  }

  /// Judges a value by the marks since its fetch began.
  ///
  /// - Parameters:
  ///   - name: The name of its key.
  ///   - tags: The tags of its key and of the value.
  ///   - start: The order of the start of its fetch.
  /// - Returns: The verdict.
  func judge(_ name: String, _ tags: [CacheTag], since start: UInt64) -> Verdict {
    let (refresh, clear) = latest(name, tags)
    if let clear, clear.order > start { return .cleared }
    if let refresh, refresh.order > start { return .outdated }
    return .usable
  }

  /// Returns the start of a value that is changed now: the marks of the tags that it gets by that are older than the change.
  ///
  /// - Parameters:
  ///   - start: The start of the value before.
  ///   - name: The name of its key.
  ///   - tags: The tags of its key and of the value before, which can have been cleared by another cache.
  /// - Returns: The start, which is outdated if the value before was.
  func renewed(_ start: FetchStart, _ name: String, _ tags: [CacheTag]) -> FetchStart {
    let verdict = judge(name, tags, since: start.order)
    guard verdict != .cleared else { return start }
    var start = start
    start.order = lastOrder
    if verdict == .outdated { start.isOutdated = true }
    return start
  }

  /// Adjusts the time of storage of an entry that is about to be written to the order of the marks.
  ///
  /// - Parameters:
  ///   - storedAt: The time of storage.
  ///   - name: The name of the key.
  ///   - tags: The tags of the key.
  ///   - start: The order of the start of its fetch.
  /// - Returns: Whether it can be written: a value that was cleared since its fetch began cannot.
  mutating func adjust(
    _ storedAt: inout Duration,
    _ name: String,
    _ tags: [CacheTag],
    since start: UInt64
  ) -> Bool {
    let (refresh, clear) = latest(name, tags)
    if let clear, clear.order > start { return false }
    if let clear { storedAt = max(storedAt, clear.time + .nanoseconds(1)) }
    if let refresh {
      storedAt =
        refresh.order > start
        ? min(storedAt, refresh.time) : max(storedAt, refresh.time + .nanoseconds(1))
    }
    if let clear, refresh != nil, storedAt <= clear.time {
      // The clear is older than the refresh, but has a later time: the refresh applies up to the time after it.
      storedAt = clear.time + .nanoseconds(1)
      marks[.refreshedKey(name), default: Mark()].formUnion(Mark(time: storedAt))
      if marks.count > Self.limit { fold() }
    }
    newestWrite = max(newestWrite, storedAt)
    return true
  }

  // MARK: - Marks in the cacher

  /// Records that marks were written to the cacher.
  ///
  /// - Parameters:
  ///   - orders: Their orders, ascending.
  ///   - generation: The generation of the cacher after the last one.
  mutating func noteWritten(_ orders: [UInt64], _ generation: CacheGeneration) {
    let count = UInt64(orders.count)
    guard count > 0, generation.marks >= count else { return }
    let start = generation.marks - count
    spans.append(Span(epoch: generation.epoch, start: start, orders: orders))
    if spans.count > 256 { spans.removeFirst() }
  }

  /// Returns the generation of a value past the marks in the cacher that are older than the value by their order.
  func skipped(by generation: CacheGeneration, since start: UInt64) -> CacheGeneration {
    var result = generation
    // The first generation belongs to every epoch, of which the last one counts.
    if result.epoch == 0 {
      guard let last = spans.last,
        spans.contains(where: { $0.isOlder(than: start, in: last.epoch) })
      else { return result }
      result.epoch = last.epoch
    }
    for span in spans
    where span.epoch == result.epoch && span.start <= result.marks && result.marks < span.end {
      result.marks = max(result.marks, span.start + UInt64(span.orders.count { $0 <= start }))
    }
    return result
  }
}
