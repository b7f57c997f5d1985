extension KeyedCache: RepositoryMember {
  @usableFromInline var name: String { source.name }

  @usableFromInline var statistics: CacheStatistics? { currentStatistics }

  @usableFromInline
  func removeStored() async throws {
    try await removeStored(named: nil)
  }
}

extension KeyedCache: CacheMember {
  func withholdCopies() {
    shards.withEachLock { $0.extras?.pendingWrites?.readBlocks += 1 }
  }

  func releaseCopies() {
    shards.withEachLock { $0.extras?.pendingWrites?.readBlocks -= 1 }
  }

  var copies: (any StoredCopies)? { storage }

  var isShared: Bool { shared != nil }

  func forgetHere() {
    distrustAll()
    clearMemory()
  }

  func removeEverywhere() async throws {
    try await shared?.removeEverywhere(.all)
  }

  func forgetHere(tags: Set<CacheTag>) {
    for (key, hash) in keys(of: tags) { forgetHere(key, hash: hash) }
  }

  func removeEverywhere(tags: Set<CacheTag>) async throws {
    guard tagging != nil else { return }
    try await shared?.removeEverywhere(.tags(tags))
  }
}
