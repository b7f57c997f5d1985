// @unchecked Sendable because every field that changes is guarded by the lock of the core.

extension DerivedCore {
  /// The handler by which a derived broadcaster is subscribed to its source.
  final class Link: Handler.DirectCalls, @unchecked Sendable {
    private let core: DerivedCore
    /// The largest number of elements that a new subscriber gets first.
    private let replayLimit: Int
    /// The elements for the last few that were sent; `nil` for those of which subscribers got none.
    private var recent = Ring<Output?>()
    /// The element that subscribers got last.
    private var last: Output?
    /// The number of the last element of the source that was transformed.
    private(set) var newest = Int.min
    /// Whether the source has ended.
    var hasEnded = false

    var isOrdered: Bool { true }

    init(core: DerivedCore, replayLimit: Int) {
      self.core = core
      self.replayLimit = replayLimit
    }

    /// The elements that a new subscriber gets first; called under the lock of the core.
    var replay: [Output] {
      (0..<recent.count).compactMap { recent[$0] ?? nil }
    }

    func call(_ box: AnyBox, _ sequence: Int, in queue: HandlerQueue) {
      // Both are the user's code.
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
        // What stays is the state that the source was reset to, if it has come this far.
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
  /// Passes on that something was sent to the source, whose element another thread hands over.
  final func note() {
    let queues = state.withLock { $0.handlers?.direct ?? [] }
    for queue in queues { queue.direct?.note() }
  }
}
