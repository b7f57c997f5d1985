/// The identity of a sender.
///
/// A sender that also subscribes passes its author to `send`, and subscribes with
/// ``Messenger/subscribe(ignoring:bufferingPolicy:)``. It then does not receive its own messages, and two objects that
/// answer each other do not loop endlessly.
public struct Author: Hashable, Sendable {
  @usableFromInline let rawValue: UInt64

  /// Creates an author, which is equal only to its copies.
  public init() {
    rawValue = UniqueID.next()
  }
}
