/// The persistent storage of a multiplexer.
///
/// The `PlexusStorage` module has two cachers that write JSON to files: `JSONFileCacher` and `JSONLogCacher`. Your own
/// can use a database or a server:
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
/// <doc:writing-a-cacher> has a complete example.
///
/// ## Whole entries
///
/// A reader gets an entry exactly as it was stored, the newest or an older one, or none. It never gets parts of an
/// entry, nor the entry of another key, also after a crash. Keys can be any strings, including empty ones, long ones
/// and ones that look like paths.
///
/// ## Durability
///
/// When ``store(_:)``, ``removeEntries(forKeys:)`` or ``removeAllEntries()`` returns, its effect survives a crash and a
/// power failure. In particular, removed entries do not return.
///
/// ## Failures
///
/// An entry that is damaged, truncated, foreign or of an older version is a miss, not an error. A method throws if the
/// storage itself fails. Multiplexers count such errors and continue, so that no request fails because of storage. A
/// batch processes as many entries as possible and then throws a ``CacherError`` that names the rest.
///
/// ## Concurrency and cancellation
///
/// Any task can call any method at any time. If two calls for the same key overlap, either can take effect last. A call
/// that starts after another has returned sees its effect. If the calling task is cancelled, ``store(_:)`` may omit
/// entries, which it reports with a `CancellationError` as the reason. Reading and removing are completed.
///
/// ## Topics
///
/// ### Reading
/// - ``entry(forKey:)``
///
/// ### Storing and removing
/// - ``store(_:)``
/// - ``removeEntries(forKeys:)``
/// - ``removeEntries(withPrefix:)``
/// - ``removeAllEntries()``
///
/// ### Counting removals
/// - ``generation``
public protocol Cacher<Value>: Sendable {
  /// The type of the values.
  associatedtype Value: Sendable

  /// The number of removals so far, by any instance or process; `nil` if the cacher does not count them.
  ///
  /// Multiplexers read it before each fetch and each `store`, and pass it back with the value. It must not block. With
  /// the default, `nil`, a value that another instance has fetched before a removal can be written after it.
  ///
  /// Refreshes and clears by tag are not removals: multiplexers of one process that share a cacher keep them in memory.
  /// `JSONFileCacher` and `JSONLogCacher` also record them for other processes.
  var generation: CacheGeneration? { get }

  /// Returns the entry of a key.
  ///
  /// - Parameter key: The key.
  /// - Returns: The entry as it was stored, however old it is; `nil` if there is no usable one.
  /// - Throws: An error of the storage itself.
  func entry(forKey key: String) async throws -> CacheEntry<Value>?

  /// Stores entries, which replace the previous ones of their keys.
  ///
  /// If an entry cannot be stored, the previous one stays or is removed, and the others are stored. An entry whose key
  /// has been removed since its ``CacheEntry/generation`` is omitted, which is not a failure.
  ///
  /// - Parameter entries: The entries by key.
  /// - Throws: A ``CacherError`` that names the keys whose entries were not stored.
  func store(_ entries: [String: CacheEntry<Value>]) async throws

  /// Removes the entries of some keys, and ignores keys without an entry.
  ///
  /// - Parameter keys: The keys.
  /// - Throws: A ``CacherError`` that names the keys whose entries may still exist.
  func removeEntries(forKeys keys: Set<String>) async throws

  /// Removes all entries.
  ///
  /// - Throws: An error of the storage, which may still have entries.
  func removeAllEntries() async throws

  /// Removes all entries whose keys have a prefix.
  ///
  /// A ``MultiplexerMap`` with an id calls this method to clear its own entries. The default implementation removes all
  /// entries, so implement it in a cacher that several maps share.
  ///
  /// - Parameter prefix: The prefix of the keys.
  /// - Throws: An error of the storage, which may still have such entries.
  func removeEntries(withPrefix prefix: String) async throws
}

extension Cacher {
  /// The default: removals are not counted.
  public var generation: CacheGeneration? { nil }

  /// Removes all entries.
  ///
  /// - Parameter prefix: The prefix of the keys to remove.
  /// - Throws: An error of the storage, which may still have entries.
  public func removeEntries(withPrefix prefix: String) async throws {
    try await removeAllEntries()
  }
}
