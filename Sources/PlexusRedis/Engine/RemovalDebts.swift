internal import Plexus
internal import PlexusSupport

/// The changes of a space that have failed, and their repetition, for all of its schemas in this process.
///
/// A change is repeated with each heartbeat until the server has executed it, and before its key is used. One repetition
/// is in progress at a time: afterwards, nothing of it removes a value, unless a broken connection delivers it late. No
/// repetition waits for replicas: one wait follows for all removals.
final class RemovalDebts: Sendable {
  private struct State: Sendable {
    var debts = RemovalDebtsState()
    /// The repetition that is in progress.
    var payment: Task<Void, any Error>?
    /// The wait for the replicas that is in progress.
    var wait: Task<Void, any Error>?
  }

  /// The number of changes of one kind that are repeated together.
  ///
  /// If all of them fail, the rest of this kind waits for the next repetition.
  private static let partSize = 1_024

  /// Its removals reach all schemas.
  private let tier: Tier
  /// The replicas that have to acknowledge removals, if any.
  private let replicas: Replicas?
  /// Tells all schemas of the space in this process about a change, which the server announces to other processes.
  private let tell: @Sendable (SharedCache.Change) -> Void
  private let state = Locked(State())

  init(
    _ tier: Tier,
    _ replicas: Replicas?,
    tell: @escaping @Sendable (SharedCache.Change) -> Void
  ) {
    (self.tier, self.replicas) = (tier, replicas)
    self.tell = tell
  }

  /// Whether changes have failed, or are repeated.
  var isOwing: Bool { state.withLock { $0.debts.isOwing || $0.debts.isPending } }

  /// The number of removals that are owed.
  var removalCount: Int { state.withLock { $0.debts.removalCount } }

  // MARK: - Changes

  /// Performs a change, which is repeated by the heartbeat if it fails.
  ///
  /// A removal that the server has executed returns once the replicas have it, or throws after the time of a command.
  ///
  /// - Parameters:
  ///   - subjects: The entries that it concerns.
  ///   - changed: The tier that executes it.
  ///   - change: The change.
  /// - Returns: The result of the change.
  /// - Throws: The error of the change.
  func owing<Output>(
    _ subjects: [RemovalDebtsState.Subject],
    in changed: Tier,
    _ change: () async throws -> Output
  ) async throws -> Output {
    let revision = lastRevision
    let result: Result<Output, any Error>
    var failures = Failures()
    do {
      result = .success(try await change())
    } catch {
      (result, failures) = (.failure(error), Failures(error))
    }
    let failed = subjects.filter { failures[$0] != nil }
    let executed = subjects.filter { failures[$0] == nil }
    // The tier of another schema can have executed it. This one recognizes a server that has lost it.
    tier.note(knowledgeOf: changed)
    let absence = await absence(after: executed)
    state.withLock { state in
      state.debts.owe(failed, since: revision)
      if absence == nil {
        state.debts.settle(executed, upTo: revision)
      } else {
        state.debts.owe(executed, isExecuted: true, since: revision)
      }
    }
    if let absence { throw failures.error(of: executed, absence) }
    return try result.get()
  }

  /// Waits until the replicas have changes that the server has executed, if they are removals.
  ///
  /// - Returns: The reason why the replicas may not have them.
  private func absence(
    after executed: [RemovalDebtsState.Subject]
  ) async -> TierUnacknowledgedError? {
    guard let replicas, !executed.allSatisfy(\.isRefresh) else { return nil }
    do {
      try await replicas.acknowledge(tier, within: replicas.timeout)
      return nil
    } catch {
      return TierUnacknowledgedError(reason: error)
    }
  }

  /// The errors of a change.
  private struct Failures {
    /// The error of all entries, unless it names the failed keys or tags.
    var error: (any Error)?
    var named: [String: any Error]? { (error as? TierFailures)?.errors }

    init(_ error: (any Error)? = nil) { self.error = error }

    subscript(_ subject: RemovalDebtsState.Subject) -> (any Error)? {
      switch subject {
      case .key(let name), .outdated(let name), .tag(let name): named.map { $0[name] } ?? error
      case .everything: error
      }
    }

    /// Returns the error of the change if replicas may not have the executed part of it.
    func error(
      of executed: [RemovalDebtsState.Subject],
      _ absence: TierUnacknowledgedError
    ) -> any Error {
      var errors = named ?? [:]
      for case .key(let key) in executed { errors[key] = absence }
      return errors.isEmpty ? absence : TierFailures(errors: errors)
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
      state.debts.note(epoch: epoch, asOf: last, settles: replicas == nil)
    }
  }

  // MARK: - Repetitions

  /// Begins to repeat the changes that have failed, and to wait for the replicas, after a heartbeat.
  func repeatAfterHeartbeat() {
    state.withLock { state in
      if state.debts.isPending { _ = payInTask(&state) }
      _ = waitInTask(&state)
    }
  }

  /// Repeats the changes that have failed, regardless of repetitions before the call, and waits for the replicas.
  ///
  /// - Parameter limit: The time for it, after which it continues in the background.
  /// - Throws: The error of one that has failed again, if there is still one.
  func repeatAll(within limit: Duration) async throws {
    let wait = state.withLock { $0.wait }
    guard isOwing else { return }
    let repetition = Task.detached { [self] () -> (any Error)? in
      var failure: (any Error)?
      do {
        try await payWhile { $0.isPending }
      } catch {
        failure = error
      }
      // One that was in progress can end before the replicas are back.
      _ = await wait?.result
      do {
        while let wait = state.withLock({ waitInTask(&$0) }) { try await wait.value }
      } catch {
        failure = failure ?? error
      }
      return failure
    }
    guard let failure = await repetition.value(within: limit) else {
      throw RedisEngineError(
        .timedOut,
        "Removals that had failed were not repeated within \(limit)."
      )
    }
    if let failure { throw failure }
  }

