internal import Plexus
internal import PlexusSupport

/// An event bus.
final class BusSource: InspectedSource {
  private weak let bus: EventBus?
  private let disclosure: Disclosure
  private let posts = Journal<EventPost>(
    capacity: 1_000,
    number: { $0.number },
    isOpen: { $0.outcome == nil }
  )

  private let channels = Locked(Spared<KeyValuePairs<String, JSON>>())

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
    let posts: JSON = ["posts": .array(changes.items.map(json))]
    return (posts.adding(listedChannels()), changes.revision)
  }

  /// Returns the handlers of each type; of a bus with very many scopes, as they were a little while ago.
  private func listedChannels() -> KeyValuePairs<String, JSON> {
    let start = ContinuousClock.now
    if let kept = channels.withLock({ $0.value(at: start) }) { return kept }
    let all = bus?.snapshot(pendingLimit: disclosure.showsValues ? Self.limits.pending : 0) ?? []
    let sorted = all.map { (name: $0.typeName, channel: $0) }.sorted { $0.name < $1.name }
    let listed: KeyValuePairs<String, JSON> = [
      "channels": .array(sorted.prefix(Self.limits.channels).map { json($0.channel, $0.name) }),
      "hasMoreChannels": .bool(sorted.count > Self.limits.channels),
    ]
    channels.withLock { $0.keep(listed, from: start, to: .now) }
    return listed
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
