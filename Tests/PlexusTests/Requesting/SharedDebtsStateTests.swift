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
}
