import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `Ring state` {
  @Test func `a ring returns elements in order, regardless of their offset`() {
    for offset in 0..<20 {
      var ring = Ring<Int>()
      for number in 0..<offset {
        ring.append(number)
        #expect(ring.popFirst() == number)
      }
      for number in 0..<17 { ring.append(number) }
      #expect(ring.count == 17)
      for number in 0..<17 { #expect(ring[number] == number) }
      for number in 0..<17 { #expect(ring.popFirst() == number) }
      #expect(ring.isEmpty)
      #expect(ring.popFirst() == nil)
    }
  }

  @Test func `a ring behaves like an array for any sequence of appending and removing`() {
    var ring = Ring<Int>()
    var list: [Int] = []
    var random = SeededRandom(seed: 1)
    for number in 0..<5000 {
      // The ring grows and shrinks in turn.
      if random.next() % 100 < (number / 500 % 2 == 0 ? 70 : 30) {
        ring.append(number)
        list.append(number)
      } else {
        #expect(ring.popFirst() == (list.isEmpty ? nil : list.removeFirst()))
      }
      #expect(ring.count == list.count)
      if let last = list.indices.last { #expect(ring[last] == list[last]) }
    }
    #expect(ring.popFirst(atMost: .max).elementsEqual(list))
  }

  @Test(arguments: [0, 1, 3, 5, 9])
  func `a ring removes up to a number of the oldest elements`(maximum: Int) {
    var ring = Ring<Int>()
    for number in 0..<5 { ring.append(number) }
    #expect(Array(ring.popFirst(atMost: maximum)) == Array(0..<min(maximum, 5)))
    #expect(ring.count == 5 - min(maximum, 5))
    #expect(ring.popFirst() == (maximum < 5 ? maximum : nil))
  }

  @Test func `a ring releases an element when it is removed`() {
    var ring = Ring<Parcel>()
    let census = Census()
    for number in 0..<10 { ring.append(census.parcel(number)) }
    _ = ring.popFirst()
    #expect(census.living == 9)
    _ = ring.popFirst(atMost: 4)
    #expect(census.living == 5)
    ring = Ring()
    #expect(census.living == 0)
  }

  @Test func `a ring frees its memory after a long backlog`() {
    var ring = Ring<Int>()
    for number in 0..<1000 { ring.append(number) }
    #expect(ring.slots.count >= 1000)
    while ring.popFirst() != nil {}
    #expect(ring.slots.count <= 64)
    ring.append(1)
    #expect(ring.popFirst() == 1)
  }

  @Test func `a ring is a value: a copy keeps elements that the original removes`() {
    var ring = Ring<Int>()
    for number in 0..<4 { ring.append(number) }
    var copy = ring
    _ = ring.popFirst()
    ring.append(4)
    #expect(Array(copy.popFirst(atMost: 9)) == [0, 1, 2, 3])
    #expect(Array(ring.popFirst(atMost: 9)) == [1, 2, 3, 4])
  }
}
