// @unchecked Sendable: required for subclasses of `HandlerQueue.Report`; an offer is immutable. The effects of a
// change are used by one thread at a time: the one that made the change, or the one that it passes them to.

extension EventChannel {
  /// A subscriber of a channel.
  enum Member: Sendable {
    case stream(EventChannel.Stream)
    case handler(Handler)
  }
}

extension EventChannel {
  /// A destination of events: a stream or a queue of handlers.
  enum Outlet: Sendable {
    case stream(EventChannel.Stream)
    case queue(HandlerQueue)

    /// The place in subscription order of its first subscriber.
    var id: Int {
      switch self {
      case .stream(let stream): stream.id
      case .queue(let queue): queue.id
      }
    }
  }
}

extension EventChannel {
  /// A stream of a channel, with a type-erased element.
  @usableFromInline
  final class Stream: Sendable {
    /// The place in subscription order.
    let id: Int
    /// Adds an event to the buffer and returns whether it was accepted.
    let put: @Sendable (AnyBox, inout EventChannel.Effects) -> Bool
    /// A hub with a single subscriber.
    let hub: HubCore

    /// Creates a stream.
    ///
    /// - Parameters:
    ///   - id: The place in subscription order.
    ///   - hub: A hub with a single subscriber.
    ///   - mayRefuse: Whether the buffer can refuse an event.
    @inlinable
    convenience init<E>(id: Int, hub: BroadcastHub<E>, mayRefuse: Bool) {
      self.init(id: id, hub: hub) { box, effects in
        guard let delivery = hub.prepare(Box<E>.element(of: box)) else { return true }
        let isAccepted = !mayRefuse || delivery.displaced.isEmpty
        effects.add(delivery, id: id)
        return isAccepted
      }
    }

    @usableFromInline
    init(
      id: Int,
      hub: HubCore,
      put: @escaping @Sendable (AnyBox, inout EventChannel.Effects) -> Bool
    ) {
      self.id = id
      self.hub = hub
      self.put = put
    }
  }
}

extension AsyncStream.Continuation.BufferingPolicy {
  /// Whether a full buffer refuses new elements.
  @inlinable var mayRefuse: Bool {
    switch self {
    case .bufferingOldest: true
    case .bufferingNewest(let limit): limit <= 0
    case .unbounded: false
    @unknown default: false
    }
  }
}

extension EventChannel {
  /// A retained event that was offered to a handler and whose result is awaited.
  final class Offer: HandlerQueue.Report, @unchecked Sendable {
    private let number: Int
    private let channel: EventChannel

    init(number: Int, to receiver: Handler, channel: EventChannel) {
      self.number = number
      self.channel = channel
      super.init(receiver: receiver)
    }

    override var isOffer: Bool { true }

    override func begin() -> Bool {
      channel.start(number)
    }

    override func end(notified: Int, handled: Int) {
      channel.finish(number, as: notified == 0 ? .unreached : handled > 0 ? .succeeded : .failed)
    }
  }
}

extension EventChannel {
  /// The effects of a channel's change, to be performed with no lock held.
  @usableFromInline
  struct Effects: Sendable {
    /// The first task to resume, which needs no array, and its place in subscription order.
    @usableFromInline var first: SuspendedTask?
    @usableFromInline var firstID = 0
    /// The effects that most posts do not have.
    @usableFromInline var rest: Rest?
    /// The effects on handlers, apart from resuming their tasks.
    @usableFromInline var handlers: HandlerQueue.Effects?
    /// Whether the queues of the channel end after their current content.
    var finishes = false
    /// Whether the channel is empty and can be dropped.
    var isEmpty = false
    /// Whether steps remain for another turn.
    var isBehind = false

    init() {}

    /// The effects that most posts do not have, used by one thread at a time.
    @usableFromInline
    final class Rest: @unchecked Sendable {
      /// The tasks to resume after the first one, in subscription order.
      @exclusivity(unchecked) @safe
      @usableFromInline var woken: ContiguousArray<Waiter.ParkedTask> = []
      /// The filled chunk of a log, which needs no array.
      @exclusivity(unchecked) @safe
      @usableFromInline var filled: LogLink?
      /// The filled chunks of other logs.
      @exclusivity(unchecked) @safe
      @usableFromInline var otherFilled: ContiguousArray<LogLink> = []
      /// The events to release.
      @exclusivity(unchecked) @safe
      @usableFromInline var released: ContiguousArray<AnyBox> = []
      /// The posts that have reached their streams.
      @exclusivity(unchecked) @safe
      var parts: ContiguousArray<(completion: PostCompletion, outcome: PostOutcome)> = []
      /// The posts that have ended.
      @exclusivity(unchecked) @safe
      var ended: ContiguousArray<(completion: PostCompletion, outcome: PostOutcome)> = []

      @usableFromInline
      init() {}
    }

    /// Returns the storage for further effects.
    @usableFromInline
    mutating func more() -> Rest {
      if let rest { return rest }
      let rest = Rest()
      self.rest = rest
      return rest
    }

    /// Adds the delivery of an event to a stream.
    ///
    /// - Parameters:
    ///   - delivery: The delivery.
    ///   - id: The place of the stream in subscription order.
    @inlinable
    mutating func add<E>(_ delivery: Delivery<E>, id: Int) {
      if let handlers = delivery.handlers { add(handlers) }
      for parked in delivery.woken { wake(parked.task, id: id) }
      if delivery.filled == nil, delivery.displaced.isEmpty { return }
      let rest = more()
      if rest.filled == nil {
        rest.filled = delivery.filled
      } else if let chunk = delivery.filled {
        rest.otherFilled.append(chunk)
      }
      for element in delivery.displaced { rest.released.append(Box(element)) }
    }

    @inlinable
    mutating func wake(_ task: SuspendedTask?, id: Int) {
      guard let task else { return }
      if first == nil {
        (first, firstID) = (task, id)
      } else {
        more().woken.append(Waiter.ParkedTask(id: id, task: task))
      }
    }

    mutating func release(_ events: ContiguousArray<AnyBox>) {
      if events.isEmpty { return }
      let rest = more()
      if rest.released.isEmpty { rest.released = events } else { rest.released += events }
    }

    @usableFromInline
    mutating func add(_ effects: HandlerQueue.Effects) {
      let all = HandlerQueue.Effects.of(&handlers)
      all.queues += effects.queues
      all.discarded += effects.discarded
    }

    /// Resumes tasks, reports results and releases events.
    func perform() {
      if let handlers {
        let first = first.map { Waiter.ParkedTask(id: firstID, task: $0) }
        handlers.perform(resuming: (first.map { [$0] } ?? []) + (rest?.woken ?? []))
      } else {
        first?.resume()
      }
      guard let rest else { return }
      if handlers == nil { for task in rest.woken { task.resume() } }
      for (completion, part) in rest.parts {
        completion.end(notified: part.notified, handled: part.handled)
      }
      for (completion, outcome) in rest.ended { completion.finish(with: outcome) }
    }
  }
}
