import TestSupport
import Testing

@testable import PlexusRedis

@Suite struct `The names of keys in the engine` {
  private let names = TierNames(space: "space", schema: "1")

  // Some begin with a scalar that forms a character with the one before it, others contain the characters of names.
  @Test(
    .guarantee(.everyTextIsAKey),
    arguments: [
      "k", "", ":", "}{", "\0", "e:k", "epoch", "\u{301}", "\u{301}k", "\u{200D}x", "\u{FE0F}",
      "\u{1F3FD}", "\u{E9}", "e\u{301}",
    ]
  )
  func `the names of keys in the engine are recognized, whatever the key is`(key: String) {
    #expect(names.subject(of: names.entry(key)) == .entry(key))
    #expect(names.subject(of: names.lease(key)) == .lease(key))
    #expect(names.subject(of: names.tag(key)) == .tag(key))
    #expect(TierNames.space(of: names.entry(key)) == "space")
    #expect(TierNames(space: "other", schema: "1").subject(of: names.entry(key)) == nil)
  }

  @Test(.guarantee(.equalNamesAreEqualOnTheServer))
  func `the names of keys in spaces and schemas with equal names are the same`() {
    let (composed, other) = ("caf\u{E9}", "cafe\u{301}")
    let names = TierNames(space: composed, schema: composed)
    let others = TierNames(space: other, schema: other)
    #expect(others.entry(other).utf8.elementsEqual(names.entry(composed).utf8))
    #expect(others.tag(other).utf8.elementsEqual(names.tag(composed).utf8))
    #expect(others.epoch.utf8.elementsEqual(names.epoch.utf8))
    #expect(others.subject(of: names.entry("k")) == .entry("k"))
  }

  @Test(
    .guarantee(.everyTextIsAKey),
    arguments: [
      "", "k", "{k", "{k\u{301}", "space}:2:epoch", "{space}", "{space}:", "{space}:2:tokens",
      "{space}:2:f:1:k", "{space}:2:e:2:k", "{space}:2:e:1", "{space}:2:e:11:k", "{space}:e:1:k",
      "{space}:epoch", "{space}:e:k",
    ]
  )
  func `the names of keys in the engine are not found in other keys`(name: String) {
    #expect(names.subject(of: name) == nil)
  }

  @Test(.guarantee(.schemasShareNoEntry))
  func `the names of different schemas and keys differ, whatever separators they have`() {
    let parts = ["", ":", "1", "1:", ":1", "1:1", "/", "{", "}", "%", "%3A", "%253A", " 1=2 ", "é"]
    var seen: [String: (schema: String, key: String)] = [:]
    for schema in parts {
      let names = TierNames(space: "space", schema: schema)
      #expect(TierNames.schemas(in: "7 \(names.schema)=9") == [names.schema])
      for key in parts {
        for name in [names.entry(key), names.lease(key), names.fetch(key)] {
          #expect(seen[name] == nil, "\(schema), \(key)")
          seen[name] = (schema, key)
        }
        #expect(names.subject(of: names.entry(key)) == .entry(key))
        #expect(TierNames.space(of: names.entry(key)) == "space")
      }
    }
  }

  @Test(.guarantee(.everyTextIsAKey))
  func `the names of keys in the engine belong to a space whose name ends with any scalar`() {
    for space in ["a\u{301}", "\u{301}", "\u{200D}"] {
      let names = TierNames(space: space, schema: "1")
      #expect(TierNames.space(of: names.epoch).map(String.init) == space)
      #expect(names.subject(of: names.epoch) == .epoch)
    }
  }

  @Test(
    .guarantee(.everyTextIsAKey),
    arguments: [
      ("\u{E9}", "e\u{301}"), ("\u{1E0B}\u{323}", "d\u{323}\u{307}"),
      ("\u{AC01}", "\u{1100}\u{1161}\u{11A8}"),
      // Marks of a later version of Unicode than that of some systems.
      ("k\u{A92C}\u{1AD3}", "k\u{1AD3}\u{A92C}"), ("k\u{5B9}\u{1ACC}", "k\u{1ACC}\u{5B9}"),
    ]
  )
  func `the names of keys are the same for equal texts, however they are encoded`(
    text: String,
    other: String
  ) {
    #expect(text == other)
    #expect(Array(names.tag(text).utf8) == Array(names.tag(other).utf8))
    #expect(Array(names.entry(text).utf8) == Array(names.entry(other).utf8))
  }
}
