import Foundation
import Plexus
import PlexusSupport
import TestSupport
import Testing

@testable import PlexusRedis

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `The readers of events` {
  private let server: RedisServer

  init() throws {
    server = try RedisServer()
  }

  /// Returns a link whose replies are limited.
  private func link(
    at address: RedisAddress? = nil,
    largestReply: Int = 512 << 20
  ) -> RedisEvents {
    var settings = RedisConnection.Settings(address ?? server.address)
    settings.maximumReplyBytes = largestReply
    settings.setup = [RedisCommand("CLIENT", ["TRACKING", "ON", "NOLOOP"])]
    var options = RedisOptions()
    options.eventTimeout = .seconds(60)
    return RedisEvents(settings, options)
  }

  private func message(_ id: String) -> LinkMessage {
    LinkMessage(id: id, type: "type", version: 1, origin: "origin", body: [1])
  }

  @Test(.guarantee(.eventsOfLeavingNodesAreHandledAtOnce))
  func `a node that leaves wakes the other ones for its events`() async throws {
    let (a, b) = (link(), link())
    let heir = reader(b)
    for round in 1...3 {
      _ = try await a.publish(message("\(round)"), to: "topic")
      var first: EventReader<GroupReaderState>? = reader(a)
      guard case .connected = try await first?.next(),
        case .message(let message, _, attempt: 1) = try await first?.next()
      else {
        Issue.record("The first reader gets the message.")
        return
      }
      #expect(message.id == "\(round)")
      let monitor = try await RedisMonitor(server)
      let next = Task {
        while let delivery = try await heir.next() {
          guard case .message(let message, let position, let attempt) = delivery else { continue }
          try await b.acknowledge(position, of: "topic", group: "group")
          return "\(message.id) \(attempt)"
        }
        return ""
      }
      await monitor.commands(1, with: "XREADGROUP", b.node)
      first = nil
      #expect(try await next.value == "\(round) 2")
    }
    for link in [a, b] { await link.close() }
  }

  // MARK: - Readers of groups

  /// Returns a reader that looks for the events of other nodes only once, unless they wake it.
  ///
  /// On a busy machine, a reader reads fewer events than before; only the number of the first ones is certain.
  private func reader(
    _ link: RedisEvents,
    retryAfter: Duration = .seconds(100_000),
    pace: Duration = .seconds(10_000),
    readingFirst count: Int = 1
  ) -> EventReader<GroupReaderState> {
    EventReader(
      link,
      TopicNames("topic"),
      group: "group",
      retryAfter: retryAfter,
      pace: pace,
      ahead: ReadAhead(from: count, limit: 256)
    )
  }

  /// The deliveries of a reader up to its next message.
  private struct Next: Sendable {
    var gaps: [Int?] = []
    let message: LinkMessage
    let position: LinkPosition
    let attempt: Int
  }

  /// Returns the next message, which is not acknowledged.
  private func nextMessage(of reader: EventReader<GroupReaderState>) async throws -> Next? {
    var gaps: [Int?] = []
    while let delivery = try await reader.next() {
      switch delivery {
      case .connected: break
      case .gap(let lost):
        gaps.append(lost.map { Int($0.upperBound.number - $0.lowerBound.number) + 1 })
      case .message(let message, let position, let attempt):
        return Next(gaps: gaps, message: message, position: position, attempt: attempt)
      }
    }
    return nil
  }

  /// Handles the next messages of a reader.
  ///
  /// - Returns: Their ids.
  @discardableResult
  private func handle(
    _ count: Int,
    of reader: EventReader<GroupReaderState>,
    _ link: RedisEvents
  ) async throws -> [String] {
    var ids: [String] = []
    for _ in 0..<count {
      guard let next = try await nextMessage(of: reader) else { break }
      try await link.acknowledge(next.position, of: "topic", group: "group")
      ids.append(next.message.id)
    }
    return ids
  }

  /// Takes messages from a reader.
  private func ids(
    _ count: Int,
    from reader: EventReader<StreamReaderState>
  ) async throws -> [String] {
    var ids: [String] = []
    while ids.count < count, let delivery = try await reader.next() {
      if case .message(let message, _, _) = delivery { ids.append(message.id) }
    }
    return ids
  }

  /// Publishes messages with numbers for ids.
  private func publish(_ numbers: Range<Int>, by link: RedisEvents) async throws {
    for number in numbers { _ = try await link.publish(message("\(number)"), to: "topic") }
  }

  /// Polls until a condition is met.
  private func wait(until isMet: @escaping @Sendable () -> Bool) async {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        while !isMet() { poll(nil, 0, 5) }
        continuation.resume()
      }
    }
  }

  @Test(.guarantee(.removedEventsAreDeliveredOrReported))
  func `an event that was removed after it was read is delivered`() async throws {
    let (sender, link) = (link(), link())
    let reader = reader(link, pace: .milliseconds(5), readingFirst: 4)
    try await publish(0..<8, by: sender)
    let current = try #require(try await nextMessage(of: reader))
    #expect(current.message.id == "0")
    let position = current.position
    let removed = LinkPosition(epoch: position.epoch, number: position.number + 2)
    #expect(try RedisShell.run("XDEL {topic}:stream \(removed)", on: server) == ":1\r\n")
    let monitor = try await RedisMonitor(server)
    await monitor.commands(4, with: "\"XPENDING\"", "\"\(current.position)\"")
    try await link.acknowledge(current.position, of: "topic", group: "group")
    #expect(try await handle(7, of: reader, link) == (1..<8).map { "\($0)" })
    for link in [sender, link] { await link.close() }
  }

  /// Changes of other programs after which the events that a reader has read ahead belong to no reader.
  private static let removals = [
    "redis.call('XGROUP', 'DELCONSUMER', key, 'group', pending[1][2])",
    "for index = 2, #pending do redis.call('XACK', key, 'group', pending[index][1]) end",
  ]

  @Test(.guarantee(.foreignGroupChangesLoseNoEvent), arguments: removals)
  func `events that were read and are no longer pending are delivered`(
    removal: String
  ) async throws {
    let (sender, link) = (link(), link())
    let reader = reader(link, pace: .milliseconds(5), readingFirst: 4)
    try await publish(0..<8, by: sender)
    let current = try #require(try await nextMessage(of: reader))
    #expect(current.message.id == "0")
    let script = """
      EVAL "local key = '{topic}:stream' \
      local pending = redis.call('XPENDING', key, 'group', '-', '+', 10) \
      \(removal) return #pending" 0
      """
    #expect(try RedisShell.run(script, on: server) == ":4\r\n")
    let monitor = try await RedisMonitor(server)
    await monitor.commands(4, with: "\"XPENDING\"", "\"\(current.position)\"")
    try await link.acknowledge(current.position, of: "topic", group: "group")
    #expect(try await handle(7, of: reader, link) == (1..<8).map { "\($0)" })
    for link in [sender, link] { await link.close() }
  }

  @Test(.guarantee(.removedUnreadEventsAreAGap))
  func `events that were removed are a gap, also if the connection is replaced meanwhile`()
    async throws
  {
    let proxy = try RedisProxy(server)
    let (sender, link, reader) = try await begin(proxy)
    let executor = HoldingExecutor()
    try await publish(1..<3, by: sender)
    try keepLatestEvent()
    let reading = try await hold(executor, proxy, link) { try await nextMessage(of: reader) }
    let route = try link.route(for: TopicNames("topic").stream)
    let generation = route.generation
    proxy.cut()
    await wait { route.generation > generation }
    executor.release()
    let next = try #require(try await reading.value)
    #expect(next.message.id == "2")
    #expect(next.gaps == [1])
    for link in [sender, link] { await link.close() }
  }

  /// Returns a reader behind a proxy that has handled the first of some messages.
  private func begin(
    _ proxy: RedisProxy,
    messages: Int = 1
  ) async throws -> (sender: RedisEvents, link: RedisEvents, reader: EventReader<GroupReaderState>)
  {
    let (sender, link) = (link(), link(at: proxy.address))
    let reader = reader(link)
    try await publish(0..<messages, by: sender)
    try await handle(1, of: reader, link)
    return (sender, link, reader)
  }

  /// Begins to read, and holds the reader back when it gets the first reply.
  private func hold<Value: Sendable>(
    _ executor: HoldingExecutor,
    _ proxy: RedisProxy,
    _ link: RedisEvents,
    while read: @escaping @Sendable () async throws -> Value
  ) async throws -> Task<Value, any Error> {
    proxy.stall()
    let reading = Task(executorPreference: executor) { try await read() }
    await wait { link.load.commands > 0 }
    executor.hold()
    proxy.resume()
    await wait { executor.heldCount == 1 }
    return reading
  }

  @Test(.guarantee(.removedReadEventsAreNoGap))
  func `events that others remove while a group reads the next ones are no gap`()
    async throws
  {
    let proxy = try RedisProxy(server)
    let (sender, link, reader) = try await begin(proxy)
    let executor = HoldingExecutor()
    try appendForeignEvent()
    let reading = try await hold(executor, proxy, link) { try await nextMessage(of: reader) }
    try keepLatestEvent()
    executor.release()
    let next = try #require(try await reading.value)
    #expect(next.message.type == "")
    #expect(next.gaps == [])
    for link in [sender, link] { await link.close() }
  }

  /// Reads the last of three messages, whose reading the server carries out after some command of another program.
  private func readLast(after command: String) async throws -> Next? {
    let proxy = try RedisProxy(server)
    let (sender, link, reader) = try await begin(proxy)
    try await publish(1..<4, by: sender)
    proxy.hold(before: "XREADGROUP")
    let reading = Task { try await nextMessage(of: reader) }
    await wait { proxy.isHeld }
    _ = try RedisShell.run(command, on: server)
    proxy.resume()
    let next = try await reading.value
    for link in [sender, link] { await link.close() }
    return next
  }

  @Test(.guarantee(.removedUnreadEventsAreAGap))
  func `events that others remove between a look and its reading are a gap`()
    async throws
  {
    let next = try await readLast(after: "XTRIM {topic}:stream MAXLEN = 1")
    #expect(next?.gaps == [2])
    #expect(next?.message.id == "3")
  }

  @Test(.guarantee(.removedUnreadEventsAreAGap))
  func `events that others read between a look and its reading are no gap`()
    async throws
  {
    let reading = "XREADGROUP GROUP group other COUNT 2 STREAMS {topic}:stream >"
    let next = try await readLast(after: reading)
    #expect(next?.gaps == [])
    #expect(next?.message.id == "3")
  }

  @Test(.guarantee(.removedReadEventsAreNoGap), arguments: [false, true])
  func `events that others remove while a node reads the next ones are no gap`(
    isAhead: Bool
  ) async throws {
    let proxy = try RedisProxy(server)
    let (sender, link) = (link(), link(at: proxy.address))
    let reader = EventReader(link, TopicNames("topic"), after: .start)
    let executor = HoldingExecutor()
    try await publish(0..<(isAhead ? 2 : 1), by: sender)
    try appendForeignEvent()
    let monitor = try await RedisMonitor(server)
    // The first one is read with the place.
    #expect(try await ids(1, from: reader) == ["0"])
    let reading: Task<LinkDelivery?, any Error>
    if isAhead {
      // The other program's is read in advance.
      #expect(try await ids(1, from: reader) == ["1"])
      await monitor.commands(1, with: "XRANGE", #""COUNT" "3""#)
      try keepLatestEvent()
      reading = Task { try await reader.next() }
    } else {
      reading = try await hold(executor, proxy, link) { try await reader.next() }
      try keepLatestEvent()
      executor.release()
    }
    guard case .message(let message, _, _) = try await reading.value else {
      Issue.record("The node gets the event.")
      return
    }
    #expect(message.type == "")
    for link in [sender, link] { await link.close() }
  }

  /// Appends an event of another program, whose position does not follow the one before.
  private func appendForeignEvent() throws {
    #expect(try RedisShell.run("XADD {topic}:stream * field 1", on: server).hasPrefix("$"))
  }

  private func keepLatestEvent() throws {
    #expect(try RedisShell.run("XTRIM {topic}:stream MAXLEN = 1", on: server).hasPrefix(":"))
  }

  /// Collects deliveries until the connection is closed.
  private func collect(
    _ next: @escaping @Sendable () async throws -> LinkDelivery?,
    of link: RedisEvents
  ) -> Log<String> {
    let log = Log<String>()
    Task {
      do {
        while let delivery = try await next() {
          switch delivery {
          case .connected: log.append("connected")
          case .gap: log.append("gap")
          case .message(let message, let position, _):
            try await link.acknowledge(position, of: "topic", group: "group")
            log.append(message.id)
          }
        }
      } catch {
        log.append("\(error)")
      }
    }
    return log
  }

  @Test(.guarantee(.oldDataIsReportedAsAGap), arguments: [false, true])
  func `a reader reports a loss of others after one that it has reported itself`(
    isGroup: Bool
  ) async throws {
    let proxy = try RedisProxy(server)
    let (sender, other, link) = (link(), link(), link(at: proxy.address))
    try await publish(0..<1, by: sender)
    let log =
      if isGroup {
        collect({ [reader = reader(link)] in try await reader.next() }, of: link)
      } else {
        collect(
          { [reader = EventReader(link, TopicNames("topic"), after: .start)] in
            try await reader.next()
          },
          of: link
        )
      }
    await log.contains("0")
    #expect(try RedisShell.run("DEL {topic}:stream", on: server) == ":1\r\n")
    await log.wait { $0.suffix(2) == ["gap", "connected"] }
    try await publish(1..<2, by: other)
    await log.contains("1")
    try await publish(2..<3, by: other)
    await log.contains("2")
    await wait { link.hasIdleReader(of: "{topic}:stream") }
    #expect(try RedisShell.run("SAVE", on: server).hasPrefix("+OK"))
    // It does not hear of what is lost.
    proxy.stall()
    try await publish(3..<4, by: other)
    server.kill()
    try server.start()
    await RedisShell.waitUntilReady(server)
    proxy.cut()
    try await publish(4..<5, by: other)
    await log.contains("4")
    #expect(log.entries == ["connected", "0", "gap", "connected", "1", "2", "gap", "4"])
    for link in [sender, other, link] { await link.close() }
  }

  /// Returns a reader behind a proxy in a process that has run all scripts of groups.
  private func prepare(
    _ proxy: RedisProxy
  ) async throws -> (sender: RedisEvents, link: RedisEvents, reader: EventReader<GroupReaderState>)
  {
    let (sender, first) = (link(), link())
    try await publish(0..<2, by: sender)
    let early = reader(first)
    try await handle(1, of: early, first)
    _ = try await nextMessage(of: early)
    let ending = Task { try await early.next() }
    await wait { first.status.unacknowledged == 0 }
    await first.close()
    _ = await ending.result
    let link = link(at: proxy.address)
    return (sender, link, reader(link))
  }

  /// The nodes that have messages of the group.
  private func findOwners() throws -> String {
    let script = """
      EVAL "local owners = {} \
      for _, info in ipairs(redis.call('XINFO', 'CONSUMERS', '{topic}:stream', 'group')) do \
      if info[4] > 0 then owners[#owners + 1] = info[2] .. ':' .. info[4] end end \
      return redis.status_reply(table.concat(owners, ' '))" 0
      """
    return try RedisShell.run(script, on: server)
  }

  /// Closes a link while a command of its reader has no answer yet.
  private func close(
    _ link: RedisEvents,
    while reader: EventReader<GroupReaderState>,
    through proxy: RedisProxy
  ) async {
    proxy.stall()
    let reading = Task { try await reader.next() }
    await wait { link.load.commands == 1 }
    let closing = Task { await link.close() }
    await wait { link.load.commands == 2 }
    proxy.resume()
    await closing.value
    _ = await reading.result
  }

  @Test(.guarantee(.leavingReadersTakeNoEvents))
  func `a reader that leaves while it takes over messages reads no more of them`()
    async throws
  {
    let proxy = try RedisProxy(server)
    let (sender, link, reader) = try await prepare(proxy)
    guard case .connected = try await reader.next() else { return }
    try await publish(2..<4, by: sender)
    await close(link, while: reader, through: proxy)
    let owners = try findOwners()
    #expect(owners == "+released:1\r\n")
    await sender.close()
  }

  @Test(.guarantee(.leavingReadersTakeNoEvents))
  func `a reader that leaves while it gives a message back reads no more of them`()
    async throws
  {
    let proxy = try RedisProxy(server)
    let (sender, link, reader) = try await prepare(proxy)
    try await publish(2..<3, by: sender)
    _ = try await nextMessage(of: reader)
    try await publish(3..<5, by: sender)
    await close(link, while: reader, through: proxy)
    let owners = try findOwners()
    #expect(owners == "+released:2\r\n")
    await sender.close()
  }

  @Test(.guarantee(.readAheadEventsMoveOn))
  func `events behind a handler that takes long go to the other nodes`() async throws {
    let (sender, slow, quick) = (link(), link(), link())
    let readers = [slow, quick].map {
      // A busy machine can keep a reader from renewing its event for some seconds.
      reader($0, retryAfter: .seconds(10), pace: .milliseconds(10), readingFirst: 4)
    }
    try await publish(0..<4, by: sender)
    let current = try #require(try await nextMessage(of: readers[0]))
    #expect(current.message.id == "0")
    for number in 1..<4 {
      let next = try #require(try await nextMessage(of: readers[1]))
      #expect(next.message.id == "\(number)")
      #expect(next.attempt == 1)
      try await quick.acknowledge(next.position, of: "topic", group: "group")
    }
    try await slow.acknowledge(current.position, of: "topic", group: "group")
    let script = "return redis.call('XPENDING', '{topic}:stream', 'group')[1]"
    #expect(try RedisShell.run("EVAL \"\(script)\" 0", on: server) == ":0\r\n")
    for link in [sender, slow, quick] { await link.close() }
  }

  @Test(.guarantee(.everyNodeFollowsBrokenConnections))
  func `events arrive while those before them are handled, each once`() async throws {
    let link = link()
    try await publish(1..<10, by: link)
    let reader = EventReader(link, TopicNames("topic"), after: .start)
    let monitor = try await RedisMonitor(server)
    // One is read with the place, then one after it, then two before they are requested, each time after the latest one.
    #expect(try await ids(2, from: reader) == ["1", "2"])
    await monitor.commands(1, with: "XRANGE", #""COUNT" "3""#)
    #expect(try await ids(2, from: reader) == ["3", "4"])
    await monitor.commands(1, with: "XRANGE", #""COUNT" "5""#)
    #expect(try await ids(5, from: reader) == ["5", "6", "7", "8", "9"])
    await link.close()
  }

  @Test(.guarantee(.everyNodeFollowsBrokenConnections))
  func `an event that is published after its reader has looked ahead is posted`()
    async throws
  {
    let link = link()
    try await publish(1..<3, by: link)
    let reader = EventReader(link, TopicNames("topic"), after: .start)
    let monitor = try await RedisMonitor(server)
    #expect(try await ids(2, from: reader) == ["1", "2"])
    await monitor.commands(1, with: "XRANGE", #""COUNT" "3""#)
    _ = try await link.publish(message("3"), to: "topic")
    #expect(try await ids(1, from: reader) == ["3"])
    await link.close()
  }

  // MARK: - Acknowledgements

  private let failures = Log<String>()

  /// Acknowledges a message that was handled.
  private func acknowledge(
    _ position: LinkPosition,
    as identity: String,
    _ link: RedisEvents
  ) async {
    let stream = TopicNames("topic").stream
    let load = ReaderLoad(count: 0, change: .begun(position, identity: Array(identity.utf8)))
    link.record(load, of: stream, "group", by: 7)
    await link.acknowledge(position, of: "topic", group: "group") { [failures] error in
      failures.append("\(error)")
    }
  }

  @Test(.guarantee(.unacknowledgedEventsAreBounded))
  func `acknowledgements are not waited for, up to a limit`() async throws {
    let proxy = try RedisProxy(server)
    let link = link(at: proxy.address)
    var positions: [LinkPosition] = []
    for number in 0..<(AcknowledgementState.limit + 2) {
      positions.append(try await link.publish(message("\(number)"), to: "topic"))
    }
    await acknowledge(positions[0], as: "0", link)
    proxy.stall()
    for number in 1...AcknowledgementState.limit {
      await acknowledge(positions[number], as: "\(number)", link)
    }
    #expect(link.state.withLock { $0.acknowledgements.count } == AcknowledgementState.limit)
    #expect(link.status.unacknowledged == AcknowledgementState.limit)
    let last = Task { [positions] in
      await acknowledge(positions[positions.count - 1], as: "\(positions.count - 1)", link)
    }
    proxy.resume()
    await last.value
    // Replies come in order.
    _ = try await link.route(for: TopicNames("topic").stream).send(RedisCommand("PING"))
    #expect(link.state.withLock { $0.acknowledgements.count } == 0)
    #expect(failures.entries == [])
    await link.close()
  }

  @Test(.guarantee(.unacknowledgedEventsAreBounded))
  func `an event whose acknowledgement is sent again is not given to another node`()
    async throws
  {
    let proxy = try RedisProxy(server)
    let (a, b) = (link(at: proxy.address), link())
    try await publish(0..<2, by: b)
    var first: EventReader<GroupReaderState>? = reader(a)
    for _ in 0..<2 {
      guard let reader = first, let next = try await nextMessage(of: reader) else {
        Issue.record("The reader gets both messages.")
        return
      }
      if next.message.id == "1" { proxy.stall() }
      await a.acknowledge(next.position, of: "topic", group: "group") { [failures] error in
        failures.append("\(error)")
      }
    }
    let heir = reader(b)
    let monitor = try await RedisMonitor(server)
    let last = Task { try await nextMessage(of: heir)?.message.id }
    await monitor.commands(1, with: "XREADGROUP", b.node)
    // The acknowledgement does not arrive, and neither does what the reader sends when it leaves.
    proxy.refuse()
    first = nil
    await wait { proxy.refusedCount >= 6 }
    proxy.endRefusal()
    await wait { a.health.value == .connected }
    try await a.leaveOwed(TopicNames("topic").released(by: "group"))
    let stream = RedisCommand.Argument.text(TopicNames("topic").stream)
    let pending = try await b.route(for: TopicNames("topic").stream)
      .send(RedisCommand("XPENDING", [stream, "group", "-", "+", 9]))
    let owners = try #require(pending.elements).map { $0.elements?[1].text }
    #expect(owners.allSatisfy { $0?.hasPrefix(a.node) == true })
    try await publish(2..<3, by: b)
    #expect(try await last.value == "2")
    await a.close()
    await b.close()
    #expect(failures.entries == [])
  }

  @Test(.guarantee(.unacknowledgedEventsAreBounded), arguments: [false, true])
  func `a link that is closed while an acknowledgement is waited for gives nothing back`(
    throwing: Bool
  ) async throws {
    let proxy = try RedisProxy(server)
    let (sender, link, reader) = try await begin(proxy, messages: 2)
    let next = try #require(try await nextMessage(of: reader))
    proxy.refuse()
    let answering = Task { [failures] in
      if throwing {
        try await link.acknowledge(next.position, of: "topic", group: "group")
      } else {
        await link.acknowledge(next.position, of: "topic", group: "group") { error in
          failures.append("\(error)")
        }
      }
    }
    await wait { link.state.withLock { $0.acknowledging.count } == 1 }
    // The pauses between the attempts are long by now.
    await wait { proxy.refusedCount >= 6 }
    proxy.endRefusal()
    await wait { link.health.value == .connected }
    await link.close()
    try await answering.value
    #expect(try findOwners() == "+\r\n")
    #expect(failures.entries == [])
    withExtendedLifetime(reader) {}
    await sender.close()
  }

  /// Publishes three messages, reads them by a group, and acknowledges them in turn without waiting, but for the first one.
  ///
  /// - Parameters:
  ///   - link: The link.
  ///   - identity: The id of the second message as its handler knows it.
  ///   - failing: Called before the acknowledgement of the second message, and with `false` when it has failed.
  /// - Returns: The messages that are not acknowledged: their numbers, and the readers that have them.
  private func acknowledgeThree(
    _ link: RedisEvents,
    secondAs identity: String = "1",
    failing: (Bool) throws -> Void = { _ in }
  ) async throws -> [[String]] {
    let stream = RedisCommand.Argument.text(TopicNames("topic").stream)
    var positions: [LinkPosition] = []
    for number in 0..<3 {
      positions.append(try await link.publish(message("\(number)"), to: "topic"))
    }
    let route = try link.route(for: TopicNames("topic").stream)
    _ = try await route.send(RedisCommand("XGROUP", ["CREATE", stream, "group", "0"]))
    let consumer = RedisCommand.Argument.text(link.consumer(of: 7))
    let reading: [RedisCommand.Argument] = ["GROUP", "group", consumer, "STREAMS", stream, ">"]
    _ = try await route.send(RedisCommand("XREADGROUP", reading))
    await acknowledge(positions[0], as: "0", link)
    try failing(true)
    await acknowledge(positions[1], as: identity, link)
    await failures.first(1)
    try failing(false)
    await acknowledge(positions[2], as: "2", link)
    let pending = try await route.send(
      RedisCommand("XPENDING", [stream, "group", "-", "+", 9])
    )
    return (pending.elements ?? []).map { entry in
      let parts = entry.elements?.prefix(2).compactMap(\.text) ?? []
      let number = positions.firstIndex { "\($0)" == parts.first }
      return [number.map { "\($0)" } ?? "", parts.last ?? ""]
    }
  }

  @Test(.guarantee(.unacknowledgedEventsAreBounded))
  func `an event is given back if its acknowledgement fails after its handler has ended`()
    async throws
  {
    let link = link()
    let pending = try await acknowledgeThree(link) { isFailing in
      let rule = "ACL SETUSER default \(isFailing ? "-" : "+")xack"
      let reply = try RedisShell.run(rule, on: server)
      #expect(reply.hasPrefix("+OK"))
    }
    #expect(pending == [["1", "released"]])
    #expect(failures.count == 1)
    await link.close()
  }

  @Test(.guarantee(.unacknowledgedEventsAreBounded))
  func `a late answer for a lost event does not give back the one in its place`()
    async throws
  {
    let link = link()
    let pending = try await acknowledgeThree(link, secondAs: "lost")
    #expect(pending == [["1", link.consumer(of: 7)]])
    #expect(failures.entries.first?.contains("SUPERSEDED") == true)
    #expect(failures.count == 1)
    await link.close()
  }

  @Test(
    .guarantee(.undecodableMessagesAreReported),
    arguments: [LinkMode.everyNode(from: .start), .oneNode(group: "group")]
  )
  func `an event that is larger than a reply is reported, and harms no later one`(
    mode: LinkMode
  ) async throws {
    let link = link(largestReply: 1 << 20)
    let reports = Log<String>()
    let notes = Log<String>()
    let bus = EventBus()
    let tokens = ObservationBag()
    bus.observe(LinkReport.self) { report in
      switch report.content {
      case .skipped(let message, _, _), .rejected(let message, _, _, _): reports.append(message.id)
      default: break
      }
    }
    .store(in: tokens)
    bus.observe(Note.self) { notes.append($0.text) }.store(in: tokens)
    let sender = try EventNode(server)
    await sender.connect(.publishOnly)
    for number in 0..<5 { try await sender.publish("\(number)") }
    let large = #"string.rep('x', 2000000)"#
    let header = #""'huge\\n1\\norigin\\nnotes'""#.dropFirst().dropLast()
    for fields in ["'h', \(header), 'd', \(large)", "'foreign', \(large)"] {
      let script = "EVAL \"redis.call('XADD', '{notes}:stream', '*', \(fields))\" 0"
      try RedisShell.perform([script], on: server)
    }
    for number in 5..<10 { try await sender.publish("\(number)") }
    bus.connect(Note.self, as: "notes", over: link, mode).store(in: tokens)
    await notes.wait { Set($0) == Set((0..<10).map { "\($0)" }) }
    await reports.first(2)
    #expect(reports.entries[0] == "huge")
    #expect(Set(notes.entries).count == notes.count)
    if mode.group != nil {
      #expect(try RedisShell.run("XLEN {notes}.dead.group:stream", on: server) == ":2\r\n")
      let script = """
        EVAL "return #redis.call('XRANGE', '{notes}.dead.group:stream', '-', '+')[1][2][4]" 0
        """
      #expect(try RedisShell.run(script, on: server) == ":2000000\r\n")
    }
    tokens.cancelAll()
    await link.close()
  }
}

extension LinkMode {
  fileprivate var group: String? {
    if case .oneNode(let group, _, _) = self { group } else { nil }
  }
}
