/// A view of a part of a state.
struct SelectedPart<Source: StatefulBroadcaster, Part: Equatable & Sendable>:
  StatefulBroadcaster, HubBacked
{
  typealias Element = Part

  private let source: Source
  private let path: (any AnyKeyPath & Sendable)?
  private let select: @Sendable (Source.Element) -> Part
  private let core: DerivedCore<Part>

  /// Creates a view that is subscribed to its source while it has subscribers.
  ///
  /// - Parameters:
  ///   - source: The source, which the view keeps and its subscribers do not.
  ///   - path: The key path, if that is what is selected.
  ///   - core: The core of the view.
  ///   - select: Makes the part.
  init(
    _ source: Source,
    path: (any AnyKeyPath & Sendable)? = nil,
    core: DerivedCore<Part> = DerivedCore(areEqual: { $0 == $1 }),
    _ select: @escaping @Sendable (Source.Element) -> Part
  ) {
    self.source = source
    self.path = path
    self.core = core
    self.select = select
  }

  var current: Part {
    core.current ?? select(source.current)
  }

  var stage: (any DerivedStage)? { core }

  var presentHub: BroadcastHub<Part>? { core.hub }

  var subscriberCount: Int { core.hub.subscriberCount }

  func subscription(bufferingPolicy: BufferingPolicy<Part>) -> Subscription<Part> {
    registered(bufferingPolicy: bufferingPolicy)
  }

  func withHub<Result>(
    _ body: (_ hub: BroadcastHub<Part>, _ replay: [Part]) -> Result
  ) -> Result {
    core.withHub(connecting: connection, replaying: currentReplay, body)
  }

  func currentReplay() -> Replay<Part>? {
    guard let source = source as? any PartEvaluating<Source.Element> else {
      return core.replay(of: { Replay<Source.Element>.of(source) }, select)
    }
    return source.replay(of: core, select, path: path)
  }

  /// Subscribes to the source: to the changes of the part, if it evaluates parts itself.
  private func connection() -> DerivedCore<Part>.Connection {
    guard let source = source as? any PartEvaluating<Source.Element> else {
      return core.connection(to: source, minimumReplay: 1, select)
    }
    return source.connection(of: core, select, path: path)
  }
}

extension SelectedPart: JointPart {
  func place(in draft: inout JointPlan.Draft) -> Int {
    draft.add(ObjectIdentifier(core), after: source, areEqual: { $0 == $1 }, select)
  }
}
