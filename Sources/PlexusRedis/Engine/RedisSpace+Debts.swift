internal import Plexus
internal import PlexusSupport

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
  ///
  /// A removal that is being repeated would remove them: they wait for it, also in a cancelled task, for the time of its
  /// commands. Failed removals of tags, and of everything, can still remove them.
  func storing(_ keys: [String], _ store: () async throws -> Void) async throws {
    let revision = await beginStoring(keys)
    defer { debts.withLock { $0.endStoring(keys) } }
    try await store()
    debts.withLock { debts in
      debts.settle(
        keys.lazy.flatMap { [RemovalDebtsState.Subject.key($0), .outdated($0)] },
        upTo: revision
      )
    }
  }

  private func beginStoring(_ keys: [String]) async -> UInt64 {
    while true {
      if let revision = debts.withLock({ $0.beginStoring(keys) }) { return revision }
      _ = await payment.withLock { $0 }?.task.result
    }
  }

  /// Repetitions of changes that have failed.
  struct Payment: Sendable {
    let task: Task<Void, any Error>
    /// The last of the changes that it can contain.
    let revision: UInt64
  }

  /// The number of changes beyond which a heartbeat does not wait for them.
  private static var inlineLimit: Int { 256 }

  /// Repeats the changes that have failed, after a heartbeat.
  func repayDebts() async {
    let count = debts.withLock { $0.debts.count }
    guard count > 0 else { return }
    let payment = payInTask()
    if count <= Self.inlineLimit { _ = await payment.task.result }
  }

  /// Repeats the changes that have failed, except of keys that are being stored.
  ///
  /// - Throws: The error of the first one that has failed again, and is still owed.
  func payDebts() async throws {
    let (last, isOwing) = debts.withLock { ($0.lastRevision, !$0.debts.isEmpty) }
    guard isOwing else { return }
    var payment: Payment
    repeat {
      payment = payInTask()
      try await payment.task.value
    } while payment.revision < last
  }

  /// Begins to repeat the changes that have failed, unless that is in progress.
  private func payInTask() -> Payment {
    payment.withLock { payment in
      if let payment { return payment }
      let (owed, revision) = debts.withLock { ($0.beginPayment(), $0.lastRevision) }
      let task = Task.detached { [self] in
        defer {
          debts.withLock { $0.endPayment() }
          self.payment.withLock { $0 = nil }
        }
        try await pay(owed)
      }
      let new = Payment(task: task, revision: revision)
      payment = new
      return new
    }
  }

  private func pay(_ owed: [RemovalDebtsState.Subject]) async throws {
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
