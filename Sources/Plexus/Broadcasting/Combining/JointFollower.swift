internal import Synchronization

/// The handler that passes the elements of a root on to a joint.
///
/// The elements are passed on under the lock of the source: the joint is never behind.
final class JointFollower: Handler.SenderCalls {
  private let joint: Joint
  private let root: Int
  /// Returns the element for the joint; `nil` if it gets none.
  private let convert: (@Sendable (HandlerQueue.Item) -> AnyBox?)?

  /// Creates a follower.
  ///
  /// - Parameters:
  ///   - joint: The joint.
  ///   - root: The index of the root.
  ///   - convert: Returns the element for the joint, or `nil` for none. It can be called under a lock.
  init(
    _ joint: Joint,
    root: Int,
    convert: (@Sendable (HandlerQueue.Item) -> AnyBox?)? = nil
  ) {
    self.joint = joint
    self.root = root
    self.convert = convert
  }

  var isOrdered: Bool { true }

  func begin(with replay: [AnyBox]) -> Bool {
    guard let newest = replay.last else { return false }
    joint.begin(root, with: newest)
    return true
  }

  func take(
    _ item: HandlerQueue.Item,
    in queue: HandlerQueue,
    _ effects: inout HubEffects
  ) -> Bool {
    receive(item, in: queue, &effects)
    return true
  }

  func call(_ item: HandlerQueue.Item, isWanted: Bool, in queue: HandlerQueue) {
    guard isWanted else { return }
    var effects = HubEffects()
    receive(item, in: queue, &effects)
    effects.perform()
  }

  private func receive(
    _ item: HandlerQueue.Item,
    in queue: HandlerQueue,
    _ effects: inout HubEffects
  ) {
    guard let box = convert == nil ? item.box : convert?(item) else { return }
    // A reset takes back everything before the element that it sends.
    let isReset = queue.floor.load(ordering: .acquiring) == item.sequence
    joint.receive(box, from: root, isReset: isReset, &effects)
  }

  func note() {}

  func takeBack(in queue: HandlerQueue) {
    joint.takeUnread()
  }

  func removeOrphans() {
    joint.hub.removeOrphans()
  }

  func end() {
    joint.end(root)
  }
}
