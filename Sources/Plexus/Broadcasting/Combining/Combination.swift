/// A state that is made from the newest elements of other states.
struct Combination<Element: Sendable>: StatefulBroadcaster, HubBacked {
  private let sources: @Sendable (inout JointPlan.Draft) -> [Int]
  private let transform: @Sendable (JointPlan.Inputs) -> Element
  private let plan: JointPlan
  private let core: DerivedCore<Element>

  /// Creates a combination that is subscribed to its sources while it has subscribers.
  ///
  /// - Parameters:
  ///   - sources: Adds the sources to a plan, and returns the numbers of their steps. It keeps the sources alive; the
  ///     subscribers of the combination do not.
  ///   - transform: Makes an element from those of the sources.
  init(
    _ sources: @escaping @Sendable (inout JointPlan.Draft) -> [Int],
    _ transform: @escaping @Sendable (JointPlan.Inputs) -> Element
  ) {
    self.sources = sources
    self.transform = transform
    core = DerivedCore()
    var draft = JointPlan.Draft()
    let result = draft.add(ObjectIdentifier(core), after: sources, transform)
    plan = JointPlan(draft, result: result)
  }

  var current: Element { core.current ?? element(for: plan.read()) }

  var stage: (any DerivedStage)? { core }

  var presentHub: BroadcastHub<Element>? { core.hub }

  var subscriberCount: Int { core.hub.subscriberCount }

  func subscription(bufferingPolicy: BufferingPolicy<Element>) -> Subscription<Element> {
    registered(bufferingPolicy: bufferingPolicy)
  }

  func withHub<Result>(
    _ body: (_ hub: BroadcastHub<Element>, _ replay: [Element]) -> Result
  ) -> Result {
    core.withHub(connecting: connection, replaying: currentReplay, body)
  }

  func currentReplay() -> Replay<Element>? {
    core.replay(of: { Replay(elements: [plan.read()]) }, element)
  }

  private func connection() -> DerivedCore<Element>.Connection {
    let joint = Joint(plan.kinds)
    joint.connect(to: plan.roots)
    let evaluation = JointEvaluation(plan.work)
    // The state of a view that a broadcaster of the user's forwards can be newer than what the joint has.
    let sent: @Sendable () -> AnyBox? = { [weak joint] in joint.map { Box($0.newest) } }
    return core.connection(to: joint, minimumReplay: 1, skipsUnchanged: true, sent: sent) {
      evaluation.next($0)
    }
  }

  private func element(for state: JointState) -> Element {
    Box<Element>.element(of: plan.work.element(of: plan.work.results(for: state)).box)
  }
}

extension Combination: JointPart {
  func place(in draft: inout JointPlan.Draft) -> Int {
    draft.add(ObjectIdentifier(core), after: sources, transform)
  }
}
