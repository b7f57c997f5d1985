/// A member of a repository whose values other processes can share.
protocol SharedMember: AnyObject, Sendable {
  /// Whether its cacher is shared.
  var isShared: Bool { get }

  /// Removes the values in memory, and detaches the fetches in progress.
  func forgetHere()

  /// Removes the entries of its shared cacher, if any, and waits until no process uses its copies of them.
  ///
  /// - Throws: An error if a process can still use copies.
  func removeEverywhere() async throws
}

extension KeyedCache: SharedMember {
  var isShared: Bool { link != nil }

  func forgetHere() {
    distrustAll()
    clearMemory()
  }

  func removeEverywhere() async throws {
    try await link?.cacher.remove(.all, reach: .everywhere)
  }
}
