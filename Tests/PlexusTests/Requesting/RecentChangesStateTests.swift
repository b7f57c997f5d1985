import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `The changes during calls` {
  typealias State = RecentChangesState<Int>

  private static func hash(_ key: Int) -> UInt64 {
    // Few bits, so that keys collide.
    UInt64(key % 7) << 50 | UInt64(key % 5)
  }

  @Test func `a change concerns the calls in progress, and no later one`() {
    var state = State()
    let first = state.begin()
    _ = state.change(1, hash: Self.hash(1))
    let second = state.begin()
    _ = state.change(["tag"])
    #expect(state.hasChanged(1, hash: Self.hash(1), [], since: first))
    #expect(!state.hasChanged(1, hash: Self.hash(1), [], since: second))
    #expect(state.hasChanged(2, hash: Self.hash(2), ["other", "tag"], since: first))
    #expect(state.hasChanged(2, hash: Self.hash(2), ["tag"], since: second))
    let third = state.begin()
    #expect(!state.hasChanged(1, hash: Self.hash(1), ["tag"], since: third))
  }

  @Test func `a change of everything concerns the calls in progress, and no later one`() {
    var state = State()
    let first = state.begin()
    #expect(state.changeAll().isEmpty)
    let second = state.begin()
    #expect(state.hasChanged(1, hash: Self.hash(1), [], since: first))
    #expect(!state.hasChanged(1, hash: Self.hash(1), [], since: second))
  }

  @Test func `nothing is recorded while no call is in progress, or kept after the last one`() {
    var state = State()
    _ = state.change(1, hash: Self.hash(1))
    _ = state.change(["tag"])
    #expect(state.count == 0)
    let first = state.begin()
    let second = state.begin()
    _ = state.change(1, hash: Self.hash(1))
    _ = state.change(["tag"])
    #expect(state.end(first).isEmpty)
    #expect(state.count == 2)
    #expect(state.end(second).map(\.key) == [1])
    #expect(state.count == 0)
    #expect(!state.isRecording)
  }

  @Test func `changes beyond a limit count as a change of everything, and stay bounded`() {
    var state = State()
    let call = state.begin()
    for key in 0...State.limit { _ = state.change(key, hash: Self.hash(key)) }
    #expect(state.count <= State.limit)
    #expect(state.hasChanged(-1, hash: Self.hash(6), [], since: call))
    let later = state.begin()
    #expect(!state.hasChanged(0, hash: Self.hash(0), [], since: later))
    for tag in 0...State.limit { _ = state.change([CacheTag("\(tag)")]) }
    #expect(state.count <= State.limit)
    #expect(state.hasChanged(0, hash: Self.hash(0), [], since: later))
  }

  @Test(arguments: UInt64(0)..<20)
  func `changes are those of a naive model with a set for each call, after any history`(
    seed: UInt64
  ) {
    var random = SeededRandom(seed: seed)
    var state = State()
    var calls: [UInt64: (keys: Set<Int>, tags: Set<CacheTag>, isAll: Bool)] = [:]
    for _ in 0..<500 {
      let key = Int.random(in: 0..<30, using: &random)
      let tag = CacheTag("\(key % 4)")
      switch Int.random(in: 0..<20, using: &random) {
      case 0..<4: calls[state.begin()] = ([], [], false)
      case 4..<7:
        guard let call = calls.keys.sorted().randomElement(using: &random) else { continue }
        _ = state.end(call)
        calls[call] = nil
      case 7..<8:
        _ = state.changeAll()
        for call in calls.keys { calls[call]?.isAll = true }
      case 8..<10:
        _ = state.change([tag])
        for call in calls.keys { calls[call]?.tags.insert(tag) }
      default:
        _ = state.change(key, hash: Self.hash(key))
        for call in calls.keys { calls[call]?.keys.insert(key) }
      }
      for (call, changes) in calls {
        let expected = changes.isAll || changes.keys.contains(key) || changes.tags.contains(tag)
        #expect(state.hasChanged(key, hash: Self.hash(key), [tag], since: call) == expected)
      }
    }
  }
}
