import PlexusTesting
import TestSupport
import Testing

@testable import PlexusRedis

@Suite(.fewAtOnce) struct `The removals that a process owes` {
  typealias Subject = RemovalDebtsState.Subject
  private var debts = RemovalDebtsState()

  @Test mutating func `owed removals are settled by a later success, and not by an earlier one`() {
    let before = debts.lastRevision
    debts.owe([.key("a"), .tag("t")])
    debts.settle([Subject.key("a")], upTo: before)
    #expect(debts.removalCount == 2)
    debts.settle([Subject.key("a")], upTo: debts.lastRevision)
    #expect(Array(debts.debts.keys) == [.tag("t")])
  }

  @Test
  mutating func `owed removals end when the epoch is raised after a heartbeat since the failure`() {
    debts.owe([.key("a")])
    // The epoch that the server had all the time, although this process did not know it.
    debts.note(epoch: 7, asOf: debts.lastRevision)
    #expect(debts.removalCount == 1)
    debts.note(epoch: 7, asOf: debts.lastRevision)
    #expect(debts.removalCount == 1)
    debts.note(epoch: 8, asOf: debts.lastRevision)
    #expect(debts.removalCount == 0)
  }

  @Test(.guarantee(.owedRemovalsEmptyThreeTimesAtMost))
  mutating func `owed removals do not end because of a heartbeat that was sent before them`() {
    let before = debts.lastRevision
    debts.owe([.key("a")])
    // The answer to a heartbeat from before a clear, which was followed by a new entry and the removal.
    debts.note(epoch: 7, asOf: before)
    debts.note(epoch: 8, asOf: debts.lastRevision)
    #expect(debts.removalCount == 1)
    debts.note(epoch: 9, asOf: debts.lastRevision)
    #expect(debts.removalCount == 0)
  }

  @Test(.guarantee(.owedRemovalsEmptyThreeTimesAtMost))
  mutating func `owed removals do not end with an epoch that replicas have not acknowledged`() {
    debts.owe([.everything])
    for epoch in [7, 8, 9] as [UInt64] {
      debts.note(epoch: epoch, asOf: debts.lastRevision, settles: false)
    }
    #expect(debts.debts[.everything]?.epoch == 7)
  }

  @Test func `owed removals that the server has executed are not repeated, however many they are`()
  {
    var debts = RemovalDebtsState()
    let revision = debts.lastRevision
    let keys = (0...RemovalDebtsState.limit).map { RemovalDebtsState.Subject.key("\($0)") }
    debts.owe(keys, isExecuted: true, since: revision)
    #expect(debts.isOwing)
    #expect(!debts.isPending)
    let executed = debts.executed
    #expect(executed.subjects == [.everything])
    debts.settle(executed.subjects, upTo: executed.revision)
    #expect(!debts.isOwing)
    // One that was not executed is repeated, with all others.
    debts.owe(keys, isExecuted: true, since: revision)
    debts.owe([.tag("t")])
    #expect(debts.isPending)
    #expect(debts.beginPayment().subjects == [.tag("t")])
  }

  @Test mutating func `owed removals of very many keys are one of everything`() {
    debts.owe((0..<RemovalDebtsState.limit).map { .key("\($0)") })
    #expect(debts.removalCount == RemovalDebtsState.limit)
    debts.owe([.tag("t")])
    #expect(Array(debts.debts.keys) == [.everything])
    let revision = debts.lastRevision
    debts.owe([.key("later")])
    debts.settle([.everything], upTo: revision)
    #expect(Array(debts.debts.keys) == [.key("later")])
  }

  @Test
  mutating func `an owed removal is pending until it is settled and its repetition has ended`() {
    func pending() -> [String] {
      ["a", "b", "t"].filter { debts.isPending([.key($0), .outdated($0)]) }
    }
    debts.owe([.key("a"), .outdated("b"), .tag("t")])
    #expect(pending() == ["a", "b"])
    #expect(Set(debts.beginPayment().subjects) == [.key("a"), .outdated("b"), .tag("t")])
    debts.settle([.everything], upTo: debts.lastRevision)
    #expect(pending() == ["a", "b"])
    #expect(debts.isPending)
    debts.endPayment()
    #expect(pending().isEmpty)
    #expect(!debts.isPending)
  }

  @Test mutating func `the removals that a process owes do not count refreshes`() {
    debts.owe([.outdated("a"), .key("b")])
    #expect(debts.removalCount == 1)
  }

