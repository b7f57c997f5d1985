import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `Chunked queue state` {
  @Test func `behaves like an array for any sequence of appending and removing`() {
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
      #expect(queue.oldest == list.first)
    }
    while let expected = list.popFirst() { #expect(queue.popFirst() == expected) }
    #expect(queue.popFirst() == nil)
    #expect(queue.isEmpty)
  }

  @Test(arguments: [1, 511, 512, 513, 1_024, 1_025, 1_537])
  func `returns elements in order at the limits of its chunks`(count: Int) {
    var queue = ChunkedQueue<Int>()
    for number in 0..<count { queue.append(number) }
    for number in 0..<count { #expect(queue.popFirst() == number) }
    #expect(queue.popFirst() == nil)
  }

  @Test func `keeps elements in chunks of limited size`() {
    var queue = ChunkedQueue<Int>()
    for number in 0..<100_000 { queue.append(number) }
    #expect(queue.first.count <= 512)
    #expect(queue.last.count <= 512)
    #expect(queue.middle.count <= 200)
  }

  @Test func `releases an element when it is removed`() {
    var queue = ChunkedQueue<Parcel>()
    let census = Census()
    for number in 0..<1_200 { queue.append(census.parcel(number)) }
    for _ in 0..<600 { _ = queue.popFirst() }
    #expect(census.living == 600)
    queue = ChunkedQueue()
    #expect(census.living == 0)
  }
}
