/// The selectors of a store, in subscription order; accessed by the thread that drains its queue.
@usableFromInline
struct SelectorTable<State: Sendable> {
  /// With gaps where selectors were removed.
  @usableFromInline var evaluations: ContiguousArray<Evaluation?> = []
  /// The same selectors, eight by eight; `nil` for a block whose selectors have changed since the last state.
  @usableFromInline var blocks: ContiguousArray<Block?> = []
  @usableFromInline var hasOutdatedBlocks = false
  @usableFromInline var index = SelectorBase.Index()

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
      // Gaps at the end are closed at once: one by one, since there is rarely more than one.
      while evaluations.count > index.slotCount { evaluations.removeLast() }
    }
    while (blocks.count - 1) * Block.capacity >= evaluations.count { blocks.removeLast() }
  }

  /// Discards the block that a selector belongs to.
  ///
  /// The next state rebuilds it: subscribing and unsubscribing between two states builds none.
  @inlinable
  mutating func discardBlock(of slot: Int) {
    let index = slot / Block.capacity
    if index == blocks.count { blocks.append(nil) } else { blocks[index] = nil }
    hasOutdatedBlocks = true
  }

  @inlinable
  mutating func updateBlocks() {
    hasOutdatedBlocks = false
    let capacity = Block.capacity
    for index in blocks.indices where blocks[index] == nil {
      blocks[index] = Block(evaluations[(index * capacity)...].prefix(capacity))
    }
  }
}

extension SelectorTable {
  /// Evaluates a state and notifies the subscribers if the value has changed.
  ///
  /// A bare closure would be wrapped again for each generic container that it passes.
  @usableFromInline
  struct Evaluation: Sendable {
    @usableFromInline let body: @Sendable (State) -> Void

    @inlinable
    init(_ body: @escaping @Sendable (State) -> Void) {
      self.body = body
    }

    /// A placeholder for a selector.
    @inlinable static var none: Self { Self { _ in } }
  }

  /// Eight selectors that evaluate a state one after another.
  ///
  /// Closures in constants of an object are called without being retained, which would cost more than most selectors.
  @usableFromInline
  final class Block: Sendable {
    /// The number of selectors that a block can hold.
    @inlinable static var capacity: Int { 8 }

    @usableFromInline let first: Evaluation
    @usableFromInline let second: Evaluation
    @usableFromInline let third: Evaluation
    @usableFromInline let fourth: Evaluation
    @usableFromInline let fifth: Evaluation
    @usableFromInline let sixth: Evaluation
    @usableFromInline let seventh: Evaluation
    @usableFromInline let eighth: Evaluation

    /// Creates a block.
    ///
    /// - Parameter evaluations: At most ``capacity`` selectors, with gaps.
    @inlinable
    init(_ evaluations: ArraySlice<Evaluation?>) {
      let start = evaluations.startIndex
      let count = evaluations.count
      first = (count > 0 ? evaluations[start] : nil) ?? .none
      second = (count > 1 ? evaluations[start + 1] : nil) ?? .none
      third = (count > 2 ? evaluations[start + 2] : nil) ?? .none
      fourth = (count > 3 ? evaluations[start + 3] : nil) ?? .none
      fifth = (count > 4 ? evaluations[start + 4] : nil) ?? .none
      sixth = (count > 5 ? evaluations[start + 5] : nil) ?? .none
      seventh = (count > 6 ? evaluations[start + 6] : nil) ?? .none
      eighth = (count > 7 ? evaluations[start + 7] : nil) ?? .none
    }

    /// Evaluates a state with every selector.
    @inlinable
    func evaluate(_ state: State) {
      first.body(state)
      second.body(state)
      third.body(state)
      fourth.body(state)
      fifth.body(state)
      sixth.body(state)
      seventh.body(state)
      eighth.body(state)
    }
  }
}

@available(*, unavailable)
extension SelectorTable: Sendable {}
