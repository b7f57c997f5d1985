internal import Synchronization

// The one decision whether a handler gets an element, for the task that calls handlers and for sending threads.

extension HandlerQueue {
  /// Returns whether a handler is still to get an element.
  func wants(_ item: Item, _ entry: Entry) -> Bool {
    let handler = entry.handler
    guard !handler.isCancelled, item.sequence >= floor.load(ordering: .acquiring) else {
      return false
    }
    guard handler.limits.admits(item.sender) else { return false }
    // The sender of an offer waits for its result.
    if item.isOffer || item.isEnd { return true }
    // What was sent before the registration is replayed to the handler alone, if it gets it.
    guard item.sequence >= entry.start || item.report?.receiver != nil else { return false }
    guard latest.load(ordering: .relaxed) &- item.sequence <= handler.newest else { return false }
    return handler.accepted?.take(item.sequence) ?? true
  }
}
