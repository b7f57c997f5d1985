import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce, .timeLimit(.minutes(20))) struct `The subscribers to the changes of a store` {
  final class Hub: HubCore, @unchecked Sendable {
    let number: Int
    let finished: Log<Int>
    /// Called when subscriptions without an owner are to be removed.
    let look: @Sendable () -> Void

    init(_ number: Int, _ finished: Log<Int>, look: @escaping @Sendable () -> Void = {}) {
      self.number = number
      self.finished = finished
      self.look = look
      super.init(isResettable: false, onEmpty: nil, time: nil) { _, _ in }
    }

    override func end() { finished.append(number) }

    override func removeOrphans() { look() }
  }

  @Test func `are ended in subscription order, and later ones at once`() {
    let hubs = ChangeSubscriptions()
    let finished = Log<Int>()
    let ids = (0..<20).map { _ in SubscriptionID() }
    for (number, id) in ids.enumerated() { hubs.insert(Hub(number, finished), id: id) }
    hubs.remove(ids[7])
    #expect(hubs.count == 19)
    #expect(hubs.finish() == ids.filter { $0 != ids[7] })
    #expect(finished.entries == (0..<20).filter { $0 != 7 })
    hubs.insert(Hub(20, finished), id: SubscriptionID())
    #expect(finished.entries.last == 20)
    #expect(hubs.count == 0)
  }

  @Test func `are not counted after the release of their owners, which is found without a lock`() {
    let hubs = ChangeSubscriptions()
    let ids = (0..<3).map { _ in SubscriptionID() }
    for (number, id) in ids.enumerated() {
      hubs.insert(
        Hub(number, Log()) { if number == 1 { withoutLocks { hubs.remove(id) } } },
        id: id
      )
    }
    #expect(hubs.count == 2)
    #expect(hubs.finish() == [ids[0], ids[2]])
  }
}
