/// The name of one subscriber to the changes of a selected value.
@usableFromInline
struct SubscriptionID: Hashable, Sendable {
  let rawValue = UniqueID.next()

  @usableFromInline
  init() {}
}

/// The selectors of a store, in subscription order; accessed by the thread that drains its queue.
@usableFromInline
struct SelectorTable<State: Sendable> {
  @usableFromInline typealias Evaluation = EvaluationBlock<State>.Evaluation

  /// With gaps where selectors were removed.
  @usableFromInline var evaluations: [Evaluation?] = []
  /// The same selectors, eight by eight.
  @usableFromInline var blocks: ContiguousArray<EvaluationBlock<State>> = []
  @usableFromInline var index = SelectorIndex()

  @inlinable
  init() {}

  /// Evaluates every selector for a state, once.
  @inlinable
  func evaluate(_ state: State) {
    for block in blocks { block.evaluate(state) }
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
    updateBlock(at: selector.slot)
  }

  /// Removes a subscriber, and its selector if it was the last.
  @inlinable
  mutating func remove(_ subscription: SubscriptionID) {
    guard let slot = index.remove(subscription) else { return }
    evaluations[slot] = nil
    if index.hasManyGaps {
      index.closeGaps()
      evaluations.removeAll { $0 == nil }
      blocks = []
      for start in stride(from: 0, to: evaluations.count, by: EvaluationBlock<State>.capacity) {
        updateBlock(at: start)
      }
    } else {
      updateBlock(at: slot)
    }
  }

  /// Rebuilds the block that a selector belongs to.
  @inlinable
  mutating func updateBlock(at slot: Int) {
    let index = slot / EvaluationBlock<State>.capacity
    let start = index * EvaluationBlock<State>.capacity
    let block = EvaluationBlock(evaluations[start...].prefix(EvaluationBlock<State>.capacity))
    if index == blocks.count { blocks.append(block) } else { blocks[index] = block }
  }
}

@available(*, unavailable)
extension SelectorTable: Sendable {}

/// The part of a table of selectors that depends on no type.
@usableFromInline
struct SelectorIndex {
  /// With gaps where selectors were removed.
  private var selectors: ContiguousArray<SelectorBase?> = []
  private var gaps = 0
  private var places: [SubscriptionID: (selector: SelectorBase, place: Int)] = [:]
  private var selectorOfPath: [AnyKeyPath: SelectorBase] = [:]

  @usableFromInline
  init() {}

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
  mutating func connect(_ id: SubscriptionID, to selector: SelectorBase, at place: Int) {
    places[id] = (selector, place)
  }

  /// Removes a subscriber.
  ///
  /// - Returns: The slot of its selector if it was the last subscriber, which is a gap now.
  @usableFromInline
  mutating func remove(_ id: SubscriptionID) -> Int? {
    guard let (selector, place) = places.removeValue(forKey: id) else { return nil }
    let (isEmpty, hub) = selector.remove(at: place)
    withExtendedLifetime(hub) {}
    guard isEmpty else { return nil }
    if let path = selector.path { selectorOfPath[path] = nil }
    selectors[selector.slot] = nil
    gaps += 1
    return selector.slot
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
