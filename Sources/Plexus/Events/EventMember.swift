/// A subscriber of a channel.
enum EventMember<E: Event>: Sendable {
  case stream(EventStream<E>)
  case handler(EventHandler<E>)
}

/// What feeds one stream of a channel.
final class EventStream<E: Event>: Sendable {
  /// The place in subscription order.
  let id: Int
  /// A hub with a single subscriber.
  let hub: BroadcastHub<E>
  /// Whether the buffer may be too full for an event.
  private let mayRefuse: Bool

  init(id: Int, bufferingPolicy: BufferingPolicy<E>, onEnd: @escaping @Sendable () -> Void) {
    self.id = id
    hub = BroadcastHub(onEmpty: onEnd)
    mayRefuse =
      switch bufferingPolicy {
      case .bufferingOldest: true
      case .bufferingNewest(let limit): limit <= 0
      case .unbounded: false
      @unknown default: false
      }
  }

  /// Puts an event into the buffer.
  ///
  /// - Parameters:
  ///   - event: The event.
  ///   - aftermath: Where to leave what has to be done without the lock.
  /// - Returns: Whether there was room.
  func offer(_ event: E, _ aftermath: inout EventAftermath<E>) -> Bool {
    let delivery = hub.prepare(event)
    let isAccepted = !mayRefuse || delivery.displaced.isEmpty
    aftermath.add(delivery)
    return isAccepted
  }
}

/// Where events of a channel go to at once: a stream, or the lane of handlers.
enum EventOutlet<E: Event>: Sendable {
  case stream(EventStream<E>)
  case lane(EventLane<E>)

  /// The place in subscription order of the first subscriber that it leads to.
  var id: Int {
    switch self {
    case .stream(let stream): stream.id
    case .lane(let lane): lane.id
    }
  }
}

/// What a change of a channel has to be followed by, with no lock held.
struct EventAftermath<E: Event>: Sendable {
  private var deliveries: ContiguousArray<Delivery<E>> = []
  private var woken: ContiguousArray<SuspendedTask> = []
  private var ended: ContiguousArray<@Sendable () -> Void> = []
  private var released: ContiguousArray<E> = []
  /// The lanes that end after what is queued.
  var finishedLanes: ContiguousArray<EventLane<E>> = []
  /// Whether the channel could be forgotten.
  var isEmpty = false

  mutating func add(_ delivery: Delivery<E>) {
    if delivery.woken.isEmpty, delivery.filled == nil, delivery.displaced.isEmpty { return }
    deliveries.append(delivery)
  }

  mutating func wake(_ task: SuspendedTask?) {
    if let task { woken.append(task) }
  }

  mutating func end(_ ticket: PostTicket?, with outcome: PostOutcome) {
    if let ticket { ended.append { ticket.end(with: outcome) } }
  }

  mutating func endPart(_ ticket: PostTicket?, notified: Int, handled: Int) {
    if let ticket { ended.append { ticket.endPart(notified: notified, handled: handled) } }
  }

  mutating func release(_ events: ContiguousArray<E>) {
    if !events.isEmpty { released += events }
  }

  /// Resumes the tasks, in subscription order, and releases the events.
  consuming func carryOut() {
    for delivery in deliveries { delivery.deliver() }
    for task in woken { task.resume() }
    for end in ended { end() }
    for lane in finishedLanes { lane.finish() }
  }
}
