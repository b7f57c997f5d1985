// @unchecked Sendable as `Flight`; the key is constant.

/// The flight of one key of a cache.
@usableFromInline
final class KeyFlight<Key: Hashable & Sendable>: Flight, @unchecked Sendable {
  @usableFromInline let key: Key

  @inlinable
  init(
    _ key: Key,
    source: Flight.Source,
    hash: UInt64,
    priority: PriorityLevel,
    hasCaller: Bool = false,
    predecessor: WaitNode? = nil
  ) {
    self.key = key
    super.init(
      source: source,
      hash: hash,
      priority: priority,
      hasCaller: hasCaller,
      predecessor: predecessor
    )
  }

  override var label: String? { source?.label(of: key) }
}
