/// The subscription to the source that all subscribers of a derived broadcaster share.
///
/// The core does not keep the source alive. The source keeps the core, as one of its handlers. The sending thread
/// transforms elements, one at a time and in order, with no lock held.
final class DerivedCore<Output: Sendable>: Sendable {
  /// The subscription to the source.
  struct Connection: Sendable {
    let link: Link
    let handler: Handler

    /// Whether the elements sent so far have all been transformed; read under the lock of the core.
    var isUpToDate: Bool { link.newest == handler.queue.end - 1 && link.isOfNewestRound }
  }

  let hub: BroadcastHub<Output>
  /// Called with no lock held when the subscription to the source ends.
  private let onStop: (@Sendable () -> Void)?
  private let connection = Locked<Connection?>(nil)

  /// Creates a core without subscribers.
  ///
  /// - Parameters:
  ///   - areEqual: Compares elements if duplicates are removed.
  ///   - onStop: Called with no lock held when the subscription to the source ends.
  init(
    areEqual: DuplicateFilter<Output>.AreEqual? = nil,
    onStop: (@Sendable () -> Void)? = nil
  ) {
    self.onStop = onStop
    let core = WeakReference<DerivedCore>()
    // Sources can revoke unread elements, and so can broadcasters that are derived from them.
    hub = BroadcastHub(isResettable: true, onEmpty: { core.object?.stop() }, areEqual: areEqual)
    core.set(self)
  }

  /// Calls the body, which registers a subscriber, and before that subscribes to the source if it is the first.
  ///
  /// - Parameters:
  ///   - connect: Subscribes to the source.
  ///   - present: Makes the element for the present state of the source, if it has one. It is called if the source
  ///     replays its state only after the current action.
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
    let backed = source as? any HubBacked<Input>
    let limit = backed?.replayLimit ?? 0
    let replayLimit = max(limit, minimumReplay, subscription.subscriber.replay.count)
    return connection(to: subscription, replayLimit: replayLimit, behind: backed?.stage, transform)
  }

  /// Reads a subscription.
  ///
  /// - Parameters:
  ///   - subscription: The subscription.
  ///   - replayLimit: The largest number of elements that a new subscriber gets first.
  ///   - stage: The stage that makes the elements, if the source is derived itself.
  ///   - rounds: The rounds in which the source evaluates elements, if it does so after a state was published.
  ///   - transform: Makes the element for subscribers; `nil` if they get none.
  /// - Returns: The subscription.
  func connection<Input: Sendable>(
    to subscription: Subscription<Input>,
    replayLimit: Int,
    behind stage: (any DerivedStage)? = nil,
    rounds: EvaluationRounds? = nil,
    _ transform: @escaping @Sendable (Input) -> Output?
  ) -> Connection {
    let link = Link(core: self, replayLimit: replayLimit, behind: stage, rounds: rounds) { box in
      transform(Box<Input>.element(of: box))
    }
    let handler = subscription.handler(Handler.Recipe(isolation: nil, .direct(link)))
    return Connection(link: link, handler: handler)
  }

  /// The newest element, if the elements sent so far have all been transformed.
  var current: Output? {
    guard isFormerStageUpToDate else { return nil }
    return connection.withLock { connection in
      guard let connection, connection.isUpToDate else { return nil }
      return connection.link.replay.last
    }
  }

  private var isFormerStageUpToDate: Bool {
    let stage = connection.withLock { $0?.link.stage }
    return stage?.isUpToDate ?? true
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
  ///   - body: The body. Its argument is whether the link serves the subscribers.
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

/// A stage of transforms between a state and its subscribers.
@usableFromInline
protocol DerivedStage: AnyObject, Sendable {
  /// Whether the subscribers have been sent all that was sent to this stage and to those before it.
  var isUpToDate: Bool { get }
}

extension DerivedCore: DerivedStage {
  @usableFromInline var isUpToDate: Bool {
    guard isFormerStageUpToDate else { return false }
    return connection.withLock { $0?.isUpToDate ?? true }
  }
}
