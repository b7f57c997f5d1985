/// The subscription to the source that all subscribers of a derived broadcaster share.
///
/// The core does not keep the source alive. The source keeps the core, as one of its handlers. The sending thread
/// transforms elements, one at a time and in order, with no lock held.
final class DerivedCore<Output: Sendable>: Sendable {
  /// The subscription to the source.
  struct Connection: Sendable {
    let upstream: UpstreamHandler
    let handler: Handler

    /// Whether the elements sent so far have all been transformed; read under the lock of the core.
    var isUpToDate: Bool { upstream.newest == handler.queue.end - 1 && upstream.isOfNewestRound }
  }

  /// The properties of a source.
  struct Origin: Sendable {
    /// The largest number of elements that a new subscriber gets first.
    let replayLimit: Int
    /// The stage that makes the elements, if the source is derived itself.
    var stage: (any DerivedStage)?
    /// The rounds in which the source evaluates elements, if it does so after a state was published.
    var rounds: SelectorRounds?
    /// Whether the transform returns `nil` for an element that is the same as the one before.
    var skipsUnchanged = false
    /// Returns the newest element that the source has sent, if its current state can be newer.
    var sent: (@Sendable () -> AnyBox?)?
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
    hub.stage = self
  }

  /// Calls the body, which registers a subscriber, and before that subscribes to the source if it is the first.
  ///
  /// The subscriber begins with the newest state of the source, even if an older one is still being delivered.
  ///
  /// - Parameters:
  ///   - connect: Subscribes to the source.
  ///   - replay: Returns the elements for a new subscriber, made from those of the source; `nil` if the source does
  ///     not replay its state.
  ///   - body: Registers the subscriber.
  /// - Returns: The result of the body.
  func withHub<Result>(
    connecting connect: () -> Connection,
    replaying replay: () -> Replay<Output>?,
    _ body: (_ hub: BroadcastHub<Output>, _ replay: [Output]) -> Result
  ) -> Result {
    while true {
      let isFormerStageUpToDate = self.isFormerStageUpToDate
      let (isConnected, result) = connection.withLock { connection -> (Bool, Result?) in
        guard let connection else { return (false, nil) }
        guard isFormerStageUpToDate, connection.isUpToDate else { return (true, nil) }
        return (true, body(hub, connection.upstream.replay))
      }
      if let result { return result }
      if isConnected {
        if let result = joinLate(replay, body) { return result }
      } else if let result = begin(connect(), body) {
        return result
      }
    }
  }

  /// Serves the subscribers by a new subscription to the source, unless there is one by now.
  ///
  /// - Returns: The result of the body; `nil` if it was not called because elements have to be transformed first.
  private func begin<Result>(
    _ new: Connection,
    _ body: (_ hub: BroadcastHub<Output>, _ replay: [Output]) -> Result
  ) -> Result? {
    let isFormerStageUpToDate = new.upstream.stage?.isUpToDate ?? true
    let (result, isUsed, hasEnded) = connection.withLock { connection -> (Result?, Bool, Bool) in
      guard connection == nil else { return (nil, false, false) }
      guard !new.upstream.hasEnded else { return (body(hub, new.upstream.replay), false, true) }
      connection = new
      guard isFormerStageUpToDate, new.isUpToDate else { return (nil, true, false) }
      return (body(hub, new.upstream.replay), true, false)
    }
    if !isUsed { new.handler.cancel() }
    // The subscriber still receives the replay that the source has after its end.
    if hasEnded { hub.finish(with: new.upstream.ending) }
    return result
  }

  /// Registers a subscriber while elements are being transformed that are older than its first one.
  ///
  /// - Returns: The result of the body; `nil` if it was not called because another thread has delivered a newer element.
  private func joinLate<Result>(
    _ replay: () -> Replay<Output>?,
    _ body: (_ hub: BroadcastHub<Output>, _ replay: [Output]) -> Result
  ) -> Result? {
    guard let first = replay() else {
      return connection.withLock { $0.map { body(hub, $0.upstream.replay) } }
    }
    var result: Result?
    _ = first.join?({ number in
      // Called under the lock, after the beginning was noted.
      hub.passedNumber = number
      result = body(hub, first.elements)
      hub.passedNumber = 0
      return true
    })
    return result
  }

  /// Returns the elements that a new subscriber gets first, made from those of the source.
  ///
  /// - Parameters:
  ///   - source: Returns the elements of the source; `nil` if it does not replay its state.
  ///   - distance: `nil` if they are made into elements of this stage; otherwise, they are elements of the stage that
  ///     is so many after this one already.
  ///   - transform: Makes the element for subscribers; `nil` if they get none.
  /// - Returns: The elements; `nil` if the source has none.
  func replay<Input: Sendable, Value: Sendable>(
    of source: () -> Replay<Input>?,
    distance: Int? = nil,
    _ transform: @Sendable (Input) -> Value?
  ) -> Replay<Value>? {
    while true {
      guard let connection = self.connection.withLock({ $0 }) else {
        // The source has ended: nothing more passes this stage.
        guard let input = source() else { return nil }
        return Replay(elements: input.elements.compactMap(transform)) { $0(UniqueID.next()) }
      }
      let (upstream, queue) = (connection.upstream, connection.handler.queue)
      upstream.takeBack(in: queue)
      let (end, round) = (queue.end, upstream.rounds?.running)
      guard let input = replay(of: source, behind: upstream, distance: distance) else { return nil }
      // Of a source that is no view, the elements are those as of this very number.
      let isFirst = input.join == nil
      if isFirst, queue.end != end || upstream.rounds?.running != round { continue }
      let elements = input.elements.compactMap(transform)
      return Replay(elements: elements) { [self] body in
        guard let join = input.join else {
          return whileConnected(to: upstream, queue) { state in
            let isPossible = upstream.rounds == nil ? upstream.newest < end : state == (end, round)
            let number = UniqueID.next()
            // The state with which the source begins, or that it has published and not evaluated yet, is still to come.
            let canRepeat =
              distance ?? 0 == 0 && (upstream.rounds != nil || upstream.newest == .min)
            let known = canRepeat ? elements.last as? Output : nil
            guard isPossible, upstream.begin(at: end, number: number, knowing: known) else {
              return false
            }
            return body(number)
          }
        }
        return join { number in
          whileConnected(to: upstream, queue) { state in
            upstream.begin(at: state.end, number: number, knowing: nil) && body(number)
          }
        }
      }
    }
  }

