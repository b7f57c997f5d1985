/// The tags of the values of a cache, and the clears and refreshes by tag that concern the results of its fetches.
///
/// The tags of a result are known only when its fetch has ended. Each attempt begins with the order of the last mark, by
/// which the result is judged under the lock of its shard: a mark is noted before the keys with its tag are looked up.
@usableFromInline
final class ValueTags<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private let tagging: @Sendable (Key, Value) -> [CacheTag]
  /// The marks of all caches with the same cacher, if there is one.
  private let ledger: CacherLedger?
  /// The marks of this cache, if it has no cacher.
  private let ownMarks = Locked(OwnMarksState())

  @usableFromInline
  init(
    _ tagging: @escaping @Sendable (Key, Value) -> [CacheTag],
    _ storage: StoredLayer<Key, Value>?
  ) {
    precondition(
      storage?.shared == nil,
      """
      A map with a shared cacher cannot tag its values: their tags are not known when their leases are taken. Tag the keys \
      instead
      """
    )
    self.tagging = tagging
    ledger = storage?.ledger
  }

  /// Returns the tags of a value; user code, called with no lock held.
  func tags(of key: Key, _ value: Value) -> [CacheTag] { tagging(key, value) }

  /// The start of a fetch that begins now in a cache without a cacher.
  var fetchStart: FetchStart {
    FetchStart(generation: nil, order: ownMarks.withLock { $0.lastOrder })
  }

  /// Notes a clear or a refresh of some tags in a cache without a cacher.
  func note(_ tags: Set<CacheTag>, areCleared: Bool) {
    ownMarks.withLock { marks in
      for tag in tags {
        let mark: CacheMark =
          areCleared ? .clearedTag(tag, prefix: "") : .refreshedTag(tag, prefix: "")
        _ = marks.note(mark, at: .zero)
      }
    }
  }

  /// Judges a result by the clears and refreshes of its tags since its fetch began.
  ///
  /// - Parameters:
  ///   - name: The name of its key in the cacher; empty without one.
  ///   - tags: The tags of its key and of the value.
  ///   - start: The order of the start of its fetch.
  /// - Returns: The verdict.
  func judge(_ name: String, _ tags: [CacheTag], since start: UInt64) -> OwnMarksState.Verdict {
    if let ledger { return ledger.marks.withLock { $0.judge(name, tags, since: start) } }
    return ownMarks.withLock { $0.judge(name, tags, since: start) }
  }

  /// Returns whether a stored copy was cleared by one of its tags since it was stored.
  func isCleared(_ name: String, _ tags: [CacheTag], storedAt: Duration) -> Bool {
    ledger?.marks.withLock { $0.judge(name, tags, storedAt: storedAt) } == .cleared
  }
}
