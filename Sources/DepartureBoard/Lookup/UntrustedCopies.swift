import Plexus

/// Stored copies that are never fresh: the origin is asked whether they still hold.
///
/// The day begins anew with each start, so what an earlier run has left is from another day, however
/// young it is by the clock on the wall.
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
