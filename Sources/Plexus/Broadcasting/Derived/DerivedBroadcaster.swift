/// A view of another broadcaster with transformed elements.
struct DerivedBroadcaster<Source: Broadcaster, Element: Sendable>: HubBacked {
  let source: Source
  let core: DerivedCore<Source.Element, Element>

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
    core = DerivedCore(areEqual: areEqual, transform)
  }

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
    core.withHub(of: source, body)
  }
}

/// A view of a part of a state.
struct SelectedPart<Source: StatefulBroadcaster, Part: Equatable & Sendable>:
  StatefulBroadcaster, HubBacked
{
  typealias Element = Part

  private let derived: DerivedBroadcaster<Source, Part>
  private let select: @Sendable (Source.Element) -> Part

  init(_ source: Source, _ select: @escaping @Sendable (Source.Element) -> Part) {
    derived = DerivedBroadcaster(source, areEqual: { $0 == $1 }, select)
    self.select = select
  }

  var current: Part {
    derived.core.current ?? select(derived.source.current)
  }

  var subscriberCount: Int { derived.subscriberCount }

  func subscription(bufferingPolicy: BufferingPolicy<Part>) -> Subscription<Part> {
    registered(bufferingPolicy: bufferingPolicy)
  }

  func withHub<Result>(
    _ body: (_ hub: BroadcastHub<Part>, _ replay: [Part]) -> Result
  ) -> Result {
    derived.withHub(body)
  }
}
