internal import Synchronization

/// The keys of a cache that have changed during the calls of its fetch of several keys.
///
/// Its lock is acquired under that of a shard, never the other way round. While no call is in progress, a change costs one
/// load.
@usableFromInline
final class RecentChanges<Key: Hashable & Sendable>: Sendable {
  private let state = Locked(RecentChangesState<Key>())
  private let isRecording = Atomic<Bool>(false)

  @usableFromInline
  init() {}

  /// Begins a call.
  ///
  /// - Returns: Its number, to be passed to ``end(_:)``.
  @usableFromInline
  func begin() -> UInt64 {
    state.withLock { state in
      isRecording.store(true, ordering: .sequentiallyConsistent)
      return state.begin()
    }
  }

  /// Ends a call.
  @usableFromInline
  func end(_ call: UInt64) {
    let released = state.withLock { state in
      let released = state.end(call)
      isRecording.store(state.isRecording, ordering: .sequentiallyConsistent)
      return released
    }
    withExtendedLifetime(released) {}
  }

  /// Records that a key has changed.
  @usableFromInline
  func change(_ key: Key, hash: UInt64, _ effects: inout CacheEffects) {
    // A key that is not equal to itself is never found again.
    if isActive, key == key { release(state.withLock { $0.change(key, hash: hash) }, &effects) }
  }

  /// Records that a call has kept a value that was not requested.
  @usableFromInline
  func keep(_ key: Key, hash: UInt64, by call: UInt64, _ effects: inout CacheEffects) {
    release(state.withLock { $0.keep(key, hash: hash, by: call) }, &effects)
  }

  /// Records that the keys with one of some tags have changed; called with no lock held.
  func change(_ tags: Set<CacheTag>) {
    if isActive { withExtendedLifetime(state.withLock { $0.change(tags) }) {} }
  }

  /// Records that all keys have changed.
  @usableFromInline
  func changeAll(_ effects: inout CacheEffects) {
    if isActive { release(state.withLock { $0.changeAll() }, &effects) }
  }

  /// Records that all keys have changed; called with no lock held.
  func changeAll() {
    if isActive { withExtendedLifetime(state.withLock { $0.changeAll() }) {} }
  }

  /// Returns whether a key has changed since a call in progress has begun.
  @usableFromInline
  func hasChanged(_ key: Key, hash: UInt64, _ tags: [CacheTag], since call: UInt64) -> Bool {
    state.withLock { $0.hasChanged(key, hash: hash, tags, since: call) }
  }

  private var isActive: Bool { isRecording.load(ordering: .sequentiallyConsistent) }

  private func release(
    _ released: RecentChangesState<Key>.Released,
    _ effects: inout CacheEffects
  ) {
    if !released.isEmpty { effects.release(released) }
  }
}
