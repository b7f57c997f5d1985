/// A source to which a combination subscribes.
protocol JointRoot: Sendable {
  /// Subscribes a joint, which receives the current element first.
  ///
  /// - Parameters:
  ///   - joint: The joint.
  ///   - index: The index of this root.
  /// - Returns: The subscription.
  func follow(_ joint: Joint, as index: Int) -> Handler

  /// Calls the body with the current element; a root with a family does so under the lock that its members share.
  func read(_ body: (AnyBox) -> Void)
}

/// A root that is a source on its own.
struct JointSource<Source: StatefulBroadcaster>: JointRoot {
  let source: Source

  func follow(_ joint: Joint, as index: Int) -> Handler {
    guard let source = source as? any HubBacked<Source.Element> else {
      return followForwarded(joint, as: index)
    }
    return Self.follow(source, joint, as: index)
  }

  private static func follow(
    _ source: some HubBacked<Source.Element>,
    _ joint: Joint,
    as index: Int
  ) -> Handler {
    let recipe = Handler.Recipe(isolation: nil, .direct(JointFollower(joint, root: index)))
    let (hub, added) = source.withHub { hub, replay in
      let added = hub.add(recipe)
      if let element = replay.last { joint.begin(index, with: Box(element)) }
      return (hub, added)
    }
    return hub.start(added)
  }

  /// Subscribes to a broadcaster of the user's, which forwards the subscription of another source.
  private func followForwarded(_ joint: Joint, as index: Int) -> Handler {
    let subscription = source.subscription(bufferingPolicy: .unbounded)
    let recipe = Handler.Recipe(isolation: nil, .direct(JointFollower(joint, root: index)))
    let handler = subscription.handler(recipe)
    // User code, called with no lock held. A source without a state of its own has replayed nothing.
    if !joint.hasBegun(index) { joint.begin(index, with: Box(source.current)) }
    return handler
  }

  func read(_ body: (AnyBox) -> Void) {
    body(Box(source.current))
  }
}
