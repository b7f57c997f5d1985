/// A cacher that several processes share, such as a Redis server.
///
/// A cache with a shared cacher looks up its keys there before each fetch, so that all processes together fetch a key
/// once. The engine grants leases: the holder of the lease of a key fetches, and the other processes wait for its
/// value.
///
/// ```swift
/// func makeUsers(cacher: any SharedCacher<String>) -> MultiplexerMap<Int, String> {
///   MultiplexerMap(id: "users", cacher: cacher) { id in "user \(id)" }
/// }
/// ```
///
/// ## Copies in memory
///
/// Each process keeps copies in memory, which answer requests without a round trip while ``trust`` holds. The engine
/// announces changes of its entries: ``observeChanges(_:)``. A copy that has changed elsewhere, or that was made before
/// a gap in the announcements, is looked up again before it is used.
///
/// ## Removals
///
/// A lease ends when its key is removed or outdated, or when everything is removed. A value that was fetched under it
/// is then no longer stored, regardless of the order in which the messages arrive. The ``Cacher/generation`` counts the
/// removals of everything that have reached the process, and ``Cacher/store(_:)`` skips values from before one.
///
/// ## Storing
///
/// A value that was stored in a process must not replace a later change of another one. A cache does not send a value again
/// that could not be sent, or whose key was announced since it was stored, unless the engine compares entries, as the
/// engines of Plexus do. It calls ``outdate(_:)`` instead, so that all processes fetch the key again.
///
/// ## Failing
///
/// If the engine cannot be reached, requests fetch without it: within a process, requests of a key are still coalesced,
/// several keys are still one fetch, and values are not stored beyond the requests that waited for them, unless the
/// ``trust`` has a time to keep.
///
/// If the fetch of another process fails, the process that waits for it looks for the entry once more, without taking the
/// lease. That entry is the fallback of the cache, as far as its policy allows one for the failure.
///
/// ## Implementing a shared cacher
///
/// One shared cacher serves one cache of each process. The engine's clock determines the age of entries and the end of
/// leases. The conformance suite of `PlexusSharedTesting` checks an implementation.
///
/// ## Topics
///
/// ### Fetching together
/// - ``look(for:)``
/// - ``fill(_:under:)``
/// - ``release(_:because:)``
///
/// ### Changing
/// - ``outdate(_:)``
/// - ``remove(_:reach:)``
///
/// ### Trusting copies in memory
/// - ``trust``
/// - ``observeChanges(_:)``
public protocol SharedCacher<Value>: Cacher {
  /// The time until which copies in memory are used without asking the engine.
  ///
  /// It is read at every hit and must always be the same object.
  var trust: NearTrust { get }

  /// Looks for entries, and takes leases for the keys that have to be fetched.
  ///
  /// The call takes a single round trip for all keys with values, and at most one more for the other keys. At most one
  /// lease for a key is valid at any time, among all processes. Leases are renewed by the cacher until they are filled or
  /// released. A cache asks for at most 4,096 keys at once, and the calls for more keys follow one another.
  ///
  /// - Parameter wishes: The wish for each key.
  /// - Returns: The finding for each key, without the keys for which the lookup has failed.
  /// - Throws: An error if the lookup has failed for all keys, for example because the engine cannot be reached.
  func look(
    for wishes: [String: SharedCache.Wish]
  ) async throws -> [String: SharedCache.Finding<Value>]

  /// Stores a value that was fetched under a lease, and releases the lease.
  ///
  /// - Parameters:
  ///   - entry: The value. Its ``CacheEntry/storedAt`` is ignored: the engine records the time.
  ///   - lease: The lease.
  /// - Returns: Whether the value was stored.
  /// - Throws: An error if the engine cannot be reached; it can have stored the value.
  func fill(
    _ entry: CacheEntry<Value>,
    under lease: SharedCache.Lease
  ) async throws -> SharedCache.Fill

  /// Releases leases without a value.
  ///
  /// - Parameters:
  ///   - leases: The leases; lost ones are ignored.
  ///   - failure: The failure of the fetches, which is passed to the callers that wait for them; `nil` if one of these
  ///     callers should fetch.
  func release(_ leases: [SharedCache.Lease], because failure: SharedCache.Failure?) async

  /// Marks values as changed at their origin: from now on their entries serve as fallbacks only.
  ///
  /// Leases for these keys end.
  ///
  /// - Parameter keys: The keys.
  /// - Throws: An error if the engine cannot be reached; a ``CacherError`` if the failure concerns only some keys.
  func outdate(_ keys: Set<String>) async throws

  /// Removes entries; leases for their keys end.
  ///
  /// A removal by tags concerns every entry that was filled or stored with one of them, even if no process has its key
  /// in memory.
  ///
  /// - Parameters:
  ///   - what: The entries to remove.
  ///   - reach: The guarantee that holds when the call returns.
  /// - Throws: An error if the guarantee does not hold.
  func remove(_ what: SharedCache.Removal, reach: ClearReach) async throws

  /// Calls a handler with the changes that other processes make from now on, in order.
  ///
  /// A change of a key is announced to each cacher that has looked for it, filled it or stored it since its last
  /// announcement. The end of a lease without a value is announced to each cacher that has found the key busy, by
  /// ``SharedCache/Change/leased(_:)``, which does not count as the announcement of a change. The removal of the entries
  /// with a tag is announced to each cacher that has looked for a key with this tag, filled it or stored it, by
  /// ``SharedCache/Change/tagged(_:)`` or by the keys. An announcement is handled before anything that arrives later extends
  /// the ``trust`` or is returned by a call: a store that was refused because of a change returns after its announcement.
  /// Every gap in the announcements is followed by
  /// ``SharedCache/Change/everything``, and the trust ends before that. A gap whose beginning is noticed begins with
  /// ``SharedCache/Change/interrupted``.
  ///
  /// - Parameter handler: The handler, which does not block and is kept as long as the cacher.
  func observeChanges(_ handler: @escaping @Sendable (SharedCache.Change) -> Void)
}

extension SharedCacher {
  /// Returns the entry of a key, without taking a lease.
  ///
  /// - Parameter key: The key.
  /// - Returns: The entry, with a time of storage that is computed from its age; `nil` if there is none.
  /// - Throws: An error if the engine cannot be reached.
  public func entry(forKey key: String) async throws -> CacheEntry<Value>? {
    var wish = SharedCache.Wish()
    wish.takesLease = false
    guard case .entry(let entry, _, _) = try await look(for: [key: wish])[key] else { return nil }
    return entry
  }

  /// Removes the entries of some keys for all processes.
  ///
  /// - Parameter keys: The keys.
  /// - Throws: An error if the engine cannot be reached.
  public func removeEntries(forKeys keys: Set<String>) async throws {
    try await remove(.keys(keys), reach: .shared)
  }

  /// Removes every entry for all processes.
  ///
  /// - Throws: An error if the engine cannot be reached.
  public func removeAllEntries() async throws {
    try await remove(.all, reach: .shared)
  }

  /// Removes every entry for all processes: a shared cacher serves one cache.
  ///
  /// - Parameter prefix: The beginning of the keys of that cache.
  /// - Throws: An error if the engine cannot be reached.
  public func removeEntries(withPrefix prefix: String) async throws {
    try await remove(.all, reach: .shared)
  }
}
