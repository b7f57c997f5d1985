import Foundation
import Plexus
import PlexusRedis
import PlexusTesting
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Events over a server that restarts with old data` {
  private let server: RedisServer
  private let sender: EventNode

  init() throws {
    server = try RedisServer()
    sender = try EventNode(server)
  }

  private func save() throws {
    #expect(try RedisShell.run("SAVE", on: server).hasPrefix("+OK"))
  }

  private func restart() throws {
    server.kill()
    try server.start()
  }

  private func publish(_ numbers: Range<Int>, by node: EventNode? = nil) async throws {
    for number in numbers { try await (node ?? sender).publish("\(number)") }
  }

  @Test(.guarantee(.oldDataIsReportedAsAGap))
  func `a node reports that positions were given again, however many there are`()
    async throws
  {
    let proxy = try RedisProxy(server)
    let receiver = try EventNode(at: proxy.address)
    await sender.connect(.publishOnly)
    await receiver.receive(.everyNode())
    try await publish(0..<5)
    try save()
    try await publish(5..<10)
    await receiver.notes.first(10)
    proxy.stall(later: true)
    // The only node that knows what is lost ends with the server.
    try await sender.engine.close()
    try restart()
    let other = try EventNode(server)
    await other.connect(.publishOnly)
    try await publish(100..<120, by: other)
    proxy.cut()
    await receiver.reports.contains("gap")
    try await publish(200..<201, by: other)
    await receiver.notes.contains("200")
    let received = receiver.notes.entries
    #expect(Set(received).count == received.count)
    #expect(Array(received.prefix(10)) == (0..<10).map { "\($0)" })
  }

  @Test(.guarantee(.oldDataIsReportedAsAGap))
  func `a node that has not received what was lost reports the loss as well`()
    async throws
  {
    await sender.connect(.publishOnly)
    try await publish(0..<3)
    try save()
    try await publish(3..<6)
    try restart()
    // Other programs have filled the place of what was lost.
    let other = try EventNode(server)
    await other.connect(.publishOnly)
    try await publish(100..<110, by: other)
    try await publish(6..<8)
    var texts: [String] = []
    for try await delivery in other.engine.events.deliveries(
      of: "notes",
      .everyNode(from: .start)
    ) {
      switch delivery {
      case .connected: break
      case .gap(let lost): texts.append(lost == nil ? "gap" : "named gap")
      case .message(let message, _, _):
        texts.append(try other.engine.events.codec.decode(Note.self, from: message.body).text)
      }
      if texts.last == "7" { break }
    }
    #expect(
      texts == ["0", "1", "2"] + (100..<110).map { "\($0)" } + ["gap", "6", "7"]
    )
  }

  @Test(.guarantee(.oldDataIsReportedAsAGap))
  func `events that follow the loss at once are posted after its report`() async throws {
    let receiver = try EventNode(server)
    await sender.connect(.publishOnly)
    await receiver.receive(.everyNode())
    try await publish(0..<3)
    try save()
    try await publish(3..<6)
    await receiver.notes.first(6)
    try restart()
    try await publish(6..<16)
    #expect(await receiver.notes.first(16) == (0..<16).map { "\($0)" })
    #expect(receiver.reports.entries.contains("gap"))
  }

  @Test(.guarantee(.oldDataIsReportedAsAGap))
  func `a reader reports a rollback once, also if the publisher reports it as well`()
    async throws
  {
    let receiver = try EventNode(server)
    await sender.connect(.publishOnly)
    await receiver.receive(.everyNode())
    try await publish(0..<3)
    try save()
    for round in 1...2 {
      let first = 3 * round
      try await publish(first..<first + 3)
      await receiver.notes.contains("\(first + 2)")
      try restart()
      // Nothing is published before the reader has noticed it.
      await receiver.reports.wait { $0.count { $0.hasSuffix("gap") } == round }
    }
    try await publish(9..<12)
    #expect(await receiver.notes.first(12) == (0..<12).map { "\($0)" })
    #expect(receiver.reports.entries.count { $0.hasSuffix("gap") } == 2)
  }

  @Test(.guarantee(.oldDataIsReportedAsAGap))
  func `a group that is behind what its node has handled reports that, and repeats nothing`()
    async throws
  {
    let worker = try EventNode(server)
    await sender.connect(.publishOnly)
    await worker.receive(EventNode.group)
    try await publish(0..<3)
    await worker.notes.first(3)
    try save()
    try await publish(3..<6)
    await worker.notes.first(6)
    try restart()
    try await publish(6..<9)
    #expect(await worker.notes.first(9) == (0..<9).map { "\($0)" })
    #expect(worker.reports.entries.contains("gap"))
  }

  @Test(.guarantee(.oldDataIsReportedAsAGap))
  func `a node of a group reports that positions were given again`() async throws {
    let proxy = try RedisProxy(server)
    let worker = try EventNode(at: proxy.address)
    await sender.connect(.publishOnly)
    await worker.receive(EventNode.group)
    try await publish(0..<3)
    await worker.notes.first(3)
    await worker.acknowledgedAll()
    try save()
    try await publish(3..<6)
    await worker.notes.first(6)
    await worker.acknowledgedAll()
    proxy.stall(later: true)
    try await sender.engine.close()
    try restart()
    // Another node of the group handles what takes the place.
    let (other, heir) = (try EventNode(server), try EventNode(server))
    heir.observe()
    await other.connect(.publishOnly)
    await heir.connect(EventNode.group)
    try await publish(100..<120, by: other)
    await heir.notes.first(20)
    proxy.cut()
    await worker.reports.contains("gap")
    #expect(Set(worker.notes.entries).count == worker.notes.count)
  }

  @Test(.guarantee(.oldDataIsReportedAsAGap))
  func `a group that is gone begins with the oldest event, and repeats nothing`()
    async throws
  {
    let worker = try EventNode(server)
    worker.observe()
    await sender.connect(.publishOnly)
    try await publish(0..<3)
    try save()
    await worker.connect(EventNode.group)
    await worker.notes.first(3)
    try await publish(3..<6)
    await worker.notes.first(6)
    try restart()
    try await publish(6..<9)
    #expect(await worker.notes.first(9) == (0..<9).map { "\($0)" })
    #expect(worker.reports.entries.contains("gap"))
    // A node of the group that has seen nothing handles nothing again: all events were acknowledged.
    let heir = try EventNode(server)
    heir.observe()
    await worker.acknowledgedAll()
    worker.disconnect()
    await heir.connect(EventNode.group)
    try await publish(9..<10)
    #expect(await heir.notes.first(1) == ["9"])
  }

  @Test(.guarantee(.oldDataIsReportedAsAGap)) func `a restart that loses nothing is no loss`()
    async throws
  {
    let (receiver, worker) = (try EventNode(server), try EventNode(server))
    for node in [receiver, worker] { node.observe() }
    await sender.connect(.publishOnly)
    await receiver.connect(.everyNode())
    await worker.connect(EventNode.group)
    try await publish(0..<5)
    for node in [receiver, worker] { await node.notes.first(5) }
    await worker.acknowledgedAll()
    worker.disconnect()
    try save()
    try restart()
    try await publish(5..<10)
    #expect(await receiver.notes.first(10) == (0..<10).map { "\($0)" })
    #expect(!receiver.reports.entries.contains { $0.hasSuffix("gap") })
    let heir = try EventNode(server)
    await heir.receive(EventNode.group)
    #expect(await heir.notes.first(5) == (5..<10).map { "\($0)" })
    #expect(!heir.reports.entries.contains { $0.hasSuffix("gap") })
  }

  // MARK: - Nodes that have read nothing

  /// Restarts the server so that other events take the places of the latest three.
  private func replace(_ proxy: RedisProxy) async throws -> EventNode {
    proxy.stall(later: true)
    // The only node that knows what is lost ends with the server.
    try await sender.engine.close()
    try restart()
    let other = try EventNode(server)
    await other.connect(.publishOnly)
    try await publish(100..<103, by: other)
    return other
  }

  @Test(.guarantee(.oldDataIsReportedAsAGap), arguments: [LinkMode.everyNode(), .ephemeral])
  func `readers that have read nothing report that positions were given again, once`(
    mode: LinkMode
  ) async throws {
    let proxy = try RedisProxy(server)
    let receiver = try EventNode(at: proxy.address)
    let count = 100
    await sender.connect(.publishOnly)
    try await publish(0..<3)
    try save()
    try await publish(3..<6)
    receiver.observe()
    for _ in 0..<count { await receiver.connect(mode) }
    await receiver.reports.wait { $0.count { $0 == "connected" } == count }
    let other = try await replace(proxy)
    proxy.cut()
    // Ephemeral readers miss what is published before.
    if mode == .ephemeral {
      await receiver.reports.wait { $0.count { $0 == "connected" } >= 2 * count }
    }
    try await publish(200..<201, by: other)
    await receiver.notes.wait { $0.count { $0 == "200" } == count }
    await receiver.reports.wait { $0.count { $0.hasSuffix("gap") } >= count }
    #expect(receiver.reports.entries.count { $0.hasSuffix("gap") } == count)
  }

  @Test(.guarantee(.oldDataIsReportedAsAGap))
  func `a node of a group that has read nothing reports that positions were given again`()
    async throws
  {
    let proxy = try RedisProxy(server)
    let (worker, heir) = (try EventNode(at: proxy.address), try EventNode(server))
    await sender.connect(.publishOnly)
    await heir.receive(EventNode.group)
    try await publish(0..<3)
    await heir.notes.first(3)
    await heir.acknowledgedAll()
    try save()
    try await publish(3..<6)
    await heir.notes.first(6)
    await heir.acknowledgedAll()
    await worker.receive(EventNode.group)
    let other = try await replace(proxy)
    await heir.notes.wait { $0.contains("102") }
    await heir.acknowledgedAll()
    heir.disconnect()
    proxy.cut()
    try await publish(200..<201, by: other)
    await worker.notes.contains("200")
    await worker.reports.contains("gap")
    #expect(worker.reports.entries.count { $0.hasSuffix("gap") } == 1)
  }

  // MARK: - Order and number of the reports

  @Test(.guarantee(.oldDataIsReportedAsAGap))
  func `a group reports a rollback once, before what it has read ahead`() async throws {
    let worker = try EventNode(server)
    let (first, second) = (Gate(), Gate())
    worker.observe { note in
      if note.text == "0" { try await first.wait() }
      if note.text == "3" { try await second.wait() }
    }
    await sender.connect(.publishOnly)
    await worker.connect(EventNode.group)
    try await publish(0..<1)
    await worker.notes.first(1)
    try await publish(1..<3)
    try save()
    try await publish(3..<10)
    first.open()
    // It has read four at once.
    await worker.notes.first(4)
    server.kill()
    await worker.status { $0.events.health != .connected }
    try server.start()
    // What was read ahead is compared with the server over a new connection.
    await worker.status { $0.events.health == .connected }
    second.open()
    await worker.reports.contains("gap")
    // The publisher knows what is lost.
    try await publish(10..<20)
    await worker.notes.contains("19")
    #expect(worker.notes.entries.prefix(5) == ["0", "1", "2", "3", "10"])
    #expect(worker.reports.entries.count { $0.hasSuffix("gap") } == 1)
    #expect(Set(worker.notes.entries).count == worker.notes.count)
  }

  @Test(.guarantee(.oldDataIsReportedAsAGap))
  func `a group reports a rollback although nothing is published afterwards`()
    async throws
  {
    let worker = try EventNode(server)
    let link = worker.engine.events
    let log = Log<String>()
    let mode = LinkMode.oneNode(group: "group", retryAfter: .milliseconds(400), attempts: 3)
    let reading = Task {
      while !Task.isCancelled {
        do {
          for try await delivery in link.deliveries(of: "notes", mode) {
            switch delivery {
            case .connected: log.append("connected")
            case .gap: log.append("gap")
            case .message(let message, let position, _):
              try await link.acknowledge(position, of: "notes", group: "group")
              log.append(try link.codec.decode(Note.self, from: message.body).text)
            }
          }
        } catch {
          log.append("interrupted")
        }
      }
    }
    defer { reading.cancel() }
    await sender.connect(.publishOnly)
    try await publish(0..<3)
    await log.contains("2")
    try save()
    try await publish(3..<6)
    await log.contains("5")
    try restart()
    await RedisShell.waitUntilReady(server)
    let monitor = try await RedisMonitor(server)
    await monitor.commands(4, with: "XREADGROUP")
    #expect(log.entries.count { $0 == "gap" } == 1)
  }
}
