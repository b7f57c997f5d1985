extension CacherLedger {
  /// A cache, and the part of the entries that it removes.
  struct Owner: Hashable, Sendable {
    let id: UInt64
    /// The namespace or the only name of its entries; `nil` if it can remove all entries.
    let part: String?

    /// Returns whether the removals of another cache have no effect on the pending values of this one.
    func disregards(_ other: Owner) -> Bool {
      guard id != other.id else { return true }
      guard let part, let otherPart = other.part else { return false }
      return part != otherPart
    }
  }

  /// The removals from one cacher that caches of this process have requested themselves.
  ///
  /// Their effect on pending values is decided in memory: a value that is still to be written is newer, even if its fetch
  /// began before the cacher had performed the removal.
  struct State: Sendable {
    private struct Span: Sendable {
      let owner: Owner
      let epoch: UInt64
      let start: UInt64
      var end: UInt64

      /// Returns whether the removals come after the ones that a generation counts.
      func follows(_ generation: CacheGeneration) -> Bool {
        (epoch == generation.epoch || generation.isFirst)
          && start <= generation.number && generation.number < end
      }
    }

    /// The latest removals: between the start and the end of each span there were no removals by others.
    private var spans: [Span] = []

    /// Records removals.
    ///
    /// - Parameters:
    ///   - count: Their number.
    ///   - owner: The cache that has requested them.
    ///   - before: The generation before the first.
    ///   - after: The generation after the last.
    mutating func note(
      _ count: Int,
      by owner: Owner,
      before: CacheGeneration,
      after: CacheGeneration
    ) {
      let isFirst = before.isFirst
      guard isFirst || before.epoch == after.epoch, after.number >= before.number,
        after.number - before.number == UInt64(count)
      else { return }
      if let last = spans.indices.last, spans[last].owner == owner,
        spans[last].epoch == after.epoch, spans[last].end == before.number
      {
        spans[last].end = after.number
        return
      }
      spans.append(Span(owner: owner, epoch: after.epoch, start: before.number, end: after.number))
      if spans.count > 256 { spans.removeFirst() }
    }

    /// Returns a generation after the removals that followed it and have no effect on the pending values of a cache.
    func skipped(by generation: CacheGeneration, for owner: Owner) -> CacheGeneration {
      var skipped = generation
      // The first generation belongs to every epoch, of which the last one counts.
      let isFirst = generation.isFirst
      let start =
        isFirst
        ? spans.lastIndex { $0.follows(generation) } : spans.firstIndex { $0.follows(generation) }
      guard let start else { return generation }
      for span in spans[start...] where span.follows(skipped) && owner.disregards(span.owner) {
        skipped.epoch = span.epoch
        skipped.number = span.end
      }
      return skipped
    }
  }
}

extension CacheGeneration {
  /// Whether it is from before the first removal.
  fileprivate var isFirst: Bool { epoch == 0 && number == 0 }
}
