extension CacheEngine {
  /// The result of one turn of removals and writes.
  ///
  /// It is not nested in ``Storage``, whose types of keys and values it does not depend on.
  struct StorageReport: Sendable {
    /// The error of the removal of all copies, if there is one.
    var completeRemovalError: (any Error)?
    /// The error because of which refreshes or clears by tag are not recorded, or bytes of removed entries remain.
    var recordError: (any Error)?
    /// The copies that could not be removed.
    var failedRemovals: [String: any Error] = [:]
    /// The values that could not be written.
    var failedWrites: [String: any Error] = [:]

    /// Whether everything could be removed that was to be.
    var hasRemoved: Bool { completeRemovalError == nil && failedRemovals.isEmpty }
  }
}
