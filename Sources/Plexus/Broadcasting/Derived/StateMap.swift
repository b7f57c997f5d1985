/// A view of a state with transformed elements.
struct StateMap<Source: StatefulBroadcaster, Element: Sendable>: StatefulBroadcaster, HubBacked {
  private let source: Source
  private let transform: @Sendable (Source.Element) -> Element
  private let core = DerivedCore<Element>()

  /// Creates a view that is subscribed to its source while it has subscribers.
  ///
  /// - Parameters:
  ///   - source: The source, which the view keeps and its subscribers do not.
  ///   - transform: Makes an element.
  init(_ source: Source, _ transform: @escaping @Sendable (Source.Element) -> Element) {
    self.source = source
    self.transform = transform
  }

  var current: Element { core.current ?? transform(source.current) }

  var stage: (any DerivedStage)? { core }

  var presentHub: BroadcastHub<Element>? { core.hub }

  var subscriberCount: Int { core.hub.subscriberCount }

  func subscription(bufferingPolicy: BufferingPolicy<Element>) -> Subscription<Element> {
    registered(bufferingPolicy: bufferingPolicy)
  }

  func withHub<Result>(
    _ body: (_ hub: BroadcastHub<Element>, _ replay: [Element]) -> Result
  ) -> Result {
    core.withHub(
      connecting: { core.connection(to: source, minimumReplay: 1, transform) },
      replaying: currentReplay,
      body
    )
  }

  func currentReplay() -> Replay<Element>? {
    core.replay(of: { Replay<Source.Element>.of(source) }, transform)
  }
}

extension StateMap: JointPart {
  func place(in draft: inout JointPlan.Draft) -> Int {
    draft.add(ObjectIdentifier(core), after: source, transform)
  }
}
