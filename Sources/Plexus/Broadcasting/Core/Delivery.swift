/// The work that remains after an element was appended, with the elements that it has displaced.
@usableFromInline
struct Delivery<Element: Sendable>: Sendable {
  @usableFromInline var effects = HubEffects()
  /// The elements that were removed from the window and from buffers, to be released with the delivery.
  ///
  /// Most often there is one at most, which needs no allocation.
  @usableFromInline private(set) var displaced: (first: Element?, others: ContiguousArray<Element>?)
  /// The number of buffers that have ignored the element, and of buffers that had no room for it.
  @usableFromInline var ignored = 0
  @usableFromInline var refused = 0

  @inlinable
  init() {}

  /// Adds an element that was removed.
  @inlinable
  mutating func displace(_ element: consuming Element) {
    if displaced.first == nil {
      displaced.first = element
    } else if displaced.others == nil {
      displaced.others = [element]
    } else {
      displaced.others?.append(element)
    }
  }

  /// Does the work; called once, with no lock held.
  @inlinable
  func deliver() {
    effects.perform()
  }
}

extension HubEffects {
  /// Adds the work that remains of a delivery.
  @inlinable
  mutating func add<Element>(_ delivery: Delivery<Element>) {
    add(delivery.effects)
    guard let first = delivery.displaced.first else { return }
    release(Box(first))
    if let others = delivery.displaced.others { release(value: others) }
  }
}
