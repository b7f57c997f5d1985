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
  mutating func append(_ element: Element) {
    if count == slots.count { grow() }
    slots[index(at: count)] = element
    count &+= 1
  }

  /// Removes and returns the oldest element, if any.
  @inlinable
  mutating func popFirst() -> Element? {
    guard count > 0 else { return nil }
    let element = slots[head]
    slots[head] = nil
    head = index(at: 1)
    count &-= 1
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
    taken.reserveCapacity(Swift.min(maximum, count))
    while taken.count < maximum, let element = popFirst() { taken.append(element) }
    return taken
  }

  /// Returns the slot at a distance from the oldest element.
  @inlinable
  func index(at offset: Int) -> Int {
    let index = head &+ offset
    return index >= slots.count ? index &- slots.count : index
  }

  @usableFromInline
  mutating func grow() {
    var larger: ContiguousArray<Element?> = []
    let capacity = Swift.max(1, slots.count * 2)
    larger.reserveCapacity(capacity)
    for offset in 0..<count { larger.append(slots[index(at: offset)]) }
    while larger.count < capacity { larger.append(nil) }
    slots = larger
    head = 0
  }
}

extension Ring: Sendable where Element: Sendable {}
