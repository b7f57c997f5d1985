/// A first-in, first-out ring buffer that grows when it is full.
@usableFromInline
struct Ring<Element> {
  @usableFromInline var slots: ContiguousArray<Element?> = []
  @usableFromInline var head = 0
  /// The number of elements.
  @usableFromInline var count = 0

  @inlinable
  init() {}

  @inlinable var isEmpty: Bool { count == 0 }

  /// Returns an element by its distance from the oldest one.
  ///
  /// - Parameter offset: The distance, less than ``count``.
  @inlinable
  subscript(offset: Int) -> Element? {
    slots[index(at: offset)]
  }

  /// Appends an element.
  @inlinable
  mutating func append(_ element: consuming Element) {
    if count == slots.count { grow() }
    slots[index(at: count)] = element
    count &+= 1
  }

  /// Removes and returns the oldest element, if any.
  @inlinable
  mutating func popFirst() -> Element? {
    guard count > 0 else { return nil }
    let element = takeFirst()
    // Release the memory that a long backlog needed.
    if count == 0, slots.count > 64 { self = Ring() }
    return element
  }

  /// Removes and returns the oldest elements.
  ///
  /// - Parameter maximum: The maximum number of elements.
  /// - Returns: The elements, oldest first.
  @inlinable
  mutating func popFirst(atMost maximum: Int) -> ContiguousArray<Element> {
    var taken: ContiguousArray<Element> = []
    popFirst(atMost: maximum, into: &taken)
    return taken
  }

  /// Removes the oldest elements.
  ///
  /// - Parameters:
  ///   - maximum: The maximum number of elements.
  ///   - taken: Receives the elements, oldest first.
  @inlinable
  mutating func popFirst(atMost maximum: Int, into taken: inout ContiguousArray<Element>) {
    let number = Swift.min(maximum, count)
    guard number > 0 else { return }
    taken.reserveCapacity(taken.count &+ number)
    for _ in 0..<number { if let element = takeFirst() { taken.append(element) } }
    if count == 0, slots.count > 64 { self = Ring() }
  }

  /// Moves the oldest element out of its slot; there must be one.
  @inlinable
  @inline(__always)
  mutating func takeFirst() -> Element? {
    var element: Element?
    swap(&slots[head], &element)
    head = index(at: 1)
    count &-= 1
    return element
  }

  /// Returns the slot at a distance from the oldest element.
  @inlinable
  func index(at offset: Int) -> Int {
    let index = head &+ offset
    return index >= slots.count ? index &- slots.count : index
  }

  /// Doubles the number of slots, all of which are in use.
  @inlinable
  @inline(never)
  mutating func grow() {
    let former = slots.count
    // The elements are moved, not copied, because nothing else refers to the array.
    slots.reserveCapacity(Swift.max(1, 2 &* former))
    for _ in 0..<Swift.max(1, former) { slots.append(nil) }
    // What had wrapped around follows the rest.
    for index in 0..<head { slots.swapAt(index, former &+ index) }
  }
}

extension Ring: Sendable where Element: Sendable {}
