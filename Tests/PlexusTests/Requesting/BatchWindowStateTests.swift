import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `The state of a batch window` {
  @Test(.guarantee(.droppedKeysDoNotFillABatch), arguments: 0..<50)
  func `a batch window loses no item, repeats none, keeps their order and the largest size`(
    seed: UInt64
  ) {
    var random = SeededRandom(seed: seed)
    let size = seed % 3 == 0 ? nil : Int.random(in: 1...5, using: &random)
    var state = BatchWindow.BatchState<Int>(maximumSize: size)
    var departed: [Int] = []
    var open: [(number: Int, first: Int)] = []
    var added = 0
    for _ in 0..<200 {
      if Int.random(in: 0..<4, using: &random) > 0 {
        let step = state.add(added)
        switch step {
        case .joins: #expect(departed.count < added)
        case .opens(let number):
          #expect(departed.count == added)
          open.append((number, added))
        case .departs(let items):
          #expect(items.count == size)
          departed += items
        }
        added += 1
      } else if let batch = open.randomElement(using: &random) {
        let isOpen = state.isOpen(batch.number)
        let items = state.close(batch.number)
        #expect(items.isEmpty == !isOpen)
        #expect(items.first.map { $0 == batch.first } ?? true)
        departed += items
      }
    }
    if let last = open.last { departed += state.close(last.number) }
    #expect(departed == Array(0..<added))
  }

  @Test(.guarantee(.droppedKeysDoNotFillABatch))
  func `the state of a batch window lets items depart that do not count, behind the others`() {
    var state = BatchWindow.BatchState<Int>(maximumSize: 2)
    let isDropped: (Int) -> Bool = { $0 < 0 }
    guard case .opens(let number) = state.add(-1, isDropped: isDropped) else {
      Issue.record("No batch was opened")
      return
    }
    for item in [-2, 1, -3] {
      guard case .joins = state.add(item, isDropped: isDropped) else {
        Issue.record("\(item) has not joined")
        return
      }
      #expect(state.isOpen(number))
    }
    guard case .departs(let items) = state.add(2, isDropped: isDropped) else {
      Issue.record("The batch is full")
      return
    }
    #expect(items.prefix(2) == [1, 2])
    #expect(items.sorted() == [-3, -2, -1, 1, 2])
    #expect(!state.isOpen(number))
  }
}
