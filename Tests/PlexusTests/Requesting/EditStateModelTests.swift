import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `The updates of a value` {
  /// A change that appends a number, or that cannot be repeated.
  private typealias State = EditState<[Int], Int>

  @Test(.guarantee(.optimisticUpdatesRollBack), arguments: 0..<200)
  func `the updates of a value leave what was committed, in order, whatever ends first`(
    seed: UInt64
  ) {
    var random = SeededRandom(seed: seed)
    var state = State()
    var value: [Int] = []
    // The model: the changes on the base, and which of them are still open.
    var base: [Int] = []
    var changes: [(id: UInt64, isOpen: Bool)] = []
    for id in UInt64(1)...60 {
      switch Int.random(in: 0..<6, using: &random) {
      case 0..<3:
        let old = value
        value.append(Int(id))
        state.draft(id, Int(id), of: .init(old), result: .init(value))
        changes.append((id, true))
      case 3:
        base = [-Int(id)]
        changes.removeAll { !$0.isOpen }
        value = replace(&state, with: base, .stored(by: []))
      default:
        guard let open = changes.filter(\.isOpen).randomElement(using: &random) else { continue }
        guard let index = changes.firstIndex(where: { $0.id == open.id }) else { continue }
        if Bool.random(using: &random) {
          changes[index].isOpen = false
          let confirmation = state.confirm(open.id, duringFetch: nil)
          #expect(confirmation.changesBase == (index == 0))
        } else {
          changes.remove(at: index)
          let left = revert(&state, open.id)
          value = left ?? []
          #expect(left != nil)
        }
        while let first = changes.first, !first.isOpen {
          base.append(Int(first.id))
          changes.removeFirst()
        }
      }
      #expect(value == base + changes.map { Int($0.id) })
      #expect(state.base == (changes.isEmpty ? nil : base))
      #expect(state.isEmpty == changes.isEmpty)
    }
  }

  @Test(.guarantee(.updatesOnOptimisticChangesStay), arguments: 0..<200)
  func `updates can be taken out from under others that cannot be made again, in any order`(
    seed: UInt64
  ) {
    var random = SeededRandom(seed: seed)
    var state = State()
    var shown: [Int] = []
    var open: [Int] = []
    for number in 1...40 {
      switch Int.random(in: 0..<5, using: &random) {
      case 0, 1:
        guard open.count < 8 else { continue }
        let old = shown
        shown.append(number)
        state.draft(UInt64(number), number, of: .init(old), result: .init(shown))
        open.append(number)
      case 2:
        shown = update(&state, adding: number, to: shown)
      default:
        guard let ended = open.randomElement(using: &random) else { continue }
        open.removeAll { $0 == ended }
        if Bool.random(using: &random) {
          _ = state.confirm(UInt64(ended), duringFetch: nil)
        } else {
          shown.removeAll { $0 == ended }
          #expect(revert(&state, UInt64(ended)) == shown)
        }
      }
      // What is written contains no open change, and every update.
      let base = state.base ?? shown
      #expect(base.allSatisfy { !open.contains($0) })
      #expect(base == shown.filter(base.contains))
      if open.isEmpty { #expect(base == shown && state.isEmpty) }
    }
  }

  @Test(.guarantee(.updatesOnOptimisticChangesStay))
  func `an update goes below the drafts if too many of them are open`() {
    var state = State()
    var shown: [Int] = []
    for number in 1...9 {
      let old = shown
      shown.append(number)
      state.draft(UInt64(number), number, of: .init(old), result: .init(shown))
    }
    #expect(update(&state, adding: 10, to: shown) == [10] + shown)
    #expect(state.base == [10])
    #expect(revert(&state, 3) == [10, 1, 2, 4, 5, 6, 7, 8, 9])
  }

  @Test func `updates of a cleared value refresh the key when they are committed, and only then`() {
    var state = State()
    state.draft(1, 1, of: .init([]), result: .init([1]))
    state.draft(2, 2, of: .init([1]), result: .init([1, 2]))
    state.clear()
    #expect(state.base == nil)
    #expect(state.confirm(1, duringFetch: nil).refreshes)
    guard case .nothing = state.revert(2) else {
      Issue.record("There is nothing to take back")
      return
    }
    #expect(state.isEmpty)
  }

  @Test func `updates whose commit has stored the value have no effect at all`() {
    var state = State()
    state.draft(1, 1, of: .init([]), result: .init([1]))
    #expect(replace(&state, with: [5], .stored(by: [1])) == [5])
    #expect(state.confirm(1, duringFetch: nil) == State.Confirmation())
    #expect(state.isEmpty)
  }

  @Test func `updates committed during a fetch stay on top of its value, and of no later one`() {
    var state = State()
    state.draft(1, 1, of: .init([]), result: .init([1]))
    state.draft(2, 2, of: .init([1]), result: .init([1, 2]))
    #expect(state.confirm(1, duringFetch: 1).changesBase)
    #expect(state.base == [1])
    #expect(replace(&state, with: [9], .fetched(after: 0)) == [9, 1, 2])
    #expect(state.base == [9, 1])
    state.endFetch()
    #expect(replace(&state, with: [10], .fetched(after: 0)) == [10, 2])
    let confirmation = state.confirm(2, duringFetch: nil)
    #expect(confirmation == State.Confirmation(changesBase: true, refreshes: true))
    #expect(state.isEmpty)
  }

  @Test func `updates that compute detect every change since they began`() {
    var state = State()
    let first = state.begin()
    let second = state.begin()
    let isCurrent = state.end(first)
    #expect(isCurrent)
    state.change(to: [], results: [])
    let isStillCurrent = state.end(second)
    #expect(!isStillCurrent)
    #expect(state.isEmpty)
  }

  // MARK: - Steps

  /// Replaces the value below the drafts, and returns the visible one.
  private func replace(
    _ state: inout State,
    with base: [Int],
    _ arrival: State.Way
  ) -> [Int] {
    let results = results(of: state.drafts(above: arrival).map(\.change), on: base)
    return state.replace(with: .init(base), results: results, arrival).value.value
  }

  /// Reverts a draft, and returns the visible value.
  private func revert(_ state: inout State, _ id: UInt64) -> [Int]? {
    guard case .reapplies(let below, let changes, let version) = state.revert(id) else {
      Issue.record("The change could not be taken out")
      return nil
    }
    let results = results(of: changes, on: below.value)
    return state.remove(id, below: below, results: results, version: version)?.value
  }

  private func results(of changes: [Int], on base: [Int]) -> [State.Weighed] {
    changes.indices.map { State.Weighed(base + changes[...$0]) }
  }

  /// Appends a number by an update, and returns the visible value.
  private func update(_ state: inout State, adding number: Int, to shown: [Int]) -> [Int] {
    guard let basis = state.basis else {
      state.change(to: [], results: [])
      return shown + [number]
    }
    guard basis.absorbsDrafts else {
      let values = basis.values.map { $0 + [number] }
      let results = results(of: basis.drafts.map(\.change), on: values.last ?? [])
      state.change(to: values.map { State.Weighed($0) }, results: results)
      return results.last?.value ?? []
    }
    var values = basis.values
    for draft in basis.drafts {
      let changed = values.map { $0 + [draft.change] }
      values = draft.isConfirmed ? changed : values + changed
    }
    #expect(values.last == shown)
    values = values.map { $0 + [number] }
    state.change(to: values.map { State.Weighed($0) }, results: [])
    return values.last ?? []
  }
}
