/// The log of the posts of a bus.
final class PostLogHub: Sendable {
  /// The readers.
  let hub = BroadcastHub<EventPost>()
  private let lastNumber = Locked(0)

  init() {}

  /// Appends a post with its number; can be called under the lock of its channel.
  func append(_ post: EventPost, _ delivery: inout Delivery<EventPost>) {
    lastNumber.withLock { number in
      number += 1
      var post = post
      post.number = number
      if !hub.prepare(post, &delivery) { number = 0 }
    }
  }
}

/// A post that is recorded in the log of its bus.
struct PostLog: Sendable {
  /// The completion of the post, from which the readers of the log get its outcome.
  let completion = EventChannel.PostCompletion()
  private let log: PostLogHub
  private let post: EventPost

  /// - Parameters:
  ///   - event: The event.
  ///   - scope: Its scope.
  ///   - log: The log.
  init(_ event: any Event, in scope: EventScope?, to log: PostLogHub) {
    self.log = log
    post = EventPost(event: event, scope: scope, time: wallClockTime(), completion: completion)
  }

  /// Appends the post to the log; can be called under the lock of its channel, whose order the log then has.
  ///
  /// - Parameters:
  ///   - subscriberCount: The present number of subscribers.
  ///   - isRetained: Whether the event is retained.
  /// - Returns: The work that remains, with no lock held.
  func record(subscriberCount: Int, isRetained: Bool) -> Delivery<EventPost> {
    var post = post
    post.subscriberCount = subscriberCount
    post.isRetained = isRetained
    var delivery = Delivery<EventPost>()
    log.append(post, &delivery)
    return delivery
  }

  /// Appends a post of a type and scope that has never had a subscriber; called with no lock held.
  func recordUnheard() {
    completion.finish(with: PostOutcome(notified: 0, handled: 0))
    record(subscriberCount: 0, isRetained: false).deliver()
  }
}
