// @unchecked Sendable because every field that changes is guarded by the lock of the core.

extension DerivedCore {
  /// The handler that subscribes a derived broadcaster to its source.
  final class Link: Handler.DirectCalls, @unchecked Sendable {
    private let core: DerivedCore
    /// The maximum number of replayed elements.
    private let replayLimit: Int
    /// The results for the last elements, with `nil` for elements that were filtered out.
    private var recent = Ring<Output?>()
    /// The last element that subscribers received.
    private var last: Output?
    /// The number of the last transformed element of the source.
    private(set) var newest = Int.min
    /// Whether the source has ended.
    var hasEnded = false

    var isOrdered: Bool { true }

    init(core: DerivedCore, replayLimit: Int) {
      self.core = core
      self.replayLimit = replayLimit
    }

    /// The elements to replay to a new subscriber; accessed under the lock of the core.
    var replay: [Output] {
      (0..<recent.count).compactMap { recent[$0] ?? nil }
    }

    func call(_ box: AnyBox, _ sequence: Int, in queue: HandlerQueue) {
      // Both are user code.
      let output = core.transform(Box<Input>.element(of: box))
      let isDuplicate = isDuplicate(output)
      var garbage: [Output?] = []
      let delivery = core.withLock(for: self) { isConnected -> Delivery<Output>? in
        guard queue.isCurrent(sequence) else { return nil }
        newest = sequence
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
      guard let output, let areEqual = core.hub.areEqual else { return false }
      guard let last = core.withLock(for: self, { _ in last }) else { return false }
      return areEqual(last, output)
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
