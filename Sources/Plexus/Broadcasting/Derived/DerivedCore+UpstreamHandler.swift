// @unchecked Sendable because every field that changes is guarded by the lock of the core.

internal import Synchronization

extension DerivedCore {
  /// The handler that subscribes a derived broadcaster to its source.
  final class UpstreamHandler: Handler.SenderCalls, @unchecked Sendable {
    private let core: DerivedCore
    /// Makes the element for subscribers; `nil` if they get none.
    private let transform: @Sendable (AnyBox) -> Output?
    /// The stage that makes the elements, if the source is derived itself; it keeps this upstream.
    weak let stage: (any DerivedStage)?
    /// Whether there is such a stage.
    private let isNested: Bool
    /// The rounds in which the source evaluates elements, if it does so after a state was published.
    let rounds: SelectorRounds?
    /// Returns the newest element that the source has sent, if its current state can be newer.
    let sent: (@Sendable () -> AnyBox?)?
    /// The maximum number of replayed elements.
    private let replayLimit: Int
    /// The results for the last elements, with `nil` for elements that were filtered out.
    private var recent = Ring<Output?>()
    /// Whether the transform returns `nil` for an element that is the same as the one before, not for one that is
    /// filtered out.
    private let skipsUnchanged: Bool
    /// The last element, if it has not been sent, or was taken back.
    private var withheld: Output?
    /// The last element that subscribers received.
    private var last: Output?
    /// The number of the last transformed element of the source.
    private(set) var newest = Int.min
    /// The round in which that element was evaluated; `nil` if that is over.
    private var round: Int?
    /// The number of the first element after the last reset that has passed.
    private var takenBack = Int.min
    /// The beginnings of subscribers whose first element is newer than those to be transformed, oldest first.
    private var beginnings: [Beginning] = []
    /// Whether the source has ended.
    var hasEnded = false
    /// The element that is part of the end, if there is one.
    private(set) var ending: Output?

    var isOrdered: Bool { true }

    init(
      core: DerivedCore,
      of origin: Origin,
      _ transform: @escaping @Sendable (AnyBox) -> Output?
    ) {
      self.core = core
      replayLimit = origin.replayLimit
      stage = origin.stage
      isNested = origin.stage != nil
      rounds = origin.rounds
      skipsUnchanged = origin.skipsUnchanged
      sent = origin.sent
      self.transform = transform
    }

    /// Whether the newest element is evaluated from the newest state of the source; called under the lock of the core.
    var isOfNewestRound: Bool {
      guard let running = rounds?.running else { return true }
      return running == round
    }

    /// Notes that nothing has been replayed, unless there was something; called once the queue has started.
    func begin(in queue: HandlerQueue) {
      let isIdle = queue.state.withLock { state in
        state.items.isEmpty && !state.isCalling ? queue.end : nil
      }
      guard let end = isIdle else { return }
      core.withLock(for: self) { _ in
        if newest == .min { newest = end - 1 }
      }
    }

    /// Whether a reset has yet to pass; called under the lock of the core.
    func isBeforeReset(of queue: HandlerQueue) -> Bool {
      queue.floor.load(ordering: .acquiring) > takenBack
    }

    /// Notes that new subscribers begin with an element that is still to come; called under the lock of the core.
    ///
    /// - Parameters:
    ///   - end: The number of the first element that is for them.
    ///   - number: The number of the beginning. Elements that a stage before sends with it, or with a smaller one, are
    ///     not for them either.
    ///   - value: The newest element that they have, if it can come once more with that number.
    /// - Returns: Whether it was noted; it has to be newer than the others.
    func begin(at end: Int, number: UInt64, knowing value: Output?) -> Bool {
      guard end >= beginnings.last?.end ?? .min else { return false }
      beginnings.append(Beginning(end: end, number: number, value: value))
      return true
    }

