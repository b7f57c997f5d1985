/// Calls by the sending thread: of the own handlers of the library (relays, stages, copies of elements), never of a user.
extension HandlerQueue {
  /// Appends an element for a handler that sending threads call: it counts as handled once it is in the queue.
  func enqueueDirectCall(_ item: Item, _ state: inout State, _ effects: inout HubEffects) {
    var item = item
    let isForHandler = state.entries.first?.handler.limits.admits(item.sender) ?? false
    if let report = item.report.take() {
      let count = isForHandler ? 1 : 0
      effects.then { report.end(notified: count, handled: count) }
    }
    if isForHandler, direct?.take(item, in: self, &effects) == true { return }
    guard direct?.isOrdered == false else { return append(item, &state, &effects) }
    // A handler that is only notified needs no queue.
    effects.add { $0.queues.append(self) }
  }

  /// Calls the handler with the queued elements, unless another thread does.
  ///
  /// A thread that has called it for about a millisecond leaves the rest to a task.
  func callDirectly() {
    guard let direct else { return }
    guard direct.isOrdered else { return direct.note() }
    if callWithinBudget(direct) {
      TurnBudget.continueInTask { [self] in callWithinBudget(direct) }
    }
  }

  /// Calls the handler with the queued elements until the budget is spent.
  ///
  /// - Returns: Whether elements are left for a task.
  private func callWithinBudget(_ direct: any Handler.SenderCalls) -> Bool {
    var budget = TurnBudget()
    var isSpent = false
    var isFirst = true
    while true {
      let turn = state.withLock { state -> DirectTurn in
        guard !isFirst || !state.isCalling else { return .busy }
        isFirst = false
        state.isCalling = !isSpent && !state.items.isEmpty
        if state.isCalling, let item = state.items.popFirst() {
          return .call(item, state.entries.first)
        }
        if !state.items.isEmpty { return .rest }
        return .end(state.isClosed ? state.takeEntries() : [])
      }
      switch turn {
      case .busy:
        // The other thread delivers the elements; the note lets readers look for them without waiting for it.
        direct.note()
        return false
      case .rest:
        return true
      case .end(let entries):
        end(entries)
        return false
      case .call(let item, let entry):
        if let entry, entry.call != nil {
          direct.call(item, isWanted: wants(item, entry), in: self)
        }
        isSpent = budget.isSpent()
      }
    }
  }

  /// The next step of a thread that calls a handler.
  private enum DirectTurn {
    case call(Item, Entry?)
    case end(ContiguousArray<Entry>)
    /// Elements are left for a task.
    case rest
    /// Another thread, or this one further up the stack, calls the handler.
    case busy
  }
}