  /// Returns the elements of the source of an upstream, also if that is a broadcaster of the user's that forwards a view.
  private func replay<Input: Sendable>(
    of source: () -> Replay<Input>?,
    behind upstream: UpstreamHandler,
    distance: Int?
  ) -> Replay<Input>? {
    if distance == nil, let sent = upstream.sent?() {
      return Replay(elements: [Box<Input>.element(of: sent)])
    }
    guard let input = source() else { return nil }
    guard input.join == nil, let stage = upstream.stage else { return input }
    // Such a broadcaster has the view's elements, and does not know which of them are still to be delivered.
    return stage.replay(of: source, distance: distance.map { $0 + 1 } ?? 0) { $0 }
  }

  /// Calls the body under the lock, unless the upstream does not serve the subscribers or a reset has yet to pass it.
  private func whileConnected(
    to upstream: UpstreamHandler,
    _ queue: HandlerQueue,
    _ body: (_ state: (end: Int, round: Int?)) -> Bool
  ) -> Bool {
    connection.withLock { connection in
      guard connection?.upstream === upstream, !upstream.isBeforeReset(of: queue) else {
        return false
      }
      return body((queue.end, upstream.rounds?.running))
    }
  }

  /// Subscribes to a source.
  ///
  /// - Parameters:
  ///   - source: The source.
  ///   - minimumReplay: The number of elements that a new subscriber gets first in any case.
  ///   - skipsUnchanged: Whether the transform returns `nil` for an element that is the same as the one before.
  ///   - sent: Returns the newest element that the source has sent, if its current state can be newer.
  ///   - transform: Makes the element for subscribers; `nil` if they get none.
  /// - Returns: The subscription.
  func connection<Input: Sendable>(
    to source: some Broadcaster<Input>,
    minimumReplay: Int = 0,
    skipsUnchanged: Bool = false,
    sent: (@Sendable () -> AnyBox?)? = nil,
    _ transform: @escaping @Sendable (Input) -> Output?
  ) -> Connection {
    let subscription = source.subscription(bufferingPolicy: .unbounded)
    let backed = source as? any HubBacked<Input>
    let limit = backed?.replayLimit ?? 0
    let replayLimit = max(limit, minimumReplay, subscription.subscriber.replayCount)
    let origin = Origin(
      replayLimit: replayLimit,
      stage: backed?.stage ?? subscription.subscriber.core.stage,
      skipsUnchanged: skipsUnchanged,
      sent: sent
    )
    let connection = self.connection(to: subscription, of: origin, transform)
    if minimumReplay == 0 { connection.upstream.begin(in: connection.handler.queue) }
    return connection
  }

  /// Reads a subscription.
  ///
  /// - Parameters:
  ///   - subscription: The subscription.
  ///   - origin: The properties of its source.
  ///   - transform: Makes the element for subscribers; `nil` if they get none.
  /// - Returns: The subscription.
  func connection<Input: Sendable>(
    to subscription: Subscription<Input>,
    of origin: Origin,
    _ transform: @escaping @Sendable (Input) -> Output?
  ) -> Connection {
    let upstream = UpstreamHandler(core: self, of: origin) { box in
      transform(Box<Input>.element(of: box))
    }
    let handler = subscription.handler(Handler.Recipe(isolation: nil, .direct(upstream)))
    return Connection(upstream: upstream, handler: handler)
  }

  /// The newest element, if the elements sent so far have all been transformed.
  var current: Output? {
    guard isFormerStageUpToDate else { return nil }
    return connection.withLock { connection in
      guard let connection, connection.isUpToDate else { return nil }
      return connection.upstream.replay.last
    }
  }

  private var isFormerStageUpToDate: Bool {
    let stage = connection.withLock { $0?.upstream.stage }
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

  /// Calls the body with exclusive access to the replay of an upstream.
  ///
  /// - Parameters:
  ///   - upstream: The upstream.
  ///   - body: The body. Its argument is whether the upstream serves the subscribers.
  /// - Returns: The result of the body.
  func withLock<Result>(
    for upstream: UpstreamHandler,
    _ body: (_ isConnected: Bool) -> Result
  ) -> Result {
    connection.withLock { body($0?.upstream === upstream) }
  }

  func end(_ upstream: UpstreamHandler) {
    let former = connection.withLock { connection -> Connection? in
      upstream.hasEnded = true
      return connection?.upstream === upstream ? connection.take() : nil
    }
    guard former != nil else { return }
    hub.finish(with: upstream.ending)
    onStop?()
  }
}

extension DerivedCore: DerivedStage {
  @usableFromInline var isUpToDate: Bool {
    guard isFormerStageUpToDate else { return false }
    return connection.withLock { $0?.isUpToDate ?? true }
  }
}
