import Plexus
import TestSupport
import Testing

@testable import PlexusRedis

@Suite(.fewAtOnce) struct `The reading of a stream` {
  private typealias Trial = ReaderStateTrial<StreamReaderState>

  /// Returns a reader that has delivered the message at a position, over the first connection.
  private func trial(at number: UInt64 = 1, id: String = "a") throws -> Trial {
    let place = RedisEvents.Place(.everyNode, of: "s", position: .at(number), id: id)
    var trial = Trial(StreamReaderState(of: "s", after: place))
    #expect(try trial.answer(.done) == .connect)
    #expect(try trial.deliveries() == ["connected 1-\(number)"])
    return trial
  }

  /// Returns the reply to a comparison.
  private func comparison(
    latest: String,
    id: String?,
    next: RESPValue? = nil,
    isTooLarge: Bool = false
  ) -> ReaderReply {
    let known = id.map { RESPValue.fields($0) } ?? .null
    let message = next?.elements.map { RESPValue.array($0 + [.integer(isTooLarge ? 1 : 0)]) }
    return .value(.array([.text(latest), known] + (message.map { [$0] } ?? [])))
  }

  private func entries(_ values: RESPValue..., isAhead: Bool = false) throws -> ReaderReply {
    .entries(try values.map { try MessageFormat.Entry.read($0) }, isAhead: isAhead)
  }

  /// Returns a reader that has compared its place and read the message behind it.
  private func comparedTrial() throws -> Trial {
    var trial = try trial()
    try trial.answer(comparison(latest: "1-2", id: "a", next: .entry("1-2", "b")))
    #expect(try trial.deliveries() == ["b at 1-2"])
    return trial
  }

  @Test func `the reading of a stream begins at the end of the stream without a position`() throws {
    var trial = Trial(StreamReaderState(of: "s", after: nil))
    try trial.answer(.done)
    #expect(try trial.answer(.survey(latest: .at(7), id: "x")) == .survey(at: nil))
    #expect(try trial.deliveries() == ["connected 1-7"])
    #expect(try trial.step() == .send(.resume(after: .at(7))))
  }

  @Test func `a reader compares its place once a connection, and reads more and more messages`()
    throws
  {
    var trial = try comparedTrial()
    let reply = try entries(.entry("1-2", "b"), .entry("1-3", "c"))
    #expect(try trial.answer(reply) == .range(from: .at(2), count: 2))
    #expect(try trial.step() == .deliver(following: .range(from: .at(3), count: 3)))
    #expect(try trial.step() == .deliver(following: nil))
    #expect(try trial.deliveries() == ["c at 1-3"])
    trial.moment.generation = 2
    #expect(try trial.step() == .send(.resume(after: .at(3))))
  }

  @Test func `a reader waits after a reading without a new message, and then reads again`() throws {
    var trial = try comparedTrial()
    try trial.answer(try entries(.entry("1-2", "b")))
    #expect(try trial.step() == .wait(atMost: nil))
    #expect(try trial.step() == .send(.range(from: .at(2), count: 2)))
  }

  @Test func `a reading in advance without a new message is done again at once`() throws {
    var trial = try comparedTrial()
    try trial.answer(try entries(.entry("1-2", "b"), isAhead: true))
    #expect(try trial.step() == .send(.range(from: .at(2), count: 2)))
  }

  @Test func `messages that were removed between others are a gap`() throws {
    var trial = try comparedTrial()
    try trial.answer(try entries(.entry("1-2", "b"), .entry("1-5", "c"), .entry("1-6", "d")))
    #expect(try trial.deliveries() == ["gap 1-3 1-4", "c at 1-5", "d at 1-6"])
  }

  @Test func `a position that was given again is compared, and is a loss`() throws {
    var trial = try comparedTrial()
    try trial.answer(try entries(.entry("1-2", "other"), .entry("1-3", "c")))
    #expect(try trial.deliveries() == [])
    let command = try trial.answer(
      comparison(latest: "1-3", id: "other", next: .entry("1-3", "c"))
    )
    #expect(command == .resume(after: .at(2)))
    #expect(try trial.deliveries() == ["gap unknown"])
    // It continues behind the message that has replaced its own.
    #expect(trial.state.place?.id == "other")
    #expect(try trial.step() == .send(.range(from: .at(2), count: 2)))
  }

  @Test func `a lost end of the stream is reported once, and reading begins at the new end`() throws
  {
    var trial = try trial(at: 9)
    try trial.answer(comparison(latest: "1-4", id: nil))
    #expect(try trial.deliveries() == ["gap unknown", "connected 1-4"])
    // The next publisher reports it as well.
    let next = RESPValue.entry("2-0", "c", isAfterLoss: true)
    try trial.answer(comparison(latest: "2-0", id: "x", next: next))
    #expect(try trial.deliveries() == ["c at 2-0"])
  }

  @Test func `a loss that only a publisher reports is a gap`() throws {
    var trial = try comparedTrial()
    let reply = try entries(.entry("1-2", "b"), .entry("2-0", "c", isAfterLoss: true))
    try trial.answer(reply)
    #expect(try trial.deliveries() == ["gap unknown", "c at 2-0"])
  }

  @Test func `if all messages were removed, reading continues at the end of the stream`() throws {
    var trial = try trial()
    try trial.answer(comparison(latest: "1-5", id: nil))
    #expect(try trial.deliveries() == ["gap 1-2 1-5"])
    #expect(trial.state.place?.position == .at(5))
  }

  @Test func `a reply that can be that of another server is not used`() throws {
    var trial = try comparedTrial()
    let reply = try entries(.entry("1-2", "b"), .entry("1-3", "c"))
    try trial.answer(reply, over: 2)
    #expect(try trial.deliveries() == [])
    let comparison = comparison(latest: "1-1", id: nil)
    #expect(try trial.answer(comparison, over: 3) == .resume(after: .at(2)))
    #expect(try trial.deliveries() == [])
    #expect(try trial.step() == .send(.resume(after: .at(2))))
  }

  @Test func `a message that is too large is not read again with the ones behind it`() throws {
    var trial = try trial()
    let next = RESPValue.entry("1-2", "b")
    try trial.answer(comparison(latest: "1-3", id: "a", next: next, isTooLarge: true))
    guard case .message(let message, _, _) = trial.state.ready.first else {
      Issue.record("The message is delivered.")
      return
    }
    #expect(message.type == "")
    _ = try trial.deliveries()
    #expect(try trial.step() == .send(.resume(after: .at(2))))
  }

  @Test func `large messages are read fewer at once, and none in advance`() throws {
    var trial = try comparedTrial()
    let body = [UInt8](repeating: 1, count: ReadAhead.targetBytes + 1)
    try trial.answer(try entries(.entry("1-2", "b"), .entry("1-3", "c", body: body)))
    #expect(try trial.step() == .deliver(following: nil))
    _ = try trial.deliveries()
    #expect(try trial.step() == .send(.resume(after: .at(3))))
  }

  @Test func `a reading that has failed is done again from the same place`() throws {
    var trial = try comparedTrial()
    let step = try trial.step()
    trial.state.fail()
    #expect(trial.state.place?.position == .at(2))
    #expect(try trial.step() == step)
  }

  @Test func `a reply to another command is an error`() throws {
    var trial = try trial()
    #expect(throws: TierError.self) { try trial.answer(.value(.null)) }
    #expect(throws: TierError.self) { try trial.answer(.done) }
  }
}
