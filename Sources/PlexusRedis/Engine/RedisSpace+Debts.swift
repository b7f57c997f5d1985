internal import Plexus
internal import PlexusSupport
internal import Synchronization

// MARK: - Debts

extension RedisSpace {
  /// Performs a change, which is repeated by the heartbeat if it fails.
  ///
  /// - Parameters:
  ///   - subjects: The entries that it concerns.
  ///   - isRepeated: Whether it is owed already.
  ///   - change: The change.
  /// - Returns: The result of the change.
  /// - Throws: The error of the change.
  func owing<Result>(
    _ subjects: [RemovalDebtsState.Subject],
    isRepeated: Bool = false,
    _ change: () async throws -> Result
  ) async throws -> Result {
    let revision = debts.withLock { $0.lastRevision }
    do {
      let result = try await change()
      debts.withLock { debts in
        if subjects == [.everything] {
          debts.settleAll(upTo: revision)
        } else {
          debts.settle(subjects, upTo: revision)
        }
      }
      return result
    } catch {
      let errors = (error as? TierFailures)?.errors
      let hasFailed = { (subject: RemovalDebtsState.Subject) in
        switch subject {
        case .key(let key), .outdated(let key): errors.map { $0[key] != nil } ?? true
        case .tag, .everything: true
        }
      }
      debts.withLock { debts in
        debts.settle(subjects.filter { !hasFailed($0) }, upTo: revision)
        if !isRepeated { debts.owe(subjects.filter(hasFailed)) }
      }
      throw error
    }
  }

  /// Stores values, which settles removals of their keys from before.
  func storing(_ keys: [String], _ store: () async throws -> Void) async throws {
    let revision = debts.withLock { $0.lastRevision }
    try await store()
    debts.withLock { debts in
      debts.settle(
        keys.lazy.flatMap { [RemovalDebtsState.Subject.key($0), .outdated($0)] },
        upTo: revision
      )
    }
  }

  /// The number of changes beyond which a heartbeat does not wait for them.
  private static var inlineLimit: Int { 256 }

  /// Repeats the changes that have failed, once at a time.
  func repayDebts() async {
    let count = debts.withLock { $0.debts.count }
    guard count > 0 else { return }
    guard count > Self.inlineLimit else {
      try? await payDebts()
      return
    }
    guard !isPaying.exchange(true, ordering: .acquiring) else { return }
    Task.detached { [self] in
      defer { isPaying.store(false, ordering: .releasing) }
      try? await payDebts()
    }
  }

  /// Repeats the changes that have failed.
  ///
  /// - Throws: The error of the first one that has failed again, and is still owed.
  func payDebts() async throws {
    let owed = debts.withLock { Array($0.debts.keys) }
    guard !owed.isEmpty else { return }
    if owed.contains(.everything) {
      // The server can have done it although the replicas have not acknowledged it.
      let epoch = debts.withLock { $0.debts[.everything]?.epoch }
      _ = try await owing([.everything], isRepeated: true) {
        try await tier.removeAll(unlessRaisedAbove: epoch)
      }
      return
    }
    var failure: (any Error)?
    let keys = owed.compactMap { if case .key(let key) = $0 { key } else { nil } }
    let tags = owed.compactMap { if case .tag(let tag) = $0 { tag } else { nil } }
    let outdated = owed.compactMap { if case .outdated(let key) = $0 { key } else { nil } }
    func pay(
      _ subjects: [RemovalDebtsState.Subject],
      _ change: () async throws -> Void
    ) async {
      guard !subjects.isEmpty else { return }
      do {
        try await owing(subjects, isRepeated: true, change)
      } catch {
        failure = failure ?? error
      }
    }
    await pay(keys.map { .key($0) }) { try await tier.remove(keys) }
    await pay(tags.map { .tag($0) }) { try await tier.remove(tags: tags) }
    await pay(outdated.map { .outdated($0) }) { try await tier.outdate(outdated) }
    if let failure { throw (failure as? TierFailures)?.errors.values.first ?? failure }
  }
}
