/// A cache that a ``MuxRepository`` clears together with others.
///
/// Multiplexers and maps do not conform: they are registered directly. Conform your own cache.
///
/// ## Topics
///
/// ### Clearing
/// - ``pause()``
/// - ``invalidate()``
/// - ``removeStored()``
/// - ``resume()``
/// - ``clearMemory()``
///
/// ### Clearing by tags
/// - ``forget(tags:)``
/// - ``clear(tags:)``
///
/// ### Writing
/// - ``flush()``
///
/// ### Monitoring
/// - ``name``
/// - ``statistics``
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

  /// The counters of the member; `nil` if it does not count.
  nonisolated var statistics: CacheStatistics? { get }

  /// Writes unwritten changes to persistent storage.
  ///
  /// - Throws: The error of the storage.
  nonisolated func flush() async throws

  /// Removes the stored copies, durably when it returns.
  ///
  /// - Throws: The error of the storage, which may still have some of them.
  nonisolated func removeStored() async throws

  /// Removes everything from memory, without affecting work in progress.
  nonisolated func clearMemory()

  /// Discards the values in memory that have one of some tags, and the results of work in progress for them.
  ///
  /// Called for all members before the first ``clear(tags:)``. Must not block.
  nonisolated func forget(tags: Set<CacheTag>)

  /// Discards the values that have one of some tags once more, and their stored copies.
  ///
  /// - Throws: The error of the storage, which may still have some of the copies.
  nonisolated func clear(tags: Set<CacheTag>) async throws
}

extension RepositoryMember {
  /// The default: values have no tags.
  public nonisolated func forget(tags: Set<CacheTag>) {}

  /// The default: values have no tags.
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

  /// The default: there are no stored copies.
  public nonisolated func flush() async throws {}

  /// The default: there are no stored copies.
  public nonisolated func removeStored() async throws {}
}
