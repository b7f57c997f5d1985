internal import Plexus

/// A question for a window of the entries of a cache.
struct EntryQuery: Sendable, Equatable {
  /// The column by which entries are sorted.
  enum Order: String, Sendable {
    case key
    case state
    case age
    case timeLeft = "left"
    case cost
  }

  /// A position in the order; the window begins after it.
  struct Position: Sendable, Equatable, Comparable {
    /// The value of the column.
    ///
    /// Ages and remaining times are points in time, so that they stay the same while the page turns pages.
    var number: Double
    /// The text of the key as it is shown, which other keys can have, too.
    var key: String
    /// The hash of the key.
    var hash: Int

    static func < (one: Self, other: Self) -> Bool {
      (one.number, one.key, one.hash) < (other.number, other.key, other.hash)
    }
  }

  /// The text that keys contain, in lower or upper case.
  var search = ""
  /// The state of the entries, or `nil` for all.
  var state: CacheEntryState?
  var order = Order.key
  var isDescending = false
  /// The last entry of the previous window.
  var position: Position?

  /// The number of entries in a window.
  static let limit = 1_000
  /// The number of characters of a key that are shown; in a request, they take less than its largest size.
  static let keyLimit = 400

  /// Returns whether a text contains the search text.
  func matches(_ text: String) -> Bool {
    search.isEmpty || text.containsIgnoringCase(search)
  }
}
