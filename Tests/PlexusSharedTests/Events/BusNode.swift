import Plexus
import PlexusSharedTesting
import TestSupport

/// An event of the tests.
struct Note: Event, Codable, Hashable {
  let text: String

  init(_ text: String) {
    self.text = text
  }
}

/// One of several processes with a bus over the same engine: its events and its reports.
final class BusNode: Sendable {
  let bus: EventBus
  let link: EventMemoryNode
  let notes = Log<String>()
  let reports = Log<String>()
  private let tokens = ObservationBag()
  private let connection = Guarded<ObservationToken?>(nil)

  init(_ engine: EventMemory, clock: any Clock<Duration> = ContinuousClock()) {
    bus = EventBus(clock: clock)
    link = engine.node()
    bus.observe(LinkReport.self) { [reports] in reports.append(Self.describe($0)) }
      .store(in: tokens)
  }

  /// Connects the notes, and waits until the connection is made.
  func connect(_ mode: LinkMode, as name: String = "notes", version: Int = 1) async {
    connection.withLock { connection in
      connection = bus.connect(Note.self, as: name, version: version, over: link, mode)
    }
    if mode != .publishOnly { await reports.contains("connected") }
  }

  /// Adds a handler that records the notes.
  func observe() {
    bus.observe(Note.self) { [notes] in notes.append($0.text) }.store(in: tokens)
  }

  /// Adds a handler that records the notes, and does something.
  func observe(_ handler: @escaping @Sendable (Note) async throws -> Void) {
    bus.observe(Note.self) { [notes] note in
      notes.append(note.text)
      try await handler(note)
    }
    .store(in: tokens)
  }

  func disconnect() {
    connection.withLock { $0.take() }?.cancel()
  }

  func publish(_ texts: String...) async throws {
    for text in texts { try await bus.publish(Note(text)) }
  }

  private static func describe(_ report: LinkReport) -> String {
    switch report.content {
    case .connected: "connected"
    case .interrupted: "interrupted"
    case .ended: "ended"
    case .gap(let lost?): "gap \(lost.lowerBound.number)-\(lost.upperBound.number)"
    case .gap(nil): "gap"
    case .skipped(let message, _, let rejection): "skipped \(message.id): \(rejection)"
    case .postponed(_, _, let attempt, let rejection): "postponed \(attempt): \(rejection)"
    case .rejected(_, _, let attempt, let rejection): "rejected \(attempt): \(rejection)"
    case .unconfirmed: "unconfirmed"
    case .unsent: "unsent"
    case .dropped(let count): "dropped \(count)"
    }
  }
}

extension LinkMessage {
  /// A message of another program.
  static func foreign(
    _ id: String,
    type: String = "notes",
    version: Int = 1,
    body: String
  ) -> LinkMessage {
    LinkMessage(id: id, type: type, version: version, origin: "other", body: Array(body.utf8))
  }
}
