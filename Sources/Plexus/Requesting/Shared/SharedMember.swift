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

  /// Removes the values with one of some tags in memory, and detaches their fetches in progress.
  func forgetHere(tags: Set<CacheTag>)

  /// Removes the entries with one of some tags from its shared cacher, if any, and waits until no process uses its
  /// copies of them.
  ///
  /// - Throws: An error if a process can still use copies.
  func removeEverywhere(tags: Set<CacheTag>) async throws
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

  func forgetHere(tags: Set<CacheTag>) {
    for (key, hash) in keys(of: tags) { forgetHere(key, hash: hash) }
  }

  func removeEverywhere(tags: Set<CacheTag>) async throws {
    guard tagging != nil else { return }
    try await link?.cacher.remove(.tags(tags), reach: .everywhere)
  }
}
