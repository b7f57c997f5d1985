import Testing

@testable import PlexusNetworking

/// Lists that are scrolled up and down for hours.
@Suite struct `The elements of a prefetcher under attack` {
  @Test func `elements of a prefetcher that are added and taken out again leave nothing behind`() {
    var state = PrefetchState<Int>(limit: 1)
    state.add([-1])
    _ = state.next()
    for number in 0..<10_000 {
      state.add([number, number + 1, number + 2])
      _ = state.cancel([number, number + 1, number + 2])
    }
    #expect(state.counts.waiting == 0)
    #expect(state.entryCount < 100)
    state.add([1, 2])
    for _ in 0..<10_000 {
      state.add([3])
      _ = state.cancel([3])
    }
    #expect(state.entryCount < 100)
  }

  @Test func `elements of a prefetcher that have run leave nothing behind while others wait`() {
    var state = PrefetchState<Int>(limit: 1)
    state.add([0, 1])
    for number in 2..<10_000 {
      if let next = state.next() { state.finish(next.id) }
      state.add([number])
    }
    #expect(state.counts.waiting == 2)
    #expect(state.entryCount < 100)
  }

  @Test func `elements of a prefetcher that are added again come after all that were added before`()
  {
    var state = PrefetchState<Int>(limit: 1)
    state.add([0])
    let first = state.next()
    state.add([1, 2, 3])
    _ = state.cancel([1])
    state.add([1])
    var order: [Int] = []
    if let first { state.finish(first.id) }
    while let next = state.next() {
      order.append(next.element)
      state.finish(next.id)
    }
    #expect(order == [2, 3, 1])
  }

  @Test
  func `elements of a prefetcher stay in order when it is paused and resumed again and again`() {
    var state = PrefetchState<Int>(limit: 2)
    state.add(Array(0..<10))
    for _ in 0..<1_000 {
      _ = state.next()
      _ = state.next()
      _ = state.pause()
      state.resume()
    }
    var order: [Int] = []
    while let next = state.next() {
      order.append(next.element)
      state.finish(next.id)
    }
    #expect(order == Array(0..<10))
    #expect(state.entryCount < 100)
  }
}
