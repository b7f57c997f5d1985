import Plexus
import TestSupport
import Testing

@testable import PlexusRedis

@Suite(.fewAtOnce) struct `Events that are being published` {
  typealias Outbox = EventOutboxState<String>

  var outbox = Outbox(limit: 100)

  private mutating func message(
    _ body: String,
    deadline: Nanoseconds = 100
  ) -> Outbox.Message {
    Outbox.Message(id: outbox.makeID(), header: "", body: Array(body.utf8), deadline: deadline)
  }

  /// Begins a batch of one message, or adds it with its body as the publisher.
  private mutating func publish(
    _ body: String,
    to topic: String = "t",
    deadline: Nanoseconds = 100,
    beside occupied: Int = 0
  ) -> Outbox.Admission {
    let message = message(body, deadline: deadline)
    if let batch = outbox.begin(message, to: topic) { return .sends(batch) }
    return outbox.add(message, to: topic, by: body, beside: occupied)
  }

  /// Begins a batch of one message.
  private mutating func begin(_ body: String, to topic: String = "t") throws -> Outbox.Batch {
    guard case .sends(let batch) = publish(body, to: topic) else { throw Waits() }
    return batch
  }

  private struct Waits: Error {}

  private mutating func finish(
    _ batch: Outbox.Batch,
    confirmed position: LinkPosition? = nil,
    at now: Nanoseconds = 0
  ) -> (next: [String]?, expired: [String]) {
    let (next, expired) = finishes(batch, confirmed: position, at: now)
    return (next?.bodies, expired.map(\.text))
  }

  private mutating func finishes(
    _ batch: Outbox.Batch,
    confirmed position: LinkPosition? = nil,
    at now: Nanoseconds = 0
  ) -> (next: Outbox.Batch?, expired: [Outbox.Message]) {
    let confirmed = position.map {
      PublishedState.Confirmed(number: batch.number, position: $0, time: now)
    }
    return outbox.finish(batch, confirmed: confirmed, at: now)
  }

  private mutating func leave(_ id: UInt64) -> String? { outbox.takePublisher(of: id) }

  @Test(.guarantee(.waitingEventsArePublishedTogether))
  mutating func `events are sent at once, until two batches of the topic are in flight`() throws {
    let (first, second) = (try begin("1"), try begin("2"))
    #expect(first.number == 1)
    #expect(second.number == 2)
    #expect(publish("3") == .waits)
    #expect(publish("4") == .waits)
    // Topics do not wait for each other.
    #expect(try begin("other", to: "u").number == 3)
    #expect(outbox.count == 5)
    #expect(outbox.bytes == 2)
    let (next, _) = finishes(second)
    #expect(next?.bodies == ["3", "4"])
    #expect(next?.number == 4)
    #expect(outbox.count == 4)
    #expect(outbox.bytes == 0)
    #expect(publish("5") == .waits)
    #expect(finish(first).next == ["5"])
  }

  @Test(.guarantee(.waitingEventsArePublishedTogether))
  mutating func `events are sent at once again when none is in flight`() throws {
    let batch = try begin("1")
    #expect(finish(batch).next == nil)
    let (second, third) = (try begin("2"), try begin("3"))
    #expect(publish("4") == .waits)
    #expect(finish(second).next == ["4"])
    #expect(finish(third).next == nil)
    #expect(try begin("5").number == 5)
  }

