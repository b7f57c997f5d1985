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
  /// Looks at a state and tells the subscribers if the value has changed.
  @usableFromInline typealias Evaluation = @Sendable (State) -> Void

  /// With gaps where selectors were removed.
  private var evaluations: ContiguousArray<Evaluation?> = []
  private var boxes: ContiguousArray<ChangeBoxBase?> = []
  private var gaps = 0
  private var boxOfFeed: [FeedID: ChangeBoxBase] = [:]
  private var boxOfPath: [AnyKeyPath: ChangeBoxBase] = [:]

  /// Lets every selector look at a state, once.
  func evaluate(_ state: State) {
    for evaluation in evaluations { evaluation?(state) }
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
  mutating func add(_ box: ChangeBoxBase, _ evaluation: @escaping Evaluation) {
    box.slot = boxes.count
    boxes.append(box)
    evaluations.append(evaluation)
    if let path = box.path { boxOfPath[path] = box }
  }

  /// Notes that a subscriber follows a selector.
  @usableFromInline
  mutating func connect(_ feed: FeedID, to box: ChangeBoxBase) {
    boxOfFeed[feed] = box
  }

  /// Lets a subscriber go, and its selector if it was the last.
  mutating func remove(_ feed: FeedID) {
    guard let box = boxOfFeed.removeValue(forKey: feed), box.remove(feed) else { return }
    if let path = box.path { boxOfPath[path] = nil }
    boxes[box.slot] = nil
    evaluations[box.slot] = nil
    gaps += 1
    guard gaps > 16, gaps > boxes.count / 2 else { return }
    boxes.removeAll { $0 == nil }
    evaluations.removeAll { $0 == nil }
    for (slot, box) in boxes.enumerated() { box?.slot = slot }
    gaps = 0
  }
}

@available(*, unavailable)
extension SelectorTable: Sendable {}
