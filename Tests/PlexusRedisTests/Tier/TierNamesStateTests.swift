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

  @Test(arguments: [
    ("\u{E9}", "e\u{301}"), ("\u{1E0B}\u{323}", "d\u{323}\u{307}"),
    ("\u{AC01}", "\u{1100}\u{1161}\u{11A8}"),
    // Marks of a later version of Unicode than that of some systems.
    ("k\u{A92C}\u{1AD3}", "k\u{1AD3}\u{A92C}"), ("k\u{5B9}\u{1ACC}", "k\u{1ACC}\u{5B9}"),
  ])
  func `are the same for equal texts, however they are encoded`(text: String, other: String) {
    #expect(text == other)
    #expect(Array(names.tag(text).utf8) == Array(names.tag(other).utf8))
    #expect(Array(names.entry(text).utf8) == Array(names.entry(other).utf8))
  }
}
