/// The storage behind a multiplexer, where its values outlive the process.
///
/// The `PlexusStorage` module has two that keep JSON in files: `JSONFileCacher` and `JSONLogCacher`.
/// One of your own may stand on a database or a server:
///
/// ```swift
/// actor MemoryCacher: Cacher {
///   private var entries: [String: CacheEntry<String>] = [:]
///
///   func entry(forKey key: String) -> CacheEntry<String>? { entries[key] }
///
///   func store(_ new: [String: CacheEntry<String>]) {
///     entries.merge(new) { _, newer in newer }
///   }
///
///   func removeEntries(forKeys keys: Set<String>) {
///     for key in keys { entries[key] = nil }
///   }
///
///   func removeAllEntries() { entries = [:] }
/// }
/// ```
///
/// <doc:writing-a-cacher> has a complete one.
///
/// ## Whole entries
///
/// A reader gets an entry as it was stored, the newest one or an older one, or none: never parts of
/// it and never another key's. After a crash that holds, too. Keys are any strings, the empty one, long ones
/// and ones that look like paths included.
///
/// ## Durability
///
/// When ``store(_:)``, ``removeEntries(forKeys:)`` or ``removeAllEntries()`` returns, what it did
/// survives a crash and a power cut. In particular nothing that was removed comes back.
///
/// ## Failing
///
/// An entry that is damaged, cut short, foreign or from an older version is no error but a miss. An
/// operation throws if the storage itself fails; multiplexers count that and go on, so that no request
/// fails because of storage. A batch does what it can and then throws a ``CacherError`` that names
/// the rest.
///
/// ## Concurrency and cancellation
///
/// Any task may call any operation at any time. Of two that overlap and touch the same key either may
/// take effect last; one that begins after another has returned sees its effect. When the calling task is
/// cancelled, ``store(_:)`` may leave out entries, which it names with a `CancellationError` as the
/// reason. Reading and removing are carried out nevertheless.
public protocol Cacher<Value>: Sendable {
  /// The type of the values.
  associatedtype Value: Sendable

  /// How much has been removed so far, by whatever instance or process; `nil` if the cacher does not count that.
  ///
  /// Multiplexers read it before each fetch and each `store`, and hand it back with the value. It must not block. The
  /// default is `nil`: a value that another instance fetched before a removal can then be written after it.
  var generation: CacheGeneration? { get }

  /// Returns the entry of a key.
  ///
  /// - Parameter key: The key.
  /// - Returns: The entry as it was stored, however old it is; `nil` if there is none that can be used.
  /// - Throws: An error of the storage itself.
  func entry(forKey key: String) async throws -> CacheEntry<Value>?

  /// Stores entries in place of those that their keys have.
  ///
  /// An entry that cannot be stored leaves the older one of its key untouched or removes it, and does not
  /// stop the others. One whose key has been removed since its ``CacheEntry/generation`` is left out, which is no
  /// failure.
  ///
  /// - Parameter entries: The entries by key.
  /// - Throws: A ``CacherError`` that names the keys whose entries were not stored.
  func store(_ entries: [String: CacheEntry<Value>]) async throws

  /// Removes the entries of some keys; those that have none are ignored.
  ///
  /// - Parameter keys: The keys.
  /// - Throws: A ``CacherError`` that names the keys whose entries may still be there.
  func removeEntries(forKeys keys: Set<String>) async throws

  /// Removes every entry.
  ///
  /// - Throws: An error of the storage, which may still have entries then.
  func removeAllEntries() async throws

  /// Removes every entry whose key begins with some characters.
  ///
  /// A ``MultiplexerMap`` with an id calls it to clear its own entries. The default implementation removes all
  /// entries: implement it in a cacher that several maps share.
  ///
  /// - Parameter prefix: The beginning of the keys.
  /// - Throws: An error of the storage, which may still have such entries then.
  func removeEntries(withPrefix prefix: String) async throws
}

extension Cacher {
  /// No generation: removals are not counted.
  public var generation: CacheGeneration? { nil }

  /// Removes every entry.
  ///
  /// - Parameter prefix: The beginning of the keys that have to be removed.
  /// - Throws: An error of the storage, which may still have entries then.
  public func removeEntries(withPrefix prefix: String) async throws {
    try await removeAllEntries()
  }
}

/// A cacher that reads several entries with one call, such as a database.
///
/// A map that fetches several keys at once reads their stored copies with one call. From other cachers it
/// reads up to 16 entries at a time.
public protocol BatchReadingCacher<Value>: Cacher {
  /// Returns the entries of some keys.
  ///
  /// - Parameter keys: The keys.
  /// - Returns: The entries as they were stored, without the keys that have none that can be used.
  /// - Throws: An error of the storage itself.
  func entries(forKeys keys: Set<String>) async throws -> [String: CacheEntry<Value>]
}
