/// The state that decides which downloads are kept: a removal or a newer download discards older ones.
///
/// Invariants:
///
/// - A download that began before its file was removed is not kept.
/// - A download that began before another one that was kept does not replace the file of that one.
/// - Nothing is stored of files without a running download or request.
struct MediaRevisions: Sendable {
  /// The outcome of a download that has all bytes.
  enum Verdict: Equatable {
    /// The file is kept.
    case current
    /// The file was removed after the download began.
    case removed
    /// The file of a download that began later is there.
    case superseded
  }

  /// The identity of a running download, or of a request that waits for some.
  struct Ticket: Sendable {
    let name: String
    let number: Int
    let epoch: Int
  }

  private struct Entry {
    var downloads = 0
    /// The number of the last removal, and that of the newest download that was kept.
    var removal = 0
    var kept = 0
  }

  /// The number of times that everything was removed.
  private(set) var epoch = 0
  private var last = 0
  private var entries: [String: Entry] = [:]

  /// A download of a file begins; ``end(_:)`` must follow.
  mutating func begin(_ name: String) -> Ticket {
    entries[name, default: Entry()].downloads += 1
    return Ticket(name: name, number: next(), epoch: epoch)
  }

  /// A download has ended.
  mutating func end(_ ticket: Ticket) {
    entries[ticket.name]?.downloads -= 1
    if entries[ticket.name]?.downloads == 0 { entries[ticket.name] = nil }
  }

  /// A file is removed.
  mutating func remove(_ name: String) {
    let number = next()
    entries[name]?.removal = number
  }

  /// Everything is removed.
  mutating func removeAll() {
    epoch += 1
  }

  /// The file of a download is kept.
  mutating func keep(_ ticket: Ticket) {
    entries[ticket.name]?.kept = ticket.number
  }

  /// The last removal of a file that still affects a download; 0 if there is none.
  func removal(of name: String) -> Int { entries[name]?.removal ?? 0 }

  /// Decides about a download that has all bytes.
  func verdict(_ ticket: Ticket) -> Verdict {
    guard ticket.epoch == epoch, let entry = entries[ticket.name], entry.removal < ticket.number
    else { return .removed }
    return entry.kept < ticket.number ? .current : .superseded
  }

  /// Whether no running download is known.
  var isEmpty: Bool { entries.isEmpty }

  private mutating func next() -> Int {
    last += 1
    return last
  }
}
