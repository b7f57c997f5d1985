import TestSupport
import Testing

@testable import PlexusRedis

@Suite(.fewAtOnce) struct `A queue of batches` {
  typealias Queue = BatchQueueState<Int>

  private func queue(waiting items: Range<Int>) -> Queue {
    var queue = Queue()
    while queue.begin() {}
    for item in items { #expect(queue.wait(item) == []) }
    return queue
  }

  @Test(.guarantee(.simultaneousReadsAreAnsweredTogether))
  func `a queue of batches has at most two batches in flight`() {
    var queue = Queue()
    var begins = (0..<3).map { _ in queue.begin() }
    #expect(begins == [true, true, false])
    #expect(queue.next() == [])
    begins = (0..<2).map { _ in queue.begin() }
    #expect(begins == [true, false])
    #expect(queue.wait(1) == [])
    #expect(queue.next() == [1])
    #expect(queue.begin() == false)
    #expect(queue.next() == [])
    #expect(queue.next() == [])
    begins = (0..<3).map { _ in queue.begin() }
    #expect(begins == [true, true, false])
  }

  @Test(.guarantee(.simultaneousReadsAreAnsweredTogether))
  func `a queue of batches makes batches of bounded size, in order, and sends a full one at once`()
  {
    var queue = queue(waiting: 0..<63)
    #expect(queue.wait(63) == Array(0..<64))
    let full = (64..<200).map { queue.wait($0) }.filter { !$0.isEmpty }
    #expect(full == [Array(64..<128), Array(128..<192)])
    #expect(queue.next() == Array(192..<200))
    for _ in 0..<5 { #expect(queue.next() == []) }
    #expect(queue.isIdle)
  }

  @Test func `a queue of batches sends large items at once`() {
    var queue = queue(waiting: 0..<3)
    #expect(queue.wait(3, isLarge: true) { $0 == 1 ? .drops : $0 == 3 ? .ends : .takes } == [0, 2])
    #expect(queue.next() == [3])
  }

  @Test(.guarantee(.simultaneousReadsAreAnsweredTogether))
  func `a queue of batches drops items, and ends a batch before an item`() {
    var queue = queue(waiting: 0..<10)
    let first = queue.next { $0 == 5 ? .ends : $0 % 2 == 0 ? .drops : .takes }
    #expect(first == [1, 3])
    #expect(queue.next { $0 < 7 ? .drops : .takes } == [7, 8, 9])
    #expect(queue.next() == [])
  }

  @Test(.guarantee(.simultaneousReadsAreAnsweredTogether))
  func `a queue of batches begins no batch if all items are dropped`() {
    var queue = queue(waiting: 0..<50)
    #expect(queue.next { _ in .drops } == [])
    #expect(queue.begin() == true)
    #expect(queue.begin() == false)
  }

  @Test(.guarantee(.simultaneousReadsAreAnsweredTogether))
  func `a queue of batches removes all items that wait`() {
    var queue = queue(waiting: 0..<3)
    #expect(queue.removeAll() == [0, 1, 2])
    #expect(queue.next() == [])
  }
}
