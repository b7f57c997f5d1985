public import Plexus

extension MediaLoader: RepositoryMember {
  /// Sets all files aside, so that no request finds them, and keeps no download that has begun.
  public nonisolated func invalidate() {
    core.invalidate()
    prefetches.cancelAll()
  }

  /// Removes the files that were set aside.
  ///
  /// - Throws: The system's error if something is left.
  @concurrent
  public nonisolated func removeStored() async throws {
    try core.removeAside()
  }

  /// Does nothing: a loader keeps no files in memory.
  public nonisolated func clearMemory() {}
}