  @Test(.guarantee(.owedRemovalsEmptyThreeTimesAtMost))
  mutating func `owed removals are not repeated while only replicas have yet to acknowledge them`()
  {
    debts.owe([.key("k"), .outdated("o"), .tag("t")])
    debts.owe([.key("l")], isExecuted: true)
    let payment = debts.beginPayment()
    #expect(Set(payment.subjects) == [.key("k"), .outdated("o"), .tag("t")])
    debts.settle(payment.subjects, upTo: payment.revision, isAcknowledged: false)
    debts.endPayment()
    // A value that is stored now waits for none of them, and is removed by none of them.
    #expect(!debts.isPending && !debts.isPending([.key("k"), .key("l")]))
    #expect(debts.beginPayment().subjects.isEmpty)
    // A refresh does not need the replicas.
    let executed = debts.executed
    #expect(Set(executed.subjects) == [.key("k"), .key("l"), .tag("t")])
    debts.owe([.key("l")])
    debts.settle(executed.subjects, upTo: executed.revision)
    #expect(Array(debts.debts.keys) == [.key("l")])
  }

  @Test(.guarantee(.owedRemovalsEmptyThreeTimesAtMost))
  mutating func `an owed removal does not count as executed because an earlier one was`() {
    debts.owe([.key("k")])
    let payment = debts.beginPayment()
    // Another clear fails during the repetition of the first one, without reaching the server.
    debts.owe([.key("k")])
    debts.settle(payment.subjects, upTo: payment.revision, isAcknowledged: false)
    debts.endPayment()
    #expect(debts.isPending([.key("k")]))
    // A removal that began before the clear failed can have been executed before the clear began.
    debts.owe([.key("k")], isExecuted: true, since: payment.revision)
    #expect(debts.isPending([.key("k")]))
    debts.owe([.key("k")], isExecuted: true, since: debts.lastRevision)
    #expect(!debts.isPending([.key("k")]))
  }

  @Test
  mutating func `owed removals of everything cover no later change, whose epoch can be older`() {
    debts.owe([.everything])
    debts.note(epoch: 7, asOf: debts.lastRevision, settles: false)
    debts.owe([.key("later")])
    let payment = debts.beginPayment()
    #expect(payment.subjects == [.everything] && payment.epoch == 7)
    debts.settle(payment.subjects, upTo: payment.revision, isAcknowledged: false)
    debts.endPayment()
    #expect(debts.beginPayment().subjects == [.key("later")])
    debts.endPayment()
    debts.owe([.everything])
    #expect(debts.beginPayment().epoch == nil)
  }
}

@Suite(.fewAtOnce) struct `The values that a server did not take` {
  private let clock = ManualClock()
  private var refused = RefusedValuesState<ManualClock.Instant>()

  private mutating func refuse(_ key: String, size: Int) -> Bool {
    refused.refuse(key, size: size, at: clock.now)
  }

  private func refuses(_ key: String, size: Int) -> Bool {
    refused.refuses(key, size: size, at: clock.now)
  }

  @Test mutating func `the values that a server did not take are known by the smallest size`() {
    var areNew: [Bool] = []
    for size in [100, 120, 80] { areNew.append(refuse("k", size: size)) }
    #expect(areNew == [true, false, true])
    #expect(refuses("k", size: 80))
    #expect(!refuses("k", size: 79))
    #expect(!refuses("other", size: 1_000))
  }

  @Test mutating func `the values that a server did not take are forgotten in order`() {
    for number in 0...RefusedValuesState<ManualClock.Instant>.limit {
      _ = refuse("\(number)", size: 1)
    }
    #expect(!refuses("0", size: 1))
    #expect(refuses("1", size: 1))
  }

  @Test(.guarantee(.refusedValuesAreSentAgain))
  mutating func `a refused value is sent again later, and reported again after it was taken`() {
    var areNew = [refuse("k", size: 100)]
    clock.advance(by: RefusedValuesState<ManualClock.Instant>.time)
    #expect(!refuses("k", size: 100))
    areNew.append(refuse("k", size: 100))
    #expect(refuses("k", size: 100))
    refused.take("k")
    #expect(!refuses("k", size: 100))
    areNew.append(refuse("k", size: 100))
    #expect(areNew == [true, false, true])
  }
}
