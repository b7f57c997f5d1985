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

  /// Whether there is neither a filter nor a text.
  var isEmpty: Bool {
    typed.isEmpty && text.isEmpty
  }

  /// Whether the text is not in effect yet.
  var isPending: Bool {
    typed != text
  }

  /// Applies an action; the reducer of the screen's page store.
  mutating func apply(_ action: FilterAction) {
    switch action {
    case .type(let text): typed += text.prefix(max(0, Self.limit - typed.count))
    case .erase: _ = typed.popLast()
    case .clear: self = Self()
    case .apply(let text): self.text = text
    }
  }

  /// Returns whether a row contains every word, ignoring case.
  func matches(_ row: BoardRow) -> Bool {
    let words = text.lowercased().split(whereSeparator: \.isWhitespace)
    guard !words.isEmpty else { return true }
    let content = row.searchText.lowercased()
    return words.allSatisfy { content.contains($0) }
  }
}

/// An action that changes the filter.
enum FilterAction: Hashable, Sendable {
  /// Text is typed.
  case type(String)
  /// The last character is deleted.
  case erase
  /// The text is deleted, and all rows are shown immediately.
  case clear
  /// The text takes effect.
  case apply(String)
}

extension BoardRow {
  /// The text of a row that the filter searches.
  fileprivate var searchText: String {
    [
      flight.designator, "\(flight.carrier)\(flight.number)", flight.origin, flight.destination,
      details.airline.value?.displayName, details.aircraft.value?.displayName,
      details.origin.value?.displayName, details.destination.value?.displayName, statusText,
    ].compactMap { $0 }.joined(separator: "\n")
  }
}
