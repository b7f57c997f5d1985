/// A binary min-heap.
///
/// Inserting an element and removing the first take logarithmic time.
package struct Heap<Element: Comparable & Sendable>: Sendable {
  /// The elements, smallest first and the others in heap order.
  package private(set) var elements: [Element] = []

  /// Creates an empty heap.
  package init() {}

  package var count: Int { elements.count }

  package var first: Element? { elements.first }

  package mutating func insert(_ element: Element) {
    elements.append(element)
    var position = elements.count - 1
    while position > 0, element < elements[(position - 1) / 2] {
      elements[position] = elements[(position - 1) / 2]
      position = (position - 1) / 2
    }
    elements[position] = element
  }

  package mutating func popFirst() -> Element? {
    guard let first = elements.first else { return nil }
    let element = elements.removeLast()
    guard !elements.isEmpty else { return first }
    var position = 0
    while let child = smallerChild(of: position), elements[child] < element {
      elements[position] = elements[child]
      position = child
    }
    elements[position] = element
    return first
  }

  /// Removes every element for which the predicate holds.
  package mutating func removeAll(where shouldBeRemoved: (Element) -> Bool) {
    elements.removeAll(where: shouldBeRemoved)
    // A sorted array is a heap.
    elements.sort()
  }

  private func smallerChild(of position: Int) -> Int? {
    let left = 2 * position + 1
    guard left < elements.count else { return nil }
    let right = left + 1
    return right < elements.count && elements[right] < elements[left] ? right : left
  }
}
