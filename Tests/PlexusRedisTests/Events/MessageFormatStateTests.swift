import Plexus
import TestSupport
import Testing

@testable import PlexusRedis

@Suite struct `The format of events` {
  @Test(
    .guarantee(.messagesKeepAllCharacters),
    arguments: [
      "", "a", "%", "\n", "%25", "%0A", "%250A", "\r\n", "%\u{301}", "\n\u{301}",
      "a%\u{200D}b\n\u{FE0F}",
      "\u{301}", "\u{E9}%", "%%\n\n", "%2", "0A",
    ]
  )
  func `the format of events keeps any id, origin and type`(text: String) throws {
    let message = LinkMessage(id: text, type: text, version: -7, origin: text, body: [0, 10, 13])
    let header = Array(MessageFormat.header(of: message).utf8)
    let read = try #require(MessageFormat.message(header: header[...], body: message.body))
    #expect(read.id.utf8.elementsEqual(text.utf8))
    #expect(read.origin.utf8.elementsEqual(text.utf8))
    #expect(read.type.utf8.elementsEqual(text.utf8))
    #expect(read.version == -7)
    #expect(read.body == message.body)
  }
}
