// @unchecked Sendable: the lock of its hub guards the number of a log. Swift requires it of a subclass of
// `HandlerQueue.Report`: the posting thread sets the variables of a record, before the log passes it to a reader.

/// The log of the posts of a bus.
final class PostLog: @unchecked Sendable {
  /// The readers.
  let hub = BroadcastHub<EventPost>()
  /// The number of the last post; guarded by the lock of the hub.
  @exclusivity(unchecked) @safe
  private var lastNumber = 0

  init() {}

  /// Returns a reader of the posts from now on; the numbers of the first one begin with 1.
  func subscription(bufferingPolicy: BufferingPolicy<EventPost>) -> Subscription<EventPost> {
    hub.state.withLock { state in
      if state.subscriberCount == 0 { lastNumber = 0 }
    }
    return hub.subscription(bufferingPolicy: bufferingPolicy)
  }

  /// Appends a post with the next number.
  fileprivate func append(_ record: PostRecord, _ delivery: inout Delivery<EventPost>) {
    hub.state.withLock { state in
      guard state.subscriberCount > 0, !state.isFinished else { return }
      lastNumber += 1
      record.logNumber = lastNumber
      hub.append(EventPost(record), from: 0, &state, &delivery)
    }
  }
}

/// A post in the log of its bus, with the completion from which the readers of the log get its outcome.
///
/// While the log has readers, every post makes one: it is a single object, to allocate little.
final class PostRecord: EventChannel.PostCompletion, @unchecked Sendable {
  let box: AnyBox
  let type: any Event.Type
  /// The time of the post by the wall clock.
  let time: Duration
  /// The scope, in a box, since most posts have none.
  @exclusivity(unchecked) @safe
  private(set) var scope: Box<EventScope>?
  /// The number in the log; `number` is the one in the queue of its channel.
  @exclusivity(unchecked) @safe
  fileprivate(set) var logNumber = 0
  @exclusivity(unchecked) @safe
  private(set) var subscriberCount = 0
  @exclusivity(unchecked) @safe
  private(set) var isRetained = false

  /// - Parameters:
  ///   - box: The event.
  ///   - type: Its type.
  init(_ box: AnyBox, of type: any Event.Type) {
    self.box = box
    self.type = type
    time = wallClockTime()
    super.init()
  }

  override func append(
    to log: PostLog,
    by channel: EventChannel,
    isRetained: Bool,
    _ delivery: inout Delivery<EventPost>
  ) {
    subscriberCount = channel.hub.count
    scope = channel.scope
    self.isRetained = isRetained
    log.append(self, &delivery)
  }

  /// Appends a post of a type and scope that has never had a subscriber; called with no lock held.
  func appendUnheard(to log: PostLog, in scope: EventScope?) {
    finish(with: PostOutcome(notified: 0, handled: 0))
    self.scope = scope.map(Box.init)
    var delivery = Delivery<EventPost>()
    log.append(self, &delivery)
    delivery.deliver()
  }
}
