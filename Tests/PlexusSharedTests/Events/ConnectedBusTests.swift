import Plexus
import PlexusSharedTesting
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `Buses that are connected` {
  private static let group = LinkMode.oneNode(
    group: "group",
    retryAfter: .seconds(10),
    attempts: 3
  )

  @Test(.guarantee(.eventsDoNotReturn), arguments: [LinkMode.ephemeral, .everyNode()])
  func `connected buses post what another node publishes, in order, and its publisher once`(
    mode: LinkMode
  ) async throws {
    let engine = EventMemory()
    let nodes = (0..<3).map { _ in BusNode(engine) }
    for node in nodes {
      node.observe()
      await node.connect(mode)
    }
    try await nodes[0].publish("1", "2", "3")
    // A publisher posts its own events first.
    await nodes[1].notes.first(3)
    try await nodes[1].publish("4")
    for node in nodes { #expect(await node.notes.first(4) == ["1", "2", "3", "4"]) }
    // D16: no echo, however many nodes there are.
    #expect(engine.messages(of: "notes").count == 4)
    try await nodes[2].publish("5")
    for node in nodes { #expect(await node.notes.first(5).count == 5) }
  }

  @Test(.guarantee(.eventsDoNotReturn))
  func `a message that is delivered twice is posted once`() async throws {
    let engine = EventMemory()
    let (sender, receiver) = (BusNode(engine), BusNode(engine))
    receiver.observe()
    await sender.connect(.publishOnly)
    await receiver.connect(.everyNode())
    try await sender.publish("1")
    engine.duplicateLatest(of: "notes")
    try await sender.publish("2")
    #expect(await receiver.notes.first(2) == ["1", "2"])
    #expect(engine.messages(of: "notes").map(\.id).count == 3)
    #expect(Set(engine.messages(of: "notes").map(\.id)).count == 2)
  }

  @Test(.guarantee(.everyNodeFollowsBrokenConnections))
  func `messages that were published during an interruption are posted after it`()
    async throws
  {
    let engine = EventMemory()
    let (sender, receiver) = (BusNode(engine), BusNode(engine))
    receiver.observe()
    await sender.connect(.publishOnly)
    await receiver.connect(.everyNode())
    try await sender.publish("1")
    await receiver.notes.first(1)
    receiver.link.cutOff()
    await receiver.reports.contains("interrupted")
    try await sender.publish("2", "3")
    receiver.link.reconnect()
    #expect(await receiver.notes.first(3) == ["1", "2", "3"])
    #expect(await receiver.reports.first(3) == ["connected", "interrupted", "connected"])
  }

  @Test(.guarantee(.everyNodeFollowsBrokenConnections))
  func `messages that were trimmed are reported as a gap`() async throws {
    let engine = EventMemory()
    let (sender, receiver) = (BusNode(engine), BusNode(engine))
    receiver.observe()
    await sender.connect(.publishOnly)
    await receiver.connect(.everyNode())
    try await sender.publish("0")
    await receiver.notes.first(1)
    receiver.link.cutOff()
    await receiver.reports.contains("interrupted")
    try await sender.publish("1", "2", "3")
    engine.trim("notes", keeping: 1)
    receiver.link.reconnect()
    #expect(await receiver.notes.first(2) == ["0", "3"])
    await receiver.reports.contains("gap 1-2")
    engine.lose()
    try await sender.publish("4")
    #expect(await receiver.notes.first(3).last == "4")
    await receiver.reports.contains("gap")
  }

  @Test(.guarantee(.ephemeralConnectionsReportMissedEvents))
  func `an ephemeral connection reports what it has missed, and nothing otherwise`()
    async throws
  {
    let engine = EventMemory()
    let (sender, receiver) = (BusNode(engine), BusNode(engine))
    receiver.observe()
    await sender.connect(.publishOnly)
    await receiver.connect(.ephemeral)
    try await sender.publish("0")
    await receiver.notes.first(1)
    receiver.link.cutOff()
    await receiver.reports.contains("interrupted")
    receiver.link.reconnect()
    await receiver.reports.first(3)
    receiver.link.cutOff()
    await receiver.reports.first(4)
    try await sender.publish("1", "2")
    receiver.link.reconnect()
    await receiver.reports.first(6)
    try await sender.publish("3")
    #expect(await receiver.notes.first(2) == ["0", "3"])
    #expect(
      receiver.reports.entries == [
        "connected", "interrupted", "connected", "interrupted", "gap 1-2", "connected",
      ]
    )
  }

  @Test(.guarantee(.groupsHandleEachEvent))
  func `one node of a group handles each event, the publisher among them`()
    async throws
  {
    let engine = EventMemory()
    let nodes = (0..<2).map { _ in BusNode(engine) }
    let all = Log<String>()
    for node in nodes {
      node.observe { all.append($0.text) }
      await node.connect(Self.group)
    }
    let texts = (0..<20).map { "\($0)" }
    for text in texts { try await nodes[0].publish(text) }
    await all.first(20)
    #expect(Set(all.entries) == Set(texts))
    #expect(nodes[0].notes.count + nodes[1].notes.count == 20)
    for node in nodes {
      let numbers = node.notes.entries.compactMap { Int($0) }
      #expect(numbers == numbers.sorted())
    }
  }

  @Test(.guarantee(.groupsHandleEachEvent))
  func `an event whose handler fails is delivered again, and then a dead letter`()
    async throws
  {
    let clock = ManualClock()
    let engine = EventMemory(clock: clock)
    let node = BusNode(engine, clock: clock)
    node.observe { if $0.text == "bad" { throw Broken() } }
    await node.connect(Self.group)
    try await node.publish("bad", "good")
    await node.notes.first(2)
    for attempt in 2...3 {
      await clock.sleepers(1)
      clock.advance(by: .seconds(10))
      #expect(await node.notes.first(attempt + 1).last == "bad")
    }
    await node.reports.first(4)
    #expect(
      node.reports.entries.dropFirst() == [
        "postponed 1: Of 1 handlers, 0 have succeeded.",
        "postponed 2: Of 1 handlers, 0 have succeeded.",
        "rejected 3: Of 1 handlers, 0 have succeeded.",
      ]
    )
    let topic = node.link.deadLetterTopic(of: "notes", group: "group")
    #expect(engine.messages(of: topic).count == 1)
    try await node.publish("later")
    #expect(await node.notes.first(5).last == "later")
  }

  @Test(.guarantee(.groupsHandleEachEvent))
  func `a node without handlers passes the event on, and reports it`() async throws {
    let clock = ManualClock()
    let engine = EventMemory(clock: clock)
    let (idle, node) = (BusNode(engine, clock: clock), BusNode(engine, clock: clock))
    node.observe()
    await idle.connect(Self.group)
    try await idle.publish("1")
    await idle.reports.first(2)
    #expect(idle.reports.entries.last == "postponed 1: The node has no handler.")
    // It has given the event back, from which the time until the next attempt counts.
    await clock.sleepers(1)
    idle.disconnect()
    await node.connect(Self.group)
    clock.advance(by: .seconds(10))
    #expect(await node.notes.first(1) == ["1"])
  }

  @Test(.guarantee(.groupsHandleEachEvent))
  func `an event in a handler of a node that is cut off is handled by another one`()
    async throws
  {
    let clock = ManualClock()
    let engine = EventMemory(clock: clock)
    let (doomed, heir) = (BusNode(engine, clock: clock), BusNode(engine, clock: clock))
    let gate = Gate()
    doomed.observe { _ in try await gate.wait() }
    heir.observe()
    await doomed.connect(Self.group)
    await heir.connect(Self.group)
    heir.link.cutOff()
    await heir.reports.contains("interrupted")
    try await doomed.publish("1")
    await gate.arrivals(1)
    doomed.link.cutOff()
    heir.link.reconnect()
    clock.advance(by: .seconds(10))
    #expect(await heir.notes.first(1) == ["1"])
    gate.open()
    // The late acknowledgement fails, and is reported.
    await doomed.reports.contains("unconfirmed")
  }

  @Test(.guarantee(.groupsHandleEachEvent))
  func `an event that was handled here is not handled again if its acknowledgement is lost`()
    async throws
  {
    let clock = ManualClock()
    let engine = EventMemory(clock: clock)
    let node = BusNode(engine, clock: clock)
    let gate = Gate()
    node.observe { if $0.text == "1" { try await gate.wait() } }
    await node.connect(Self.group)
    try await node.publish("1")
    await gate.arrivals(1)
    node.link.cutOff()
    gate.open()
    await node.reports.contains("unconfirmed")
    node.link.reconnect()
    await node.reports.first(4)
    clock.advance(by: .seconds(10))
    try await node.publish("2")
    #expect(await node.notes.first(2) == ["1", "2"])
  }

  @Test(.guarantee(.groupsHandleEachEvent))
  func `a cancelled token ends the connection, and its events go to others`() async throws {
    let engine = EventMemory()
    let (leaver, heir) = (BusNode(engine), BusNode(engine))
    let gate = Gate()
    leaver.observe { _ in try await gate.wait() }
    heir.observe()
    await leaver.connect(Self.group)
    try await leaver.publish("1", "2")
    await gate.arrivals(1)
    leaver.disconnect()
    await heir.connect(Self.group)
    #expect(Set(await heir.notes.first(2)) == ["1", "2"])
    #expect(leaver.notes.entries == ["1"])
    await #expect(throws: LinkPublishError.self) { try await leaver.publish("3") }
    gate.open()
  }

  @Test(.guarantee(.undecodableMessagesAreReported))
  func `messages of another version, another type or without sense are skipped and reported`()
    async throws
  {
    let engine = EventMemory()
    let node = BusNode(engine)
    node.observe()
    await node.connect(.everyNode())
    engine.insert(.foreign("1", version: 2, body: #"{"text":"x"}"#), into: "notes")
    engine.insert(.foreign("2", type: "other", body: #"{"text":"x"}"#), into: "notes")
    engine.insert(.foreign("3", body: "no JSON"), into: "notes")
    engine.insert(.foreign("4", body: #"{"text":7}"#), into: "notes")
    engine.insert(.foreign("5", body: #"{"text":"good"}"#), into: "notes")
    #expect(await node.notes.first(1) == ["good"])
    let reports = await node.reports.first(5).dropFirst()
    #expect(reports.count == 4)
    #expect(reports.first == "skipped 1: The message has the version 2.")
    #expect(reports.dropFirst().first == #"skipped 2: The message is of the type "other"."#)
    #expect(reports.allSatisfy { $0.hasPrefix("skipped") })
  }

  @Test(.guarantee(.undecodableMessagesAreReported))
  func `messages that a group cannot read are dead letters, and reported`() async throws {
    let engine = EventMemory()
    let node = BusNode(engine)
    node.observe()
    await node.connect(Self.group)
    engine.insert(.foreign("1", version: 2, body: #"{"text":"x"}"#), into: "notes")
    engine.insert(.foreign("2", body: "no JSON"), into: "notes")
    engine.insert(.foreign("3", body: #"{"text":"good"}"#), into: "notes")
    #expect(await node.notes.first(1) == ["good"])
    let topic = node.link.deadLetterTopic(of: "notes", group: "group")
    #expect(engine.messages(of: topic).map(\.id) == ["1", "2"])
    #expect(await node.reports.first(3).dropFirst().allSatisfy { $0.hasPrefix("rejected 1: ") })
  }

  @Test(.guarantee(.unconfirmedEventsThrow))
  func `a publisher knows that the engine did not confirm an event, which was posted here`()
    async throws
  {
    let engine = EventMemory()
    let (sender, receiver) = (BusNode(engine), BusNode(engine))
    sender.observe()
    receiver.observe()
    await sender.connect(.everyNode())
    await receiver.connect(.everyNode())
    sender.link.loseConfirmations(true)
    await #expect(throws: LinkPublishError.self) { try await sender.publish("1") }
    #expect(await sender.notes.first(1) == ["1"])
    #expect(await receiver.notes.first(1) == ["1"])
    sender.link.cutOff()
    await #expect(throws: LinkPublishError.self) { try await sender.publish("2") }
    #expect(await sender.notes.first(2) == ["1", "2"])
    #expect(engine.messages(of: "notes").count == 1)
  }

  @Test(.guarantee(.unconfirmedEventsThrow))
  func `an event is published to the topics of its type and scope, once each`() async throws {
    let engine = EventMemory()
    let (bus, link) = (EventBus(), engine.node())
    let tokens = [
      bus.connect(Note.self, as: "plain", over: link, .publishOnly),
      bus.connect(Note.self, as: "plain", over: link, .everyNode()),
      bus.connect(Note.self, as: "second", version: 3, over: link, .publishOnly),
      bus.connect(Note.self, as: "left", scope: "left", over: link, .publishOnly),
    ]
    try await bus.publish(Note("1"))
    try await bus.publish(Note("2"), scope: "left")
    #expect(engine.messages(of: "plain").count == 1)
    #expect(engine.messages(of: "second").map(\.version) == [3])
    #expect(engine.messages(of: "left").count == 1)
    let error = await #expect(throws: LinkPublishError.self) {
      try await bus.publish(Note("3"), scope: "right")
    }
    #expect(error?.description.contains("connect(_:as:over:_:)") == true)
    withExtendedLifetime(tokens) {}
  }

  @Test(.guarantee(.unconfirmedEventsThrow))
  func `a node that also only publishes leaves an event to its group`() async throws {
    let engine = EventMemory()
    let node = BusNode(engine)
    node.observe()
    let token = node.bus.connect(Note.self, as: "notes", over: node.link, .publishOnly)
    await node.connect(Self.group)
    try await node.publish("1", "2")
    #expect(await node.notes.first(2) == ["1", "2"])
    #expect(engine.messages(of: "notes").count == 2)
    try await node.publish("3")
    #expect(await node.notes.first(3) == ["1", "2", "3"])
    token.cancel()
  }

  @Test func `the events of a scope are posted in the scope of the connection`() async throws {
    let engine = EventMemory()
    let (sender, bus) = (BusNode(engine), EventBus())
    await sender.connect(.publishOnly)
    let notes = bus.subscribe(to: Note.self, scope: EventScope(7))
    let reports = bus.subscribe(to: LinkReport.self)
    let token = bus.connect(
      Note.self,
      as: "notes",
      scope: EventScope(7),
      over: engine.node(),
      .everyNode()
    )
    for await _ in reports { break }
    try await sender.publish("1")
    for await note in notes {
      #expect(note.text == "1")
      break
    }
    token.cancel()
  }

  @Test func `a closed link ends the connection with a report`() async throws {
    let engine = EventMemory()
    let node = BusNode(engine)
    await node.connect(.everyNode())
    node.link.close()
    await node.reports.contains("ended")
    #expect(node.reports.entries.last == "ended")
  }

  @Test(.guarantee(.connectionsKeepNoBusAlive))
  func `a connection does not keep its bus alive, and ends with it`() async throws {
    let engine = EventMemory()
    let sender = BusNode(engine)
    await sender.connect(.publishOnly)
    var bus: EventBus? = EventBus()
    weak let weakBus = bus
    var witness: Owner? = Owner()
    weak let weakWitness = witness
    let reports = try #require(bus).subscribe(to: LinkReport.self)
    let handler = bus?.observe(Note.self) { [witness] _ in _ = witness }
    let token = bus?.connect(Note.self, as: "notes", over: engine.node(), .everyNode())
    for await _ in reports { break }
    witness = nil
    bus = nil
    #expect(weakBus == nil)
    try await sender.publish("1")
    #expect(weakWitness == nil)
    withExtendedLifetime((token, handler)) {}
  }
}

@Suite(.fewAtOnce)
struct `Messengers that are connected` {
  @Test(.guarantee(.eventsDoNotReturn))
  func `messengers that are connected send what is sent elsewhere, once`() async throws {
    let engine = EventMemory()
    let bus = EventBus()
    let reports = bus.subscribe(to: LinkReport.self)
    let messengers = (0..<3).map { _ in Messenger<String>() }
    let logs = messengers.map { messenger -> (Log<String>, ObservationToken) in
      let log = Log<String>()
      return (log, messenger.observe { log.append($0) })
    }
    let tokens = messengers.map {
      $0.connect(as: "chat", over: engine.node(), .everyNode(), reportingTo: bus)
    }
    var count = 0
    for await _ in reports {
      count += 1
      if count == 3 { break }
    }
    messengers[0].send("1")
    messengers[0].send("2")
    for (log, _) in logs { #expect(await log.first(2) == ["1", "2"]) }
    messengers[2].send("3")
    for (log, _) in logs { #expect(await log.first(3) == ["1", "2", "3"]) }
    #expect(engine.messages(of: "chat").count == 3)
    withExtendedLifetime((messengers, logs, tokens)) {}
  }

  @Test func `messengers that are connected report messages that the engine does not confirm`()
    async throws
  {
    let engine = EventMemory()
    let (bus, link, messenger) = (EventBus(), engine.node(), Messenger<String>())
    let reports = bus.subscribe(to: LinkReport.self)
    let token = messenger.connect(as: "chat", over: link, .publishOnly, reportingTo: bus)
    link.cutOff()
    messenger.send("1")
    for await report in reports {
      guard case .unsent = report.content else {
        Issue.record("\(report)")
        break
      }
      break
    }
    token.cancel()
  }

  /// A link that publishes each message only when a gate lets it through.
  private final class SlowLink: EventLink {
    let gate = Gate()
    let published = Log<String>()
    let codec: any LinkCodec = EventMemory().node().codec

    func publish(_ message: LinkMessage, to topic: String) async throws -> LinkPosition {
      try await gate.wait()
      published.append(try codec.decode(String.self, from: message.body))
      return .start
    }

    func deliveries(
      of topic: String,
      _ mode: LinkMode
    ) -> AsyncThrowingStream<LinkDelivery, any Error> {
      AsyncThrowingStream { nil }
    }

    func acknowledge(_ position: LinkPosition, of topic: String, group: String) async throws {}

    func reject(
      _ position: LinkPosition,
      of topic: String,
      group: String,
      because reason: String
    ) async throws {}
  }

  @Test(.guarantee(.slowLinksKeepABoundedNumber))
  func `connected messengers keep 1,024 messages for a slow link, and report how many they drop`()
    async throws
  {
    let (bus, link, messenger) = (EventBus(), SlowLink(), Messenger<String>())
    let reports = Log<String>()
    let observation = bus.observe(LinkReport.self) { reports.append("\($0.content)") }
    let token = messenger.connect(as: "chat", over: link, .publishOnly, reportingTo: bus)
    messenger.send("first")
    await link.gate.arrivals(1)
    // The first message is being published, and does not wait.
    for number in 0..<1_030 { messenger.send("\(number)") }
    link.gate.open()
    await link.published.first(1_025)
    messenger.send("last")
    await link.published.contains("last")
    let kept = (0..<1_024).map { "\($0)" }
    #expect(link.published.entries == ["first"] + kept + ["last"])
    #expect(reports.entries == ["dropped(count: 6)"])
    withExtendedLifetime((token, observation)) {}
  }

  @Test(.guarantee(.connectionsKeepNoBusAlive))
  func `connected messengers are not kept alive, and end the connection`()
    async throws
  {
    let engine = EventMemory()
    let bus = EventBus()
    let reports = bus.subscribe(to: LinkReport.self)
    var messenger: Messenger<String>? = Messenger()
    weak let weakMessenger = messenger
    let token = messenger?.connect(as: "chat", over: engine.node(), .everyNode(), reportingTo: bus)
    for await _ in reports { break }
    messenger = nil
    #expect(weakMessenger == nil)
    withExtendedLifetime(token) {}
  }
}
