import TestSupport
import Testing

@testable import PlexusRedis

@Suite(.fewAtOnce) struct `A queue of batches` {
  typealias Queue = BatchQueueState<Int>

  private func queue(waiting items: Range<Int>) -> Queue {
    var queue = Queue()
    while queue.begin() {}
    for item in items { queue.wait(item) }
    return queue
  }

  @Test func `has at most two batches in flight`() {
    var queue = Queue()
    var begins = (0..<3).map { _ in queue.begin() }
    #expect(begins == [true, true, false])
    #expect(queue.next() == [])
    begins = (0..<2).map { _ in queue.begin() }
    #expect(begins == [true, false])
    queue.wait(1)
    #expect(queue.next() == [1])
    #expect(queue.begin() == false)
    #expect(queue.next() == [])
    #expect(queue.next() == [])
    begins = (0..<3).map { _ in queue.begin() }
    #expect(begins == [true, true, false])
  }

  @Test func `makes batches of bounded size, in order`() {
    var queue = queue(waiting: 0..<150)
    #expect(queue.next() == Array(0..<64))
    #expect(queue.next() == Array(64..<128))
    #expect(queue.next() == Array(128..<150))
    #expect(queue.next() == [])
  }

  @Test func `drops items, and ends a batch before an item`() {
    var queue = queue(waiting: 0..<10)
    let first = queue.next { $0 == 5 ? .ends : $0 % 2 == 0 ? .drops : .takes }
    #expect(first == [1, 3])
    #expect(queue.next { $0 < 7 ? .drops : .takes } == [7, 8, 9])
    #expect(queue.next() == [])
  }

  @Test func `begins no batch if all items are dropped`() {
    var queue = queue(waiting: 0..<100)
    #expect(queue.next { _ in .drops } == [])
    #expect(queue.begin() == true)
    #expect(queue.begin() == false)
  }

  @Test func `removes all items that wait`() {
    var queue = queue(waiting: 0..<3)
    #expect(queue.removeAll() == [0, 1, 2])
    #expect(queue.next() == [])
  }
}
