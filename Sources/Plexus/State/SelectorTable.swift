/// The selectors of a store, in subscription order; accessed by the thread that drains its queue.
@usableFromInline
struct SelectorTable<State: Sendable> {
  /// With gaps where selectors were removed.
  @usableFromInline var evaluations: ContiguousArray<Evaluation?> = []
  /// The same selectors, eight by eight; `nil` for a block whose selectors have changed since the last state.
  @usableFromInline var blocks: ContiguousArray<EvaluationBlock<State>?> = []
  @usableFromInline var hasOutdatedBlocks = false
  @usableFromInline var index = SelectorIndex()

  @inlinable
  init() {}

  @inlinable var isEmpty: Bool { evaluations.isEmpty }

  /// Evaluates every selector for a state, once.
  @inlinable
  mutating func evaluate(_ state: State) {
    if hasOutdatedBlocks { updateBlocks() }
    for block in blocks { block?.evaluate(state) }
  }

  /// Adds a selector behind the others.
  ///
  /// - Parameters:
  ///   - selector: The selector.
  ///   - evaluation: What to do for each state.
  @inlinable
  mutating func add(_ selector: SelectorBase, _ evaluation: Evaluation) {
    evaluations.append(evaluation)
    index.add(selector)
    discardBlock(of: selector.slot)
  }

  /// Removes a subscriber, and its selector if it was the last.
  @inlinable
  mutating func remove(_ subscription: ChangeSubscriptions.ID) {
    guard let slot = index.remove(subscription) else { return }
    evaluations[slot] = nil
    discardBlock(of: slot)
    if index.hasManyGaps {
      index.closeGaps()
      evaluations.removeAll { $0 == nil }
      for block in blocks.indices { blocks[block] = nil }
    } else {
      // Gaps at the end are closed at once.
      evaluations.removeLast(evaluations.count - index.slotCount)
    }
    let capacity = EvaluationBlock<State>.capacity
    blocks.removeLast(blocks.count - (evaluations.count + capacity - 1) / capacity)
  }

  /// Discards the block that a selector belongs to.
  ///
  /// The next state rebuilds it: subscribing and unsubscribing between two states builds none.
  @inlinable
  mutating func discardBlock(of slot: Int) {
    let index = slot / EvaluationBlock<State>.capacity
    if index == blocks.count { blocks.append(nil) } else { blocks[index] = nil }
    hasOutdatedBlocks = true
  }

  @inlinable
  mutating func updateBlocks() {
    hasOutdatedBlocks = false
    let capacity = EvaluationBlock<State>.capacity
    for index in blocks.indices where blocks[index] == nil {
      blocks[index] = EvaluationBlock(evaluations[(index * capacity)...].prefix(capacity))
    }
  }
}

extension SelectorTable {
  @usableFromInline typealias Evaluation = EvaluationBlock<State>.Evaluation
}

@available(*, unavailable)
extension SelectorTable: Sendable {}

/// The part of a table of selectors that depends on no type.
@usableFromInline
struct SelectorIndex {
  /// A subscriber among those of its selector.
  private struct Place: Sendable {
    let selector: SelectorBase
    let number: Int
  }

  /// With gaps where selectors were removed, except at the end.
  private var selectors: ContiguousArray<SelectorBase?> = []
  private var gaps = 0
  private var places = KeyTable<ChangeSubscriptions.ID, Place>()
  private var selectorOfPath: [AnyKeyPath: SelectorBase] = [:]

  @usableFromInline
  init() {}

  /// The number of selectors and gaps.
  @usableFromInline var slotCount: Int { selectors.count }

  /// Returns the selector that all who select a key path share, if there is one.
  @usableFromInline
  func selector(for path: AnyKeyPath) -> SelectorBase? {
    selectorOfPath[path]
  }

  @usableFromInline
  mutating func add(_ selector: SelectorBase) {
    selector.slot = selectors.count
    selectors.append(selector)
    if let path = selector.path { selectorOfPath[path] = selector }
  }

  /// Notes which selector a subscriber follows, and its place there.
  @usableFromInline
  mutating func connect(_ id: ChangeSubscriptions.ID, to selector: SelectorBase, at number: Int) {
    _ = places.insert(Place(selector: selector, number: number), for: id, hash: id.hash)
  }

  /// Removes a subscriber.
  ///
  /// - Returns: The slot of its selector if it was the last subscriber, which is a gap now.
  @usableFromInline
  mutating func remove(_ id: ChangeSubscriptions.ID) -> Int? {
    guard let index = places.index(of: id, hash: id.hash) else { return nil }
    let place = places.remove(at: index).element
    let selector = place.selector
    let (isEmpty, hub) = selector.remove(at: place.number)
    withExtendedLifetime(hub) {}
    guard isEmpty else { return nil }
    if let path = selector.path { selectorOfPath[path] = nil }
    let slot = selector.slot
    selectors[slot] = nil
    gaps += 1
    while let last = selectors.last, last == nil {
      selectors.removeLast()
      gaps -= 1
    }
    return slot
  }

  @usableFromInline var hasManyGaps: Bool { gaps > 16 && gaps > selectors.count / 2 }

  @usableFromInline
  mutating func closeGaps() {
    selectors.removeAll { $0 == nil }
    gaps = 0
    for (slot, selector) in selectors.enumerated() { selector?.slot = slot }
  }
}

@available(*, unavailable)
extension SelectorIndex: Sendable {}
