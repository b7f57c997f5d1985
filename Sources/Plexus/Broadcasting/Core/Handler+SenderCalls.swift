extension Handler {
  /// A handler that sending threads call, with no lock held.
  @usableFromInline
  protocol SenderCalls: AnyObject, Sendable {
    /// Whether the handler gets the elements, one at a time and in order, rather than notifications.
    var isOrdered: Bool { get }
    /// Takes the elements that it gets before all sent ones, under the lock of its source, in place of calls.
    ///
    /// - Parameter replay: The elements, oldest first.
    /// - Returns: Whether they were taken.
    func begin(with replay: [AnyBox]) -> Bool
    /// Takes an element under the lock of its source, in place of a call.
    ///
    /// - Parameters:
    ///   - item: The element.
    ///   - queue: The queue of the handler.
    ///   - effects: Receives the work to be done with no lock held.
    /// - Returns: Whether it was taken.
    func take(
      _ item: HandlerQueue.Item,
      in queue: HandlerQueue,
      _ effects: inout HubEffects
    ) -> Bool
    /// Delivers an element, or notes that one has passed that is not for the handler.
    func call(_ item: HandlerQueue.Item, isWanted: Bool, in queue: HandlerQueue)
    /// Notes that an element was sent: instead of the element, or because another thread delivers it.
    func note()
    /// Notes that elements sent before have been taken back.
    func takeBack(in queue: HandlerQueue)
    /// Removes handlers behind this one whose owners have been released.
    func removeOrphans()
    /// Notes that the source has ended.
    func end()
  }
}

extension Handler.SenderCalls {
  func begin(with replay: [AnyBox]) -> Bool { false }

  func take(
    _ item: HandlerQueue.Item,
    in queue: HandlerQueue,
    _ effects: inout HubEffects
  ) -> Bool { false }
}
