/// A key that is kept up to date, as its shard sees it.
@usableFromInline
struct LiveKey<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  @usableFromInline let fetching: LiveFetching<Key, Value>
  /// The number of live subscriptions.
  var users = 0
}

extension Shard {
  /// What keeps a key up to date, if it has live subscriptions.
  @inlinable
  func live(_ key: Key, _ hash: UInt64) -> LiveFetching<Key, Value>? {
    guard let extras, !extras.lives.isEmpty else { return nil }
    return extras.lives.index(of: key, hash: hash).map { extras.lives.entries[$0].element.fetching }
  }

  /// Whether the key at a place has live subscriptions.
  @inlinable
  func isLive(_ index: Int) -> Bool {
    live(keys.entries[index].key, keys.entries[index].hash) != nil
  }

  /// Tells the live subscriptions of a key that its value was forgotten.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - hash: Its hash.
  ///   - isSignedOut: Whether nothing is fetched until the value is requested.
  ///   - effects: The work that is left to be done.
  @inlinable
  func noteCleared(_ key: Key, _ hash: UInt64, isSignedOut: Bool = false, _ effects: inout Effects)
  {
    guard let live = live(key, hash) else { return }
    effects.deliver { live.clear(isSignedOut: isSignedOut) }
  }

  /// Tells all live subscriptions that the values were forgotten.
  ///
  /// - Parameters:
  ///   - isSignedOut: Whether they are to stay so until they are asked for.
  ///   - effects: The work that is left to be done.
  func noteAllCleared(isSignedOut: Bool, _ effects: inout Effects) {
    for entry in extras?.lives.entries ?? [] {
      let live = entry.element.fetching
      effects.deliver { live.clear(isSignedOut: isSignedOut) }
    }
  }
}
