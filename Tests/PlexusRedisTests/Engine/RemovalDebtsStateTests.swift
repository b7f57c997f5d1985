import TestSupport
import Testing

@testable import PlexusRedis

@Suite(.fewAtOnce) struct `The removals that a process owes` {
  typealias Subject = RemovalDebtsState.Subject
  private var debts = RemovalDebtsState()

  @Test mutating func `are settled by a later success, and not by an earlier one`() {
    let before = debts.lastRevision
    debts.owe([.key("a"), .tag("t")])
    debts.settle([Subject.key("a")], upTo: before)
    #expect(debts.removalCount == 2)
    debts.settle([Subject.key("a")], upTo: debts.lastRevision)
    #expect(Array(debts.debts.keys) == [.tag("t")])
  }

  @Test mutating func `end when the epoch is raised after the first heartbeat since the failure`() {
    debts.owe([.key("a")])
    // The epoch that the server had all the time, although this process did not know it.
    debts.note(epoch: 7)
    #expect(debts.removalCount == 1)
    debts.note(epoch: 7)
    #expect(debts.removalCount == 1)
    debts.note(epoch: 8)
    #expect(debts.removalCount == 0)
  }

  @Test mutating func `of very many keys are one of everything`() {
    debts.owe((0..<RemovalDebtsState.limit).map { .key("\($0)") })
    #expect(debts.removalCount == RemovalDebtsState.limit)
    debts.owe([.tag("t")])
    #expect(Array(debts.debts.keys) == [.everything])
    let revision = debts.lastRevision
    debts.owe([.key("later")])
    debts.settleAll(upTo: revision)
    #expect(Array(debts.debts.keys) == [.key("later")])
  }

  @Test mutating func `do not count refreshes`() {
    debts.owe([.outdated("a"), .key("b")])
    #expect(debts.removalCount == 1)
  }
}

@Suite(.fewAtOnce) struct `The values that a server did not take` {
  private var refused = RefusedValuesState()

  @Test mutating func `are known by the smallest size`() {
    var areNew: [Bool] = []
    for size in [100, 120, 80] { areNew.append(refused.refuse("k", size: size)) }
    #expect(areNew == [true, false, true])
    #expect(refused.refuses("k", size: 80))
    #expect(!refused.refuses("k", size: 79))
    #expect(!refused.refuses("other", size: 1_000))
  }

  @Test mutating func `are forgotten in order`() {
    for number in 0...RefusedValuesState.limit { _ = refused.refuse("\(number)", size: 1) }
    #expect(!refused.refuses("0", size: 1))
    #expect(refused.refuses("1", size: 1))
  }
}
