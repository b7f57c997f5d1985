import Dispatch
import FoundationEssentials
import Glibc
import Plexus
import PlexusHashing
import SwiftOverlayShims

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
/// The directory is created at the first store, with those above it, for the owner's eyes only (0700; files
/// 0600). A directory that exists keeps its permissions. Several cachers can share one, also with cachers of
/// other types: a file's name begins with the type's, followed by the key or, if it could not be a file name
/// everywhere, by its SHA-256 digest. Two keys that are spelled differently in Unicode have two files even if
/// `==` calls them equal.
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
/// use of an instance.
///
/// ## Slow disks
///
/// Encoding and decoding happen where tasks run; the disk is waited for on a thread of the cacher's own.
/// Copies of one cacher share it, and wait for each other. A cancelled `store` leaves out what it has not
/// begun to write.
///
/// - Important: Cachers in one directory whose values have one type share their entries, and one that is
///   cleared clears those of all. Give each a directory of its own; the default one is that of the program.
public struct JSONFileCacher<Value> : Plexus.Cacher where Value : Decodable, Value : Encodable, Value : Sendable {

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
    public init(directory: URL? = nil, byteLimit: Int? = nil, schema: String? = nil)

    /// Returns the entry of a key.
    ///
    /// - Parameter key: The key.
    /// - Returns: The entry, however old it is; `nil` if there is none that is whole and of this schema.
    /// - Throws: A ``StorageError`` if its file cannot be read.
    @concurrent public func entry(forKey key: String) async throws -> Plexus.CacheEntry<Value>?

    /// Stores entries, durably when it returns.
    ///
    /// - Parameter entries: The entries by key.
    /// - Throws: A `CacherError` that names the keys whose entries were not stored; their older entries
    ///   are still there.
    @concurrent public func store(_ entries: [String : Plexus.CacheEntry<Value>]) async throws

    /// Removes the entries of some keys, durably when it returns, also if the task is cancelled.
    ///
    /// - Parameter keys: The keys.
    /// - Throws: A `CacherError` that names the keys whose entries may still be there.
    @concurrent public func removeEntries(forKeys keys: Set<String>) async throws

    /// Removes every entry of this type in the directory, durably when it returns, also if the task is
    /// cancelled.
    ///
    /// - Throws: A ``StorageError`` if something may still be there.
    @concurrent public func removeAllEntries() async throws
}

/// A cacher that appends all entries, as JSON, to one file with checksums.
///
/// It suits maps and other sources of many small values: a batch is one write, made durable once, however
/// many entries it has, and an entry is read at its place in the file.
///
/// ```swift
/// import Plexus
/// import PlexusStorage
///
/// let cacher = try JSONLogCacher<String>()
/// try await cacher.store([
///   "1": CacheEntry(value: "Ada", storedAt: .seconds(1_700_000_000)),
///   "2": CacheEntry(value: "Grace", storedAt: .seconds(1_700_000_000)),
/// ])
/// try await cacher.removeEntries(forKeys: ["1"])
/// ```
///
/// ## The file
///
/// It lies in the directory under a name that begins with the type's, so that cachers of several types can
/// share one. The directory is created if there is none, with those above it, for the owner's eyes only
/// (0700; the file 0600). Where each entry is, is kept in memory: the keys and about 100 bytes for each. When
/// more than half of the file has been replaced or removed, what is left is written to a new file, which then
/// takes the old one's place.
///
/// ## Damage
///
/// Whatever the file holds, opening it does not fail: a file of another schema, version or program, or one
/// whose beginning is damaged, is replaced by an empty one. The end of a write that was cut short is cut
/// off. A damaged value is a miss. If it cannot be told whose record is damaged, all entries that were stored
/// before it are misses, too, for it may have been what replaced or removed them.
///
/// ## Crashes and several processes
///
/// What returns is durable, and at any time each key has its old entry or the new one, whole. Any number of
/// instances and processes may use one directory at once, and see what the others have stored and removed:
/// the file is locked while one of them writes, and never for longer.
///
/// ## Failing
///
/// Operations throw a ``StorageError``, or a `CacherError` with one for each key, if the system fails: no
/// permission, no space, or somebody who keeps the file locked for more than ten seconds. The older entry
/// of a key that could not be stored stays.
///
/// ## Slow disks
///
/// Encoding and decoding happen where tasks run; the disk is waited for on a thread of the cacher's own. A
/// cancelled `store` leaves out what it has not begun to write.
///
/// - Important: Cachers in one directory whose values have one type share their entries, and one that is
///   cleared clears those of all. Give each a directory of its own; the default one is that of the program.
final public actor JSONLogCacher<Value> : Plexus.Cacher where Value : Decodable, Value : Encodable, Value : Sendable {

    /// Opens the log of a directory, or creates one.
    ///
    /// What the file holds is read by the first operation, not here.
    ///
    /// - Parameters:
    ///   - directory: Where the file is; if there is none, a folder of this program in the user's
    ///     caches directory: `$XDG_CACHE_HOME` or `~/.cache` on Linux.
    ///   - byteLimit: How many bytes the file may have. Before it exceeds that, the oldest entries by
    ///     `storedAt` are removed: as many as necessary, or with a limit of more than 1 MiB as many as
    ///     make an eighth of it free. An entry that is larger than the limit is not stored.
    ///   - schema: What the values are, such as `"profile 2"`: the entries stored under another one are
    ///     removed. The full name of the type if there is none.
    /// - Throws: A ``StorageError`` if there is no file and none can be created, or it must not be read and
    ///   written; never because of what the file holds.
    /// - Precondition: The directory is a file URL, and the byte limit is positive.
    public convenience init(directory: URL? = nil, byteLimit: Int? = nil, schema: String? = nil) throws

    /// Returns the entry of a key.
    ///
    /// - Parameter key: The key.
    /// - Returns: The entry, however old it is; `nil` if there is none that is whole and can be decoded.
    /// - Throws: A ``StorageError`` if the file cannot be read.
    @concurrent nonisolated public func entry(forKey key: String) async throws -> Plexus.CacheEntry<Value>?

    /// Stores entries, durably when it returns.
    ///
    /// - Parameter entries: The entries by key.
    /// - Throws: A `CacherError` that names the keys whose entries were not stored; their older entries
    ///   are still there.
    @concurrent nonisolated public func store(_ entries: [String : Plexus.CacheEntry<Value>]) async throws

    /// Removes the entries of some keys, durably when it returns, also if the task is cancelled.
    ///
    /// - Parameter keys: The keys.
    /// - Throws: A `CacherError` that names the keys whose entries may still be there.
    @concurrent nonisolated public func removeEntries(forKeys keys: Set<String>) async throws

    /// Removes every entry, durably when it returns, also if the task is cancelled.
    ///
    /// - Throws: A ``StorageError`` if something may still be there.
    @concurrent nonisolated public func removeAllEntries() async throws
}

/// The reasons for which the cachers of this module fail.
///
/// What a value's own `encode(to:)` throws is passed on as it is.
@nonexhaustive public enum StorageError : Error, Hashable, Sendable {

    /// A call to the system failed.
    ///
    /// The code is the system's `errno`, such as `ENOSPC` for a full disk.
    case system(operation: String, path: String, code: Int32)

    /// An entry is larger than everything that may be kept; nothing else was removed to make room.
    case entryTooLarge(byteCount: Int, limit: Int)

    /// Another process has kept a file locked for longer than ten seconds.
    case locked(path: String)
}

extension StorageError : CustomStringConvertible {

    /// A sentence that says what happened and, where that is possible, what to do about it.
    public var description: String { get }
}

