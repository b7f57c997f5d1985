/// What the subscribers of a derived broadcaster share: one subscription to the source, while there are any.
///
/// The source is not kept: it keeps the core, as one of its handlers. Elements are transformed by the thread that
/// sends them, one at a time and in order, with no lock held.
final class DerivedCore<Input: Sendable, Output: Sendable>: Sendable {
  /// Makes the element for subscribers; `nil` if they get none.
  typealias Transform = @Sendable (Input) -> Output?

  /// The subscription to the source.
  struct Connection: Sendable {
    let link: Link
    let handler: Handler
  }

  let hub: BroadcastHub<Output>
  let transform: Transform
  /// Called with no lock held when the source is not subscribed to any more.
  private let onStop: (@Sendable () -> Void)?
  private let connection = Locked<Connection?>(nil)

  /// Creates a core without subscribers.
  ///
  /// - Parameters:
  ///   - areEqual: Compares elements, if duplicates are removed.
  ///   - onStop: Called with no lock held when the source is not subscribed to any more.
  ///   - transform: Makes the element for subscribers; `nil` if they get none.
  init(
    areEqual: DuplicateFilter<Output>.AreEqual? = nil,
    onStop: (@Sendable () -> Void)? = nil,
    _ transform: @escaping Transform
  ) {
    self.onStop = onStop
    let core = WeakReference<DerivedCore>()
    // Sources can take back what was not read, and so can what is derived from them.
    hub = BroadcastHub(isResettable: true, onEmpty: { core.object?.stop() }, areEqual: areEqual)
    self.transform = transform
    core.set(self)
  }

  /// Calls the body, which registers a subscriber, and subscribes to the source before if that is the first.
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
    // The subscriber was still in time for what the source replays after its end.
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

  /// The newest element, if it is that of everything that was sent.
  var current: Output? {
    connection.withLock { connection in
      guard let connection, connection.link.newest == connection.handler.queue.end - 1 else {
        return nil
      }
      return connection.link.replay.last
    }
  }

  /// The last subscriber has left, unless another one has come since.
  private func stop() {
    let former = connection.withLock { connection -> Connection? in
      guard hub.state.withLock({ $0.subscriberCount == 0 }) else { return nil }
      return connection.take()
    }
    guard let former else { return }
    former.handler.cancel()
    onStop?()
  }

  /// Calls the body with exclusive access to what a link remembers.
  ///
  /// - Parameters:
  ///   - link: The link.
  ///   - body: What to do; it is told whether the link is the one that subscribers are served by.
  /// - Returns: What the body returns.
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
