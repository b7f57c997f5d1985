import TestSupport
import Testing

@testable import PlexusRedis

@Suite(.fewAtOnce) struct `Acknowledgements of events` {
  private var state = AcknowledgementState()

  /// Begins some over a connection.
  ///
  /// - Returns: How many of them need not be waited for.
  private mutating func begin(_ count: Int = 1, over connection: Int = 1) -> Int {
    var begun = 0
    for _ in 0..<count where state.begin(over: connection) { begun += 1 }
    return begun
  }

  @Test(.guarantee(.unacknowledgedEventsAreBounded))
  mutating func `acknowledgements are waited for until one is confirmed over the connection`() {
    let early = begin()
    state.confirm(over: 1)
    let elsewhere = begin(over: 2)
    let later = begin()
    #expect([early, elsewhere, later] == [0, 0, 1])
    #expect(state.count == 1)
  }

  @Test(.guarantee(.unacknowledgedEventsAreBounded))
  mutating func `acknowledgements of events are not waited for up to a limit`() {
    state.confirm(over: 1)
    let first = begin(100)
    #expect(first == AcknowledgementState.limit)
    #expect(state.count == AcknowledgementState.limit)
    state.end()
    let next = begin(2)
    #expect(next == 1)
  }

  @Test(.guarantee(.unacknowledgedEventsAreBounded))
  mutating func `acknowledgements are waited for while one fails, and until another is confirmed`()
  {
    state.confirm(over: 1)
    let first = begin(2)
    state.fail()
    state.confirm(over: 1)
    let second = begin()
    #expect(state.count == 2)
    state.endFailed()
    let third = begin()
    state.fail()
    state.endFailed()
    let fourth = begin()
    #expect([first, second, third, fourth] == [2, 0, 1, 0])
    #expect(state.count == 1)
  }
}
