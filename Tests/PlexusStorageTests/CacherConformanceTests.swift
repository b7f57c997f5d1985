import Plexus
import PlexusSharedTesting
import PlexusStorage
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `Cachers of files` {
  @Test(.guarantee(.cachersAreCheckedByOneSuite), arguments: CacherConformance.Rule.allCases)
  func `a file cacher passes the conformance suite of cachers`(
    rule: CacherConformance.Rule
  ) async throws {
    let folder = try TemporaryFolder()
    let suite = CacherConformance { count in
      (0..<count).map { _ in JSONFileCacher<CacherConformance.Value>(directory: folder.url) }
    }
    try await suite.check(rule)
  }

  @Test(.guarantee(.cachersAreCheckedByOneSuite), arguments: CacherConformance.Rule.allCases)
  func `a log cacher passes the conformance suite of cachers`(
    rule: CacherConformance.Rule
  ) async throws {
    let folder = try TemporaryFolder()
    let suite = CacherConformance { count in
      try (0..<count).map { _ in
        try JSONLogCacher<CacherConformance.Value>(directory: folder.url)
      }
    }
    try await suite.check(rule)
  }
}
