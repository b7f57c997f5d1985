import Plexus

/// A cacher whose copies are always stale, so that the origin revalidates them.
///
/// The day restarts with each run, so a copy from an earlier run is outdated even if it is recent by the
/// wall clock.
struct UntrustedCopies<Value: Sendable>: Cacher {
  private let copies: any Cacher<Value>

  init(_ copies: some Cacher<Value>) {
    self.copies = copies
  }

  func entry(forKey key: String) async throws -> CacheEntry<Value>? {
    var entry = try await copies.entry(forKey: key)
    entry?.timeToLive = .zero
    return entry
  }

  func store(_ entries: [String: CacheEntry<Value>]) async throws {
    try await copies.store(entries)
  }

  func removeEntries(forKeys keys: Set<String>) async throws {
    try await copies.removeEntries(forKeys: keys)
  }

  func removeAllEntries() async throws {
    try await copies.removeAllEntries()
  }
}
