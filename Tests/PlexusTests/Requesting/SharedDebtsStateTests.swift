import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce)
struct `Reports that a cache owes to a shared tier` {
  @Test func `a refresh of a key during the report of an earlier one is reported as well`() {
    var debts = SharedDebtsState()
    debts.outdate(["k", "other"])
    let paid = debts.owed
    debts.outdate(["k"])
    debts.settle(paid)
    #expect(debts.hasOutdates(of: ["k"]))
    #expect(!debts.hasOutdates(of: ["other"]))
    debts.settle(debts.owed)
    #expect(!debts.hasOutdates(of: ["k"]))
  }

  @Test func `a removal by a tag during the report of an earlier one is reported as well`() {
    var debts = SharedDebtsState()
    debts.remove(["tag", "other"])
    let paid = debts.owedTags
    debts.remove(["tag"])
    debts.settle(tags: paid)
    #expect(Set(debts.owedTags.keys) == ["tag"])
    debts.settle(tags: debts.owedTags)
    #expect(debts.owedTags.isEmpty)
  }

  @Test func `a value that was not stored is newer than the entries from before its fetch`() {
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
