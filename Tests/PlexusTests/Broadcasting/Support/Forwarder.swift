import Plexus

/// Forwards registrations to another broadcaster.
struct Forwarder<Source: Broadcaster>: Broadcaster {
  typealias Element = Source.Element

  let source: Source
  var onSubscription: @Sendable () -> Void = {}

  var subscriberCount: Int { source.subscriberCount }

  func subscription(bufferingPolicy: BufferingPolicy<Element>) -> Subscription<Element> {
    let subscription = source.subscription(bufferingPolicy: bufferingPolicy)
    onSubscription()
    return subscription
  }
}

/// Ignores the messages of one author.
struct Deaf: Broadcaster {
  let messenger: Messenger<Int>
  let author: Author

  var subscriberCount: Int { messenger.subscriberCount }

  func subscription(bufferingPolicy: BufferingPolicy<Int>) -> Subscription<Int> {
    messenger.subscription(ignoring: author, bufferingPolicy: bufferingPolicy)
  }
}
