internal import Plexus

/// The closures by which a cache of any type is read.
struct CacheProbe: Sendable {
  /// A fetch in progress.
  struct Flight: Sendable {
    let key: String?
    let age: Duration
    let callerCount: Int
    let isWaiting: Bool
  }

  /// A key, whose text is made only where it is needed.
  struct Key {
    let hash: Int
    let text: () -> String

    /// The text as it is shown.
    var shown: String { text().shortened(to: EntryQuery.keyLimit) }
  }

  /// The numbers of a cache.
  struct Numbers: Sendable {
    var statistics: CacheStatistics?
    var count: Int?
  }

  /// Returns the numbers, or `nil` if the cache was released.
  let numbers: @Sendable () -> Numbers?
  /// Returns fetches in progress.
  let flights: @Sendable (_ limit: Int) -> [Flight]
  /// Returns entries whose keys meet a condition.
  var entries: (@Sendable (_ limit: Int, _ isIncluded: (Key) -> Bool) -> [EntryRow])?
  /// Returns the events from now on.
  var events: (@Sendable () -> AsyncStream<CacheEvent>?)?
  /// Whether keys are shown by another text than that of their events.
  var describesKeys = false
  /// Whether there is only one entry, which all events are about.
  var isSingle = false
}

/// An entry of a cache.
struct EntryRow: Sendable {
  /// The hash of the key, which distinguishes keys with the same text.
  let hash: Int
  /// Returns the text of the key for the page, and the text in events.
  let key: @Sendable () -> (shown: String, original: String)
  let value: (any Sendable)?
  let error: (any Error)?
  let state: CacheEntryState
  let age: Duration
  let timeLeft: Duration?
  let tags: [CacheTag]
  let cost: Int
}
