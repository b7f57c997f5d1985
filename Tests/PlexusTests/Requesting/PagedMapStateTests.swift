import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `Paged map state` {
  final class List: Sendable {
    let isWatched: Bool

    init(isWatched: Bool = false) {
      self.isWatched = isWatched
    }
  }

  typealias State = PagedMapState<Int, List>

  /// Evicts lists, and returns their keys.
  func evict(_ state: inout State, to capacity: Int) -> [Int] {
    let keys = state.evict(to: capacity, hasSubscribers: \.isWatched).map(\.key)
    for key in keys { _ = state.remove(key, hash: UInt64(key)) }
    return keys
  }

  func add(_ keys: Range<Int>, to state: inout State) {
    for key in keys { _ = state.insert(List(), for: key, hash: UInt64(key)) }
  }

  @Test func `the lists that were accessed longest ago leave first`() {
    var state = State()
    add(0..<5, to: &state)
    _ = state.access(0, hash: 0)
    #expect(evict(&state, to: 2) == [1, 2, 3])
    #expect(state.count == 2)
    #expect(state.access(1, hash: 1) == nil)
    #expect(state.access(0, hash: 0) != nil)
  }

  @Test func `lists that are held or watched neither leave nor count`() {
    var state = State()
    add(0..<3, to: &state)
    _ = state.insert(List(isWatched: true), for: 3, hash: 3)
    var held = state.access(0, hash: 0)
    #expect(held != nil)
    #expect(evict(&state, to: 2) == [])
    #expect(evict(&state, to: 0) == [1, 2])
    #expect(state.lists.count == 2)
    held = nil
    #expect(evict(&state, to: 0) == [0])
  }

  @Test func `a key has the list that was added first`() {
    var state = State()
    let first = List()
    #expect(state.insert(first, for: 1, hash: 1) === first)
    #expect(state.insert(List(), for: 1, hash: 1) === first)
    #expect(state.count == 1)
  }

  @Test func `a list that is reached during its eviction stays the list of its key`() {
    var state = State()
    add(0..<2, to: &state)
    let leaving = state.evict(to: 0, hasSubscribers: \.isWatched)
    #expect(leaving.map(\.key) == [0, 1])
    // As by a weak reference that was loaded in between.
    let held = leaving[0].list
    #expect(state.lists.count == 2, "a sign-out reaches it, too")
    #expect(state.access(0, hash: 0) === held)
    #expect(state.remove(0, hash: 0) == nil)
    #expect(state.remove(1, hash: 1) == nil)
    #expect(state.access(1, hash: 1) === leaving[1].list)
    #expect(state.count == 2)
  }

  @Test func `a key whose list is released during its eviction gets a new one`() {
    var state = State()
    add(0..<1, to: &state)
    _ = state.evict(to: 0, hasSubscribers: \.isWatched)
    #expect(state.access(0, hash: 0) == nil)
    let new = List()
    #expect(state.insert(new, for: 0, hash: 0) === new)
    #expect(state.remove(0, hash: 0) == nil)
    #expect(state.access(0, hash: 0) === new)
  }
}
