import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `A drain queue` {
  typealias Numbers = DrainQueue<Int, [Int]>

  /// A clock that stands still unless it is set.
  private let time = Guarded(Nanoseconds(0))

  func makeQueue() -> Numbers {
    let time = time
    return Numbers([], time: { time.withLock { $0 } }, ending: { $0.append(-1) })
  }

  /// Adds a number, whose processing adds the number below it.
  func add(_ number: Int, to queue: Numbers, _ done: Log<[Int]>) -> Bool {
    queue.add(number, handOver: {}, { perform($0, &$1, queue, done) })
  }

  func perform(_ number: Int, _ numbers: inout [Int], _ queue: Numbers, _ done: Log<[Int]>) {
    let before = numbers
    if number > 0 { _ = add(number - 1, to: queue, done) }
    #expect(numbers == before)
    numbers.append(number)
    done.append(numbers)
  }

  @Test func `a drain queue processes items one after another`() {
    let (queue, done) = (makeQueue(), Log<[Int]>())
    #expect(add(0, to: queue, done))
    #expect(add(2, to: queue, done))
    #expect(done.entries == [[0], [0, 2], [0, 2, 1], [0, 2, 1, 0]])
  }

  @Test
  func `a closed drain queue rejects items, and processes the remaining ones before the ending`() {
    let queue = makeQueue()
    func perform(_ number: Int, _ numbers: inout [Int]) {
      if number == 7 {
        #expect(queue.add(1, handOver: {}, perform))
        #expect(queue.add(2, handOver: {}, perform))
        queue.close()
        #expect(!queue.add(3, handOver: {}, perform))
        queue.close()
      }
      numbers.append(number)
    }
    #expect(queue.add(7, handOver: {}, perform))
    #expect(queue.value == [7, 1, 2, -1])
    queue.close()
    #expect(!queue.add(4, handOver: {}, perform))
    #expect(queue.value == [7, 1, 2, -1])
  }

  @Test func `a drain queue ends immediately if it is idle`() {
    let queue = makeQueue()
    queue.close()
    #expect(queue.value == [-1])
  }

  /// Returns a queue to which another thread has added numbers while the first one was processed.
  ///
  /// - Parameters:
  ///   - last: The last of the numbers, which begin with 1.
  ///   - duration: The processing time of each number.
  private func queueWithOthers(
    upTo last: Int,
    taking duration: Nanoseconds
  ) async -> (queue: Numbers, handOvers: Tally) {
    let (queue, handOvers) = (makeQueue(), Tally())
    @Sendable func perform(_ number: Int, _ numbers: inout [Int]) {
      if number == 0 {
        onOwnThread {
          for next in 1...last {
            let isAdded = queue.add(next, handOver: { handOvers.increment() }, perform)
            #expect(isAdded)
          }
        }
      }
      time.withLock { $0 += duration }
      numbers.append(number)
    }
    #expect(queue.add(0, handOver: { handOvers.increment() }, perform))
    return (queue, handOvers)
  }

  private func append(_ number: Int, _ numbers: inout [Int]) {
    time.withLock { $0 += 500_000 }
    numbers.append(number)
  }

  @Test(.guarantee(.callsLeaveForeignActions))
  func `a drain queue has a caller process the items of others for about a millisecond`() async {
    let (queue, handOvers) = await queueWithOthers(upTo: 100, taking: 400_000)
    #expect(handOvers.value == 1)
    #expect(queue.value.count <= 6)
    #expect(queue.value == Array(0..<queue.value.count))
  }

  @Test(.guarantee(.callsLeaveForeignActions))
  func `a drain queue has a caller process a limited number of items of others`()
    async
  {
    let (queue, handOvers) = await queueWithOthers(upTo: 3_000, taking: 0)
    #expect(handOvers.value == 1)
    #expect(queue.value == Array(0...1_024))
  }

  @Test(.guarantee(.callsLeaveForeignActions))
  func `a drain queue is passed on once, and taken over by the next caller`() async {
    let (queue, handOvers) = await queueWithOthers(upTo: 20, taking: 500_000)
    let count = queue.value.count
    #expect(count < 8)
    #expect(queue.add(21, handOver: { handOvers.increment() }, append))
    #expect(queue.value.count > count)
    #expect(queue.value == Array(0..<queue.value.count))
    #expect(handOvers.value == 1, "The first task is still on its way")
    while queue.resume(append) {}
    #expect(queue.value == Array(0...21))
    #expect(!queue.resume(append))
  }

  @Test
  func `a drain queue is passed on again if the task has resumed while a caller was draining`()
    async
  {
    let (queue, handOvers) = await queueWithOthers(upTo: 100, taking: 400_000)
    #expect(handOvers.value == 1)
    var hasResumed = false
    func perform(_ number: Int, _ numbers: inout [Int]) {
      if !hasResumed {
        hasResumed = true
        onOwnThread { #expect(!queue.resume(append)) }
      }
      append(number, &numbers)
    }
    #expect(queue.add(101, handOver: { handOvers.increment() }, perform))
    #expect(handOvers.value == 2)
    while queue.resume(append) {}
    #expect(queue.value == Array(0...101))
  }

  @Test(.guarantee(.callsLeaveForeignActions))
  func `a drain queue is drained by the task in portions after a handover, before the ending`()
    async
  {
    let (queue, handOvers) = await queueWithOthers(upTo: 20, taking: 500_000)
    queue.close()
    #expect(queue.value.last != -1)
    #expect(!queue.add(21, handOver: {}, append))
    var portions = 1
    while queue.resume(append) { portions += 1 }
    #expect(portions > 2)
    #expect(queue.value == Array(0...20) + [-1])
    #expect(handOvers.value == 1)
  }

  @Test(.guarantee(.callsLeaveForeignActions))
  func `a drain queue processes items that its own items add without a limit`() {
    let (queue, handOvers) = (makeQueue(), Tally())
    func perform(_ number: Int, _ numbers: inout [Int]) {
      time.withLock { $0 += 1_000_000 }
      numbers.append(number)
      guard number < 5_000 else { return }
      #expect(queue.add(number + 1, handOver: { handOvers.increment() }, perform))
    }
    #expect(queue.add(0, handOver: { handOvers.increment() }, perform))
    #expect(queue.value == Array(0...5_000))
    #expect(handOvers.value == 0)
  }
}
