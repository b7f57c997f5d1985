// @unchecked Sendable: an identity holds a `Sendable` value, of which `AnyHashable` does not say that it is.

/// Something that a ``MuxRepository`` can clear together with others.
///
/// Multiplexers and maps need not be told about it: they are registered as they are. Conform a cache
/// of your own to it.
public protocol RepositoryMember: AnyObject, Sendable {
  /// Forgets everything in memory, and sees to it that nothing that began before will be kept.
  ///
  /// It must not wait.
  nonisolated func cutOff()

  /// The same, and from now on until ``release()`` nothing is kept of what begins.
  ///
  /// What begins now may still read what other members hold of before. It must not wait.
  nonisolated func hold()

  /// What begins from now on is kept again: nobody holds anything of before any more.
  ///
  /// Called once for each call of ``hold()``. It must not wait.
  nonisolated func release()

  /// The name by which the member appears in the errors of a repository.
  nonisolated var name: String { get }

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
}

extension RepositoryMember {
  /// Cuts off what there is.
  public nonisolated func hold() {
    cutOff()
  }

  /// Cuts off what has begun since ``hold()``.
  public nonisolated func release() {
    cutOff()
  }

  /// The name of the type.
  public nonisolated var name: String { "\(Self.self)" }

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

  func removeAll() async throws {
    try await calls.run(.removal) { try await self.removeAllEntries() }
  }
}

extension KeyedCache: CopyKeeper {
  func withholdCopies() {
    shards.withEachLock { $0.ledger?.readBlocks += 1 }
  }

  var copies: (any StoredCopies)? { storage }

  func releaseCopies() {
    shards.withEachLock { $0.ledger?.readBlocks -= 1 }
  }
}

extension KeyedCache: RepositoryMember {
  @usableFromInline var name: String { source.name }

  @usableFromInline
  func removeStored() async throws {
    try await removeStored(named: nil)
  }
}
