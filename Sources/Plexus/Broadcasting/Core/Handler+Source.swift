extension Handler {
  /// A source that handlers are registered with.
  protocol Source: AnyObject, Sendable {
    /// Removes a handler; called once, with no lock held.
    func remove(_ handler: Handler)

    /// Returns the closure that the queue of a new handler calls.
    func call(_ recipe: Handler.Recipe, of handler: Handler) -> Handler.Call
  }

  /// A source that registers handlers in place of the subscriptions of a hub.
  @usableFromInline
  protocol Host: AnyObject, Sendable {
    /// Registers a handler in place of a subscription that has just been made.
    ///
    /// - Parameters:
    ///   - reader: The subscription, which has not been read.
    ///   - recipe: The parts of the handler, with the limits of the subscription.
    /// - Returns: The handler, which has started; `nil` if it belongs to the hub of the subscription.
    func replace(_ reader: HubBase.Reader, with recipe: Handler.Recipe) -> Handler?

    /// Forgets a reader that has left the hub; called with no lock held.
    func leave(_ id: Int)
  }
}

extension Handler.Source {
  func call(_ recipe: Handler.Recipe, of handler: Handler) -> Handler.Call { recipe.call }
}

extension Handler.Host {
  @usableFromInline
  func leave(_ id: Int) {}
}
