/// An element of ``EventLink/deliveries(of:_:)``.
public enum LinkDelivery: Hashable, Sendable {
  /// All messages after a position follow.
  case connected(at: LinkPosition)
  /// A message, at its position. The attempt is 1 for the first delivery to a group.
  case message(LinkMessage, at: LinkPosition, attempt: Int)
  /// Messages were lost before they were delivered. Their positions are `nil` if they are unknown.
  case gap(lost: ClosedRange<LinkPosition>?)
}
