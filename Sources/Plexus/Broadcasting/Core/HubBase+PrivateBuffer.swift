// @unchecked Sendable because every field is guarded by the lock of the hub that delivers to the buffer, or atomic.
// The unsafe cast restores the type of the elements: a hub has buffers of its own type only.

public import Synchronization

extension HubBase {
  /// The part of a ``PrivateBuffer`` that does not depend on the type of its elements.
  ///
  /// It is the waiter that is parked for its reader, which it outlives.
  @usableFromInline
  class Buffer: Waiter, @unchecked Sendable {
    @usableFromInline final let limits: SubscriberLimits
    /// Whether the reader reads the log, and the buffer is for elements that are sent to it alone.
    @usableFromInline final let isBesideLog: Bool
    /// The number of the element of the log before which the oldest element is to be read; `.max` without elements.
    @usableFromInline final let place = Atomic<Int>(.max)
    /// The index in the hub's list of buffers, or -1 if the subscription has ended.
    @exclusivity(unchecked) @safe
    @usableFromInline final var index = -1
    @exclusivity(unchecked) @safe
    @usableFromInline final var droppedCount = 0
    /// The number of elements that were replayed.
    @exclusivity(unchecked) @safe
    @usableFromInline final var replayCount = 0

    @inlinable
    init(id: Int, _ limits: SubscriberLimits, besideLog: Bool) {
      self.limits = limits
      isBesideLog = besideLog
      super.init(id: id)
    }

    /// Removes the elements.
    ///
    /// - Parameter effects: Receives the elements.
    func removeAll(_ effects: inout HubEffects) {}
  }

  /// The buffer of a subscriber that reads neither the log nor the window, because of its limit or because
  /// it ignores a sender; or that is sent elements of its own.
  @usableFromInline
  final class PrivateBuffer<Element: Sendable>: Buffer, @unchecked Sendable {
    @exclusivity(unchecked) @safe
    @usableFromInline var elements = Ring<Element>()
    /// The places of the elements in the log, if the reader reads it.
    @exclusivity(unchecked) @safe
    @usableFromInline var places = Ring<Int>()

    @inlinable
    static func of(_ buffer: Buffer) -> PrivateBuffer {
      unsafe unsafeDowncast(buffer, to: PrivateBuffer.self)
    }

    @inlinable
    override init(id: Int, _ limits: SubscriberLimits, besideLog: Bool = false) {
      super.init(id: id, limits, besideLog: besideLog)
    }

    /// Adds an element within the limit.
    ///
    /// - Parameters:
    ///   - element: The element that was sent.
    ///   - sender: The sender, or the number that ``SubscriberLimits`` compares; 0 for none.
    ///   - delivery: Receives the dropped element and the parked reader.
    @inlinable
    func deliver(
      _ element: Element,
      from sender: UInt64 = 0,
      to delivery: inout Delivery<Element>
    ) {
      guard limits.admits(sender) else {
        delivery.ignored &+= 1
        return
      }
      switch limits.buffer.drop(beyond: elements.count, isAwaited: task != nil) {
      case .arriving:
        droppedCount += 1
        delivery.refused &+= 1
        delivery.displace(element)
        return
      case .oldest:
        droppedCount += 1
        if let oldest = elements.popFirst() { delivery.displace(oldest) }
      case .nothing:
        break
      }
      elements.append(element)
      delivery.effects.wake(takeTask())
    }

    /// Adds an element that is read before an element of the log, and after those before it.
    @inlinable
    func insert(_ element: Element, before sequence: Int) {
      elements.append(element)
      places.append(sequence)
      if elements.count == 1 { place.store(sequence, ordering: .releasing) }
    }

    /// Removes and returns the oldest element.
    @inlinable
    func popFirst() -> Element? {
      if isBesideLog {
        _ = places.popFirst()
        place.store(places.isEmpty ? .max : places[0] ?? .max, ordering: .releasing)
      }
      return elements.popFirst()
    }

    override func removeAll(_ effects: inout HubEffects) {
      guard !elements.isEmpty else { return }
      effects.release(value: elements)
      elements = Ring()
      places = Ring()
      place.store(.max, ordering: .releasing)
    }

    /// Parks the reader if the buffer is empty.
    ///
    /// - Parameter task: The task of the reader.
    /// - Returns: Whether it is parked.
    @inlinable
    func park(_ task: SuspendedTask) -> Bool {
      guard elements.isEmpty else { return false }
      self.task = task
      return true
    }
  }
}
