import Foundation
import Plexus
import PlexusRedis
import TestSupport

/// An event of the tests.
struct Note: Event, Codable, Hashable {
  let text: String
}

/// A process with a bus, as far as the server can tell: its notes and its reports.
final class EventNode: Sendable {
  /// A group whose events are repeated only if a node leaves.
  static let group = LinkMode.oneNode(group: "group", retryAfter: .seconds(60), attempts: 3)

  let engine: RedisEngine
  let bus = EventBus()
  let notes = Log<String>()
  let reports = Log<String>()
  /// The notes and the reports.
  let log = Log<String>()
  private let tokens = ObservationBag()

  convenience init(
    _ server: RedisServer,
    _ change: (inout RedisOptions) -> Void = { _ in }
  ) throws {
    try self.init(at: server.address, change)
  }

  init(at address: RedisAddress, _ change: (inout RedisOptions) -> Void = { _ in }) throws {
    var options = RedisOptions()
    // Tests do not depend on how busy the machine is.
    options.commandTimeout = .seconds(60)
    options.eventTimeout = .seconds(60)
    change(&options)
    engine = try RedisEngine(address, options: options)
    bus.observe(LinkReport.self) { [reports, log] report in
      let text =
        switch report.content {
        case .connected: "connected"
        case .interrupted: "interrupted"
        case .gap(let lost): lost == nil ? "gap" : "named gap"
        case .skipped(_, _, let rejection): "skipped: \(rejection)"
        case .rejected(_, _, _, let rejection): "rejected: \(rejection)"
        default: "\(report.content)"
        }
      reports.append(text)
      log.append(text)
    }
    .store(in: tokens)
  }

  func connect(_ mode: LinkMode) async {
    bus.connect(Note.self, as: "notes", over: engine.events, mode).store(in: tokens)
    if mode != .publishOnly { await reports.contains("connected") }
  }

  /// Adds a handler that records the notes, and connects.
  func receive(_ mode: LinkMode) async {
    observe()
    await connect(mode)
  }

  /// Adds a handler that records the notes.
  func observe(_ all: Log<String>? = nil) {
    bus.observe(Note.self) { [notes, log] note in
      notes.append(note.text)
      log.append(note.text)
      all?.append(note.text)
    }
    .store(in: tokens)
  }

  /// Adds a handler that records the notes, and does something.
  func observe(_ handler: @escaping @Sendable (Note) async throws -> Void) {
    bus.observe(Note.self) { [notes, log] note in
      notes.append(note.text)
      log.append(note.text)
      try await handler(note)
    }
    .store(in: tokens)
  }

  func publish(_ texts: String...) async throws {
    for text in texts { try await bus.publish(Note(text: text)) }
  }

  /// Waits until the server has an acknowledgement for each note that the node has handled for its group.
  func acknowledgedAll() async {
    await status { $0.unacknowledgedEvents == 0 }
  }

  /// Polls until the status of the engine meets a condition.
  func status(_ isMet: @escaping @Sendable (EngineStatus) -> Bool) async {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread { [engine] in
        while !isMet(engine.status) { poll(nil, 0, 5) }
        continuation.resume()
      }
    }
  }

  /// Ends the connections, and the handlers.
  func disconnect() {
    tokens.cancelAll()
  }
}
