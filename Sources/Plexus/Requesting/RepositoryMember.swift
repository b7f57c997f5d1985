// @unchecked Sendable: an identity holds a `Sendable` value, of which `AnyHashable` does not say that it is.

/// Something that a ``MuxRepository`` can clear together with others.
///
/// Multiplexers and maps need not be told about it: they are registered as they are. Conform a cache
/// of your own to it.
public protocol RepositoryMember: AnyObject, Sendable {
  /// Discards everything in memory, and the results of all work that is in progress.
  ///
  /// Must not block.
  nonisolated func invalidate()

  /// Discards everything in memory, and the results of all work that is in progress or starts before ``resume()``.
  ///
  /// Work that starts now may still read values that other members have not discarded yet. Must not block.
  nonisolated func pause()

  /// Resumes storing the results of work that starts after this call.
  ///
  /// Called once for each call of ``pause()``. Must not block.
  nonisolated func resume()

  /// The name by which the member appears in the errors of a repository.
  nonisolated var name: String { get }

  /// What has happened in the member so far; `nil` if it does not count that.
  nonisolated var statistics: CacheStatistics? { get }

  /// Writes what has changed to where it outlives the process.
  ///
  /// - Throws: What could not be written, and why.
  nonisolated func flush() async throws

  /// Removes the stored copies; they are gone for good when it returns.
  ///
  /// - Throws: Why some of them are still there.
  nonisolated func removeStored() async throws

  /// Forgets everything in memory. What is under way goes on.
  nonisolated func clearMemory()

  /// Discards the values in memory that have one of some tags, and the results of work in progress for them.
  ///
  /// Called for all members before the first ``clear(tags:)``. Must not block.
  nonisolated func forget(tags: Set<CacheTag>)

  /// Discards the values that have one of some tags once more, and their stored copies.
  ///
  /// - Throws: Why some of the copies are still there.
  nonisolated func clear(tags: Set<CacheTag>) async throws
}

extension RepositoryMember {
  /// Forgets nothing: values have no tags.
  public nonisolated func forget(tags: Set<CacheTag>) {}

  /// Forgets nothing: values have no tags.
  public nonisolated func clear(tags: Set<CacheTag>) async throws {}

  /// Calls ``invalidate()``.
  public nonisolated func pause() {
    invalidate()
  }

  /// Calls ``invalidate()``, which discards work that has started since ``pause()``.
  public nonisolated func resume() {
    invalidate()
  }

  /// The name of the type.
  public nonisolated var name: String { "\(Self.self)" }

  /// No statistics.
  public nonisolated var statistics: CacheStatistics? { nil }

  /// Writes nothing: what is in memory only has no stored copies.
  public nonisolated func flush() async throws {}

  /// Removes nothing: what is in memory only has no stored copies.
  public nonisolated func removeStored() async throws {}
}

/// A member with stored copies that others may share.
protocol CopyKeeper: AnyObject, Sendable {
  /// From now on no stored copy is used, but for what this member itself is about to write.
  func withholdCopies()

  /// Called once for each call of ``withholdCopies()``.
  func releaseCopies()

  /// The stored copies, if there is a cacher.
  var copies: (any StoredCopies)? { get }
}

/// The stored copies of a member, which can be removed after its release.
protocol StoredCopies: AnyObject, Sendable {
  /// The same for all that have the same copies, as far as that can be told.
  var id: StoredCopiesID { get }

  /// Whether other processes share them.
  var isShared: Bool { get }

  /// Removes the copies.
  func removeAll() async throws
}

/// A cacher, and the part of its entries that belongs to one member.
struct StoredCopiesID: Hashable, @unchecked Sendable {
  private let cacher: AnyHashable
  private let part: String?

  init(_ cacher: any Cacher, part: String?, owner: AnyObject) {
    // Other values cannot be compared: each counts as a cacher of its own.
    self.cacher =
      (cacher as? any Hashable).map { AnyHashable($0) }
      ?? AnyHashable(
        type(of: cacher) is AnyClass
          ? ObjectIdentifier(cacher as AnyObject) : ObjectIdentifier(owner)
      )
    self.part = part
  }
}

extension Storage: StoredCopies {
  var id: StoredCopiesID {
    StoredCopiesID(cacher, part: onlyName ?? prefix, owner: self)
  }

  var isShared: Bool { link != nil }

  func removeAll() async throws {
    try await calls.run(.removal) { try await self.removeAllEntries() }
  }
}

extension KeyedCache: CopyKeeper {
  func withholdCopies() {
    shards.withEachLock { $0.pendingWrites?.readBlocks += 1 }
  }

  var copies: (any StoredCopies)? { storage }

  func releaseCopies() {
    shards.withEachLock { $0.pendingWrites?.readBlocks -= 1 }
  }
}

extension KeyedCache: RepositoryMember {
  @usableFromInline var name: String { source.name }

  @usableFromInline var statistics: CacheStatistics? { currentStatistics }

  @usableFromInline
  func removeStored() async throws {
    try await removeStored(named: nil)
  }
}
