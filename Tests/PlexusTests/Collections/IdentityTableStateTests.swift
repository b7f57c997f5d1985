import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `An identity table` {
  private final class Subject {}

  @Test func `an identity table behaves like a dictionary for any sequence of changes`() {
    let subjects = (0..<40).map { _ in Subject() }
    let identities = [nil] + subjects.map { Optional(ObjectIdentifier($0)) }
    var random = SeededRandom(seed: 3)
    var table = IdentityTable<Int>()
    var model: [ObjectIdentifier?: Int] = [:]
    for number in 0..<4_000 {
      let identity = identities[Int.random(in: identities.indices, using: &random)]
      // The table fills up, and is nearly empty in the end.
      let value = Int.random(in: 0..<4_000, using: &random) > number ? number : nil
      table[identity] = value
      model[identity] = value
      for identity in identities { #expect(table[identity] == model[identity]) }
      #expect(table.values.sorted() == model.values.sorted())
    }
    withExtendedLifetime(subjects) {}
  }
}
