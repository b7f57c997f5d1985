/// The subscription to the source that all subscribers of a derived broadcaster share.
///
/// The core does not keep the source alive. The source keeps the core, as one of its handlers. The sending thread
/// transforms elements, one at a time and in order, with no lock held.
final class DerivedCore<Input: Sendable, Output: Sendable>: Sendable {
  /// Returns the element for subscribers, or `nil` for none.
  typealias Transform = @Sendable (Input) -> Output?

  /// The subscription to the source.
  struct Connection: Sendable {
    let link: Link
    let handler: Handler
  }

  let hub: BroadcastHub<Output>
  let transform: Transform
  /// Called with no lock held when the subscription to the source ends.
  private let onStop: (@Sendable () -> Void)?
  private let connection = Locked<Connection?>(nil)

  /// Creates a core without subscribers.
  ///
  /// - Parameters:
  ///   - areEqual: Compares elements if duplicates are removed.
  ///   - onStop: Called with no lock held when the subscription to the source ends.
  ///   - transform: Returns the element for subscribers, or `nil` for none.
  init(
    areEqual: DuplicateFilter<Output>.AreEqual? = nil,
    onStop: (@Sendable () -> Void)? = nil,
    _ transform: @escaping Transform
  ) {
    self.onStop = onStop
    let core = WeakReference<DerivedCore>()
    // Sources can revoke unread elements, and so can broadcasters that are derived from them.
    hub = BroadcastHub(isResettable: true, onEmpty: { core.object?.stop() }, areEqual: areEqual)
    self.transform = transform
    core.set(self)
  }

  /// Calls the body, which registers a subscriber, and before that subscribes to the source if it is the first.
  func withHub<Result>(
    of source: some Broadcaster<Input>,
    _ body: (_ hub: BroadcastHub<Output>, _ replay: [Output]) -> Result
  ) -> Result {
    if let result = register(body) { return result }
    let new = connect(to: source)
    let (result, isUsed, hasEnded) = connection.withLock { connection in
      let hasEnded = new.link.hasEnded
      let isUsed = connection == nil && !hasEnded
      if isUsed { connection = new }
      return (body(hub, (connection ?? new).link.replay), isUsed, hasEnded && connection == nil)
    }
    if !isUsed { new.handler.cancel() }
    // The subscriber still receives the replay that the source has after its end.
    if hasEnded { hub.finish() }
    return result
  }

  private func register<Result>(
    _ body: (_ hub: BroadcastHub<Output>, _ replay: [Output]) -> Result
  ) -> Result? {
    connection.withLock { connection in
      connection.map { body(hub, $0.link.replay) }
    }
  }

  private func connect(to source: some Broadcaster<Input>) -> Connection {
    let subscription = source.subscription(bufferingPolicy: .unbounded)
    let limit = (source as? any HubBacked<Input>)?.replayLimit ?? 0
    let link = Link(core: self, replayLimit: max(limit, subscription.subscriber.replay.count))
    let handler = subscription.handler(Handler.Recipe(isolation: nil, .direct(link)))
    return Connection(link: link, handler: handler)
  }

  /// The newest element, if the elements sent so far have all been transformed.
  var current: Output? {
    connection.withLock { connection in
      guard let connection, connection.link.newest == connection.handler.queue.end - 1 else {
        return nil
      }
      return connection.link.replay.last
    }
  }

  /// Ends the subscription to the source after the last subscriber has left, unless there is a new one.
  private func stop() {
    let former = connection.withLock { connection -> Connection? in
      guard hub.state.withLock({ $0.subscriberCount == 0 }) else { return nil }
      return connection.take()
    }
    guard let former else { return }
    former.handler.cancel()
    onStop?()
  }

  /// Calls the body with exclusive access to the replay of a link.
  ///
  /// - Parameters:
  ///   - link: The link.
  ///   - body: The body, which is told whether the link serves the subscribers.
  /// - Returns: The result of the body.
  func withLock<Result>(
    for link: Link,
    _ body: (_ isConnected: Bool) -> Result
  ) -> Result {
    connection.withLock { body($0?.link === link) }
  }

  func end(_ link: Link) {
    let former = connection.withLock { connection -> Connection? in
      link.hasEnded = true
      return connection?.link === link ? connection.take() : nil
    }
    guard former != nil else { return }
    hub.finish()
    onStop?()
  }
}
