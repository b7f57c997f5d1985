extension Shard {
  /// The object that keeps a key up to date, if the key has live subscriptions.
  @inlinable
  func live(_ key: Key, _ hash: UInt64) -> LiveFetching<Key, Value>? {
    guard let extras, !extras.lives.isEmpty else { return nil }
    return extras.lives.index(of: key, hash: hash).map { extras.lives.entries[$0].element }
  }

  /// The objects that keep keys up to date.
  var allLives: [LiveFetching<Key, Value>] {
    extras?.lives.entries.map { $0.element } ?? []
  }

  /// Whether the key at a place has live subscriptions.
  @inlinable
  func isLive(_ index: Int) -> Bool {
    live(keys.entries[index].key, keys.entries[index].hash) != nil
  }

  /// Notifies the live subscriptions of a key of a new state.
  @usableFromInline
  @inline(never)
  func notifyLive(_ key: Key, _ hash: UInt64, _ effects: inout CacheEffects) {
    guard let live = live(key, hash) else { return }
    effects.deliver { live.note() }
  }

  /// Notifies the live subscriptions of a key that its value was removed.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - hash: Its hash.
  ///   - isSignedOut: Whether nothing is fetched until the value is requested.
  ///   - effects: The effects to be performed later.
  @inlinable
  func notifyCleared(
    _ key: Key,
    _ hash: UInt64,
    isSignedOut: Bool = false,
    _ effects: inout CacheEffects
  ) {
    guard let live = live(key, hash) else { return }
    effects.deliver { live.clear(isSignedOut: isSignedOut) }
  }

  /// Notifies all live subscriptions that the values were removed.
  ///
  /// - Parameters:
  ///   - isSignedOut: Whether nothing is fetched until a value is requested.
  ///   - effects: The effects to be performed later.
  @inline(never)
  func notifyAllCleared(isSignedOut: Bool, _ effects: inout CacheEffects) {
    for live in allLives {
      effects.deliver { live.clear(isSignedOut: isSignedOut) }
    }
  }
}
