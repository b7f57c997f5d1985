import Plexus
import PlexusStorage

/// A cacher of another process: it shares its files, and is not equal to other cachers of these files.
final class ApartCacher<Value: Sendable>: MarkingCacher {
  private let base: any MarkingCacher<Value>

  init(_ base: any MarkingCacher<Value>) {
    self.base = base
  }

  var generation: CacheGeneration? { base.generation }

  func entry(forKey key: String) async throws -> CacheEntry<Value>? {
    try await base.entry(forKey: key)
  }

  func store(_ entries: [String: CacheEntry<Value>]) async throws { try await base.store(entries) }

  func removeEntries(forKeys keys: Set<String>) async throws {
    try await base.removeEntries(forKeys: keys)
  }

  func removeAllEntries() async throws { try await base.removeAllEntries() }

  func removeEntries(withPrefix prefix: String) async throws {
    try await base.removeEntries(withPrefix: prefix)
  }

  func note(_ marks: [CacheMark]) async throws -> CacheGeneration { try await base.note(marks) }

  func erase(isComplete: Bool) async throws { try await base.erase(isComplete: isComplete) }
}

extension CacherKind {
  /// Opens a cacher as another process does.
  func openApart(_ path: String) throws -> any Cacher<Person> {
    guard let cacher = try open(path) as? any MarkingCacher<Person> else { throw Fetched() }
    return ApartCacher(cacher)
  }
}
