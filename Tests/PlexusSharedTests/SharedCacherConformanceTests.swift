import Plexus
import PlexusSharedTesting
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `The conformance suite of shared cachers` {
  @Test(.guarantee(.enginesAreCheckedByOneSuite), arguments: SharedCacherConformance.Rule.allCases)
  func `the conformance suite of shared cachers accepts the engine in memory`(
    rule: SharedCacherConformance.Rule
  ) async throws {
    let suite = SharedCacherConformance { count in
      let engine = SharedMemory<String>()
      return (0..<count).map { _ in engine.node() }
    }
    try await suite.check(rule)
  }

  @Test(.guarantee(.enginesAreCheckedByOneSuite))
  func `the conformance suite of shared cachers names the rule that an engine breaks`()
    async throws
  {
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

  @Test(.guarantee(.conformanceRefusesHastyRemovals))
  func `the conformance suite refuses an engine that does not wait for nodes that hear nothing`()
    async throws
  {
    let suite = SharedCacherConformance { _ in
      let engine = SharedMemory<String>()
      let deaf = engine.node()
      deaf.delayAnnouncements()
      return [HastyCacher(node: engine.node()), deaf]
    }
    let violation = await #expect(throws: SharedCacherConformance.Violation.self) {
      try await suite.check(.announcesCompleteRemoval)
    }
    #expect(violation?.description == "The trust has ended when the removal returns.")
  }
}

/// A cacher that breaks its contract: removals wait for no other node.
private struct HastyCacher: ForwardingCacher {
  let node: SharedMemoryNode<String>

  func remove(_ what: SharedCache.Removal, reach: ClearReach) async throws {
    try await node.remove(what, reach: .shared)
  }
}
