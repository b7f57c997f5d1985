import TestSupport
import Testing

@testable import PlexusTesting

@Suite(.fewAtOnce) struct `A deadline queue` {
  private struct Entry: Equatable {
    let deadline: Int
    let id: Int
  }

  @Test(arguments: 1...50)
  func `a deadline queue behaves like a sorted list`(seed: Int) {
    var random = SeededRandom(seed: UInt64(seed))
    var queue = DeadlineQueue<Entry>()
    var model: [Entry] = []
    var now = 0
    for id in 0..<500 {
      switch random.next() % 10 {
      case 0..<6:
        let entry = Entry(deadline: now + Int(random.next() % 20), id: id)
        queue.insert(entry, deadline: instant(entry.deadline), id: id)
        model.append(entry)
        model.sort { ($0.deadline, $0.id) < ($1.deadline, $1.id) }
      case 6..<9:
        let victim = Int(random.next() % UInt64(id + 1))
        let expected = model.first { $0.id == victim }
        #expect(queue.remove(id: victim) == expected)
        model.removeAll { $0.id == victim }
      default:
        now += Int(random.next() % 10)
        let due = model.filter { $0.deadline <= now }
        #expect(queue.removeAll(dueAt: instant(now)) == due)
        model.removeFirst(due.count)
      }
      #expect(queue.count == model.count)
      #expect(queue.earliestDeadline == model.first.map { instant($0.deadline) })
    }
  }

  @Test(arguments: [1, 10, 1000])
  func `a deadline queue keeps its order when most entries are removed`(every: Int) {
    var queue = DeadlineQueue<Int>()
    for id in 0..<5_000 { queue.insert(id, deadline: instant(id % 7), id: id) }
    for id in 0..<5_000 where !id.isMultiple(of: every) { _ = queue.remove(id: id) }
    let left = stride(from: 0, to: 5_000, by: every).sorted { ($0 % 7, $0) < ($1 % 7, $1) }
    #expect(queue.count == left.count)
    #expect(queue.removeAll(dueAt: instant(7)) == left)
    #expect(queue.count == 0)
    #expect(queue.earliestDeadline == nil)
  }

  @Test func `a deadline queue releases removed deadlines long before they are due`() {
    var queue = DeadlineQueue<Int>()
    queue.insert(0, deadline: instant(1), id: 0)
    for id in 1...10_000 {
      queue.insert(id, deadline: instant(1 + id), id: id)
      _ = queue.remove(id: id)
      #expect(queue.storedCount <= 18)
    }
    #expect(queue.removeAll(dueAt: instant(20_000)) == [0])
    #expect(queue.storedCount == 0)
  }

  @Test
  func `a deadline queue sorts the remaining deadlines when it compacts, not at every removal`() {
    var queue = DeadlineQueue<Int>()
    for id in 0..<1_000 { queue.insert(id, deadline: instant(1_000 - id), id: id) }
    var lengths: Set<Int> = []
    for id in 0..<900 where id % 9 != 0 {
      #expect(queue.remove(id: id) == id)
      lengths.insert(queue.storedCount)
    }
    #expect(lengths.count <= 6)
    let left = (0..<1_000).filter { $0 >= 900 || $0 % 9 == 0 }
    #expect(queue.removeAll(dueAt: instant(1_000)) == left.reversed())
  }

  private func instant(_ seconds: Int) -> ManualClock.Instant {
    ManualClock.Instant(offset: .seconds(seconds))
  }
}
