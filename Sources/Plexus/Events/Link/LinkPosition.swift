/// The position of a message in its topic.
///
/// Messages are numbered consecutively. If the engine has lost a topic, it begins a new epoch.
public struct LinkPosition: Hashable, Sendable {
  /// The epoch of the topic.
  public let epoch: UInt64
  /// The number of the message in its epoch.
  public let number: UInt64

  /// Creates a position.
  ///
  /// - Parameters:
  ///   - epoch: The epoch of the topic.
  ///   - number: The number of the message in its epoch.
  public init(epoch: UInt64, number: UInt64) {
    self.epoch = epoch
    self.number = number
  }

  /// The position before all messages.
  public static let start = LinkPosition(epoch: 0, number: 0)

  /// Returns whether no message is between this one and a later one.
  ///
  /// - Parameter next: The position of the later message.
  /// - Returns: Whether the later message is the next one.
  public func isFollowed(by next: LinkPosition) -> Bool {
    if self == .start { return next.number == 0 }
    return epoch == next.epoch && number < .max && number + 1 == next.number
  }

  /// Returns the positions between this one and a later one; `nil` if there are none or they are unknown.
  ///
  /// - Parameter next: The position of the later message.
  /// - Returns: The positions, without the two.
  public func positions(before next: LinkPosition) -> ClosedRange<LinkPosition>? {
    guard epoch == next.epoch, next.number > number, next.number - number > 1 else { return nil }
    let first = LinkPosition(epoch: epoch, number: number + 1)
    return first...LinkPosition(epoch: epoch, number: next.number - 1)
  }
}

extension LinkPosition: Comparable {
  /// Returns whether a position is before another one.
  public static func < (left: LinkPosition, right: LinkPosition) -> Bool {
    (left.epoch, left.number) < (right.epoch, right.number)
  }
}

extension LinkPosition: LosslessStringConvertible {
  /// The epoch and the number, such as `1732350000000-17`.
  public var description: String { "\(epoch)-\(number)" }

  /// Reads a description.
  ///
  /// - Parameter description: The epoch and the number.
  public init?(_ description: String) {
    let parts = description.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, let epoch = UInt64(parts[0]), let number = UInt64(parts[1]) else {
      return nil
    }
    self.init(epoch: epoch, number: number)
  }
}
