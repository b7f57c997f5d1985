import TestSupport
import Testing

@testable import PlexusRedis

@Suite("The messages of a channel that are not taken yet") struct ChannelBufferStateTests {
  @Test(.guarantee(.outgoingBytesAreBounded))
  func `the messages of a channel use bounded memory if the reader is always a little behind`()
    throws
  {
    let buffer = ChannelBuffer(limit: 1 << 20, Bell())
    for _ in 0..<10 { buffer.append([1]) }
    for _ in 0..<50_000 {
      buffer.append([1])
      #expect(try buffer.take(atMost: 1).count == 1)
      #expect(buffer.storedCount <= 2_100)
    }
  }

  @Test(.guarantee(.outgoingBytesAreBounded))
  func `the messages of a channel use bounded memory if they are many and tiny`() {
    let buffer = ChannelBuffer(limit: 1 << 20, Bell())
    let counts = (0..<50_000).map { _ in
      buffer.append([1])
      return buffer.storedCount
    }
    #expect((4_000...4_200).contains(counts.max() ?? 0))
  }
}
