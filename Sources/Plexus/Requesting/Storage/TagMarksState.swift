/// The times at which tags were cleared or refreshed, by which stored copies are judged when they are read.
///
/// Tags are recorded one by one up to a limit. Beyond it, their latest time applies to every copy whose key has a tag:
/// this costs fetches, and never brings back a cleared value.
struct TagMarksState: Hashable, Sendable {
  /// The verdict on a stored copy.
  enum Verdict: Hashable, Sendable {
    case usable, outdated, cleared
  }

  /// The times of the tags of one kind.
  private struct Marks: Hashable, Sendable {
    var times: [CacheTag: Duration] = [:]
    /// The time up to which copies with any tag are affected.
    var all: Duration?

    mutating func note(_ tags: Set<CacheTag>, at time: Duration) {
      for tag in tags { times[tag] = max(time, times[tag] ?? time) }
      guard times.count > TagMarksState.limit, let latest = times.values.max() else { return }
      all = max(all ?? latest, latest)
      times = [:]
    }

    func concern(_ tags: [CacheTag], storedAt: Duration) -> Bool {
      if let all, !tags.isEmpty, storedAt <= all { return true }
      return tags.contains { tag in times[tag].map { storedAt <= $0 } ?? false }
    }
  }

  /// The largest number of tags that are recorded one by one.
  static var limit: Int { 4_096 }

  private var clears = Marks()
  private var refreshes = Marks()

  /// Records that values with some tags were cleared.
  mutating func clear(_ tags: Set<CacheTag>, at time: Duration) {
    clears.note(tags, at: time)
  }

  /// Records that values with some tags have changed at their origin.
  mutating func refresh(_ tags: Set<CacheTag>, at time: Duration) {
    refreshes.note(tags, at: time)
  }

  /// Judges a stored copy.
  ///
  /// - Parameters:
  ///   - tags: The tags of its key.
  ///   - storedAt: The time at which it was stored.
  /// - Returns: The verdict.
  func judge(_ tags: [CacheTag], storedAt: Duration) -> Verdict {
    if clears.concern(tags, storedAt: storedAt) { return .cleared }
    return refreshes.concern(tags, storedAt: storedAt) ? .outdated : .usable
  }
}
