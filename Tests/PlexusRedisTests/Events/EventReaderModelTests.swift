import Plexus
import PlexusSupport
import TestSupport
import Testing

@testable import PlexusRedis

@Suite(
  .fewAtOnce,
  .timeLimit(.minutes(5)),
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

  @Test func `D14: a node that leaves wakes the other ones for its events`() async throws {
    let (a, b) = (link(), link())
    // Readers that look for such events by themselves only after hours.
    func reader(_ link: RedisEvents) -> GroupReader {
      GroupReader(
        link,
        TopicNames("topic"),
        group: "group",
        retryAfter: .seconds(100_000),
        pace: .seconds(10_000)
      )
    }
    let heir = reader(b)
    for round in 1...3 {
      _ = try await a.publish(message("\(round)"), to: "topic")
      var first: GroupReader? = reader(a)
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

  /// Takes messages from a reader.
  private func ids(_ count: Int, from reader: StreamReader) async throws -> [String] {
    var ids: [String] = []
    while ids.count < count, let delivery = try await reader.next() {
      if case .message(let message, _, _) = delivery { ids.append(message.id) }
    }
    return ids
  }

  @Test func `D15: events arrive while those before them are handled, each once`() async throws {
    let link = link()
    for number in 1...9 { _ = try await link.publish(message("\(number)"), to: "topic") }
    let reader = StreamReader(link, TopicNames("topic"), after: .start)
    let monitor = try await RedisMonitor(server)
    // One is read with the place, then one after it, then two before they are requested.
    #expect(try await ids(2, from: reader) == ["1", "2"])
    await monitor.commands(1, with: "XRANGE", #""COUNT" "2""#)
    #expect(try await ids(2, from: reader) == ["3", "4"])
    await monitor.commands(1, with: "XRANGE", #""COUNT" "4""#)
    #expect(try await ids(5, from: reader) == ["5", "6", "7", "8", "9"])
    await link.close()
  }

  @Test func `D15: an event that is published after its reader has looked ahead is posted`()
    async throws
  {
    let link = link()
    for number in 1...2 { _ = try await link.publish(message("\(number)"), to: "topic") }
    let reader = StreamReader(link, TopicNames("topic"), after: .start)
    let monitor = try await RedisMonitor(server)
    #expect(try await ids(2, from: reader) == ["1", "2"])
    await monitor.commands(1, with: "XRANGE", #""COUNT" "2""#)
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
    link.hand(position, identity: Array(identity.utf8), of: stream, "group", by: 7)
    await link.acknowledge(position, of: "topic", group: "group") { [failures] error in
      failures.append("\(error)")
    }
  }

  @Test func `D14: acknowledgements are not waited for, up to a limit`() async throws {
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
    #expect(link.acknowledgements.withLock { $0.count } == AcknowledgementState.limit)
    #expect(link.status.unacknowledged == AcknowledgementState.limit)
    let last = Task { [positions] in
      await acknowledge(positions[positions.count - 1], as: "\(positions.count - 1)", link)
    }
    proxy.resume()
    await last.value
    // Replies come in order.
    _ = try await link.send(RedisCommand("PING"))
    #expect(link.acknowledgements.withLock { $0.count } == 0)
    #expect(failures.entries == [])
    await link.close()
  }

  @Test
  func `D14: an event is given back if its acknowledgement fails after its handler has ended`()
    async throws
  {
    let link = link()
    let stream = RedisCommand.Argument.text(TopicNames("topic").stream)
    var positions: [LinkPosition] = []
    for number in 0..<3 {
      positions.append(try await link.publish(message("\(number)"), to: "topic"))
    }
    _ = try await link.send(RedisCommand("XGROUP", ["CREATE", stream, "group", "0"]))
    let consumer = RedisCommand.Argument.text(link.consumer(of: 7))
    let reading: [RedisCommand.Argument] = ["GROUP", "group", consumer, "STREAMS", stream, ">"]
    _ = try await link.send(RedisCommand("XREADGROUP", reading))
    await acknowledge(positions[0], as: "0", link)
    // The server has another message at the position than the one that was handled.
    await acknowledge(positions[1], as: "another", link)
    #expect(await failures.first(1).first?.contains("SUPERSEDED") == true)
    await acknowledge(positions[2], as: "2", link)
    let pending = try await link.send(
      RedisCommand("XPENDING", [stream, "group", "-", "+", 9])
    )
    let owners = pending.elements?.compactMap { $0.elements?.prefix(2).compactMap(\.text) }
    #expect(owners == [["\(positions[1])", "released"]])
    #expect(failures.count == 1)
    await link.close()
  }

  @Test(arguments: [LinkMode.everyNode(from: .start), .oneNode(group: "group")])
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
      #expect(!(try RedisShell.run(script, on: server)).hasPrefix("-"))
    }
    for number in 5..<10 { try await sender.publish("\(number)") }
    bus.connect(Note.self, as: "notes", over: link, mode).store(in: tokens)
    await notes.wait { Set($0) == Set((0..<10).map { "\($0)" }) }
    await reports.first(2)
    #expect(reports.entries[0] == "huge")
    #expect(Set(notes.entries).count == notes.count)
    if mode.group != nil {
      #expect(try RedisShell.run("XLEN {notes.dead.group}:stream", on: server) == ":2\r\n")
      let script = """
        EVAL "return #redis.call('XRANGE', '{notes.dead.group}:stream', '-', '+')[1][2][4]" 0
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
