// @unchecked Sendable because every field that changes is guarded by the lock of the core.

extension DerivedCore {
  /// The handler that subscribes a derived broadcaster to its source.
  final class Link: Handler.DirectCalls, @unchecked Sendable {
    private let core: DerivedCore
    /// Makes the element for subscribers; `nil` if they get none.
    private let transform: @Sendable (AnyBox) -> Output?
    /// The stage that makes the elements, if the source is derived itself; it keeps this link.
    weak let stage: (any DerivedStage)?
    /// The rounds in which the source evaluates elements, if it does so after a state was published.
    private let rounds: EvaluationRounds?
    /// The maximum number of replayed elements.
    private let replayLimit: Int
    /// The results for the last elements, with `nil` for elements that were filtered out.
    private var recent = Ring<Output?>()
    /// The last element that subscribers received.
    private var last: Output?
    /// The number of the last transformed element of the source.
    private(set) var newest = Int.min
    /// The round in which that element was evaluated; `nil` if that is over.
    private var round: Int?
    /// Whether the source has begun to deliver its first element.
    private var hasBegun = false
    /// Whether the source has ended.
    var hasEnded = false

    var isOrdered: Bool { true }

    init(
      core: DerivedCore,
      replayLimit: Int,
      behind stage: (any DerivedStage)?,
      rounds: EvaluationRounds?,
      _ transform: @escaping @Sendable (AnyBox) -> Output?
    ) {
      self.core = core
      self.replayLimit = replayLimit
      self.stage = stage
      self.rounds = rounds
      self.transform = transform
    }

    /// Whether the source has yet to deliver its first element.
    var isWaiting: Bool {
      core.withLock(for: self) { _ in !hasBegun && !hasEnded }
    }

    /// Whether the newest element is evaluated from the newest state of the source; called under the lock of the core.
    var isOfNewestRound: Bool {
      guard let running = rounds?.running else { return true }
      return running == round
    }

    /// Takes an element as the first one, unless the source has begun to deliver one; called under the lock of the
    /// core.
    func begin(with element: Output) {
      guard !hasBegun, !hasEnded, recent.isEmpty else { return }
      recent.append(element)
      if core.hub.areEqual != nil { last = element }
    }

    /// The elements to replay to a new subscriber; accessed under the lock of the core.
    var replay: [Output] {
      (0..<recent.count).compactMap { recent[$0] ?? nil }
    }

    func call(_ box: AnyBox, _ sequence: Int, in queue: HandlerQueue) {
      // Both are user code.
      let output = transform(box)
      let isDuplicate = isDuplicate(output)
      var garbage: [Output?] = []
      let delivery = core.withLock(for: self) { isConnected -> Delivery<Output>? in
        guard queue.isCurrent(sequence) else { return nil }
        newest = sequence
        round = rounds?.runningHere
        guard !isDuplicate else { return nil }
        if replayLimit > 0 {
          if recent.count == replayLimit, let oldest = recent.popFirst() { garbage.append(oldest) }
          recent.append(output)
        }
        guard let output else { return nil }
        if core.hub.areEqual != nil {
          garbage.append(last)
          last = output
        }
        return isConnected ? core.hub.prepare(output) : nil
      }
      delivery?.deliver()
      withExtendedLifetime(garbage) {}
    }

    private func isDuplicate(_ output: Output?) -> Bool {
      let former = core.withLock(for: self) { _ in
        hasBegun = true
        return last
      }
      guard let output, let former, let areEqual = core.hub.areEqual else { return false }
      return areEqual(former, output)
    }

    func note() {
      core.hub.note()
    }

    func takeBack(in queue: HandlerQueue) {
      var garbage: ([Output], Output?) = ([], nil)
      let unread = core.withLock(for: self) { isConnected -> Delivery<Output>? in
        // The state to which the source was reset remains, if it was already transformed.
        let isKept = queue.isCurrent(newest)
        garbage = (replay, last)
        if isKept {
          while recent.count > 1 { _ = recent.popFirst() }
        } else {
          recent = Ring()
          last = nil
        }
        return isConnected ? core.hub.takeUnread(upTo: isKept ? replay.last : nil) : nil
      }
      unread?.deliver()
      withExtendedLifetime(garbage) {}
    }

    func removeOrphans() {
      core.hub.removeOrphans()
    }

    func end() {
      core.end(self)
    }
  }
}

extension HubCore {
  /// Notifies handlers that the source has sent an element that another thread delivers.
  final func note() {
    let queues = state.withLock { $0.handlers?.direct ?? [] }
    for queue in queues { queue.direct?.note() }
  }
}
