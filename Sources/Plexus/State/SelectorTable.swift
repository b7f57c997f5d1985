/// The selectors of a state, in the order in which they were added; accessed by the thread that drains the queue of its
/// owner.
@usableFromInline
struct SelectorTable<State: Sendable> {
  @usableFromInline var evaluations = StableList<Evaluation>()
  /// The same selectors, eight by eight; empty if there were changes since the last state.
  ///
  /// The next state makes them: subscribing and unsubscribing between two states makes none.
  @usableFromInline var blocks: ContiguousArray<Block> = []
  @usableFromInline var index = SelectorEntryBase.Index()

  @inlinable
  init() {}

  @inlinable var isEmpty: Bool { evaluations.isEmpty }

  /// Evaluates every selector for a state, once.
  @inlinable
  mutating func evaluate(_ state: State) {
    if blocks.isEmpty { makeBlocks() }
    for block in blocks { block.evaluate(state) }
  }

  /// Adds a selector behind the others.
  ///
  /// - Parameters:
  ///   - selector: The selector.
  ///   - select: Selects the value of a state.
  @inlinable
  mutating func add<Value: Equatable & Sendable>(
    _ selector: SelectorEntry<Value>,
    _ select: @escaping @Sendable (State) -> Value
  ) {
    // In the client's module, the types are known, and possibly the selector.
    let evaluation = Evaluation { state in
      let value = select(state)
      if value != selector.value { selector.change(to: value) }
    }
    selector.number = evaluations.append(evaluation)
    index.add(selector)
    discardBlocks()
  }

  /// Removes a subscriber, and its selector if it was the last.
  @inlinable
  mutating func remove(_ subscription: ChangeSubscriptions.ID) {
    guard let selector = index.remove(subscription) else { return }
    _ = evaluations.remove(selector.number)
    discardBlocks()
  }

  @inlinable
  mutating func discardBlocks() {
    if !blocks.isEmpty { blocks = [] }
  }

  @inlinable
  mutating func makeBlocks() {
    let all = evaluations.places.compactMap(\.member)
    for start in stride(from: 0, to: all.count, by: Block.capacity) {
      blocks.append(Block(all[start...].prefix(Block.capacity)))
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
    /// - Parameter evaluations: At most ``capacity`` selectors.
    @inlinable
    init(_ evaluations: ArraySlice<Evaluation>) {
      let start = evaluations.startIndex
      let count = evaluations.count
      first = count > 0 ? evaluations[start] : .none
      second = count > 1 ? evaluations[start + 1] : .none
      third = count > 2 ? evaluations[start + 2] : .none
      fourth = count > 3 ? evaluations[start + 3] : .none
      fifth = count > 4 ? evaluations[start + 4] : .none
      sixth = count > 5 ? evaluations[start + 5] : .none
      seventh = count > 6 ? evaluations[start + 6] : .none
      eighth = count > 7 ? evaluations[start + 7] : .none
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
