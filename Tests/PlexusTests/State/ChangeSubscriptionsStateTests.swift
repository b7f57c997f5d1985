import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `The subscribers to the changes of a store` {
  final class Hub: HubBase, @unchecked Sendable {
    let number: Int
    let finished: Log<Int>
    /// Called when subscriptions without an owner are to be removed.
    let look: @Sendable () -> Void

    init(_ number: Int, _ finished: Log<Int>, look: @escaping @Sendable () -> Void = {}) {
      self.number = number
      self.finished = finished
      self.look = look
      super.init()
    }

    override func end() { finished.append(number) }

    override func removeOrphans() { look() }
  }

  @Test func `subscribers to changes are ended in subscription order, and later ones at once`() {
    let hubs = ChangeSubscriptions()
    let finished = Log<Int>()
    let ids = (0..<20).map { _ in ChangeSubscriptions.ID() }
    for (number, id) in ids.enumerated() { hubs.insert(Hub(number, finished), id: id) }
    hubs.remove(ids[7])
    #expect(hubs.count == 19)
    #expect(hubs.finish() == ids.filter { $0 != ids[7] })
    #expect(finished.entries == (0..<20).filter { $0 != 7 })
    hubs.insert(Hub(20, finished), id: ChangeSubscriptions.ID())
    #expect(finished.entries.last == 20)
    #expect(hubs.count == 0)
  }

  @Test
  func `subscribers are not counted once their owners are released, which is found without lock`() {
    let hubs = ChangeSubscriptions()
    let ids = (0..<3).map { _ in ChangeSubscriptions.ID() }
    for (number, id) in ids.enumerated() {
      hubs.insert(
        Hub(number, Log()) { if number == 1 { withoutLocks { hubs.remove(id) } } },
        id: id
      )
    }
    #expect(hubs.count == 2)
    #expect(hubs.finish() == [ids[0], ids[2]])
  }

  @Test func `subscribers to changes leave their selectors once, and none does after the end`() {
    let hubs = ChangeSubscriptions()
    let left = Log<UInt64>()
    let ids = (0..<3).map { _ in ChangeSubscriptions.ID() }
    hubs.connect(handlers: .ofHandlers()) {
      left.append($0.rawValue)
    } run: { _ in
      false
    }
    for id in ids { hubs.insert(Hub(0, Log()), id: id) }
    hubs.remove(ids[1])
    hubs.finish()
    hubs.remove(ids[0])
    #expect(left.entries == [ids[1].rawValue])
  }

  @Test func `subscribers to changes retain what removes them until the end, and no longer`() {
    let hubs = ChangeSubscriptions()
    weak var owner: Owner?
    do {
      let new = Owner()
      owner = new
      hubs.connect(handlers: .ofHandlers()) { _ in
        withExtendedLifetime(new) {}
      } run: { _ in
        false
      }
    }
    #expect(owner != nil)
    hubs.finish()
    #expect(owner == nil)
  }

  @Test func `subscribers follow no selector if they have ended before the store processes them`() {
    let (ended, live) = (ChangeSubscriptions(), ChangeSubscriptions())
    let cell = StoreCell(0)
    let engine = StoreEngine<Int, Int>(
      StoreEngine.Cell(
        read: { cell.state },
        publish: { cell.publish($0) },
        finish: { cell.finish() }
      ),
      subscribers: live,
      middleware: [],
      reducer: { $0 += $1 }
    )
    ended.finish()
    let evaluations = Log<Int>()
    let late = engine.changes(
      of: { state in
        evaluations.append(state)
        return state
      },
      countedBy: ended,
      bufferingPolicy: .unbounded
    )
    let other = engine.changes(of: { $0 }, countedBy: live, bufferingPolicy: .unbounded)
    engine.dispatch(1, in: nil)
    #expect(evaluations.entries == [])
    #expect(live.count == 1)
    engine.close()
    withExtendedLifetime((late, other)) {}
  }
}
