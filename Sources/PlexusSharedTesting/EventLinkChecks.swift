internal import Plexus

/// The checks of the conformance suite of links, with two nodes over one engine.
struct EventLinkChecks: Sendable {
  let rule: EventLinkConformance.Rule
  /// Whether messages are read in batches, where the link offers them.
  var readsBatches = false
  let a: any EventLink
  let b: any EventLink

  /// The mode of readers of a group whose messages are not delivered again by time.
  private static let patient = LinkMode.oneNode(
    group: "group",
    retryAfter: .seconds(60),
    attempts: 3
  )

  /// One reading of a topic.
  private struct Reading {
    typealias Message = (message: LinkMessage, position: LinkPosition, attempt: Int)

    let rule: EventLinkConformance.Rule
    private var deliveries: AsyncThrowingStream<LinkDelivery, any Error>.Iterator?
    private var batches: AsyncThrowingStream<[LinkDelivery], any Error>.Iterator?
    /// The deliveries of the latest batch that are not read.
    private var rest: ArraySlice<LinkDelivery> = []
    var start = LinkPosition.start

    init(
      _ rule: EventLinkConformance.Rule,
      _ link: any EventLink,
      _ mode: LinkMode,
      topic: String,
      inBatches: Bool
    ) async throws {
      self.rule = rule
      if inBatches { batches = link.batches(of: topic, mode)?.makeAsyncIterator() }
      if batches == nil { deliveries = link.deliveries(of: topic, mode).makeAsyncIterator() }
      guard case .connected(let position) = try await nextDelivery() else {
        throw EventLinkConformance.Violation(
          rule: rule,
          description: "The first delivery is that of the connection."
        )
      }
      start = position
    }

