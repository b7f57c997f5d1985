/// A first-in, first-out queue whose elements never move, so that no append takes long however many there are.
///
/// A `Ring` copies all its elements when it grows. Here they are stored in chunks, and a backlog only adds chunks.
@usableFromInline
struct ChunkedQueue<Element> {
  /// The maximum number of elements of a chunk.
  @usableFromInline static var chunkSize: Int { 512 }

  /// The oldest elements.
  @usableFromInline var first = Ring<Element>()
  /// The chunks that follow `first`, all of them full.
  @usableFromInline var middle = Ring<Ring<Element>>()
  /// The newest elements, unless `first` has room for them.
  @usableFromInline var last = Ring<Element>()

  @inlinable
  init() {}

  @inlinable var isEmpty: Bool { first.isEmpty }

  /// The oldest element, if any.
  @inlinable var oldest: Element? { first.isEmpty ? nil : first[0] }

  /// Appends an element.
  @inlinable
  mutating func append(_ element: Element) {
    // Fast path: a short queue is one chunk.
    if last.isEmpty, first.count < Self.chunkSize { return first.append(element) }
    if last.count == Self.chunkSize {
      middle.append(last)
      last = Ring()
    }
    last.append(element)
  }

  /// Removes and returns the oldest element, if any.
  @inlinable
  mutating func popFirst() -> Element? {
    let element = first.popFirst()
    if first.isEmpty, !last.isEmpty { takeNextChunk() }
    return element
  }

  /// Continues with the chunk after the first one.
  @inlinable
  @inline(never)
  mutating func takeNextChunk() {
    if let next = middle.popFirst() {
      first = next
    } else {
      swap(&first, &last)
    }
  }
}

extension ChunkedQueue: Sendable where Element: Sendable {}
