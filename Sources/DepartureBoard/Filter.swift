import Foundation
import Plexus

/// The filter of the screen, and the text being typed.
struct FilterState: Hashable, Sendable {
  /// The maximum length of the text.
  static let limit = 40

  /// The text typed so far.
  private(set) var typed: String
  /// The filter in effect, which is the text at the last pause.
  private(set) var text: String

  /// Creates a filter that is in effect immediately.
  ///
  /// - Parameter text: The words that a row must contain; without words, all rows match.
  init(_ text: String = "") {
    typed = text
    self.text = text
  }

  /// Applies an action; the reducer of the screen's page store.
  mutating func apply(_ action: FilterAction) {
    switch action {
    case .type(let text): if typed.count < Self.limit { typed += text }
    case .erase: _ = typed.popLast()
    case .clear: self = Self()
    case .apply(let text): self.text = text
    }
  }

  /// Returns whether a row contains every word, ignoring case.
  func matches(_ row: BoardRow) -> Bool {
    let words = text.lowercased().split(whereSeparator: \.isWhitespace)
    guard !words.isEmpty else { return true }
    let (flight, details) = (row.flight, row.details)
    let content = [
      flight.designator, "\(flight.carrier)\(flight.number)", flight.origin, flight.destination,
      details.airline.value?.name, details.aircraft.value?.name, details.origin.value?.name,
      details.destination.value?.name, row.status.words,
    ].compactMap { $0?.lowercased() }.joined(separator: "\n")
    return words.allSatisfy { content.contains($0) }
  }
}

/// An action that changes the filter.
enum FilterAction: Hashable, Sendable {
  /// A character is typed.
  case type(String)
  /// The last character is deleted.
  case erase
  /// The text is deleted, and all rows are shown immediately.
  case clear
  /// The text takes effect.
  case apply(String)
}

/// Changes the filter of a page by the keyboard.
///
/// Typed text is shown immediately. It takes effect after a pause, so that the board does not change with every letter.
/// Escape takes effect immediately.
@MainActor
final class FilterInput {
  /// The length of a pause in typing.
  static let pause = Duration.milliseconds(250)

  private let page: BoardPage
  /// The filter after all keys.
  ///
  /// While another thread keeps the page busy, the page has yet to follow.
  private var filter: FilterState
  private let query: DebouncerVar<String>

  /// Creates the input of a page.
  ///
  /// - Parameters:
  ///   - page: The page with the filter.
  ///   - clock: The clock that measures pauses.
  init(_ page: BoardPage, clock: any Clock<Duration> = ContinuousClock()) {
    self.page = page
    filter = page.state
    query = DebouncerVar(filter.text, delay: Self.pause, clock: clock) { text in
      page.dispatch(.apply(text))
    }
  }

  /// Processes input of the keyboard.
  ///
  /// The sequences of arrow keys and similar ones, and characters that do not occur on the board, are skipped.
  func take(_ input: String) {
    let keys = input.replacing(/\u{1B}(\[[0-9;]*[@-~]|O.|.)/, with: "")
    for character in keys {
      switch character {
      case "\u{8}", "\u{7F}": dispatch(.erase)
      // Escape, and Ctrl-U, which deletes the line in other programs.
      case "\u{1B}", "\u{15}": dispatch(.clear)
      default: if character.isPrintable { dispatch(.type(String(character))) }
      }
    }
  }

  private func dispatch(_ action: FilterAction) {
    filter.apply(action)
    page.dispatch(action)
    query.value = filter.typed
  }
}
