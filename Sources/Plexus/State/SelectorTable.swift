/// The name of one subscriber to the changes of a selected value.
@usableFromInline
struct FeedID: Hashable, Sendable {
  let rawValue = UniqueID.next()

  @usableFromInline
  init() {}
}

/// The selectors of a store, in subscription order; touched by whoever has the turn.
@usableFromInline
struct SelectorTable<State: Sendable> {
  @usableFromInline typealias Evaluation = EvaluationBlock<State>.Evaluation

  private struct Entry {
    let box: ChangeBoxBase
    let evaluation: Evaluation
  }

  /// With gaps where selectors were removed.
  private var entries: ContiguousArray<Entry?> = []
  private var gaps = 0
  /// The same selectors, eight by eight.
  @usableFromInline var blocks: ContiguousArray<EvaluationBlock<State>> = []
  private var placeOfFeed: [FeedID: (box: ChangeBoxBase, place: Int)] = [:]
  private var boxOfPath: [AnyKeyPath: ChangeBoxBase] = [:]

  @usableFromInline
  init() {}

  /// Lets every selector look at a state, once.
  @inlinable
  func evaluate(_ state: State) {
    for block in blocks { block.evaluate(state) }
  }

  /// Returns what those who select a key path share, if there is somebody.
  @usableFromInline
  func box<Value>(for path: AnyKeyPath, of type: Value.Type) -> ChangeBox<Value>? {
    boxOfPath[path] as? ChangeBox<Value>
  }

  /// Adds a selector behind the others.
  ///
  /// - Parameters:
  ///   - box: Its value.
  ///   - evaluation: What to do for each state.
  @usableFromInline
  mutating func add(_ box: ChangeBoxBase, _ evaluation: Evaluation) {
    box.slot = entries.count
    entries.append(Entry(box: box, evaluation: evaluation))
    updateBlock(at: box.slot)
    if let path = box.path { boxOfPath[path] = box }
  }

  /// Notes that a subscriber follows a selector, and its place there.
  @usableFromInline
  mutating func connect(_ feed: FeedID, to box: ChangeBoxBase, at place: Int) {
    placeOfFeed[feed] = (box, place)
  }

  /// Lets a subscriber go, and its selector if it was the last.
  mutating func remove(_ feed: FeedID) {
    guard let (box, place) = placeOfFeed.removeValue(forKey: feed), box.remove(at: place) else {
      return
    }
    if let path = box.path { boxOfPath[path] = nil }
    entries[box.slot] = nil
    gaps += 1
    if gaps > 16, gaps > entries.count / 2 {
      closeGaps()
    } else {
      updateBlock(at: box.slot)
    }
  }

  /// Makes the block anew that a selector belongs to.
  private mutating func updateBlock(at slot: Int) {
    let index = slot / EvaluationBlock<State>.capacity
    let start = index * EvaluationBlock<State>.capacity
    let block = EvaluationBlock { [entries] offset in
      start + offset < entries.count ? entries[start + offset]?.evaluation : nil
    }
    if index == blocks.count { blocks.append(block) } else { blocks[index] = block }
  }

  private mutating func closeGaps() {
    entries.removeAll { $0 == nil }
    gaps = 0
    blocks = []
    for (slot, entry) in entries.enumerated() { entry?.box.slot = slot }
    for start in stride(from: 0, to: entries.count, by: EvaluationBlock<State>.capacity) {
      updateBlock(at: start)
    }
  }
}

@available(*, unavailable)
extension SelectorTable: Sendable {}
