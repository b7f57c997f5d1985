internal import Plexus

/// An event bus.
final class BusSource: InspectedSource {
  private weak let bus: EventBus?
  private let disclosure: Disclosure
  private let posts = Journal<EventPost>(
    capacity: 1_000,
    number: { $0.number },
    isOpen: { $0.outcome == nil }
  )

  private static let limits = (posts: 200, channels: 200, pending: 5)

  init(_ bus: EventBus, _ disclosure: Disclosure) {
    self.bus = bus
    self.disclosure = disclosure
  }

  var kind: SourceKind { .bus }

  func start(_ pace: Pace) {
    if let bus { posts.read(bus.posts(), pace: pace) }
  }

  func stop() {
    posts.stop()
  }

  var numbers: JSON? {
    guard bus != nil else { return nil }
    let counts = posts.counts
    return ["posts": .int(counts.all), "recent": .int(counts.recent)]
  }

  func details(since revision: Int) -> (JSON, revision: Int) {
    let changes = posts.changes(since: revision, limit: Self.limits.posts)
    let channels = bus?.snapshot(pendingLimit: disclosure.showsValues ? Self.limits.pending : 0)
    let sorted = (channels ?? []).map { (name: $0.typeName, channel: $0) }
      .sorted { $0.name < $1.name }
    let details: JSON = [
      "posts": .array(changes.items.map(json)),
      "channels": .array(sorted.prefix(Self.limits.channels).map { json($0.channel, $0.name) }),
      "hasMoreChannels": .bool(sorted.count > Self.limits.channels),
    ]
    return (details, changes.revision)
  }

  private func json(_ item: JournalState<EventPost>.Item) -> JSON {
    let post = item.record
    return [
      "number": .int(item.number),
      "time": .seconds(post.time),
      "type": .string(post.typeName.shortened(to: 100)),
      "scope": .text(post.scope.map(text)),
      "subscribers": .int(post.subscriberCount),
      "retained": .bool(post.isRetained),
      "outcome": .text(post.outcome.map(Self.text)),
      "value": .string(disclosure.name(of: post.event)),
    ]
  }

  private func json(_ channel: EventBus.ChannelSnapshot, _ name: String) -> JSON {
    [
      "type": .string(name.shortened(to: 100)),
      "scope": .text(channel.scope.map(text)),
      "subscribers": .int(channel.subscriberCount),
      "handlers": .int(channel.handlerCount),
      "pending": .int(channel.pendingCount),
      "events": .array(channel.pendingEvents.map { .string(disclosure.text(of: $0)) }),
    ]
  }

  /// A scope is identified by a value.
  private func text(of scope: EventScope) -> String {
    disclosure.showsValues ? scope.description.shortened(to: 100) : "in a scope"
  }

  private static func text(of outcome: PostOutcome) -> String {
    var text = "\(outcome.handled) of \(outcome.notified) handled"
    if outcome.isIncomplete { text += ", incomplete" }
    if outcome.isDeferred { text += ", deferred" }
    if outcome.isPersisted { text += ", retained" }
    return text
  }
}
