import Plexus
import PlexusSharedTesting
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `The conformance suite of event links` {
  @Test(.guarantee(.linksAreCheckedByOneSuite), arguments: EventLinkConformance.Rule.allCases)
  func `the conformance suite of event links accepts the link in memory`(
    rule: EventLinkConformance.Rule
  ) async throws {
    let suite = EventLinkConformance { count in
      let engine = EventMemory()
      return (0..<count).map { _ in engine.node() }
    }
    try await suite.check(rule)
  }

  @Test(.guarantee(.linksAreCheckedByOneSuite))
  func `the conformance suite of event links names the rule that a link breaks`()
    async throws
  {
    let suite = EventLinkConformance { count in
      let engine = EventMemory()
      // Messages that were there before are no fault of the first rules.
      engine.insert(
        LinkMessage(id: "0", type: "", version: 1, origin: "", body: []),
        into: "topic"
      )
      return (0..<count).map { _ in engine.node() }
    }
    let violation = await #expect(throws: EventLinkConformance.Violation.self) {
      try await suite.check(.groupFromOldest)
    }
    #expect(violation?.rule == .groupFromOldest)
    #expect(violation?.description == "A group begins with the oldest one.")
  }
}
