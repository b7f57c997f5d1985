import Plexus
import TestSupport
import Testing

@testable import PlexusRedis

@Suite(.fewAtOnce) struct `The reading of a channel` {
  private typealias Trial = ReaderStateTrial<ChannelReaderState>

  private func message(_ number: UInt64, _ id: String) -> ChannelBuffer.Element {
    message(LinkPosition.at(number), id)
  }

  private func message(_ position: LinkPosition, _ id: String) -> ChannelBuffer.Element {
    .message(LinkMessage(id: id, type: "t", version: 1, origin: "o", body: [1]), at: position)
  }

  /// Returns a reader that has begun behind the message at a position.
  private func trial(at number: UInt64 = 1) throws -> Trial {
    var trial = Trial(ChannelReaderState(of: "s"))
    #expect(try trial.answer(.done) == .connect)
    #expect(try trial.answer(.done) == .subscribe)
    #expect(try trial.answer(.survey(latest: .at(number), id: "a")) == .survey(at: nil))
    #expect(try trial.answer(.elements([])) == .peek)
    #expect(try trial.answer(.place(nil)) == .recall(.ephemeral, at: .at(number)))
    #expect(try trial.deliveries() == ["connected 1-\(number)"])
    return trial
  }

  @Test func `messages are delivered in batches, and then the reader waits`() throws {
    var trial = try trial()
    #expect(try trial.answer(.elements([message(2, "b"), message(3, "c")])) == .take(atMost: 256))
    #expect(try trial.deliveries() == ["b at 1-2", "c at 1-3"])
    try trial.answer(.elements([]))
    #expect(try trial.step() == .wait(atMost: nil))
    #expect(try trial.step(1) == .send(.take(atMost: 1)))
  }

  @Test func `a message that arrives twice is delivered once`() throws {
    var trial = try trial()
    try trial.answer(.elements([message(1, "a"), message(2, "b"), message(2, "b")]))
    #expect(try trial.deliveries() == ["b at 1-2"])
  }

  @Test func `a gap is reported if the stream has the message behind it`() throws {
    var trial = try trial()
    try trial.answer(.elements([message(2, "b"), message(5, "e"), message(6, "f")]))
    #expect(try trial.answer(.survey(latest: .at(6), id: "f")) == .survey(at: nil))
    #expect(try trial.deliveries() == ["b at 1-2", "gap 1-3 1-4", "e at 1-5", "f at 1-6"])
  }

  @Test func `a position that another program has made up hides no later message`() throws {
    var trial = try trial()
    try trial.answer(.elements([message(900, "x"), message(2, "b")]))
    try trial.answer(.survey(latest: .at(2), id: "b"))
    #expect(try trial.deliveries() == ["x at 1-1", "b at 1-2"])
  }

  @Test func `a new epoch is no gap if it begins with its first message`() throws {
    for number in [0, 3] as [UInt64] {
      var trial = try trial()
      let position = LinkPosition(epoch: 2, number: number)
      try trial.answer(.elements([message(position, "x")]))
      try trial.answer(.survey(latest: position, id: "x"))
      let gap = number == 0 ? [] : ["gap unknown"]
      #expect(try trial.deliveries() == gap + ["x at 2-\(number)"])
    }
  }

  @Test func `messages of other programs get names of their own`() throws {
    var trial = try trial()
    try trial.answer(.elements([.foreign([7]), message(2, "b"), .foreign([8])]))
    #expect(try trial.deliveries() == ["1-1.1 at 1-1", "b at 1-2", "1-2.2 at 1-2"])
  }

  @Test func `messages that arrive before the look at the stream are delivered`() throws {
    var trial = Trial(ChannelReaderState(of: "s"))
    for reply in [.done, .done, .survey(latest: .at(5), id: "e")] as [ReaderReply] {
      try trial.answer(reply)
    }
    try trial.answer(.elements([message(4, "d")]))
    #expect(try trial.answer(.survey(latest: .at(5), id: "c")) == .survey(at: .at(3)))
    try trial.answer(.place(nil))
    #expect(try trial.deliveries() == ["connected 1-3"])
  }

  @Test func `a server that has lost the latest message of the reader before is a gap`() throws {
    var trial = Trial(ChannelReaderState(of: "s"))
    let replies: [ReaderReply] = [
      .done, .done, .survey(latest: .at(5), id: "other"), .elements([]),
    ]
    for reply in replies { try trial.answer(reply) }
    let known = RedisEvents.Place(.ephemeral, of: "s", position: .at(5), id: "e")
    try trial.answer(.place(known))
    #expect(try trial.deliveries() == ["connected 1-5", "gap unknown"])
  }

  @Test func `a beginning that has failed is done again as a whole`() throws {
    var trial = Trial(ChannelReaderState(of: "s"))
    try trial.answer(.done)
    trial.state.fail()
    #expect(try trial.step() == .send(.connect))
    #expect(throws: TierError.self) { try trial.answer(.elements([])) }
  }
}
