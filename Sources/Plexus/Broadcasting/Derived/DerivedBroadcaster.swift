/// A view of another broadcaster with transformed elements.
struct DerivedBroadcaster<Source: Broadcaster, Element: Sendable>: HubBacked {
  let source: Source
  private let transform: @Sendable (Source.Element) -> Element?
  private let core: DerivedCore<Element>

  /// Creates a broadcaster that is subscribed to a source while it has subscribers.
  ///
  /// - Parameters:
  ///   - source: The source, which the broadcaster keeps alive and its subscribers do not.
  ///   - areEqual: Compares elements if duplicates are removed.
  ///   - transform: Returns the element for subscribers, or `nil` for none.
  init(
    _ source: Source,
    areEqual: DuplicateFilter<Element>.AreEqual? = nil,
    _ transform: @escaping @Sendable (Source.Element) -> Element?
  ) {
    self.source = source
    self.transform = transform
    core = DerivedCore(areEqual: areEqual)
  }

  var stage: (any DerivedStage)? { core }

  var presentHub: BroadcastHub<Element>? { core.hub }

  var subscriberCount: Int { core.hub.subscriberCount }

  var replayLimit: Int { (source as? any HubBacked<Source.Element>)?.replayLimit ?? 1 }

  func subscription(bufferingPolicy: BufferingPolicy<Element>) -> Subscription<Element> {
    registered(bufferingPolicy: bufferingPolicy)
  }

  func subscribe() -> AsyncStream<Element> {
    let isStateful = source is any StatefulBroadcaster<Source.Element>
    return subscribe(bufferingPolicy: isStateful ? .bufferingNewest(1) : .unbounded)
  }

  func withHub<Result>(
    _ body: (_ hub: BroadcastHub<Element>, _ replay: [Element]) -> Result
  ) -> Result {
    core.withHub(
      connecting: { core.connection(to: source, transform) },
      replaying: currentReplay,
      body
    )
  }

  func currentReplay() -> Replay<Element>? {
    core.replay(of: { Replay<Source.Element>.of(source) }, transform)
  }
}
