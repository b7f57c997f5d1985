/// The changes of a space that have failed, and that the heartbeat repeats.
struct RemovalDebtsState: Sendable {
  /// The number of keys and tags beyond which everything is removed instead.
  static var limit: Int { 65_536 }

  /// The entries that a change concerns.
  enum Subject: Hashable, Sendable {
    case key(String)
    case tag(String)
    case everything
    /// An entry that serves as a fallback only.
    case outdated(String)
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
  private(set) var lastRevision: UInt64 = 0
  /// The changes that are being repeated.
  private var paid: Set<Subject> = []

  /// The number of removals.
  var removalCount: Int {
    debts.keys.count { subject in
      if case .outdated = subject { false } else { true }
    }
  }

  /// Records changes that have failed.
  mutating func owe(_ subjects: some Sequence<Subject>) {
    lastRevision += 1
    for subject in subjects { debts[subject] = Debt(revision: lastRevision) }
    guard debts.count > Self.limit else { return }
    debts = [.everything: Debt(revision: lastRevision)]
  }

  /// Whether a change is owed or is being repeated.
  var isPending: Bool { !debts.isEmpty || !paid.isEmpty }

  /// Returns whether a change of a key is owed that the server has not executed, or is being repeated.
  func isPending(_ key: String) -> Bool {
    isPending
      && [Subject.key(key), .outdated(key)].contains { subject in
        debts[subject]?.isExecuted == false || paid.contains(subject)
      }
  }

  /// Records that the server has executed changes, and that too few replicas have acknowledged them.
  mutating func noteExecuted(_ subjects: some Sequence<Subject>) {
    for subject in subjects { debts[subject]?.isExecuted = true }
  }

  /// Begins to repeat the changes.
  mutating func beginPayment() -> [Subject] {
    paid = Set(debts.keys)
    return Array(paid)
  }

  mutating func endPayment() { paid = [] }

  /// Removes the debts of a change that has succeeded, except later ones.
  ///
  /// - Parameters:
  ///   - subjects: The entries of the change.
  ///   - revision: The last revision before the change began.
  mutating func settle(_ subjects: some Sequence<Subject>, upTo revision: UInt64) {
    guard !debts.isEmpty else { return }
    for subject in subjects {
      if let debt = debts[subject], debt.revision <= revision { debts[subject] = nil }
    }
  }

  /// Removes all debts, except later ones, since everything was removed.
  mutating func settleAll(upTo revision: UInt64) {
    guard !debts.isEmpty else { return }
    debts = debts.filter { $0.value.revision > revision }
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
      if known < epoch, settles { debts[subject] = nil }
    }
  }
}