    private mutating func nextDelivery() async throws -> LinkDelivery? {
      guard batches != nil else { return try await deliveries?.next(isolation: #isolation) }
      if rest.isEmpty {
        guard let batch = try await batches?.next(isolation: #isolation) else { return nil }
        guard !batch.isEmpty else {
          throw EventLinkConformance.Violation(
            rule: rule,
            description: "A batch is not empty."
          )
        }
        rest = batch[...]
      }
      return rest.popFirst()
    }

    mutating func next() async throws -> Message {
      switch try await nextDelivery() {
      case .message(let message, let position, let attempt): return (message, position, attempt)
      case let other:
        throw EventLinkConformance.Violation(
          rule: rule,
          description: "A message follows, and not \(String(describing: other))."
        )
      }
    }
  }

  /// Connects to a topic.
  private func read(
    from link: any EventLink,
    _ mode: LinkMode,
    topic: String = "topic"
  ) async throws -> Reading {
    try await Reading(rule, link, mode, topic: topic, inBatches: readsBatches)
  }

  private func require(_ condition: Bool, _ expectation: String) throws {
    guard condition else {
      throw EventLinkConformance.Violation(rule: rule, description: expectation)
    }
  }

  private func message(_ id: String, body: [UInt8] = [1, 2, 3]) -> LinkMessage {
    LinkMessage(id: id, type: "type", version: 1, origin: "origin", body: body)
  }

  @discardableResult
  private func publish(
    _ ids: String...,
    by link: any EventLink,
    to topic: String = "topic"
  ) async throws -> [LinkPosition] {
    var positions: [LinkPosition] = []
    for id in ids { positions.append(try await link.publish(message(id), to: topic)) }
    return positions
  }

  // MARK: - Logs

  func codec() throws {
    let bytes = try a.codec.encode(["key": [1, 2, 3]])
    let value = try b.codec.decode([String: [Int]].self, from: bytes)
    try require(value == ["key": [1, 2, 3]], "The codec of one node reads that of another one.")
    for damaged in [[], [0xFF, 0x00], Array(bytes.dropLast())] as [[UInt8]] {
      let result = try? b.codec.decode([String: [Int]].self, from: damaged)
      try require(result == nil, "Damaged bytes are refused.")
    }
  }

  func everyNode() async throws {
    var first = try await read(from: a, .everyNode())
    var second = try await read(from: b, .everyNode())
    for round in 0..<20 {
      try await publish("a\(round)", by: a)
      try await publish("b\(round)", by: b)
    }
    for round in 0..<20 {
      for id in ["a\(round)", "b\(round)"] {
        try require(try await first.next().message.id == id, "The first node gets all in order.")
        try require(try await second.next().message.id == id, "The second node gets all in order.")
      }
    }
  }

  func positions() async throws {
    var reading = try await read(from: b, .everyNode())
    let positions = try await publish("1", "2", "3", by: a)
    try require(reading.start < positions[0], "Messages come after the start of a reading.")
    for (position, next) in zip(positions, positions.dropFirst()) {
      try require(position.isFollowed(by: next), "Positions are numbered one after another.")
    }
    for position in positions {
      try require(
        try await reading.next().position == position,
        "The position of a delivery is that of the publisher."
      )
    }
  }

  func wholeMessages() async throws {
    var reading = try await read(from: b, .everyNode())
    var live = try await read(from: b, .ephemeral)
    let messages = [
      LinkMessage(id: "1", type: "", version: 0, origin: "", body: []),
      LinkMessage(
        id: "ä 2",
        type: "type {1} : %\n*",
        version: -7,
        origin: "o r",
        body: Array(0...255)
      ),
      LinkMessage(
        id: "3",
        type: "t",
        version: .max,
        origin: "o",
        body: Array(repeating: 13, count: 100_000)
      ),
    ]
    for message in messages { _ = try await a.publish(message, to: "topic") }
    for message in messages {
      try require(try await reading.next().message == message, "All parts arrive.")
      try require(try await live.next().message == message, "All parts arrive at once.")
    }
  }

  func anyTopic() async throws {
    let topics = ["x", "{x}", "x:y", "ä ö", "a\nb", "*", "}{", "%7B"]
    var readings: [Reading] = []
    for topic in topics { readings.append(try await read(from: b, .everyNode(), topic: topic)) }
    for topic in topics { try await publish(topic, by: a, to: topic) }
    for index in topics.indices {
      try require(
        try await readings[index].next().message.id == topics[index],
        "A reader gets the message of its topic."
      )
    }
  }

  func replay() async throws {
    let positions = try await publish("1", "2", "3", by: a)
    var reading = try await read(from: b, .everyNode(from: positions[0]))
    try require(reading.start == positions[0], "A reading begins at the position it asks for.")
    try require(try await reading.next().message.id == "2", "The next message is the first.")
    try require(try await reading.next().message.id == "3", "All earlier messages follow.")
    try await publish("4", by: a)
    try require(try await reading.next().message.id == "4", "New messages follow earlier ones.")
    var complete = try await read(from: b, .everyNode(from: .start))
    try require(try await complete.next().message.id == "1", "The start is before all messages.")
  }

  func ephemeral() async throws {
    let earlier = try await publish("1", by: a)
    var reading = try await read(from: b, .ephemeral)
    try require(reading.start == earlier[0], "A reading begins behind the latest message.")
    let later = try await publish("2", "3", by: a)
    let (first, second) = (try await reading.next(), try await reading.next())
    try require(first.message.id == "2" && second.message.id == "3", "New messages arrive.")
    try require(
      first.position == later[0] && second.position == later[1],
      "They have their positions."
    )
  }

  // MARK: - Groups

  func oneNode() async throws {
    let (handled, handle) = AsyncStream.makeStream(
      of: (reader: Int, number: Int, attempt: Int).self
    )
    let readers = [a, b].enumerated().map { reader, link in
      Task {
        for try await delivery in link.deliveries(of: "topic", Self.patient) {
          guard case .message(let message, let position, let attempt) = delivery else { continue }
          try await link.acknowledge(position, of: "topic", group: "group")
          handle.yield((reader, Int(message.id) ?? 0, attempt))
        }
      }
    }
    defer { for reader in readers { reader.cancel() } }
    for number in 1...40 { try await publish("\(number)", by: a) }
    var numbers: [Int: [Int]] = [:]
    var count = 0
    for await message in handled {
      try require(message.attempt == 1, "The first attempt is 1.")
      numbers[message.reader, default: []].append(message.number)
      count += 1
      if count == 40 { break }
    }
    try require(
      numbers.values.flatMap(\.self).sorted() == Array(1...40),
      "Each message goes to one reader."
    )
    try require(
      numbers.values.allSatisfy { $0 == $0.sorted() },
      "Each reader gets its messages in order."
    )
  }

  func groupFromOldest() async throws {
    try await publish("1", "2", by: a)
    var reading = try await read(from: b, Self.patient)
    try require(try await reading.next().message.id == "1", "A group begins with the oldest one.")
  }

  func separateGroups() async throws {
    try await publish("1", by: a)
    for group in ["x", "y"] {
      let mode = LinkMode.oneNode(group: group, retryAfter: .seconds(60), attempts: 3)
      var reading = try await read(from: b, mode)
      try require(try await reading.next().message.id == "1", "Each group gets the message.")
    }
  }

  func redelivery() async throws {
    let mode = LinkMode.oneNode(group: "group", retryAfter: .milliseconds(200), attempts: 3)
    var reading = try await read(from: a, mode)
    try await publish("1", "2", by: a)
    try require(try await reading.next().message.id == "1", "The first message comes first.")
    let second = try await reading.next()
    try require(second.message.id == "2", "A failure does not stop later messages.")
    try await a.acknowledge(second.position, of: "topic", group: "group")
    for attempt in 2...3 {
      let again = try await reading.next()
      try require(again.message.id == "1", "The message is delivered again.")
      try require(again.attempt == attempt, "The attempts are counted.")
    }
  }

  func acknowledgement() async throws {
    let mode = LinkMode.oneNode(group: "group", retryAfter: .milliseconds(100), attempts: 9)
    var reading = try await read(from: a, mode)
    try await publish("1", "2", "3", by: a)
    let first = try await reading.next()
    try await a.acknowledge(first.position, of: "topic", group: "group")
    let second = try await reading.next()
    try require(second.message.id == "2", "A message without acknowledgement follows.")
    await a.acknowledge(second.position, of: "topic", group: "group") { _ in }
    // Each delivery of the third one takes at least as long as the others would need.
    for attempt in 1...3 {
      let next = try await reading.next()
      try require(next.message.id == "3", "An acknowledged message is not delivered again.")
      try require(next.attempt == attempt, "A message without acknowledgement is.")
    }
  }

  func progress() async throws {
    // Longer than a busy machine lets a process stand still.
    let mode = LinkMode.oneNode(group: "group", retryAfter: .seconds(2), attempts: 9)
    let pace = LinkMode.oneNode(group: "pace", retryAfter: .seconds(2), attempts: 9)
    var first = try await read(from: a, mode)
    try await publish("1", by: a)
    let message = try await first.next()
    // Another group measures the time by which the message would have been delivered again.
    var clock = try await read(from: b, pace)
    var second = try await read(from: b, mode)
    for _ in 1...2 { _ = try await clock.next() }
    try await publish("2", by: a)
    let next = try await second.next()
    try require(next.message.id == "2", "A message in progress is not delivered again.")
    try await a.acknowledge(message.position, of: "topic", group: "group")
  }

  func release() async throws {
    try await publish("1", by: a)
    do {
      var first = try await read(from: a, Self.patient)
      try require(try await first.next().message.id == "1", "The first reader gets the message.")
    }
    var second = try await read(from: b, Self.patient)
    let again = try await second.next()
    try require(again.message.id == "1", "The second reader gets it when the first one ends.")
    try require(again.attempt == 2, "It is the second attempt.")
  }

  func rejection() async throws {
    let mode = LinkMode.oneNode(group: "group", retryAfter: .milliseconds(100), attempts: 9)
    var reading = try await read(from: a, mode)
    try await publish("1", "2", by: a)
    let first = try await reading.next()
    try await a.reject(first.position, of: "topic", group: "group", because: "a reason")
    let topic = b.deadLetterTopic(of: "topic", group: "group")
    var letters = try await read(from: b, .everyNode(from: .start), topic: topic)
    try require(try await letters.next().message == first.message, "It is a dead letter.")
    for _ in 1...3 {
      try require(try await reading.next().message.id == "2", "It is not delivered again.")
    }
  }

  // MARK: - Ends

  func cancellation() async throws {
    for mode in [.ephemeral, .everyNode(), Self.patient] as [LinkMode] {
      let (connections, connected) = AsyncStream.makeStream(of: Void.self)
      let task = Task {
        var reading = try await read(from: a, mode)
        connected.yield()
        _ = try await reading.next()
      }
      for await _ in connections { break }
      task.cancel()
      _ = await task.result
    }
  }
}
