import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `The selectors of a store` {
  /// A subscriber of the table, in the model.
  private struct Entry {
    let id: ChangeSubscriptions.ID
    /// The number of its selector.
    let selector: Int
  }

  /// A table, its subscribers, and the numbers of the selectors that have evaluated a state, in order.
  private struct World {
    var table = SelectorTable<Int>()
    var entries: [Entry] = []
    var selectors: [Int: SelectorEntry<Int>] = [:]
    var lastSelector = 0
    let evaluated = Log<Int>()

    mutating func add() {
      lastSelector += 1
      let (number, evaluated) = (lastSelector, evaluated)
      let selector = SelectorEntry(0)
      selectors[number] = selector
      table.add(selector) { _ in
        evaluated.append(number)
        return 0
      }
      join(number)
    }

    mutating func join(_ number: Int) {
      guard let selector = selectors[number] else { return }
      let entry = Entry(id: ChangeSubscriptions.ID(), selector: number)
      entries.append(entry)
      table.index.connect(entry.id, to: selector, at: selector.insert(BroadcastHub<Change<Int>>()))
    }

    mutating func remove(at index: Int) {
      let entry = entries.remove(at: index)
      table.remove(entry.id)
      // Removing it again has no effect.
      table.remove(entry.id)
    }

    /// The selectors with subscribers, in the order in which they were added.
    var expected: [Int] { Set(entries.map(\.selector)).sorted() }
  }

  @Test(arguments: 0..<20)
  func `selectors evaluate a state once each and in order, however many come and go`(
    seed: UInt64
  ) throws {
    var random = SeededRandom(seed: seed)
    var world = World()
    var seen = 0
    for step in 0..<800 {
      switch Int.random(in: 0..<10, using: &random) {
      // The number of selectors grows, and shrinks to none.
      case 0..<(step % 400 < 200 ? 6 : 2): world.add()
      case 6 where !world.entries.isEmpty:
        world.join(world.entries.randomElement(using: &random)?.selector ?? 0)
      case 7...:
        world.table.evaluate(step)
        let evaluated = Array(world.evaluated.entries[seen...])
        seen += evaluated.count
        try #require(evaluated == world.expected)
      default:
        guard !world.entries.isEmpty else { continue }
        world.remove(at: Int.random(in: world.entries.indices, using: &random))
      }
    }
    while !world.entries.isEmpty { world.remove(at: world.entries.count / 2) }
    #expect(world.table.isEmpty)
    world.table.evaluate(0)
    #expect(world.evaluated.count == seen)
  }

  @Test func `a table of selectors releases a removed closure at once, and the others at its end`()
  {
    var table = SelectorTable<Int>()
    let ids = (0..<3).map { _ in ChangeSubscriptions.ID() }
    weak var first: Owner?
    weak var last: Owner?
    for (number, id) in ids.enumerated() {
      let captured = Owner()
      if number == 0 { first = captured }
      if number == 2 { last = captured }
      let selector = SelectorEntry(0)
      table.add(selector) { state in withExtendedLifetime(captured) { state } }
      table.index.connect(id, to: selector, at: selector.insert(BroadcastHub<Change<Int>>()))
    }
    table.evaluate(1)
    #expect(first != nil)
    table.remove(ids[0])
    #expect(first == nil)
    #expect(last != nil)
    table = SelectorTable()
    #expect(last == nil)
  }
}
