import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce, .timeLimit(.minutes(20))) struct `Turns, one after another` {
  typealias Numbers = Turns<Int, [Int]>

  func makeTurns() -> Numbers {
    Numbers([]) { $0.append(-1) }
  }

  /// Adds a number, and those below it from inside.
  func add(_ number: Int, to turns: Numbers, _ done: Log<[Int]>) -> Bool {
    turns.take(number) { number, numbers in
      perform(number, &numbers, turns, done)
    }
  }

  func perform(_ number: Int, _ numbers: inout [Int], _ turns: Numbers, _ done: Log<[Int]>) {
    let before = numbers
    if number > 0 { _ = add(number - 1, to: turns, done) }
    #expect(numbers == before)
    numbers.append(number)
    done.append(numbers)
  }

  @Test func `are taken one after another`() {
    let (turns, done) = (makeTurns(), Log<[Int]>())
    #expect(add(0, to: turns, done))
    #expect(add(2, to: turns, done))
    #expect(done.entries == [[0], [0, 2], [0, 2, 1], [0, 2, 1, 0]])
  }

  @Test func `are refused after the close, and what is left is done before the end`() {
    let turns = makeTurns()
    func perform(_ number: Int, _ numbers: inout [Int]) {
      if number == 7 {
        #expect(turns.take(1, perform))
        #expect(turns.take(2, perform))
        turns.close()
        #expect(!turns.take(3, perform))
        turns.close()
      }
      numbers.append(number)
    }
    #expect(turns.take(7, perform))
    #expect(turns.value == [7, 1, 2, -1])
    turns.close()
    #expect(!turns.take(4, perform))
    #expect(turns.value == [7, 1, 2, -1])
  }

  @Test func `end at once if nobody is at it`() {
    let turns = makeTurns()
    turns.close()
    #expect(turns.value == [-1])
  }

  /// Turns whose zero has left the numbers up to another one, of which the one with the turn does so many.
  private func handOver(upTo last: Int, doing limit: Int) -> (turns: Numbers, tasks: Tally) {
    let (turns, tasks) = (makeTurns(), Tally())
    func perform(_ number: Int, _ numbers: inout [Int]) {
      if number == 0 { for next in 1...last { #expect(turns.take(next, perform)) } }
      numbers.append(number)
    }
    let isTaken = turns.take(0, atMost: limit, handOver: { tasks.increment() }, perform)
    #expect(isTaken)
    return (turns, tasks)
  }

  @Test func `are handed over after so many, once, and inherited by the next who comes`() {
    let (turns, tasks) = handOver(upTo: 5, doing: 2)
    #expect(tasks.value == 1)
    #expect(turns.value == [0, 1, 2])
    let append: (Int, inout [Int]) -> Void = { $1.append($0) }
    #expect(turns.take(6, atMost: 2, handOver: { tasks.increment() }, append))
    #expect(turns.value == [0, 1, 2, 3, 4])
    #expect(tasks.value == 1, "The first task is still to come")
    #expect(turns.take(7) { $1.append($0) })
    #expect(turns.value == [0, 1, 2, 3, 4, 5, 6, 7])
    #expect(!turns.resume(atMost: 1) { $1.append($0) })
  }

  @Test func `that were handed over are done by the task in portions, and then the end`() {
    let (turns, tasks) = handOver(upTo: 5, doing: 1)
    turns.close()
    #expect(turns.value == [0, 1])
    #expect(!turns.take(6) { _, _ in })
    #expect(turns.resume(atMost: 2) { $1.append($0) })
    #expect(turns.value == [0, 1, 2, 3])
    #expect(!turns.resume(atMost: 2) { $1.append($0) })
    #expect(turns.value == [0, 1, 2, 3, 4, 5, -1])
    #expect(tasks.value == 1)
  }
}
