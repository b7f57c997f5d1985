import Testing

@testable import PlexusRedis

@Suite struct `The names of keys in the engine` {
  private let names = TierNames(space: "space")

  // Some begin with a scalar that forms a character with the one before it, others contain the characters of names.
  @Test(arguments: [
    "k", "", ":", "}{", "\0", "e:k", "epoch", "\u{301}", "\u{301}k", "\u{200D}x", "\u{FE0F}",
    "\u{1F3FD}", "\u{E9}", "e\u{301}",
  ])
  func `are recognized, whatever the key is`(key: String) {
    #expect(names.subject(of: names.entry(key)) == .entry(key))
    #expect(names.subject(of: names.lease(key)) == .lease(key))
    #expect(names.subject(of: names.tag(key)) == .tag(key))
    #expect(TierNames.space(of: names.entry(key)) == "space")
    #expect(TierNames(space: "other").subject(of: names.entry(key)) == nil)
  }

  @Test(arguments: [
    "", "k", "{k", "{k\u{301}", "space}:epoch", "{space}", "{space}:", "{space}:tokens",
    "{space}:f:k",
  ])
  func `are not found in other keys`(name: String) {
    #expect(names.subject(of: name) == nil)
  }

  @Test func `belong to a space whose name ends with any scalar`() {
    for space in ["a\u{301}", "\u{301}", "\u{200D}"] {
      let names = TierNames(space: space)
      #expect(TierNames.space(of: names.epoch).map(String.init) == space)
      #expect(names.subject(of: names.epoch) == .epoch)
    }
  }
}
