/// The way in which the elements of a combination are made from those of its roots.
///
/// Its steps are in an order in which each one follows those whose results it needs. Equal parts share a step.
struct JointPlan: Sendable {
  /// Makes a result from the results of earlier steps.
  ///
  /// The last parameter is the result of the step for an earlier state, if there is one.
  typealias Step =
    @Sendable (JointState, _ results: [StepResult], _ former: StepResult?) -> StepResult

  /// The place of a root among the others.
  struct Kind: Hashable, Sendable {
    /// Whether it is a source of the combination, which ends after the last of them.
    var isSource: Bool
    /// The index of the root under whose lock it changes and is read, if that is another one.
    var family: Int?
  }

  /// The result of a step.
  struct StepResult: Sendable {
    let box: AnyBox
    /// The round in which it has changed.
    let changed: Int
    /// The newest round of the results from which it was made.
    let seen: Int

    init(_ box: AnyBox, changed: Int, seen: Int) {
      self.box = box
      self.changed = changed
      self.seen = seen
    }
  }

  /// The roots, which the plan keeps alive.
  let roots: [any JointRoot]
  let kinds: [Kind]
  let work: Work

  /// Creates a plan.
  ///
  /// - Parameters:
  ///   - draft: The roots and the steps.
  ///   - result: The number of the step that makes the elements.
  init(_ draft: Draft, result: Int) {
    roots = draft.roots
    kinds = draft.kinds
    work = Work(steps: draft.steps, result: result)
  }

  /// Reads the elements of the roots; those of a family at one moment.
  func read() -> JointState {
    var boxes = roots.map { _ in AnyBox() }
    for (index, root) in roots.enumerated() where kinds[index].family == nil {
      root.read { box in
        boxes[index] = box
        for member in roots.indices where kinds[member].family == index {
          roots[member].read { boxes[member] = $0 }
        }
      }
    }
    return JointState(boxes)
  }
}

extension JointPlan {
  /// The steps of a plan, without its roots.
  struct Work: Sendable {
    fileprivate let steps: [Step]
    fileprivate let result: Int

    /// Makes the results for a state, from those for an earlier one as far as they have not changed.
    ///
    /// It calls user code.
    func results(for state: JointState, after former: [StepResult] = []) -> [StepResult] {
      var results: [StepResult] = []
      results.reserveCapacity(steps.count)
      for (number, step) in steps.enumerated() {
        results.append(step(state, results, number < former.count ? former[number] : nil))
      }
      return results
    }

    /// Returns the element among the results.
    func element(of results: [StepResult]) -> StepResult { results[result] }
  }
}

extension JointPlan {
  /// A plan to which parts are added.
  struct Draft {
    private struct Place {
      let step: Int
      let root: Int
    }

    fileprivate var roots: [any JointRoot] = []
    fileprivate var kinds: [Kind] = []
    fileprivate var steps: [Step] = []
    private var known: [AnyHashable: Int] = [:]
    private var knownRoots: [AnyHashable: Place] = [:]

    init() {}

    /// Adds a source: the steps of a part, or a root.
    ///
    /// - Returns: The number of the step that makes its elements.
    mutating func place<Source: StatefulBroadcaster>(_ source: Source) -> Int {
      if let part = source as? any JointPart<Source.Element> { return part.place(in: &self) }
      // Values of the user's have no identity.
      let id = Source.self is AnyClass ? AnyHashable(ObjectIdentifier(source as AnyObject)) : nil
      return place(JointSource(source: source), id: id).step
    }

    /// Adds a root, unless the draft has it.
    ///
    /// - Parameters:
    ///   - root: The root.
    ///   - id: Its identity, if it has one.
    ///   - isSource: Whether it is a source of the combination.
    ///   - family: The index of the root under whose lock it changes and is read, if that is another one.
    /// - Returns: The number of the step that returns its elements, and the index of the root.
    mutating func place(
      _ root: some JointRoot,
      id: AnyHashable?,
      isSource: Bool = true,
      family: Int? = nil
    ) -> (step: Int, root: Int) {
      if let id, let place = knownRoots[id] {
        if isSource { kinds[place.root].isSource = true }
        return (place.step, place.root)
      }
      let index = roots.count
      roots.append(root)
      kinds.append(Kind(isSource: isSource, family: family))
      steps.append { state, _, _ in
        let slot = state.slots[index]
        return StepResult(slot.box, changed: slot.round, seen: slot.round)
      }
      let place = Place(step: steps.count - 1, root: index)
      if let id { knownRoots[id] = place }
      return (place.step, place.root)
    }

    /// Adds a step that makes a value from the elements of one source, unless the draft has it.
    ///
    /// - Parameters:
    ///   - id: The identity of the part.
    ///   - source: The source.
    ///   - areEqual: Compares values, if one that equals the former one is no change.
    ///   - make: Makes the value.
    /// - Returns: The number of the step.
    mutating func add<Source: StatefulBroadcaster, Value: Sendable>(
      _ id: ObjectIdentifier,
      after source: Source,
      areEqual: (@Sendable (Value, Value) -> Bool)? = nil,
      _ make: @escaping @Sendable (Source.Element) -> Value
    ) -> Int {
      let place: (inout Draft) -> [Int] = { [$0.place(source)] }
      let makeNext: @Sendable (Inputs) -> Value = { inputs in
        var inputs = inputs
        return make(inputs.next())
      }
      return add(id, after: place, areEqual: areEqual, makeNext)
    }

    /// Adds a step that makes a value from others, unless the draft has it.
    ///
    /// - Parameters:
    ///   - id: The identity of the part.
    ///   - place: Adds what it is made from, and returns the numbers of those steps.
    ///   - areEqual: Compares values, if one that equals the former one is no change.
    ///   - make: Makes the value from those of the steps.
    /// - Returns: The number of the step.
    mutating func add<Value: Sendable>(
      _ id: ObjectIdentifier,
      after place: (inout Draft) -> [Int],
      areEqual: (@Sendable (Value, Value) -> Bool)? = nil,
      _ make: @escaping @Sendable (Inputs) -> Value
    ) -> Int {
      if let step = known[id] { return step }
      let sources = place(&self)
      steps.append { _, results, former in
        let inputs = Inputs(sources.map { results[$0] })
        if let former, inputs.changed <= former.seen { return former }
        let value = make(inputs)
        if let former, let areEqual, areEqual(Box<Value>.element(of: former.box), value) {
          return StepResult(former.box, changed: former.changed, seen: inputs.changed)
        }
        return StepResult(Box(value), changed: inputs.changed, seen: inputs.changed)
      }
      known[id] = steps.count - 1
      return steps.count - 1
    }
  }

  /// The results from which a step makes a value.
  struct Inputs: Sendable {
    private let results: [StepResult]
    private var index = 0
    /// The newest round in which one of them has changed.
    let changed: Int

    fileprivate init(_ results: [StepResult]) {
      self.results = results
      changed = results.lazy.map(\.changed).max() ?? 0
    }

    /// Returns the next value, which has the given type.
    mutating func next<Value: Sendable>(_ type: Value.Type = Value.self) -> Value {
      defer { index += 1 }
      return Box<Value>.element(of: results[index].box)
    }
  }
}