  /// Repeats the changes of some keys that have failed, so that none of them is carried out afterwards.
  ///
  /// It waits for the time of their commands, also in a cancelled task: usually for the repetition that is in progress,
  /// if any, and for the next one. It does not wait for replicas.
  ///
  /// - Parameters:
  ///   - keys: The keys.
  ///   - others: Returns further changes that concern a key.
  /// - Returns: The keys for which a change has failed again, with its error.
  func repeatChanges(
    of keys: some Collection<String>,
    and others: (String) -> [RemovalDebtsState.Subject] = { _ in [] }
  ) async -> [String: any Error] {
    func isPending(_ key: String, _ debts: RemovalDebtsState) -> Bool {
      debts.isPending([.key(key), .outdated(key)]) || debts.isPending(others(key))
    }
    do {
      try await payWhile { debts in debts.isPending && keys.contains { isPending($0, debts) } }
      return [:]
    } catch {
      let pending = state.withLock { state in keys.filter { isPending($0, state.debts) } }
      return Dictionary(pending.map { ($0, error) }) { first, _ in first }
    }
  }

  /// Repeats the changes that have failed, as far as they concern the keys of a look.
  ///
  /// - Returns: The wishes without the keys for which one has failed again, whose entries cannot be used.
  /// - Throws: The error, if there is no other key.
  func withoutOwed(
    _ wishes: [String: SharedCache.Wish]
  ) async throws -> [String: SharedCache.Wish] {
    let failures = await repeatChanges(of: wishes.keys) { key in
      [.everything] + (wishes[key]?.tags ?? []).map { .tag($0.name) }
    }
    guard let error = failures.values.first else { return wishes }
    let rest = wishes.filter { failures[$0.key] == nil }
    if rest.isEmpty { throw error }
    return rest
  }

  /// Repeats the changes that have failed while a condition holds.
  private func payWhile(_ holds: (RemovalDebtsState) -> Bool) async throws {
    // One that is in progress can have failed before the call.
    let (isHeld, earlier) = state.withLock { (holds($0.debts), $0.payment) }
    guard isHeld else { return }
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
    let payment = state.debts.beginPayment()
    let task = Task.detached { [self] in
      defer {
        self.state.withLock { state in
          state.debts.endPayment()
          state.payment = nil
          _ = waitInTask(&state)
        }
      }
      try await pay(payment)
    }
    state.payment = task
    return task
  }

  /// Begins to wait until the replicas have the removals that the server has executed, unless that is in progress.
  ///
  /// - Returns: The wait; `nil` if there is nothing to wait for.
  private func waitInTask(_ state: inout State) -> Task<Void, any Error>? {
    if let wait = state.wait { return wait }
    let (executed, revision) = state.debts.executed
    guard let replicas, !executed.isEmpty else { return nil }
    let task = Task.detached { [self] in
      defer { self.state.withLock { $0.wait = nil } }
      try await replicas.acknowledge(tier)
      self.state.withLock { $0.debts.settle(executed, upTo: revision) }
    }
    state.wait = task
    return task
  }

  private func pay(_ payment: RemovalDebtsState.Payment) async throws {
    if payment.subjects == [.everything] {
      // The server can have done it although its reply was lost.
      try await tier.removeAll(unlessRaisedAbove: payment.epoch)
      return settle([.everything], of: payment)
    }
    var failure: (any Error)?
    func pay(
      _ name: (RemovalDebtsState.Subject) -> String?,
      _ news: ([String]) -> SharedCache.Change,
      _ change: ([String]) async throws -> Void
    ) async {
      let owed = payment.subjects.compactMap { subject in name(subject).map { ($0, subject) } }
      for start in stride(from: 0, to: owed.count, by: Self.partSize) {
        let part = owed[start...].prefix(Self.partSize)
        defer { tell(news(part.map(\.0))) }
        do {
          try await change(part.map(\.0))
          settle(part.map(\.1), of: payment)
        } catch {
          failure = failure ?? error
          let failures = Failures(error)
          let executed = part.map(\.1).filter { failures[$0] == nil }
          settle(executed, of: payment)
          // The server would refuse the others as well.
          if executed.isEmpty { return }
        }
      }
    }
    await pay(
      { if case .key(let key) = $0 { key } else { nil } },
      { .changed(Set($0)) },
      { try await tier.remove($0) }
    )
    await pay(
      { if case .tag(let tag) = $0 { tag } else { nil } },
      { .tagged(Set($0.map { CacheTag($0) })) },
      { try await tier.remove(tags: $0) }
    )
    await pay(
      { if case .outdated(let key) = $0 { key } else { nil } },
      { .changed(Set($0)) },
      { try await tier.outdate($0) }
    )
    if let failure { throw (failure as? TierFailures)?.worst ?? failure }
  }

  /// Records that the server has executed changes of a payment.
  private func settle(
    _ subjects: [RemovalDebtsState.Subject],
    of payment: RemovalDebtsState.Payment
  ) {
    state.withLock { state in
      state.debts.settle(
        subjects,
        upTo: payment.revision,
        isAcknowledged: replicas == nil
      )
    }
  }
}
