import Plexus
import TestSupport
import Testing

@testable import PlexusRedis

@Suite("The messages that a node has published") struct PublishedStateTests {
  private func message(_ number: UInt64, at time: Nanoseconds) -> PublishedState.Confirmed {
    PublishedState.Confirmed(
      number: number,
      position: LinkPosition(epoch: 1, number: number),
      time: time
    )
  }

  @Test(.guarantee(.outgoingBytesAreBounded))
  func `published messages have increasing numbers, also of topics that were forgotten`() {
    var state = PublishedState()
    #expect((1...3).map { _ in state.next() } == [1, 2, 3])
  }

  @Test(.guarantee(.outgoingBytesAreBounded))
  func `the messages that a node has published are known by the latest one of each topic`() {
    var state = PublishedState()
    state.confirm(message(2, at: 0), of: "topic")
    // Confirmed later, although it was sent before.
    state.confirm(message(1, at: 0), of: "topic")
    #expect(state.latest(of: "topic")?.number == 2)
    #expect(state.latest(of: "other") == nil)
  }

  @Test(.guarantee(.outgoingBytesAreBounded))
  func `the messages that a node has published use bounded memory if topics come and go`() {
    var state = PublishedState()
    let second: Nanoseconds = 1_000_000_000
    // Ten topics a second, of which the engine remembers those of ten minutes.
    for number in 0..<200_000 {
      let time = Nanoseconds(number) * second / 10
      state.confirm(message(UInt64(number), at: time), of: "\(number)")
      #expect(state.latest(of: "\(number)") != nil)
      #expect(state.topicCount <= 12_001)
    }
    #expect(state.latest(of: "\(200_000 - 5_000)") != nil)
  }
}
