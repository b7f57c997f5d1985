import Plexus
import TestSupport
import Testing

@testable import PlexusRedis

@Suite(.fewAtOnce) struct `The reading of a group` {
  private typealias Trial = ReaderStateTrial<GroupReaderState>

  private let second: Nanoseconds = 1_000_000_000

  /// Returns a reader that has joined at a position, and has found no message of other nodes.
  private func trial(readingFirst count: Int = 4) throws -> Trial {
    let state = GroupReaderState(
      of: "s",
      group: "g",
      retryAfter: .seconds(100),
      pace: .seconds(10),
      ahead: ReadAhead(from: count, limit: 256)
    )
    var trial = Trial(state)
    trial.moment.time = second
    #expect(try trial.answer(.done) == .connect)
    #expect(try trial.answer(.value(.array([.text("1-1"), .fields("a")]))) == .join)
    #expect(try trial.deliveries() == ["connected 1-1"])
    #expect(try trial.answer(.value(.array([]))) == .claim)
    return trial
  }

  /// Returns the reply to a reading.
  private func reading(
    _ entries: RESPValue...,
    last: String = "1-1",
    oldest: String? = nil,
    released: String? = nil
  ) -> ReaderReply {
    let survey: [RESPValue] = [.text(last), oldest.map { .text($0) } ?? .null]
    let back: RESPValue = released.map { .text($0) } ?? .null
    let messages: RESPValue = entries.isEmpty ? .null : .map([.text("s"), .array(entries)])
    return .results([.success(.array(survey)), .success(back), .success(messages)])
  }

  /// Returns a message as a claim gives it.
  private func claimed(_ position: String, _ id: String, attempt: Int64) -> RESPValue {
    .array([.text(position), .fields(id), .integer(attempt), .integer(0)])
  }

  /// Returns a reader whose first of two messages is in progress.
  private func handlingTrial() throws -> Trial {
    var trial = try trial()
    try trial.answer(reading(.entry("1-2", "b"), .entry("1-3", "c"), oldest: "1-2"))
    #expect(try trial.deliveries() == ["b at 1-2"])
    let load = trial.state.takeLoad()
    #expect(load?.count == 2)
    #expect(load?.change == .begun(.at(2), identity: Array("b".utf8)))
    return trial
  }

  @Test func `messages are delivered one by one, in order`() throws {
    var trial = try handlingTrial()
    #expect(try trial.deliveries() == ["c at 1-3"])
    #expect(trial.state.takeLoad()?.count == 1)
    #expect(try trial.step() == .send(.read(count: 4)))
    #expect(trial.state.takeLoad()?.change == .ended)
  }

  @Test func `a message neither acknowledged nor rejected is given back before the next one`()
    throws
  {
    var trial = try handlingTrial()
    trial.moment.inHand = .at(2)
    #expect(try trial.answer(.done) == .postpone)
    trial.moment.inHand = nil
    #expect(try trial.deliveries() == ["c at 1-3"])
  }

  @Test func `without a message the reader waits, and claims after its pace`() throws {
    var trial = try trial()
    #expect(try trial.answer(reading()) == .read(count: 4))
    #expect(try trial.step() == .wait(atMost: .seconds(10)))
    #expect(try trial.answer(reading()) == .read(count: 4))
    #expect(try trial.step() == .wait(atMost: .seconds(10)))
    trial.moment.time += 10 * second
    #expect(try trial.step() == .send(.claim))
  }

  @Test func `messages that another reader gave back are claimed at once`() throws {
    var trial = try trial()
    try trial.answer(reading(released: "7"))
    #expect(try trial.step() == .send(.claim))
  }

  @Test func `claimed messages come with their attempts, and removed ones are a gap`() throws {
    var trial = try trial()
    try trial.answer(reading(released: "7"))
    let claims: [RESPValue] = [
      claimed("1-2", "", attempt: 0), claimed("1-3", "", attempt: 0),
      claimed("1-4", "d", attempt: 2), claimed("1-6", "f", attempt: 3),
    ]
    try trial.answer(.value(.array(claims)))
    #expect(try trial.deliveries() == ["gap 1-2 1-3"])
    #expect(try trial.deliveries() == ["d at 1-4, 2"])
    #expect(try trial.deliveries() == ["f at 1-6, 3"])
    #expect(try trial.step() == .send(.claim))
  }

