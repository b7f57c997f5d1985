internal import Plexus
internal import PlexusSupport

/// The changes of a space that have failed, and their repetition, for all of its schemas in this process.
///
/// A change is repeated with each heartbeat until it succeeds, and before a value of its key is stored. One repetition
/// is in progress at a time: afterwards, nothing of it removes the value, unless a broken connection delivers it late.
final class RemovalDebts: Sendable {
  private struct State: Sendable {
    var debts = RemovalDebtsState()
    /// The repetition that is in progress.
    var payment: Task<Void, any Error>?
  }

  /// The number of changes beyond which a heartbeat does not wait for them.
  private static let inlineLimit = 256
  /// The number of changes of one kind that are repeated together.
  ///
  /// If all of them fail, the rest of this kind waits for the next repetition.
  private static let partSize = 1_024

  /// Its removals reach all schemas.
  private let tier: Tier
  /// Tells all schemas of the space in this process about a change, which the server announces to other processes.
  private let tell: @Sendable (SharedCache.Change) -> Void
  private let state = Locked(State())

  init(_ tier: Tier, tell: @escaping @Sendable (SharedCache.Change) -> Void) {
    self.tier = tier
    self.tell = tell
  }

  /// The number of removals that are owed.
  var removalCount: Int { state.withLock { $0.debts.removalCount } }

  // MARK: - Changes

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
    let revision = lastRevision
    do {
      let result = try await change()
      state.withLock { state in
        if subjects == [.everything] {
          state.debts.settleAll(upTo: revision)
        } else {
          state.debts.settle(subjects, upTo: revision)
        }
      }
      return result
    } catch {
      let errors = (error as? TierFailures)?.errors
      let failure = { (subject: RemovalDebtsState.Subject) -> (any Error)? in
        switch subject {
        case .key(let key), .outdated(let key): errors.map { $0[key] } ?? error
        case .tag, .everything: error
        }
      }
      let failed = subjects.filter { failure($0) != nil }
      let executed = failed.filter { subject in
        if case TierError.notReplicated? = failure(subject) as? TierError { true } else { false }
      }
      state.withLock { state in
        state.debts.settle(subjects.filter { failure($0) == nil }, upTo: revision)
        if !isRepeated { state.debts.owe(failed) }
        state.debts.noteExecuted(executed)
      }
      throw error
    }
  }

  /// The last revision: that of changes before an answer of the server.
  var lastRevision: UInt64 { state.withLock { $0.debts.lastRevision } }

  /// Records the epoch that a heartbeat has found.
  ///
  /// - Parameters:
  ///   - epoch: The number of the epoch.
  ///   - last: The last revision before the heartbeat was sent.
  func note(epoch: UInt64, asOf last: UInt64) {
    state.withLock { state in
      state.debts.note(epoch: epoch, asOf: last, settles: tier.replicas == nil)
    }
  }

  // MARK: - Repetitions

  /// Repeats the changes that have failed, after a heartbeat.
  func repeatAfterHeartbeat() async {
    let (count, payment) = state.withLock { state in
      let count = state.debts.debts.count
      return (count, count > 0 ? payInTask(&state) : nil)
    }
    if count <= Self.inlineLimit { _ = await payment?.result }
  }

  /// Repeats the changes that have failed, regardless of repetitions before the call.
  ///
  /// - Throws: The error of one that has failed again, if there is still one.
  func repeatAll() async throws {
    try await payWhile { $0.isPending }
  }

  /// Repeats the changes of some keys that have failed, so that none of them is carried out afterwards.
  ///
  /// It waits for the time of their commands, also in a cancelled task: usually for the repetition that is in progress,
  /// if any, and for the next one. It does not wait for failed removals of tags, and of everything, nor for removals that
  /// only replicas have yet to acknowledge: these can still remove a value that is stored now.
  ///
  /// - Returns: The keys for which a change has failed again, with its error.
  func repeatChanges(of keys: some Collection<String>) async -> [String: any Error] {
    do {
      try await payWhile { debts in keys.contains { debts.isPending($0) } }
      return [:]
    } catch {
      let pending = state.withLock { state in keys.filter { state.debts.isPending($0) } }
      return Dictionary(pending.map { ($0, error) }) { first, _ in first }
    }
  }

  /// Repeats the changes that have failed while a condition holds.
  private func payWhile(_ holds: (RemovalDebtsState) -> Bool) async throws {
    // One that is in progress can have failed before the call.
    let earlier = state.withLock { holds($0.debts) ? $0.payment : nil }
    _ = await earlier?.result
    while let payment = state.withLock({ holds($0.debts) ? payInTask(&$0) : nil }) {
      do {
        try await payment.value
      } catch {
        if state.withLock({ holds($0.debts) }) { throw error }
      }
    }
  }

  /// Begins to repeat the changes that have failed, unless that is in progress.
  private func payInTask(_ state: inout State) -> Task<Void, any Error> {
    if let payment = state.payment { return payment }
    let owed = state.debts.beginPayment()
    let task = Task.detached { [self] in
      defer {
        self.state.withLock { state in
          state.debts.endPayment()
          state.payment = nil
        }
      }
      try await pay(owed)
    }
    state.payment = task
    return task
  }

  private func pay(_ owed: [RemovalDebtsState.Subject]) async throws {
    if owed.contains(.everything) {
      // The server can have done it although the replicas have not acknowledged it.
      let epoch = state.withLock { $0.debts.debts[.everything]?.epoch }
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
      _ names: [String],
      _ subject: (String) -> RemovalDebtsState.Subject,
      _ news: ([String]) -> SharedCache.Change,
      _ change: ([String]) async throws -> Void
    ) async {
      for start in stride(from: 0, to: names.count, by: Self.partSize) {
        let part = Array(names[start...].prefix(Self.partSize))
        defer { tell(news(part)) }
        do {
          try await owing(part.map(subject), isRepeated: true) { try await change(part) }
        } catch {
          failure = failure ?? error
          let failed = (error as? TierFailures)?.errors.count ?? part.count
          // The server would refuse the others as well.
          if failed == part.count { return }
        }
      }
    }
    await pay(keys, { .key($0) }, { .changed(Set($0)) }, { try await tier.remove($0) })
    await pay(
      tags,
      { .tag($0) },
      { .tagged(Set($0.map { CacheTag($0) })) },
      { try await tier.remove(tags: $0) }
    )
    await pay(outdated, { .outdated($0) }, { .changed(Set($0)) }, { try await tier.outdate($0) })
    if let failure { throw (failure as? TierFailures)?.errors.values.first ?? failure }
  }
}
