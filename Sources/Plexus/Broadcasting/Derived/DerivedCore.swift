/// The state that the subscribers of a derived broadcaster share: one subscription to the source, while there are any.
///
/// The source is not kept: it keeps the core, as one of its handlers. Elements are transformed by the thread that
/// sends them, one at a time and in order, with no lock held.
final class DerivedCore<Output: Sendable>: Sendable {
  /// The subscription to the source.
  struct Connection: Sendable {
    let link: Link
    let handler: Handler
  }

  let hub: BroadcastHub<Output>
  /// Called with no lock held when the source is not subscribed to any more.
  private let onStop: (@Sendable () -> Void)?
  private let connection = Locked<Connection?>(nil)

  /// Creates a core without subscribers.
  ///
  /// - Parameters:
  ///   - areEqual: Compares elements, if duplicates are removed.
  ///   - onStop: Called with no lock held when the source is not subscribed to any more.
  init(
    areEqual: DuplicateFilter<Output>.AreEqual? = nil,
    onStop: (@Sendable () -> Void)? = nil
  ) {
    self.onStop = onStop
    let core = WeakReference<DerivedCore>()
    // Sources can take back what was not read, and so can what is derived from them.
    hub = BroadcastHub(isResettable: true, onEmpty: { core.object?.stop() }, areEqual: areEqual)
    core.set(self)
  }

  /// Calls the body, which registers a subscriber, and subscribes to the source before if that is the first.
  ///
  /// - Parameters:
  ///   - connect: Subscribes to the source.
  ///   - present: Makes the element for the present state of the source, if it has one. It is called if the source
  ///     replays its state only after the action that is under way.
  ///   - body: Registers the subscriber.
  /// - Returns: The result of the body.
  func withHub<Result>(
    connecting connect: () -> Connection,
    present: () -> Output? = { nil },
    _ body: (_ hub: BroadcastHub<Output>, _ replay: [Output]) -> Result
  ) -> Result {
    if let result = register(body) { return result }
    let new = connect()
    let replay = new.link.isWaiting ? present() : nil
    let (result, isUsed, hasEnded) = connection.withLock { connection in
      let hasEnded = new.link.hasEnded
      let isUsed = connection == nil && !hasEnded
      if isUsed { connection = new }
      let link = (connection ?? new).link
      if let replay { link.begin(with: replay) }
      return (body(hub, link.replay), isUsed, hasEnded && connection == nil)
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

  /// Subscribes to a source.
  ///
  /// - Parameters:
  ///   - source: The source.
  ///   - minimumReplay: The number of elements that a new subscriber gets first in any case.
  ///   - transform: Makes the element for subscribers; `nil` if they get none.
  /// - Returns: The subscription.
  func connection<Input: Sendable>(
    to source: some Broadcaster<Input>,
    minimumReplay: Int = 0,
    _ transform: @escaping @Sendable (Input) -> Output?
  ) -> Connection {
    let subscription = source.subscription(bufferingPolicy: .unbounded)
    let limit = (source as? any HubBacked<Input>)?.replayLimit ?? 0
    let replayLimit = max(limit, minimumReplay, subscription.subscriber.replay.count)
    return connection(to: subscription, replayLimit: replayLimit, transform)
  }

  /// Reads a subscription.
  ///
  /// - Parameters:
  ///   - subscription: The subscription.
  ///   - replayLimit: The largest number of elements that a new subscriber gets first.
  ///   - rounds: The rounds in which the source evaluates elements, if it does so after a state was published.
  ///   - transform: Makes the element for subscribers; `nil` if they get none.
  /// - Returns: The subscription.
  func connection<Input: Sendable>(
    to subscription: Subscription<Input>,
    replayLimit: Int,
    rounds: EvaluationRounds? = nil,
    _ transform: @escaping @Sendable (Input) -> Output?
  ) -> Connection {
    let link = Link(core: self, replayLimit: replayLimit, rounds: rounds) { box in
      transform(Box<Input>.element(of: box))
    }
    let handler = subscription.handler(Handler.Recipe(isolation: nil, .direct(link)))
    return Connection(link: link, handler: handler)
  }

  /// The newest element, if it is that of everything that was sent.
  var current: Output? {
    connection.withLock { connection in
      guard let connection, connection.link.newest == connection.handler.queue.end - 1,
        connection.link.isOfNewestRound
      else { return nil }
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
