/// A cache of this library as a member of a ``MuxRepository``.
///
/// Its stored copies can belong to several members, and other processes can share its values.
protocol CacheMember: RepositoryMember {
  /// Disables the use of stored copies, except copies that this member itself is about to write.
  func withholdCopies()

  /// Ends the effect of one call of ``withholdCopies()``.
  func releaseCopies()

  /// The stored copies, if there is a cacher.
  var copies: (any StoredCopies)? { get }

  /// Whether its cacher is shared.
  var isShared: Bool { get }

  /// Removes the values in memory, and detaches the fetches in progress.
  func forgetHere()

  /// Removes the entries of its shared cacher, if any, and waits until no process uses its copies of them.
  ///
  /// - Throws: An error if a process can still use copies.
  func removeEverywhere() async throws

  /// Removes the values with one of some tags in memory, and detaches their fetches in progress.
  func forgetHere(tags: Set<CacheTag>)

  /// Removes the entries with one of some tags from its shared cacher, if any, and waits until no process uses its
  /// copies of them.
  ///
  /// - Throws: An error if a process can still use copies.
  func removeEverywhere(tags: Set<CacheTag>) async throws
}