    /// Returns the first beginning that excludes an element, and drops the beginnings that the element has passed; called
    /// under the lock of the core.
    ///
    /// - Parameters:
    ///   - item: The element.
    ///   - isKnown: Whether it equals the value of the beginning with its number.
    ///   - passed: Receives the beginnings, to be released without the lock.
    /// - Returns: The beginning, if there is one.
    private func beginning(
      after item: HandlerQueue.Item,
      isKnown: Bool,
      _ passed: inout [Beginning]
    ) -> Beginning? {
      guard !beginnings.isEmpty else { return nil }
      let number = isNested ? item.sender : 0
      let beginning = beginnings.first { beginning in
        item.sequence < beginning.end || number != 0 && number <= beginning.number
          || isKnown && item.sequence == beginning.end
      }
      passed = beginnings
      beginnings.removeAll { $0.end <= item.sequence && (number == 0 || number > $0.number) }
      return beginning
    }

    /// The elements to replay to a new subscriber; accessed under the lock of the core.
    var replay: [Output] {
      (0..<recent.count).compactMap { recent[$0] ?? nil }
    }

    func call(_ item: HandlerQueue.Item, isWanted: Bool, in queue: HandlerQueue) {
      guard isWanted else {
        return core.withLock(for: self) { _ in newest = max(newest, item.sequence) }
      }
      // Both are user code.
      var output = transform(item.box)
      let (isDuplicate, isKnown) = compare(output, at: item.sequence)
      var garbage: [Output?] = []
      var passed: [Beginning] = []
      var delivery = Delivery<Output>()
      core.withLock(for: self) { isConnected in
        if skipsUnchanged { garbage.append(replaceWithheld(&output)) }
        guard queue.isCurrent(item.sequence) else {
          withheld = skipsUnchanged ? output : nil
          return
        }
        guard !item.isEnd else {
          ending = output
          return
        }
        newest = item.sequence
        round = rounds?.runningHere
        let beginning = self.beginning(after: item, isKnown: isKnown, &passed)
        // A reset meanwhile has forgotten the former element.
        guard !isDuplicate || last == nil, output != nil || !skipsUnchanged else { return }
        if replayLimit > 0 {
          if recent.count == replayLimit, let oldest = recent.popFirst() { garbage.append(oldest) }
          recent.append(output)
        }
        guard let output else { return }
        if core.hub.areEqual != nil {
          garbage.append(last)
          last = output
        }
        if isConnected { core.hub.prepare(output, from: beginning?.number ?? 0, &delivery) }
      }
      delivery.deliver()
      withExtendedLifetime((garbage, passed)) {}
    }

    /// Takes out the element that has not been sent, which takes the place of an unchanged one.
    ///
    /// - Returns: An element to be released without the lock.
    private func replaceWithheld(_ output: inout Output?) -> Output? {
      let former = withheld.take()
      guard output == nil else { return former }
      output = former
      return nil
    }

    /// Compares an element with the last one, and with the one that the newest subscribers have.
    private func compare(
      _ output: Output?,
      at sequence: Int
    ) -> (isDuplicate: Bool, isKnown: Bool) {
      guard let output, let areEqual = core.hub.areEqual else { return (false, false) }
      var former: Output?
      var known: Output?
      core.withLock(for: self) { _ in
        former = last
        if !beginnings.isEmpty { known = beginnings.first { $0.end == sequence }?.value }
      }
      return (
        former.map { areEqual($0, output) } ?? false, known.map { areEqual($0, output) } ?? false
      )
    }

    func note() {
      core.hub.note()
    }

    func takeBack(in queue: HandlerQueue) {
      var garbage: ([Output], Output?) = ([], nil)
      let unread = core.withLock(for: self) { isConnected -> Delivery<Output>? in
        guard isBeforeReset(of: queue) else { return nil }
        takenBack = queue.floor.load(ordering: .acquiring)
        // The state to which the source was reset remains, if it was already transformed.
        let isKept = queue.isCurrent(newest)
        garbage = (replay, last)
        if isKept {
          while recent.count > 1 { _ = recent.popFirst() }
        } else {
          if skipsUnchanged, withheld == nil { withheld = replay.last }
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

extension DerivedCore.UpstreamHandler {
  /// The place at which subscribers begin that have a newer element than those to be transformed.
  private struct Beginning: Sendable {
    /// The number of the first element of the source that is for them.
    let end: Int
    /// A number that is larger than those of earlier beginnings, and the same in all stages.
    let number: UInt64
    /// The newest element that they have, if it can come once more with the number ``end``.
    let value: Output?
  }
}
