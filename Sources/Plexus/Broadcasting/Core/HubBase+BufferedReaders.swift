// @unchecked Sendable because every field is guarded by the lock of the hub that owns the object.

extension HubBase {
  /// The part of ``BufferedReaders`` that does not depend on the type of the elements.
  @usableFromInline
  class BufferedReadersBase: @unchecked Sendable {
    @exclusivity(unchecked) @safe
    @usableFromInline final var buffers: ContiguousArray<Buffer> = []

    @usableFromInline
    init() {}

    /// Empties the window once all its readers have read it; called under the lock of the hub.
    ///
    /// - Returns: The elements, to be released without the lock; `nil` if there are none.
    @usableFromInline
    func takeWindow() -> (any LogBase.Retired)? { nil }

    /// Adds a buffer.
    @inlinable
    final func insert(_ buffer: Buffer) {
      buffer.index = buffers.count
      buffers.append(buffer)
    }

    /// Removes a buffer.
    @inlinable
    final func remove(_ buffer: Buffer) {
      guard buffer.index >= 0 else { return }
      let last = buffers.removeLast()
      if last !== buffer {
        buffers[buffer.index] = last
        last.index = buffer.index
      }
      buffer.index = -1
    }
  }
}

extension HubBase {
  /// The window, and the subscribers of a hub that do not read the log.
  @usableFromInline
  final class BufferedReaders<Element: Sendable>: BufferedReadersBase, @unchecked Sendable {
    /// The newest elements, as many as the largest limit of a reader of the window.
    @exclusivity(unchecked) @safe
    @usableFromInline var window = Ring<Element>()
    @exclusivity(unchecked) @safe
    @usableFromInline var windowLimits = WindowLimits()

    @inlinable
    override init() {
      super.init()
    }

    /// Appends an element to the window and to all buffers.
    ///
    /// - Parameters:
    ///   - element: The element that was sent.
    ///   - sender: The sender, or the number that ``SubscriberLimits`` compares; 0 for none.
    ///   - delivery: Receives the work that is to be done without the lock.
    @inlinable
    func append(
      _ element: Element,
      from sender: UInt64,
      to delivery: inout Delivery<Element>
    ) {
      if windowLimits.largest > 0 {
        // A window of one element, for states, is usually full: the new element replaces the old one.
        if window.count == windowLimits.largest {
          if let old = window.popFirst() { delivery.displace(old) }
        }
        window.append(element)
      }
      if !buffers.isEmpty { appendToBuffers(element, from: sender, to: &delivery) }
    }

    @inlinable
    @inline(never)
    func appendToBuffers(
      _ element: Element,
      from sender: UInt64,
      to delivery: inout Delivery<Element>
    ) {
      for buffer in buffers {
        PrivateBuffer<Element>.of(buffer).deliver(element, from: sender, to: &delivery)
      }
    }

    /// Shortens the window to the largest limit.
    ///
    /// - Returns: The removed elements, to be released without the lock.
    @inlinable
    func trimWindow() -> ContiguousArray<Element> {
      let excess = window.count - windowLimits.largest
      return excess > 0 ? window.popFirst(atMost: excess) : []
    }

    /// Empties the window once all its readers have read it.
    ///
    /// - Parameter read: Receives the elements, to be released without the lock.
    @inlinable
    func emptyWindow(_ read: inout ContiguousArray<Element>) {
      while let element = window.popFirst() { read.append(element) }
    }

    @usableFromInline
    override func takeWindow() -> (any LogBase.Retired)? {
      window.count == 0 ? nil : RetiredWindow(elements: window.popFirst(atMost: window.count))
    }

    /// Takes out the elements of the window and of all buffers.
    ///
    /// - Parameters:
    ///   - delivery: Receives the elements.
    ///   - last: The last element, which stays for readers that have not read it; `nil` if none stays.
    @usableFromInline
    func takeUnread(_ delivery: inout Delivery<Element>, upTo last: Element? = nil) {
      while window.count > (last == nil ? 0 : 1), let element = window.popFirst() {
        delivery.displace(element)
      }
      for buffer in buffers.lazy.map(PrivateBuffer<Element>.of) where !buffer.elements.isEmpty {
        while let element = buffer.elements.popFirst() { delivery.displace(element) }
        if let last { buffer.elements.append(last) }
      }
    }
  }
}

extension HubBase.BufferedReaders {
  /// Elements that were taken out of a window.
  fileprivate struct RetiredWindow: LogBase.Retired {
    let elements: ContiguousArray<Element>

    func release() {
      withExtendedLifetime(elements) {}
    }
  }
}

extension HubBase {
  /// The limits of the readers of a window.
  @usableFromInline
  struct WindowLimits: Sendable {
    /// The largest limit; 0 without readers.
    @usableFromInline private(set) var largest = 0
    /// The number of readers with the largest limit.
    private var largestCount = 0
    /// The numbers of readers with smaller limits, by limit; usually there are none.
    private var smaller: [Int: Int] = [:]

    @usableFromInline
    init() {}

    @usableFromInline
    mutating func insert(_ limit: Int) {
      if limit < largest {
        smaller[limit, default: 0] += 1
        return
      }
      if limit > largest {
        if largestCount > 0 { smaller[largest] = largestCount }
        (largest, largestCount) = (limit, 0)
      }
      largestCount += 1
    }

    @usableFromInline
    mutating func remove(_ limit: Int) {
      guard limit == largest else {
        let count = smaller[limit, default: 1]
        smaller[limit] = count == 1 ? nil : count - 1
        return
      }
      largestCount -= 1
      guard largestCount == 0 else { return }
      largest = smaller.isEmpty ? 0 : smaller.keys.max() ?? 0
      largestCount = smaller.isEmpty ? 0 : smaller.removeValue(forKey: largest) ?? 0
    }
  }
}
