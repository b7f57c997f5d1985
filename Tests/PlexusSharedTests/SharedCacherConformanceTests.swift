import Plexus
import PlexusSharedTesting
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `The conformance suite of shared cachers` {
  @Test(arguments: SharedCacherConformance.Rule.allCases)
  func `accepts the engine in memory`(rule: SharedCacherConformance.Rule) async throws {
    let suite = SharedCacherConformance { count in
      let engine = SharedMemory<String>()
      return (0..<count).map { _ in engine.node() }
    }
    try await suite.check(rule)
  }

  @Test func `names the rule that an engine breaks`() async throws {
    let suite = SharedCacherConformance { count in
      // Each node has an engine of its own.
      (0..<count).map { _ in SharedMemory<String>().node() }
    }
    let violation = await #expect(throws: SharedCacherConformance.Violation.self) {
      try await suite.check(.manyKeys)
    }
    #expect(violation?.rule == .manyKeys)
    #expect(violation?.description == "The second node gets none.")
  }
}
