extension HandlerQueue {
  /// Discards the elements that newer ones have replaced for their only receiver.
  func discardSuperseded(_ state: inout State, _ effects: inout HubEffects) {
    state.superseded = 0
    for item in state.items.popAll() {
      let accepted = item.isOffer ? nil : item.report?.receiver?.accepted
      if accepted?.contains(item.sequence) ?? true {
        state.items.append(item)
      } else {
        effects.add { $0.discarded.append(item) }
      }
    }
  }

  /// Enqueues the end of one handler, unless the queue is idle.
  ///
  /// - Parameters:
  ///   - handler: The handler.
  ///   - effects: Receives the other work to be done with no lock held.
  /// - Returns: Whether the queue is idle.
  func enqueue(endOf handler: Handler, _ effects: inout HubEffects) -> Bool {
    state.withLock { state in
      guard !state.items.isEmpty || state.isCalling else { return true }
      state.items.append(Item(box: AnyBox(), sequence: end, report: End(receiver: handler)))
      wake(&state, &effects)
      return false
    }
  }
}
