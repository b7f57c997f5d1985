/// The removals that a cache has requested itself.
///
/// Their effect on pending values is decided in memory: a value that is still to be written is newer, even if its fetch
/// began before the cacher had performed the removal.
struct OwnRemovals: Sendable {
  private struct Span: Sendable {
    let epoch: UInt64
    let start: UInt64
    var end: UInt64
  }

  /// The latest removals: between the start and the end of each span there were no removals by others.
  private var spans: [Span] = []

  /// Records removals.
  ///
  /// - Parameters:
  ///   - count: Their number.
  ///   - before: The generation before the first.
  ///   - after: The generation after the last.
  mutating func note(_ count: Int, before: CacheGeneration, after: CacheGeneration) {
    let isFirst = before == CacheGeneration()
    guard isFirst || before.epoch == after.epoch, after.number >= before.number,
      after.number - before.number == UInt64(count)
    else { return }
    if let last = spans.indices.last, spans[last].epoch == after.epoch,
      spans[last].end == before.number
    {
      spans[last].end = after.number
      return
    }
    spans.append(Span(epoch: after.epoch, start: before.number, end: after.number))
    if spans.count > 64 { spans.removeFirst() }
  }

  /// Returns a generation after the own removals that followed it.
  func skipped(by generation: CacheGeneration) -> CacheGeneration {
    let isFirst = generation == CacheGeneration()
    let span = spans.last { span in
      (span.epoch == generation.epoch || isFirst)
        && span.start <= generation.number && generation.number <= span.end
    }
    guard let span else { return generation }
    return CacheGeneration(epoch: span.epoch, number: span.end)
  }
}
