public import Plexus

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A cacher that keeps each entry in a readable file of its own.
///
/// It suits a few values that are stored now and then, such as those of single multiplexers, and people who
/// want to look at them: each file is one JSON object. Many small values are better off in a
/// ``JSONLogCacher``, which stores a batch with one write.
///
/// ```swift
/// import Plexus
/// import PlexusStorage
///
/// let cacher = JSONFileCacher<[String]>()
/// let entry = CacheEntry(value: ["Ada", "Grace"], storedAt: .seconds(1_700_000_000))
/// try await cacher.store(["names": entry])
/// let names = try await cacher.entry(forKey: "names")?.value ?? []
/// print(names)
/// ```
///
/// ## Files
///
/// The directory is created at the first store or removal, with those above it, for the owner's eyes only (0700; files
/// 0600). A directory that exists keeps its permissions. Several cachers can share one, also with cachers of
/// other types: a file's name begins with the type's, followed by the key or, if it could not be a file name
/// everywhere, by its SHA-256 digest. Keys that are equal have one file, also if they are spelled differently in
/// Unicode.
///
/// ## Failing
///
/// A file that is damaged, cut short, of another schema or another key's counts as none, and the next
/// store replaces it. Operations throw a ``StorageError``, or a `CacherError` with one for each key, if the
/// system fails: no permission, no space. The older entry of a key that could not be stored stays.
///
/// ## Crashes and several processes
///
/// A file is written under another name, made durable and then renamed, so at any time each key has its
/// old entry or the new one, whole. What returns is durable. Any number of instances and processes
/// may use one directory at once. What a writer that was killed has left behind is removed at the first
/// use of an instance. What one of them removes is written back by no other one that had it in memory: a small file,
/// with the ending `.removals`, tells of the last 1,024 removals, and a value that a multiplexer had before more of
/// them is not written.
///
/// ## Slow disks
///
/// Encoding and decoding happen where tasks run; the disk is waited for on a thread of the cacher's own.
/// Copies of one cacher share it, and wait for each other. A cancelled `store` leaves out what it has not
/// begun to write.
///
/// - Important: Cachers in one directory whose values have one type share their entries, and one that is
///   cleared clears those of all. Give each a directory of its own; the default one is that of the program.
public struct JSONFileCacher<Value: Codable & Sendable>: BatchReadingCacher {
  private let folder: EntryFolder
  private let envelope: Envelope<Value>

  /// Creates a cacher; the disk is not touched yet.
  ///
  /// - Parameters:
  ///   - directory: Where the files are; if there is none, a folder of this program in the user's
  ///     caches directory: `$XDG_CACHE_HOME` or `~/.cache` on Linux.
  ///   - byteLimit: How many bytes the files of this type in the directory may have together. Before a new
  ///     one exceeds that, the oldest by `storedAt` are removed; one that is larger than the limit is
  ///     not stored. The limit costs a look at all files for every 64 that are stored.
  ///   - schema: What the values are, such as `"profile 2"`: entries stored under another one are not
  ///     used. The full name of the type if there is none.
  /// - Precondition: The directory is a file URL, and the byte limit is positive.
  public init(directory: URL? = nil, byteLimit: Int? = nil, schema: String? = nil) {
    self.init(
      path: directory.map(path(of:)) ?? defaultDirectoryPath(),
      byteLimit: byteLimit,
      schema: schema,
      fileSystem: POSIXFileSystem()
    )
  }

  init(path: String, byteLimit: Int?, schema: String?, fileSystem: any FileSystem) {
    precondition(byteLimit ?? 1 > 0, "A byte limit must be positive; leave it out for no limit")
    folder = EntryFolder(
      path: path,
      names: FileNames(Value.self),
      byteLimit: byteLimit,
      fileSystem: fileSystem
    )
    envelope = Envelope(schema: schema ?? FileNames.fullName(of: Value.self))
  }

