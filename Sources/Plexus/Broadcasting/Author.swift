/// The identity of a sender.
///
/// A sender that also listens gives its author along with what it sends, and subscribes with
/// ``Messenger/subscribe(ignoring:bufferingPolicy:)``: it then never hears itself, and two objects
/// that answer each other's messages do not do so for ever.
public struct Author: Hashable, Sendable {
  @usableFromInline let rawValue: UInt64

  /// Creates an author that is equal to its own copies only.
  public init() {
    rawValue = UniqueID.next()
  }
}
