// @unchecked Sendable because Swift requires it of a subclass of `HandlerQueue.Report`. The posting thread sets the
// variables of a record, before the log passes it to a reader. The lock of its hub guards the number of the log.

/// The log of the posts of a bus.
final class PostLog: @unchecked Sendable {
  /// The readers.
  let hub = BroadcastHub<EventPost>()
  /// The number of the last post; guarded by the lock of the hub.
  @exclusivity(unchecked) @safe
  private var lastNumber = 0

  init() {}

  /// Appends a post with the next number.
  fileprivate func append(_ record: PostRecord, _ delivery: inout Delivery<EventPost>) {
    hub.state.withLock { state in
      guard state.subscriberCount > 0, !state.isFinished else {
        lastNumber = 0
        return
      }
      lastNumber += 1
      record.logNumber = lastNumber
      hub.append(EventPost(record), from: 0, &state, &delivery)
    }
  }
}

/// A post in the log of its bus, with the completion from which the readers of the log get its outcome.
///
/// While the log has readers, every post makes one: it is a single object, so that a post allocates once.
final class PostRecord: EventChannel.PostCompletion, @unchecked Sendable {
  let box: AnyBox
  let type: any Event.Type
  /// The scope, in a box, since most posts have none.
  let scope: Box<EventScope>?
  /// The time of the post by the wall clock.
  let time: Duration
  /// The number in the log; `number` is the one in the queue of its channel.
  @exclusivity(unchecked) @safe
  fileprivate(set) var logNumber = 0
  @exclusivity(unchecked) @safe
  private(set) var subscriberCount = 0
  @exclusivity(unchecked) @safe
  private(set) var isRetained = false
  /// The log, until the post is appended to it.
  @exclusivity(unchecked) @safe
  private var log: PostLog?

  /// - Parameters:
  ///   - box: The event.
  ///   - type: Its type.
  ///   - scope: Its scope.
  ///   - log: The log.
  init(
    _ box: AnyBox,
    of type: any Event.Type,
    in scope: Box<EventScope>?,
    for log: PostLog
  ) {
    self.box = box
    self.type = type
    self.scope = scope
    self.log = log
    time = wallClockTime()
    super.init()
  }

  /// Appends the post to the log, once; can be called under the lock of its channel, whose order the log then has.
  ///
  /// - Parameters:
  ///   - subscriberCount: The present number of subscribers.
  ///   - isRetained: Whether the event is retained.
  ///   - delivery: Receives the work that remains, with no lock held.
  func append(
    subscriberCount: Int,
    isRetained: Bool,
    _ delivery: inout Delivery<EventPost>
  ) {
    self.subscriberCount = subscriberCount
    self.isRetained = isRetained
    log.take()?.append(self, &delivery)
  }

  /// Appends a post of a type and scope that has never had a subscriber; called with no lock held.
  func appendUnheard() {
    finish(with: PostOutcome(notified: 0, handled: 0))
    var delivery = Delivery<EventPost>()
    append(subscriberCount: 0, isRetained: false, &delivery)
    delivery.deliver()
  }
}
