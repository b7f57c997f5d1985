/// The subscribers to changes that count for one store and end with it.
@usableFromInline
final class ChangeFeeds: Sendable {
  private struct State: Sendable {
    var feeds: [FeedID: any ChangeFeed] = [:]
    var isFinished = false
  }

  private let state = Locked(State())

  @usableFromInline
  init() {}

  /// The number of subscribers at this moment; handlers whose owners have gone are removed first.
  var count: Int {
    let feeds = state.withLock { $0.feeds }
    for feed in feeds.values { feed.removeOrphans() }
    return state.withLock { $0.feeds.count }
  }

  func insert(_ feed: any ChangeFeed, id: FeedID) {
    let isFinished = state.withLock { state in
      if !state.isFinished { state.feeds[id] = feed }
      return state.isFinished
    }
    if isFinished { feed.finish() }
  }

  func remove(_ id: FeedID) {
    let feed = state.withLock { $0.feeds.removeValue(forKey: id) }
    withExtendedLifetime(feed) {}
  }

  /// Ends every stream after what has been sent, in subscription order.
  ///
  /// - Returns: Who they were.
  @discardableResult
  @usableFromInline
  func finish() -> [FeedID] {
    let feeds = state.withLock { state in
      state.isFinished = true
      defer { state.feeds = [:] }
      return state.feeds
    }
    let order = feeds.keys.sorted { $0.rawValue < $1.rawValue }
    for id in order { feeds[id]?.finish() }
    return order
  }
}

/// What can be told that nothing will come any more, and asked whether anybody is still there.
@usableFromInline
protocol ChangeFeed: AnyObject, Sendable {
  func finish()
  /// Removes the handlers whose owners have gone; with the last subscriber the feed itself goes.
  func removeOrphans()
}

extension BroadcastHub: ChangeFeed {}
