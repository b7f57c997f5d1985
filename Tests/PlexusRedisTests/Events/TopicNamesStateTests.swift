import TestSupport
import Testing

@testable import PlexusRedis

@Suite struct `The names of topics in the engine` {
  @Test(
    .guarantee(.equalTextsAreOneTopic),
    arguments: [
      ("\u{E9}", "e\u{301}"), ("a\u{1E09}b", "ac\u{327}\u{301}b"), ("\u{AC00}", "\u{1100}\u{1161}"),
    ]
  )
  func `the names of topics in the engine are the same for texts that are equal`(
    composed: String,
    decomposed: String
  ) {
    let (left, right) = (TopicNames(composed), TopicNames(decomposed))
    #expect(left.stream.utf8.elementsEqual(right.stream.utf8))
    #expect(left.channel.utf8.elementsEqual(right.channel.utf8))
    #expect(left.sent(by: "a").utf8.elementsEqual(right.sent(by: "a").utf8))
    let names = TopicNames("topic")
    #expect(
      names.released(by: composed).utf8.elementsEqual(names.released(by: decomposed).utf8)
    )
  }

  // A scalar that forms a character with the one before it would hide a separator from a comparison of characters.
  @Test(
    .guarantee(.equalTextsAreOneTopic),
    arguments: [
      "\u{301}", "\u{301}a", "\u{200D}", "%\u{301}", "{\u{338}", "}\u{301}", "\u{FE0F}",
    ]
  )
  func `the names of topics in the engine keep their separators, whatever the topic is`(
    topic: String
  ) {
    let names = TopicNames(topic)
    let bytes = Array(names.stream.utf8)
    #expect(bytes.first == UInt8(ascii: "{"))
    #expect(bytes.suffix(8).elementsEqual("}:stream".utf8))
    #expect(bytes.count { $0 == UInt8(ascii: "{") } == 1)
    #expect(bytes.count { $0 == UInt8(ascii: "}") } == 1)
    let released = TopicNames("topic").released(by: topic)
    #expect(released.utf8.elementsEqual("{topic}:released:".utf8 + Array(topic.utf8)))
  }

  @Test(.guarantee(.deadLettersAreMadeInOneStep))
  func `the names of dead letters have the hash tag of their topic`() {
    #expect(TopicNames("orders.dead.billing").stream == "{orders}.dead.billing:stream")
    #expect(TopicNames("a.dead.b.dead.c").stream == "{a}.dead.b.dead.c:stream")
    #expect(TopicNames(".dead.b").stream == "{.dead.b}:stream")
    #expect(TopicNames("a:b").stream == "{a:b}:stream")
    #expect(TopicNames("a.dead.{b}").stream == "{a}.dead.%7Bb%7D:stream")
    // Otherwise, a group could have the key of another one.
    #expect(
      TopicNames("a.dead.b:released").stream != TopicNames("a.dead.b").released(by: "stream")
    )
  }
}
