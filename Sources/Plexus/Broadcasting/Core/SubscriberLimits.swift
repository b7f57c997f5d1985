/// The elements that a subscriber gets, and the ones that are kept for it while it is behind.
@usableFromInline
struct SubscriberLimits: Sendable {
  @usableFromInline var buffer = BufferLimit.none
  /// The sender whose elements the subscriber does not get, or 0.
  @usableFromInline var ignoredSender: UInt64 = 0
  /// The number up to which the subscriber does not get elements, for hubs whose elements have a number in place of a
  /// sender.
  @usableFromInline var passedNumber: UInt64 = 0
  /// Whether the queue of the handler has elements that are for other handlers only.
  var countsOwn = false

  @inlinable
  init(_ buffer: BufferLimit = .none) {
    self.buffer = buffer
  }

  /// Returns whether the subscriber gets the elements of a sender, or with a number in its place.
  @inlinable
  func admits(_ sender: UInt64) -> Bool {
    sender == 0 || sender != ignoredSender && sender > passedNumber
  }
}