  @Test(.guarantee(.waitingEventsArePublishedTogether))
  mutating func `events go in bounded batches, in order, and a full one does not wait`()
    throws
  {
    outbox = Outbox(limit: 1_000)
    let first = try begin("a")
    _ = try begin("b")
    for number in 0..<63 { #expect(publish("\(number)") == .waits) }
    let full = try begin("63")
    #expect(full.bodies == (0..<64).map { "\($0)" })
    #expect(outbox.bytes == 0)
    for number in 64..<100 { #expect(publish("\(number)") == .waits) }
    #expect(finish(first).next == (64..<100).map { "\($0)" })
    // A quarter of the limit; a larger message goes alone.
    outbox = Outbox(limit: 1_000)
    let other = try begin("a")
    _ = try begin("b")
    let (small, large) = (String(repeating: "x", count: 100), String(repeating: "y", count: 400))
    #expect(publish(small) == .waits)
    #expect(publish(small) == .waits)
    #expect(try begin(small).bodies == [small, small])
    #expect(outbox.bytes == 100)
    #expect(try begin(large).bodies == [small])
    #expect(try begin("c").bodies == [large])
    #expect(finish(other).next == ["c"])
    #expect(outbox.bytes == 0)
    #expect(publish("d") == .waits)
  }

  @Test(.guarantee(.outgoingBytesAreBounded))
  mutating func `events that are being published are refused when too many bytes wait`()
    throws
  {
    outbox = Outbox(limit: 1_000)
    let (first, _) = (try begin("1"), try begin("2"))
    #expect(publish(String(repeating: "x", count: 150), beside: 800) == .waits)
    let full = RedisConnectionError.outboxFull(bytes: 51, waiting: 950, limit: 1_000)
    #expect(publish(String(repeating: "x", count: 51), beside: 800) == .refused(full))
    #expect(publish(String(repeating: "x", count: 50), beside: 800) == .waits)
    #expect(outbox.count == 4)
    #expect(outbox.bytes == 200)
    _ = finish(first)
    #expect(publish(String(repeating: "x", count: 200), beside: 800) == .waits)
  }

  @Test(.guarantee(.waitingEventsArePublishedTogether))
  mutating func `events that are being published are not sent once their publisher has left`()
    throws
  {
    let first = try begin("1")
    _ = try begin("2")
    for body in ["3", "4", "5"] { #expect(publish(body) == .waits) }
    #expect(leave(4) == "4")
    #expect(leave(4) == nil)
    let (next, expired) = finishes(first)
    #expect(next?.bodies == ["3", "5"])
    #expect(expired == [])
    // In flight: it may be published.
    #expect(leave(3) == "3")
    #expect(outbox.count == 3)
    #expect(outbox.bytes == 0)
  }

  @Test(.guarantee(.waitingEventsArePublishedTogether))
  mutating func `events that are being published are not sent after their time`() throws {
    let first = try begin("1")
    _ = try begin("2")
    #expect(publish("3", deadline: 10) == .waits)
    #expect(publish("4", deadline: 11) == .waits)
    let (next, expired) = finish(first, at: 10)
    #expect(next == ["4"])
    #expect(expired == ["3"])
    #expect(outbox.count == 2)
  }

  @Test(.guarantee(.waitingEventsArePublishedTogether))
  mutating func `events that are being published name the latest batch that was confirmed`() throws
  {
    let (first, second) = (try begin("1"), try begin("2"))
    #expect(first.latest == nil)
    let (early, late) = (LinkPosition(epoch: 5, number: 1), LinkPosition(epoch: 5, number: 2))
    _ = finish(second, confirmed: late, at: 7)
    #expect(try begin("3").latest == PublishedState.Confirmed(number: 2, position: late, time: 7))
    // A reply that was overtaken.
    _ = finish(first, confirmed: early, at: 8)
    #expect(try begin("4").latest?.position == late)
    #expect(try begin("other", to: "u").latest == nil)
  }

  @Test(.guarantee(.sharedCallsHaveTheHighestPriority))
  func `a batch of events has the priority of its most urgent publisher`() {
    let priorities: [TaskPriority] = [.low, .high, .background]
    let messages = priorities.enumerated().map { number, priority in
      Outbox.Message(
        id: UInt64(number),
        header: "",
        body: [],
        deadline: 0,
        priority: priority.rawValue
      )
    }
    let batch = Outbox.Batch(topic: "t", number: 1, messages: messages, latest: nil)
    #expect(batch.priority == .high)
  }

  // MARK: - Replies

  private func results(of count: Int, in reply: RESPValue) throws -> [String] {
    let messages = (0..<count).map {
      Outbox.Message(id: UInt64($0), header: "", body: [], deadline: 0)
    }
    let batch = Outbox.Batch(topic: "t", number: 1, messages: messages, latest: nil)
    return try TopicScripts.results(of: batch, in: reply).0.map { result in
      switch result {
      case .success(let position): "\(position)"
      case .failure(let error): "\(error)"
      }
    }
  }

  private func refusal(_ number: Int64, _ text: String) -> RESPValue {
    .array([.integer(number), .error(RedisError(Array(text.utf8)))])
  }

  @Test(.guarantee(.waitingEventsArePublishedTogether))
  func `events have consecutive positions, without the ones that the engine has refused`() throws {
    let first = RESPValue.string(Array("7-3".utf8))
    #expect(try results(of: 3, in: .array([first])) == ["7-3", "7-4", "7-5"])
    #expect(
      try results(of: 3, in: .array([first, refusal(2, "FULL x")])) == ["7-3", "FULL x", "7-4"]
    )
    #expect(
      try results(of: 2, in: .array([.null, refusal(1, "A"), refusal(2, "B")])) == ["A", "B"]
    )
  }

  @Test(.guarantee(.eventsNeedNoAnnouncement))
  func `events can be stored without an announcement, which the reply names`() throws {
    let first = RESPValue.string(Array("7-3".utf8))
    let reply = RESPValue.array([first, refusal(2, "FULL x"), refusal(0, "NOPERM")])
    #expect(try results(of: 3, in: reply) == ["7-3", "FULL x", "7-4"])
    #expect(!TopicScripts.isAnnounced(reply))
    #expect(TopicScripts.isAnnounced(.array([first, refusal(2, "FULL x")])))
  }

  @Test(
    .guarantee(.waitingEventsArePublishedTogether),
    arguments: [
      RESPValue.null, .string(Array("7-3".utf8)), .array([]), .array([.null]),
      .array([.integer(3)]),
      .array([.string(Array("seven".utf8))]), .array([.string(Array("7-3".utf8)), .integer(1)]),
      .array([.string(Array("7-3".utf8)), .array([.integer(1), .null])]),
      .array([.null, .array([.integer(1), .error(RedisError(Array("A".utf8)))])]),
    ]
  )
  func `events that are being published have no result in a reply of another shape`(
    reply: RESPValue
  ) {
    #expect(throws: TierError.self) { try results(of: 2, in: reply) }
  }
}

extension EventOutboxState.Message {
  fileprivate var text: String { String(decoding: body, as: UTF8.self) }
}

extension EventOutboxState.Batch {
  fileprivate var bodies: [String] { messages.map(\.text) }
}
