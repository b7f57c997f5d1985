import Foundation
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
  private let folder: URL
  private let tokens = ObservationBag()

  init(over link: any EventLink, _ folder: URL) {
    self.link = link
    self.folder = folder
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
    bus.observe(Note.self) { [folder] note in
      let isHeld = FileManager.default.fileExists(atPath: folder.appending(path: "hold").path)
      SharedNodeProgram.answer("handling \(note.text)")
      if isHeld {
        await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
      }
      SharedNodeProgram.answer("handled \(note.text)")
    }
    .store(in: tokens)
    let mode = LinkMode.oneNode(group: "group", retryAfter: retryAfter, attempts: 3)
    bus.connect(Note.self, as: "notes", over: link, mode).store(in: tokens)
  }

  func publish(_ text: String) {
    if bus.subscriberCount(for: Note.self) == 0, tokens.count == 1 {
      bus.connect(Note.self, as: "notes", over: link, .publishOnly).store(in: tokens)
    }
    Task.detached { [bus] in
      do {
        try await bus.publish(Note(text: text))
        SharedNodeProgram.answer("published \(text)")
      } catch {
        SharedNodeProgram.answer("error: \(error)")
      }
    }
  }
}
