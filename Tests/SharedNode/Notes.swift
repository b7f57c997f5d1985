import Plexus

/// The events of the process: notes that it publishes and handles.
///
/// Handlers do not run on the main actor, which waits for input.
final class Notes: Sendable {
  struct Note: Event, Codable {
    let text: String
  }

  private let bus = EventBus()
  private let link: any EventLink
  private let origin: Origin
  private let tokens = ObservationBag()

  init(over link: any EventLink, _ origin: Origin) {
    self.link = link
    self.origin = origin
    bus.observe(LinkReport.self) { report in
      switch report.content {
      case .connected: SharedNodeProgram.answer("connected")
      case .gap: SharedNodeProgram.answer("gap")
      case .interrupted: SharedNodeProgram.answer("interrupted")
      default: SharedNodeProgram.answer("\(report.content)")
      }
    }
    .store(in: tokens)
  }

  /// Gets all notes.
  func listen() {
    bus.observe(Note.self) { SharedNodeProgram.answer("got \($0.text)") }.store(in: tokens)
    bus.connect(Note.self, as: "notes", over: link, .everyNode()).store(in: tokens)
  }

  /// Handles the notes together with the other processes of a group.
  func join(retryAfter: Duration) {
    bus.observe(Note.self) { [origin] note in
      let isHeld = origin.isHeld
      SharedNodeProgram.answer("handling \(note.text)")
      if isHeld { try await origin.wait() }
      SharedNodeProgram.answer("handled \(note.text)")
    }
    .store(in: tokens)
    let mode = LinkMode.oneNode(group: "group", retryAfter: retryAfter, attempts: 3)
    bus.connect(Note.self, as: "notes", over: link, mode).store(in: tokens)
  }

  func publish(_ text: String) {
    connectToPublish()
    Task.detached { [self] in
      await publish(Note(text: text), answering: "published \(text)")
    }
  }

  /// Publishes a number of large notes at once.
  func flood(_ count: Int) {
    connectToPublish()
    let text = String(repeating: "x", count: 64 << 10)
    for _ in 0..<count {
      Task.detached { [self] in await publish(Note(text: text), answering: "published") }
    }
  }

  private func publish(_ note: Note, answering answer: String) async {
    do {
      try await bus.publish(note)
      SharedNodeProgram.answer(answer)
    } catch {
      SharedNodeProgram.answer(error)
    }
  }

  private func connectToPublish() {
    guard bus.subscriberCount(for: Note.self) == 0, tokens.count == 1 else { return }
    bus.connect(Note.self, as: "notes", over: link, .publishOnly).store(in: tokens)
  }
}
