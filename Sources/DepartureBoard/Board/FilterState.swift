/// Which rows the screen shows, and what is being typed to change that.
struct FilterState: Hashable, Sendable {
  /// How much may be typed.
  static let limit = 40

  /// What has been typed so far.
  private(set) var typed: String
  /// What rows must contain: what was typed, once typing has paused.
  private(set) var text: String

  /// Creates a filter that applies at once.
  ///
  /// - Parameter text: Words that a row must contain, all of them; none lets every row pass.
  init(_ text: String = "") {
    typed = text
    self.text = text
  }

  /// Whether there is nothing to show of the filter.
  var isEmpty: Bool {
    typed.isEmpty && text.isEmpty
  }

  /// Whether what has been typed does not apply yet.
  var isPending: Bool {
    typed != text
  }

  /// Changes what an action changes: the reducer of the screen's page store.
  mutating func apply(_ action: FilterAction) {
    switch action {
    case .type(let text): typed += text.prefix(max(0, Self.limit - typed.count))
    case .erase: _ = typed.popLast()
    case .clear: self = Self()
    case .apply(let text): self.text = text
    }
  }

  /// Whether a row is to be shown: it contains every word, in whatever case.
  func matches(_ row: BoardRow) -> Bool {
    let words = text.lowercased().split(whereSeparator: \.isWhitespace)
    guard !words.isEmpty else { return true }
    let content = row.searchText.lowercased()
    return words.allSatisfy { content.contains($0) }
  }
}

/// What changes the filter.
enum FilterAction: Hashable, Sendable {
  /// Something is typed.
  case type(String)
  /// The last character is taken back.
  case erase
  /// Everything is taken back, and every row is shown at once.
  case clear
  /// What was typed applies from now on.
  case apply(String)
}

extension BoardRow {
  /// What people may look for.
  fileprivate var searchText: String {
    [
      flight.designator, "\(flight.carrier)\(flight.number)", flight.origin, flight.destination,
      details.airline.value?.displayName, details.aircraft.value?.displayName,
      details.origin.value?.displayName, details.destination.value?.displayName, statusText,
    ].compactMap { $0 }.joined(separator: "\n")
  }
}
