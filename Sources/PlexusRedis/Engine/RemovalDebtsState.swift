/// The changes of a space that have failed, and that the heartbeat repeats.
///
/// A removal that the server has executed is not repeated: it stays owed until the replicas have acknowledged it. A server
/// that has lost it begins a new epoch, in which no entry from before it is valid.
struct RemovalDebtsState: Sendable {
  /// The number of keys and tags beyond which everything is removed instead, unless the server has executed all changes.
  static var limit: Int { 65_536 }

  /// The entries that a change concerns.
  enum Subject: Hashable, Sendable {
    case key(String)
    case tag(String)
    case everything
    /// An entry that serves as a fallback only.
    case outdated(String)

    var isRefresh: Bool {
      if case .outdated = self { true } else { false }
    }
  }

  /// A change that has failed.
  struct Debt: Hashable, Sendable {
    var revision: UInt64
    /// The number of the epoch of the first heartbeat since then.
    var epoch: UInt64?
    /// Whether the server has executed it, and too few replicas have acknowledged it.
    var isExecuted = false
  }

  private(set) var debts: [Subject: Debt] = [:]
  /// The number of changes that the server has not executed: each look asks for it.
  private var pendingCount = 0
  private(set) var lastRevision: UInt64 = 0
  /// The changes that are being repeated.
  private var paid: Set<Subject> = []

  /// The number of removals.
  var removalCount: Int { debts.keys.count { !$0.isRefresh } }

  /// Records changes that have failed.
  ///
  /// - Parameters:
  ///   - subjects: The entries that they concern.
  ///   - isExecuted: Whether the server has executed them, and too few replicas have acknowledged them.
  ///   - revision: The last revision before they began: a later debt can be that of a change after their execution.
  mutating func owe(
    _ subjects: some Collection<Subject>,
    isExecuted: Bool = false,
    since revision: UInt64 = .max
  ) {
    guard !subjects.isEmpty else { return }
    lastRevision += 1
    for subject in subjects {
      let isLast = debts[subject].map { $0.isExecuted || $0.revision <= revision } ?? true
      set(Debt(revision: lastRevision, isExecuted: isExecuted && isLast), for: subject)
    }
    guard debts.count > Self.limit else { return }
    // What the server has executed is not repeated.
    let isExecuted = pendingCount == 0
    (debts, pendingCount) = ([:], 0)
    set(Debt(revision: lastRevision, isExecuted: isExecuted), for: .everything)
  }

  private mutating func set(_ debt: Debt?, for subject: Subject) {
    if debts[subject]?.isExecuted == false { pendingCount -= 1 }
    if debt?.isExecuted == false { pendingCount += 1 }
    debts[subject] = debt
  }

  /// Whether a change is owed.
  var isOwing: Bool { !debts.isEmpty }

  /// Whether a change is owed that the server has not executed, or is being repeated.
  var isPending: Bool { !paid.isEmpty || pendingCount > 0 }

  /// Returns whether one of some changes is owed that the server has not executed, or is being repeated.
  func isPending(_ subjects: some Sequence<Subject>) -> Bool {
    subjects.contains { debts[$0]?.isExecuted == false || paid.contains($0) }
  }

  /// Changes that are to be repeated.
  struct Payment: Sendable {
    let subjects: [Subject]
    /// The revision up to which the payment covers debts.
    let revision: UInt64
    /// The epoch of the removal of everything, if it is one of them and there was a heartbeat since then.
    let epoch: UInt64?
  }

  /// Begins to repeat the changes that the server has not executed: that of everything alone, if it is one of them.
  mutating func beginPayment() -> Payment {
    let due = debts.filter { !$0.value.isExecuted }
    let everything = due[.everything]
    paid = everything == nil ? Set(due.keys) : [.everything]
    // An epoch that was raised since the removal of everything covers no later change.
    let revision = everything?.revision ?? lastRevision
    return Payment(subjects: Array(paid), revision: revision, epoch: everything?.epoch)
  }

  mutating func endPayment() { paid = [] }

  /// The changes that the server has executed, and the last revision.
  var executed: (subjects: [Subject], revision: UInt64) {
    (debts.filter(\.value.isExecuted).map(\.key), lastRevision)
  }

  /// Ends the debts of a change that the server has executed, except later ones.
  ///
  /// - Parameters:
  ///   - subjects: The entries of the change.
  ///   - revision: The last revision before the change began.
  ///   - isAcknowledged: Whether the replicas have acknowledged it: otherwise, removals stay owed without being repeated.
  mutating func settle(
    _ subjects: some Sequence<Subject>,
    upTo revision: UInt64,
    isAcknowledged: Bool = true
  ) {
    guard !debts.isEmpty else { return }
    for subject in subjects {
      let covered = subject == .everything ? Array(debts.keys) : [subject]
      for subject in covered where debts[subject].map({ $0.revision <= revision }) ?? false {
        var debt = debts[subject]
        debt?.isExecuted = true
        set(isAcknowledged || subject.isRefresh ? nil : debt, for: subject)
      }
    }
  }

  /// Records the epoch that a heartbeat has found: if it was raised since a change, nothing is left to remove.
  ///
  /// - Parameters:
  ///   - epoch: The number of the epoch.
  ///   - last: The last revision before the heartbeat was sent: its epoch can be older than later changes.
  ///   - settles: Whether a raised epoch settles changes; it does not if replicas have to acknowledge them.
  mutating func note(epoch: UInt64, asOf last: UInt64, settles: Bool = true) {
    guard !debts.isEmpty else { return }
    for (subject, debt) in debts where debt.revision <= last {
      guard let known = debt.epoch else {
        debts[subject]?.epoch = epoch
        continue
      }
      if known < epoch, settles { set(nil, for: subject) }
    }
  }
}