  @Test func `fewer messages are read at once if the last ones took long`() throws {
    var trial = try trial(readingFirst: 8)
    try trial.answer(reading(.entry("1-2", "b"), oldest: "1-2"))
    _ = try trial.deliveries()
    trial.moment.time += second
    #expect(try trial.step() == .send(.read(count: 2)))
  }

  @Test func `messages that were trimmed before they were read are a gap`() throws {
    var trial = try trial()
    try trial.answer(reading(.entry("1-5", "e"), .entry("1-7", "g"), oldest: "1-5"))
    #expect(try trial.deliveries() == ["gap 1-2 1-4"])
    #expect(try trial.deliveries() == ["gap 1-6 1-6"])
    #expect(try trial.deliveries() == ["e at 1-5"])
  }

  @Test(arguments: [true, false])
  func `messages between the look and the reading were removed, or read by others`(
    isThere: Bool
  ) throws {
    var trial = try trial()
    try trial.answer(reading(.entry("1-4", "d"), oldest: "1-2"))
    let entries = isThere ? [try MessageFormat.Entry.read(.entry("1-2", "b"))] : []
    let command = try trial.answer(.entries(entries, isAhead: false))
    #expect(command == .range(from: .at(2), count: 1))
    if !isThere { #expect(try trial.deliveries() == ["gap 1-2 1-3"]) }
    #expect(try trial.deliveries() == ["d at 1-4"])
  }

  @Test func `a removed group is joined again once, and then it is an error`() throws {
    var trial = try trial()
    let removed = ReaderReply.results([
      .success(.array([.null, .null])), .success(.null),
      .failure(RedisError("NOGROUP none".utf8)),
    ])
    try trial.answer(removed)
    #expect(try trial.answer(.survey(latest: .at(1), id: "a")) == .survey(at: .at(1)))
    #expect(try trial.answer(.value(.null)) == .reset)
    #expect(try trial.deliveries() == ["gap unknown"])
    try trial.answer(.done)
    try trial.answer(.value(.array([.text("1-1"), .fields("a")])))
    #expect(try trial.deliveries() == ["connected 1-1"])
    try trial.answer(.value(.array([])))
    try trial.answer(removed)
    let error = #expect(throws: RedisError.self) { try trial.step() }
    #expect(error?.description == "NOGROUP The group g was removed again.")
  }

  @Test func `a server that has lost the latest message is a gap, and the group is joined again`()
    throws
  {
    var trial = try handlingTrial()
    trial.moment.generation = 2
    #expect(try trial.answer(.survey(latest: .at(2), id: "b")) == .survey(at: .at(3)))
    #expect(try trial.answer(.value(.null)) == .reset)
    #expect(try trial.deliveries() == ["gap unknown"])
    #expect(try trial.step() == .send(.connect))
  }

  @Test func `the answer of a group can be that of another server`() throws {
    let state = GroupReaderState(of: "s", group: "g", retryAfter: .seconds(1))
    var trial = Trial(state)
    try trial.answer(.done)
    try trial.answer(.value(.array([.text("1-1"), .null])), over: 2)
    #expect(trial.state.isMember == false)
    #expect(try trial.step() == .send(.connect))
  }

  @Test func `messages that are not pending after a pause are dropped before they are delivered`()
    throws
  {
    var trial = try handlingTrial()
    trial.moment.time += 60 * second
    #expect(try trial.answer(.value(.array([]))) == .renew([.at(3)], isInTime: false))
    #expect(try trial.step() == .send(.claim))
  }

  @Test func `messages in progress and ahead are renewed, until they hang`() throws {
    var trial = try handlingTrial()
    #expect(trial.state.renew(at: trial.moment) == .renew([.at(3), .at(2)], isInTime: true))
    #expect(trial.state.giveBack(at: trial.moment) == nil)
    trial.moment.time += 101 * second
    #expect(trial.state.giveBack(at: trial.moment) == .giveBack([.at(3)]))
    let load = trial.state.takeLoad()
    // The message in progress may have been acknowledged meanwhile.
    #expect(load?.count == 1)
    #expect(load?.change == nil)
    #expect(trial.state.renew(at: trial.moment) == .renew([.at(2)], isInTime: false))
  }

  @Test func `a reader leaves its group once, and reads no more messages`() throws {
    var trial = try handlingTrial()
    let attempts = [trial.state.leave(), trial.state.leave()]
    #expect(attempts == [true, false])
    #expect(try trial.step() == .wait(atMost: .seconds(10)))
  }
}
