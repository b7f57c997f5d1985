import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `Waiter state` {
  /// Suspends a task for every waiter, then calls the body, which must resume all of them.
  private func park(
    _ waiters: [Waiter],
    in parked: Guarded<Waiter.List>,
    resumed: Log<Int>,
    _ body: () async -> Void
  ) async {
    let suspended = Log<Void>()
    await withTaskGroup { group in
      for (count, waiter) in waiters.enumerated() {
        group.addTask {
          await SuspendedTask.suspend(isolation: nil) { task in
            parked.withLock { $0.park(waiter, task: task) }
            suspended.append(())
          }
          resumed.append(waiter.id)
        }
        await suspended.first(count + 1)
      }
      await body()
    }
  }

  @Test func `waiters are taken out in the order of their numbers, however they were parked`() async
  {
    for order in [[1, 2, 3, 4], [4, 3, 2, 1], [2, 4, 1, 3], [7]] {
      let parked = Guarded(Waiter.List())
      let resumed = Log<Int>()
      let waiters = order.map { Waiter(id: $0) }
      await park(waiters, in: parked, resumed: resumed) {
        let taken = parked.withLock { $0.removeAll() }
        #expect(taken.map(\.id) == order.sorted())
        #expect(waiters.allSatisfy { $0.slot == -1 })
        #expect(parked.withLock { $0.isEmpty })
        for waiter in taken { waiter.task.resume() }
      }
      #expect(resumed.entries.sorted() == order.sorted())
    }
  }

  @Test func `any of the waiters can leave, and only once`() async {
    for leaving in 0..<4 {
      let parked = Guarded(Waiter.List())
      let resumed = Log<Int>()
      let waiters = (0..<4).map { Waiter(id: $0) }
      await park(waiters, in: parked, resumed: resumed) {
        let hasLeft = parked.withLock { $0.remove(waiters[leaving]) }
        #expect(hasLeft)
        let hasLeftAgain = parked.withLock { $0.remove(waiters[leaving]) }
        #expect(!hasLeftAgain)
        waiters[leaving].takeTask()?.task.resume()
        #expect(await resumed.first(1) == [leaving])
        let taken = parked.withLock { $0.removeAll() }
        #expect(taken.map(\.id) == [0, 1, 2, 3].filter { $0 != leaving })
        for waiter in taken { waiter.task.resume() }
      }
      #expect(resumed.count == 4)
    }
  }

  @Test func `all sequences of departures leave the right waiters behind`() async {
    // The places of the others move when one leaves.
    for first in 0..<5 {
      for second in 0..<5 where second != first {
        let parked = Guarded(Waiter.List())
        let resumed = Log<Int>()
        let waiters = (0..<5).map { Waiter(id: $0) }
        await park(waiters, in: parked, resumed: resumed) {
          for leaving in [first, second] {
            let hasLeft = parked.withLock { $0.remove(waiters[leaving]) }
            #expect(hasLeft)
            waiters[leaving].takeTask()?.task.resume()
          }
          let taken = parked.withLock { $0.removeAll() }
          #expect(taken.map(\.id) == (0..<5).filter { $0 != first && $0 != second })
          for waiter in taken { waiter.task.resume() }
        }
      }
    }
  }

  @Test func `a waiter that is not parked cannot be taken out, and has no task to resume`() {
    var parked = Waiter.List()
    let waiter = Waiter(id: 1)
    #expect(parked.remove(waiter) == false)
    #expect(parked.removeAll().count == 0)
    #expect(waiter.takeTask() == nil)
  }

  @Test func `numbers of waiters are given out once and are never zero`() async {
    let numbers = await withTaskGroup(of: [UInt64].self) { group in
      for _ in 0..<4 { group.addTask { (0..<500).map { _ in UniqueID.next() } } }
      return await group.reduce(into: []) { $0 += $1 }
    }
    #expect(Set(numbers).count == 2000)
    #expect(!numbers.contains(0))
  }
}