  /// How much has been removed from the files of this type in the directory so far, by whatever instance or process.
  public var generation: CacheGeneration? { folder.generation }

  /// Returns the entry of a key.
  ///
  /// - Parameter key: The key.
  /// - Returns: The entry, however old it is; `nil` if there is none that is whole and of this schema.
  /// - Throws: A ``StorageError`` if its file cannot be read.
  @concurrent
  public func entry(forKey key: String) async throws -> CacheEntry<Value>? {
    let key = key.canonicalSpelling
    guard let bytes = try await folder.read(key) else { return nil }
    return envelope.decode(bytes, key: key)
  }

  /// Returns the entries of some keys.
  ///
  /// - Parameter keys: The keys.
  /// - Returns: The entries, however old they are, without those that are damaged or of another schema.
  /// - Throws: A ``StorageError`` if there is a file that cannot be read, and no other one that can.
  @concurrent
  public func entries(forKeys keys: Set<String>) async throws -> [String: CacheEntry<Value>] {
    let contents = try await folder.read(Set(keys.map(\.canonicalSpelling)))
    var entries: [String: CacheEntry<Value>] = [:]
    for (key, bytes) in contents { entries[key] = envelope.decode(bytes, key: key) }
    return entries
  }

  /// Stores entries, durably when it returns, but for those that have been removed since their generation.
  ///
  /// - Parameter entries: The entries by key.
  /// - Throws: A `CacherError` that names the keys whose entries were not stored; their older entries
  ///   are still there.
  @concurrent
  public func store(_ entries: [String: CacheEntry<Value>]) async throws {
    var failures: [String: any Error] = [:]
    var files: [EntryFolder.File] = []
    for (key, entry) in entries {
      let key = key.canonicalSpelling
      do {
        let bytes = try envelope.encode(entry, key: key)
        files.append(
          EntryFolder.File(
            key: key,
            bytes: bytes,
            storedAt: entry.storedAt,
            generation: entry.generation
          )
        )
      } catch {
        failures[key] = error
      }
    }
    files.sort { ($0.storedAt, $0.key) < ($1.storedAt, $1.key) }
    if !files.isEmpty { failures.merge(await folder.write(files)) { first, _ in first } }
    if !failures.isEmpty { throw CacherError(failures: failures) }
  }

  /// Removes the entries of some keys, durably when it returns, also if the task is cancelled.
  ///
  /// - Parameter keys: The keys.
  /// - Throws: A `CacherError` that names the keys whose entries may still be there.
  @concurrent
  public func removeEntries(forKeys keys: Set<String>) async throws {
    guard !keys.isEmpty else { return }
    let failures = await folder.remove(Set(keys.map(\.canonicalSpelling)))
    if !failures.isEmpty { throw CacherError(failures: failures) }
  }

  /// Removes every entry of this type in the directory, durably when it returns, also if the task is
  /// cancelled.
  ///
  /// - Throws: A ``StorageError`` if something may still be there.
  @concurrent
  public func removeAllEntries() async throws {
    try await folder.removeAll()
  }

  /// Removes every entry of this type in the directory whose key begins with some characters, durably when it
  /// returns, also if the task is cancelled.
  ///
  /// Files whose names do not show the key are read for that.
  ///
  /// - Parameter prefix: The beginning of the keys.
  /// - Throws: A ``StorageError`` if something may still be there.
  @concurrent
  public func removeEntries(withPrefix prefix: String) async throws {
    let prefix = prefix.canonicalSpelling
    try await folder.removeAll(withPrefix: prefix) { bytes in
      // Nothing can be said of a damaged file, which is no entry of any key.
      envelope.key(in: bytes)?.utf8.starts(with: prefix.utf8) ?? true
    }
  }
}

extension JSONFileCacher: Hashable {
  /// Returns whether two cachers share their files.
  public static func == (left: Self, right: Self) -> Bool {
    left.folder.id == right.folder.id
  }

  /// Hashes what tells the files of the cacher from those of others.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(folder.id)
  }
}
