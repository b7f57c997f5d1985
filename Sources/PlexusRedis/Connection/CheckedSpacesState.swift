/// The spaces that were checked on a connection for a restart of the server, before any script that gives out a token.
///
/// A check holds until the connection ends, or the server can have loaded other data meanwhile.
struct CheckedSpacesState: Sendable {
  /// The number of times that the checks have ended.
  private(set) var round = 0
  /// The spaces that are checked.
  private var spaces: Set<String> = []
  /// The server's history of replication at the last check of each space on this connection.
  private var histories: [String: String] = [:]

  func isChecked(_ space: String) -> Bool { spaces.contains(space) }

  /// Returns the server's history of replication at the last check of a space; `nil` if there was none.
  func history(of space: String) -> String? { histories[space] }

  /// A new connection begins, on which spaces were checked.
  mutating func connect(_ checked: Set<String>, of history: String) {
    round += 1
    spaces = checked
    histories = Dictionary(uniqueKeysWithValues: checked.map { ($0, history) })
  }

  /// The server can have loaded other data, by which no connection ends.
  mutating func doubt() {
    round += 1
    spaces = []
  }

  /// A space was checked.
  ///
  /// - Parameters:
  ///   - space: The space.
  ///   - history: The server's history of replication.
  ///   - round: The number of times that the checks had ended when this one began.
  mutating func note(_ space: String, of history: String, asOf round: Int) {
    guard round == self.round else { return }
    spaces.insert(space)
    histories[space] = history
  }
}
