// @unchecked Sendable because every field is guarded by the lock of the hub that delivers to it.

/// The buffer of one subscriber that does not read what all share: it has a limit of its own, or does
/// not want to hear one of the senders.
@usableFromInline
final class SubscriberBuffer<Element: Sendable>: @unchecked Sendable {
  /// What is lost when the buffer is full.
  @usableFromInline
  enum Overflow: Sendable {
    /// Nothing: the buffer grows.
    case none
    /// What arrives when there are as many elements as given.
    case dropsNewest(beyond: Int)
    /// The oldest of more elements than given.
    case dropsOldest(beyond: Int)
  }

  @usableFromInline let overflow: Overflow
  /// The sender that is not heard, or 0.
  @usableFromInline let ignoredSender: UInt64
  @exclusivity(unchecked) @safe
  @usableFromInline var elements = Ring<Element>()
  /// The index in the hub's list of buffers, or -1.
  @exclusivity(unchecked) @safe
  @usableFromInline var slot = -1
  /// The reader, while it is parked.
  ///
  /// It is handed an element even if there is no room to keep one.
  @exclusivity(unchecked) @safe
  @usableFromInline var parkedReader: Waiter?
  @exclusivity(unchecked) @safe
  @usableFromInline var droppedCount = 0

  @inlinable
  init(overflow: Overflow, ignoredSender: UInt64) {
    self.overflow = overflow
    self.ignoredSender = ignoredSender
  }

  /// Adds an element as far as the limit allows.
  ///
  /// - Parameters:
  ///   - element: What was sent.
  ///   - sender: Who sent it, or 0.
  /// - Returns: What was lost, to be released without the lock.
  @inlinable
  func deliver(_ element: Element, from sender: UInt64) -> Element? {
    guard sender == 0 || sender != ignoredSender else { return nil }
    let room = parkedReader == nil ? 0 : 1
    switch overflow {
    case .none:
      elements.append(element)
      return nil
    case .dropsNewest(let limit):
      guard elements.count >= max(limit, room) else {
        elements.append(element)
        return nil
      }
      droppedCount += 1
      return element
    case .dropsOldest(let limit):
      let capacity = max(limit, room)
      guard capacity > 0 else {
        droppedCount += 1
        return element
      }
      elements.append(element)
      guard elements.count > capacity else { return nil }
      droppedCount += 1
      return elements.popFirst()
    }
  }

  /// Parks the reader if there is nothing to read.
  ///
  /// - Parameters:
  ///   - reader: The reader.
  ///   - task: Its task.
  /// - Returns: Whether it is parked.
  @inlinable
  func park(_ reader: Waiter, task: SuspendedTask) -> Bool {
    guard elements.isEmpty else { return false }
    reader.task = task
    parkedReader = reader
    return true
  }

  /// Takes the parked reader if there is something to read.
  @inlinable
  func takeReader() -> Waiter? {
    guard !elements.isEmpty else { return nil }
    defer { parkedReader = nil }
    return parkedReader
  }
}
