import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce)
struct `Reports that a cache owes to a shared tier` {
  @Test(.guarantee(.clearsWaitForReplicas))
  func `a refresh of a key during the report of an earlier one is reported as well`() {
    var debts = SharedDebtsState()
    debts.outdates.owe(["k", "other"])
    let paid = debts.outdates.owed
    debts.outdates.owe(["k"])
    debts.outdates.pay(paid)
    #expect(debts.outdates.owes(["k"]))
    #expect(!debts.outdates.owes(["other"]))
    debts.outdates.pay(debts.outdates.owed)
    #expect(!debts.outdates.owes(["k"]))
  }

  @Test(.guarantee(.clearsWaitForReplicas))
  func `a removal by a tag during the report of an earlier one is reported as well`() {
    var debts = SharedDebtsState()
    debts.tagRemovals.owe(["tag", "other"])
    let paid = debts.tagRemovals.owed
    debts.tagRemovals.owe(["tag"])
    debts.tagRemovals.pay(paid)
    #expect(Set(debts.tagRemovals.owed.keys) == ["tag"])
    debts.tagRemovals.pay(debts.tagRemovals.owed)
    #expect(debts.tagRemovals.owed.isEmpty)
  }

  @Test(.guarantee(.returnedValuesOutdateOlderEntries))
  func `a value that was not stored is newer than the entries from before its fetch`() {
    var debts = SharedDebtsState()
    debts.goAhead("k", at: 20, of: 10)
    #expect(debts.isBehind("k", storedAt: 9))
    #expect(!debts.isBehind("k", storedAt: 10))
    #expect(!debts.isBehind("other", storedAt: 9))
    debts.goAhead("k", at: 30)
    debts.goAhead("k", at: 30, of: 5)
    #expect(debts.isBehind("k", storedAt: 31))
    debts.catchUp("k")
    #expect(!debts.isBehind("k", storedAt: 5))
  }
}
