/// A cacher that records marks for all instances and processes, and can erase what it has removed.
///
/// An entry whose fetch began before a mark is not stored after a clear of one of its tags, and has
/// ``CacheEntry/isCleared`` or ``CacheEntry/isOutdated`` when it is read.
package protocol MarkingCacher<Value>: Cacher {
  /// Records marks in order, each of which counts as one in ``CacheGeneration/marks``.
  ///
  /// - Parameter marks: The marks. When the call returns, clears among them are durable.
  /// - Returns: The generation after the last one.
  /// - Throws: An error of the storage, which may not have recorded them.
  func note(_ marks: [CacheMark]) async throws -> CacheGeneration

  /// Removes the bytes of removed entries, and of temporary files of processes that were killed.
  ///
  /// - Parameter isComplete: Whether the bytes of replaced entries are removed, too.
  /// - Throws: An error of the storage, in which bytes may remain.
  func erase(isComplete: Bool) async throws
}
