// @unchecked Sendable because every field is guarded by the lock of the hub that delivers to it.

extension HubCore {
  /// The buffer of a subscriber that reads neither the log nor the window, because of its limit or because
  /// it ignores a sender.
  @usableFromInline
  final class PrivateBuffer<Element: Sendable>: @unchecked Sendable {
    /// The element that is dropped when the buffer is full.
    @usableFromInline
    enum Overflow: Sendable {
      /// No element: the buffer grows.
      case none
      /// The new element, when there are as many elements as given.
      case dropsNewest(beyond: Int)
      /// The oldest element, when there are more than given.
      case dropsOldest(beyond: Int)
    }

    @usableFromInline let overflow: Overflow
    /// The sender whose elements are ignored, or 0.
    @usableFromInline let ignoredSender: UInt64
    /// The elements with a tag up to this one, which they have instead of a sender, are ignored.
    @usableFromInline let passedTag: UInt64
    @exclusivity(unchecked) @safe
    @usableFromInline var elements = Ring<Element>()
    /// The index in the hub's list of buffers, or -1.
    @exclusivity(unchecked) @safe
    @usableFromInline var slot = -1
    /// The reader, while it is parked.
    ///
    /// It gets an element even if the limit is 0.
    @exclusivity(unchecked) @safe
    @usableFromInline var parkedReader: Waiter?
    @exclusivity(unchecked) @safe
    @usableFromInline var droppedCount = 0

    @inlinable
    init(overflow: Overflow, ignoredSender: UInt64, passedTag: UInt64) {
      self.overflow = overflow
      self.ignoredSender = ignoredSender
      self.passedTag = passedTag
    }

    /// Adds an element within the limit.
    ///
    /// - Parameters:
    ///   - element: The element that was sent.
    ///   - sender: The sender, or 0.
    /// - Returns: The dropped element, to be released without the lock.
    @inlinable
    func deliver(_ element: Element, from sender: UInt64) -> Element? {
      guard sender == 0 || sender != ignoredSender && sender > passedTag else { return nil }
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

    /// Parks the reader if the buffer is empty.
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

    /// Takes out the parked reader if the buffer has an element.
    @inlinable
    func takeReader() -> Waiter? {
      guard !elements.isEmpty else { return nil }
      defer { parkedReader = nil }
      return parkedReader
    }
  }
}
