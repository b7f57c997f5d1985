// @unchecked Sendable because the object is Sendable, which no cast can find out.

internal import Plexus

/// A broadcaster of any type.
final class BroadcasterSource: InspectedSource {
  /// The closures by which a broadcaster is read.
  struct Probe: Sendable {
    let sentCount: @Sendable () -> Int?
    let subscriberCount: @Sendable () -> Int?
    let subscribers: @Sendable () -> [SubscriberSnapshot]
  }

  private static let limit = 200

  private let probe: Probe

  /// - Parameter broadcaster: The broadcaster: held weakly if it is an object, otherwise by value.
  init<Source: Broadcaster>(_ broadcaster: Source) {
    let read: @Sendable () -> Source?
    if Source.self is AnyClass {
      let reference = WeakReference(broadcaster as AnyObject)
      read = { reference.object as? Source }
    } else {
      read = { broadcaster }
    }
    probe = Probe(
      sentCount: { read()?.sentCount },
      subscriberCount: { read()?.subscriberCount },
      subscribers: { read()?.subscriberSnapshots(limit: Self.limit) ?? [] }
    )
    // The subscribers of later are then all known.
    _ = broadcaster.subscriberSnapshots(limit: 1)
  }

  var kind: SourceKind { .broadcaster }

  var numbers: JSON? {
    guard let subscriberCount = probe.subscriberCount() else { return nil }
    let json: JSON = ["subscribers": .int(subscriberCount)]
    return probe.sentCount().map { json.adding(["sent": .int($0)]) } ?? json
  }

  func details(since revision: Int) -> (JSON, revision: Int) {
    let subscribers = probe.subscribers().map { subscriber -> JSON in
      [
        "id": .int(subscriber.id),
        "kind": .string(subscriber.kind == .stream ? "stream" : "handler"),
        "buffered": subscriber.bufferedCount.map(JSON.int) ?? .null,
        "dropped": subscriber.droppedCount.map(JSON.int) ?? .null,
      ]
    }
    return (["subscribers": .array(subscribers)], 0)
  }
}

/// A weak reference to an object whose type is Sendable.
private final class WeakReference: @unchecked Sendable {
  weak let object: AnyObject?

  init(_ object: AnyObject) {
    self.object = object
  }
}
