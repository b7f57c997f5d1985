import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `The updates of a value` {
  /// A change that appends a number, or that cannot be repeated.
  private typealias State = EditState<[Int], Int>

  @Test(arguments: 0..<200)
  func `leave what was committed, in order, whatever ends first`(seed: UInt64) {
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
        state.draft(id, Int(id), of: old, result: value)
        changes.append((id, true))
      case 3:
        value = [-Int(id)]
        state.replace()
        base = value
        changes = []
      default:
        guard let open = changes.filter(\.isOpen).randomElement(using: &random) else { continue }
        guard let index = changes.firstIndex(where: { $0.id == open.id }) else { continue }
        if Bool.random(using: &random) {
          changes[index].isOpen = false
          let isFirst = index == 0
          #expect(state.confirm(open.id) == (isFirst ? .changesBase : .nothing))
        } else {
          changes.remove(at: index)
          guard case .reapplies(var result, let later, let version) = state.revert(open.id) else {
            Issue.record("The change could be taken out")
            return
          }
          var results: [[Int]] = []
          for change in later {
            result.append(change)
            results.append(result)
          }
          let left = state.remove(open.id, results: results, version: version)?.value
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

  @Test func `that are displaced refresh the key when they are committed, and only then`() {
    var state = State()
    state.draft(1, 1, of: [], result: [1])
    state.draft(2, 2, of: [1], result: [1, 2])
    state.displace()
    #expect(state.base == nil)
    #expect(state.confirm(1) == .refreshes)
    guard case .nothing = state.revert(2) else {
      Issue.record("There is nothing to take back")
      return
    }
    #expect(state.isEmpty)
  }

  @Test func `that are replaced by a store have no effect at all`() {
    var state = State()
    state.draft(1, 1, of: [], result: [1])
    state.replace()
    #expect(state.confirm(1) == .nothing)
    #expect(state.isEmpty)
  }

  @Test func `that fail under a change that cannot be made again keep the base from being written`()
  {
    var state = State()
    state.draft(1, 1, of: [], result: [1])
    state.overlay([1, 9])
    guard case .refreshes = state.revert(1) else {
      Issue.record("The change was taken out")
      return
    }
    #expect(state.base == [])
    #expect(!state.isEmpty)
    state.displace()
    #expect(state.isEmpty)
  }

  @Test func `that compute detect every change since they began`() {
    var state = State()
    let first = state.begin()
    let second = state.begin()
    let isCurrent = state.end(first)
    #expect(isCurrent)
    state.overlay([1])
    let isStillCurrent = state.end(second)
    #expect(!isStillCurrent)
    #expect(state.isEmpty)
  }
}
