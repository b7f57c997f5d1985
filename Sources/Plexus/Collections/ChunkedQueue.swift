/// A first-in, first-out queue in chunks, so that no append takes long however many elements there are, and a chunk is
/// taken out at once.
///
/// A `Ring` copies all its elements when it grows, and releasing it visits every slot. Here a backlog only adds chunks.
@usableFromInline
struct ChunkedQueue<Element> {
  /// The maximum number of elements of a chunk.
  @usableFromInline static var chunkSize: Int { 64 }

  /// The oldest elements, newest first: an array removes its last element in constant time.
  @usableFromInline var first: ContiguousArray<Element> = []
  /// The chunks that follow `first`, all of them full; there are none unless `last` has elements.
  @usableFromInline var middle = Ring<ContiguousArray<Element>>()
  /// The newest elements.
  @usableFromInline var last: ContiguousArray<Element> = []

  @inlinable
  init() {}

  @inlinable var isEmpty: Bool { last.isEmpty && first.isEmpty }

  /// The number of elements.
  @inlinable var count: Int { first.count &+ middle.count &* Self.chunkSize &+ last.count }

  /// The oldest element, if any.
  @inlinable var oldest: Element? {
    if let oldest = first.last { return oldest }
    return middle.isEmpty ? last.first : middle[0]?.first
  }

  /// Appends an element.
  @inlinable
  mutating func append(_ element: Element) {
    if last.count == Self.chunkSize { closeLastChunk() }
    last.append(element)
  }

  /// Removes and returns the oldest element, if any.
  @inlinable
  mutating func popFirst() -> Element? {
    if first.isEmpty {
      guard !last.isEmpty else { return nil }
      takeNextChunk()
    }
    return first.removeLast()
  }

  /// Removes the oldest elements, as many as a chunk has.
  ///
  /// - Parameter taken: Receives the elements, oldest first. It must be empty; its memory serves later elements.
  @inlinable
  mutating func popChunk(into taken: inout ContiguousArray<Element>) {
    if !first.isEmpty {
      first.reverse()
      swap(&first, &taken)
    } else if let next = middle.popFirst() {
      taken = next
    } else {
      swap(&last, &taken)
    }
  }

  /// Removes and returns all elements, oldest first.
  @inlinable
  mutating func popAll() -> ContiguousArray<Element> {
    var all: ContiguousArray<Element> = []
    popChunk(into: &all)
    while !isEmpty {
      var chunk: ContiguousArray<Element> = []
      popChunk(into: &chunk)
      all += chunk
    }
    return all
  }

  /// Begins a new last chunk.
  @inlinable
  @inline(never)
  mutating func closeLastChunk() {
    var full: ContiguousArray<Element> = []
    full.reserveCapacity(Self.chunkSize)
    swap(&full, &last)
    middle.append(full)
  }

  /// Continues with the chunk after the first one, which is empty.
  @inlinable
  @inline(never)
  mutating func takeNextChunk() {
    if let next = middle.popFirst() {
      first = next
    } else {
      swap(&first, &last)
    }
    first.reverse()
  }
}

extension ChunkedQueue: Sendable where Element: Sendable {}
