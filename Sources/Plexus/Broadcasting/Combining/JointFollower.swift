internal import Synchronization

/// The handler that passes the elements of a root on to a joint.
///
/// The elements of the library's own sources are passed on under the lock of the source: the joint is never behind.
final class JointFollower: Handler.SenderCalls {
  private let joint: Joint
  private let root: Int
  private let isSynchronous: Bool
  /// Returns the element for the joint; `nil` if it gets none.
  private let convert: (@Sendable (HandlerQueue.Item) -> AnyBox?)?

  /// Creates a follower.
  ///
  /// - Parameters:
  ///   - joint: The joint.
  ///   - root: The index of the root.
  ///   - isSynchronous: Whether elements are passed on under the lock of the source.
  ///   - convert: Returns the element for the joint, or `nil` for none. It can be called under a lock.
  init(
    _ joint: Joint,
    root: Int,
    isSynchronous: Bool = true,
    convert: (@Sendable (HandlerQueue.Item) -> AnyBox?)? = nil
  ) {
    self.joint = joint
    self.root = root
    self.isSynchronous = isSynchronous
    self.convert = convert
  }

  var isOrdered: Bool { true }

  func take(
    _ item: HandlerQueue.Item,
    in queue: HandlerQueue,
    _ effects: inout HubEffects
  ) -> Bool {
    if isSynchronous { receive(item, in: queue, &effects) }
    return isSynchronous
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
