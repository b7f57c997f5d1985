import Testing

@testable import PlexusNetworking

@Suite struct `The revisions of media` {
  @Test func `nothing is stored of files without a download`() {
    var revisions = MediaRevisions()
    revisions.remove("a")
    let one = revisions.begin("a")
    let two = revisions.begin("a")
    #expect(!revisions.isEmpty)
    revisions.end(one)
    #expect(!revisions.isEmpty)
    revisions.end(two)
    #expect(revisions.isEmpty)
    #expect(revisions.removal(of: "a") == 0)
  }

  @Test func `a removal concerns the downloads of its file that began before`() {
    var revisions = MediaRevisions()
    let early = revisions.begin("a")
    let other = revisions.begin("b")
    revisions.remove("a")
    let late = revisions.begin("a")
    #expect(revisions.verdict(early) == .removed)
    #expect(revisions.verdict(other) == .current)
    #expect(revisions.verdict(late) == .current)
    #expect(revisions.removal(of: "a") != 0 && revisions.removal(of: "b") == 0)
    revisions.removeAll()
    #expect(revisions.verdict(late) == .removed && revisions.verdict(other) == .removed)
    #expect(revisions.verdict(revisions.begin("a")) == .current)
  }

  @Test func `a download that was kept supersedes all that began before it`() {
    var revisions = MediaRevisions()
    let early = revisions.begin("a")
    let late = revisions.begin("a")
    let last = revisions.begin("a")
    revisions.keep(late)
    #expect(revisions.verdict(early) == .superseded)
    #expect(revisions.verdict(last) == .current)
    revisions.keep(last)
    #expect(revisions.verdict(late) == .superseded)
  }
}
