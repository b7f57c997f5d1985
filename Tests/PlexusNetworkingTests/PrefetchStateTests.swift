import TestSupport
import Testing

@testable import PlexusNetworking

@Suite struct `The elements of a prefetcher` {
  private func started(_ state: inout PrefetchState<Int>) -> [Int] {
    var elements: [Int] = []
    while let next = state.next() { elements.append(next.element) }
    return elements
  }

  @Test func `the elements of a prefetcher run in order, so many at once, and once each`() {
    var state = PrefetchState<Int>(limit: 2)
    state.add([1, 2, 2, 3, 1])
    #expect(started(&state) == [1, 2])
    state.add([1, 3, 4])
    state.finish(1)
    #expect(started(&state) == [3])
    state.finish(2)
    state.finish(3)
    #expect(started(&state) == [4])
    state.finish(4)
    #expect(state.counts == (0, 0))
    state.add([1])
    #expect(started(&state) == [1])
  }

  @Test func `the elements of a prefetcher are taken out where they wait or run`() {
    var state = PrefetchState<Int>(limit: 2)
    state.add([1, 2, 3, 4])
    #expect(started(&state) == [1, 2])
    #expect(state.cancel([2, 3, 9]) == [2])
    #expect(started(&state) == [4])
    state.add([3])
    state.finish(1)
    #expect(started(&state) == [3])
    #expect(Set(state.cancelAll()) == [3, 4])
    #expect(state.counts == (0, 0))
  }

  @Test
  func `the elements of a prefetcher wait while it is paused, the running ones before all others`()
  {
    var state = PrefetchState<Int>(limit: 2)
    state.add([1, 2, 3])
    #expect(started(&state) == [1, 2])
    #expect(state.pause() == [1, 2])
    state.add([4])
    // The task of an element that was stopped ends.
    state.finish(1)
    #expect(started(&state).isEmpty)
    #expect(state.counts == (4, 0))
    state.resume()
    #expect(started(&state) == [1, 2])
    state.finish(3)
    state.finish(4)
    #expect(started(&state) == [3, 4])
  }

  @Test func `the elements of a prefetcher never run beyond the limit, whatever happens`() {
    var random = SeededRandom(seed: 1)
    for _ in 0..<200 {
      var state = PrefetchState<Int>(limit: 3)
      var running: Set<Int> = []
      for _ in 0..<60 {
        switch Int.random(in: 0..<6, using: &random) {
        case 0: state.add((0..<5).map { _ in Int.random(in: 0..<20, using: &random) })
        case 1:
          running.subtract(
            state.cancel(Set((0..<5).map { _ in Int.random(in: 0..<20, using: &random) }))
          )
        case 2: running.subtract(state.pause())
        case 3: state.resume()
        case 4:
          if let id = running.sorted().randomElement(using: &random) {
            state.finish(id)
            running.remove(id)
          }
        default: break
        }
        while let next = state.next() {
          #expect(!state.isPaused)
          running.insert(next.id)
        }
        #expect(running.count == state.counts.running && running.count <= 3)
        #expect(state.isPaused || running.count == 3 || state.counts.waiting == 0)
      }
    }
  }
}
