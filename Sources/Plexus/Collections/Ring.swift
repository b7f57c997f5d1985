/// A first-in, first-out buffer in a circle of slots that grows when it is full.
@usableFromInline
struct Ring<Element> {
  @usableFromInline var slots: ContiguousArray<Element?> = []
  @usableFromInline var head = 0
  /// The number of elements.
  @usableFromInline var count = 0

  @inlinable
  init() {}

  @inlinable var isEmpty: Bool { count == 0 }

  /// Returns an element by its distance from the oldest.
  ///
  /// - Parameter offset: The distance, less than ``count``.
  @inlinable
  subscript(offset: Int) -> Element? {
    slots[index(at: offset)]
  }

  /// Appends an element behind the newest.
  ///
  /// - Parameter element: What to append.
  @inlinable
  mutating func append(_ element: Element) {
    if count == slots.count { grow() }
    slots[index(at: count)] = element
    count &+= 1
  }

  /// Removes the oldest element.
  ///
  /// - Returns: The element, or `nil` if there is none.
  @inlinable
  mutating func popFirst() -> Element? {
    guard count > 0 else { return nil }
    let element = slots[head]
    slots[head] = nil
    head = index(at: 1)
    count &-= 1
    // What a long backlog needed is given back once it is gone.
    if count == 0, slots.count > 64 { self = Ring() }
    return element
  }

  /// Removes the oldest elements.
  ///
  /// - Parameter maximum: How many at most.
  /// - Returns: The elements, oldest first.
  @inlinable
  mutating func popFirst(atMost maximum: Int) -> ContiguousArray<Element> {
    var taken: ContiguousArray<Element> = []
    taken.reserveCapacity(Swift.min(maximum, count))
    while taken.count < maximum, let element = popFirst() { taken.append(element) }
    return taken
  }

  /// The slot that is the given number of places behind the oldest element.
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
