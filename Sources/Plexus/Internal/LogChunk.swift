// @unchecked Sendable and unsafe because a chunk is written by one thread at a time, under the lock of
// its hub, while others read it: a slot is initialised before the count that covers it is published
// with release semantics, readers load the count with acquire semantics, and a published slot never
// changes. `next` is written once, before the count reaches the capacity.

public import Synchronization

/// A fixed number of consecutive elements of a shared log.
///
/// Readers keep the chunk they stand in alive, and with it all that follow; what every reader has
/// passed is freed by reference counting alone.
@usableFromInline
@safe
final class LogChunk<Element: Sendable>: @unchecked Sendable {
  /// How many elements fit.
  @inlinable static var capacity: Int { 16 }

  /// The sequence number of the first element.
  @usableFromInline let start: Int

  @usableFromInline let slots: UnsafeMutablePointer<Element>
  @usableFromInline let published = Atomic<Int>(0)
  @usableFromInline var next: LogChunk?

  @inlinable
  init(start: Int) {
    self.start = start
    unsafe slots = .allocate(capacity: Self.capacity)
  }

  @inlinable
  deinit {
    unsafe slots.deinitialize(count: published.load(ordering: .acquiring))
    unsafe slots.deallocate()
    // One after the other: a long backlog released recursively would overflow the stack.
    var following = detachNext()
    while following != nil, isKnownUniquelyReferenced(&following) {
      following = following?.detachNext()
    }
  }

  /// The sequence number after the last published element.
  @inlinable var end: Int { start &+ published.load(ordering: .acquiring) }

  /// The sequence number after the last element that fits.
  @inlinable var limit: Int { start &+ Self.capacity }

  /// Returns a published element.
  ///
  /// - Parameter sequence: Its number, between ``start`` and ``end``.
  @inlinable
  subscript(sequence: Int) -> Element {
    unsafe slots[sequence &- start]
  }

  /// Appends an element; called under the lock of the hub, and never when the chunk is full.
  ///
  /// - Parameter element: What to append.
  /// - Returns: The empty chunk that follows if this one is full now.
  @inlinable
  func append(_ element: Element) -> LogChunk? {
    let count = published.load(ordering: .relaxed)
    unsafe (slots + count).initialize(to: element)
    var follower: LogChunk?
    if count &+ 1 == Self.capacity {
      follower = LogChunk(start: limit)
      next = follower
    }
    published.store(count &+ 1, ordering: .releasing)
    return follower
  }

  /// Cuts the chain behind this chunk and returns what followed.
  @inlinable
  func detachNext() -> LogChunk? {
    defer { next = nil }
    return next
  }
}
