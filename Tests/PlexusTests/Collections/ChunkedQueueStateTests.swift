import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `Chunked queue state` {
  @Test func `a chunked queue behaves like an array for any sequence of appending and removing`() {
    var queue = ChunkedQueue<Int>()
    var list: ArraySlice<Int> = []
    var random = SeededRandom(seed: 1)
    for number in 0..<20_000 {
      // The queue grows to several chunks and shrinks in turn.
      if random.next() % 100 < (number / 5_000 % 2 == 0 ? 90 : 10) {
        queue.append(number)
        list.append(number)
      } else {
        #expect(queue.popFirst() == list.popFirst())
      }
      #expect(queue.isEmpty == list.isEmpty)
      #expect(queue.count == list.count)
      #expect(queue.oldest == list.first)
    }
    while let expected = list.popFirst() { #expect(queue.popFirst() == expected) }
    #expect(queue.popFirst() == nil)
    #expect(queue.isEmpty)
  }

  @Test(arguments: [0, 1, 64, 65, 128, 129], [0, 1, 64, 65])
  func `a chunked queue returns chunks in order, also after single elements`(
    count: Int,
    popped: Int
  ) {
    var queue = ChunkedQueue<Int>()
    for number in 0..<count { queue.append(number) }
    var taken: [Int] = []
    for _ in 0..<popped { if let number = queue.popFirst() { taken.append(number) } }
    var chunk: ContiguousArray<Int> = []
    while !queue.isEmpty {
      chunk.removeAll(keepingCapacity: true)
      queue.popChunk(into: &chunk)
      #expect(1...64 ~= chunk.count)
      taken += chunk
      // A chunk that was taken out does not change the order of later elements.
      if taken.last == count - 1, taken.count == count { queue.append(count) }
    }
    #expect(taken == Array(0..<count) + (count > popped ? [count] : []))
  }

  @Test(arguments: [0, 1, 64, 65, 193])
  func `a chunked queue returns all elements in order, also after single elements`(count: Int) {
    var queue = ChunkedQueue<Int>()
    for number in 0..<count { queue.append(number) }
    #expect(queue.popFirst() == (count > 0 ? 0 : nil))
    #expect(Array(queue.popAll()) == Array((0..<count).dropFirst()))
    #expect(queue.isEmpty)
    queue.append(-1)
    #expect(queue.popFirst() == -1)
  }

  @Test func `a chunked queue keeps elements in chunks of limited size`() {
    var queue = ChunkedQueue<Int>()
    for number in 0..<100_000 { queue.append(number) }
    #expect(queue.first.count <= 64)
    #expect(queue.last.count <= 64)
    #expect(queue.middle.count <= 1_563)
  }

  @Test func `a chunked queue releases an element when it is removed`() {
    var queue = ChunkedQueue<Parcel>()
    let census = Census()
    for number in 0..<1_200 { queue.append(census.parcel(number)) }
    for _ in 0..<600 { _ = queue.popFirst() }
    #expect(census.living == 600)
    queue = ChunkedQueue()
    #expect(census.living == 0)
  }
}
