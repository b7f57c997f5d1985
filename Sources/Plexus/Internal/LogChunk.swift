// @unchecked Sendable and unsafe because a chunk is written by one thread at a time, under the lock of
// its hub, while others read it: a slot is initialised before the count that covers it is published
// with release semantics, readers load the count with acquire semantics, and a published slot never
// changes. `next` is written once, before the count reaches the capacity.

public import Synchronization

/// A chunk of a shared log, as far as it does not depend on the type of its elements.
@usableFromInline
class LogLink: @unchecked Sendable {
  /// How many elements fit.
  @inlinable static var capacity: Int { 16 }

  /// The sequence number of the first element.
  @usableFromInline let start: Int
  @usableFromInline let published = Atomic<Int>(0)
  @exclusivity(unchecked) @safe
  @usableFromInline var next: LogLink?

  @inlinable
  init(start: Int) {
    self.start = start
  }

  deinit {
    // One after the other: a long backlog released recursively would overflow the stack.
    var following = detachNext()
    while following != nil, isKnownUniquelyReferenced(&following) {
      following = following?.detachNext()
    }
  }

  /// The sequence number after the last published element.
  @inlinable final var end: Int { start &+ published.load(ordering: .acquiring) }

  /// The sequence number after the last element that fits.
  @inlinable final var limit: Int { start &+ Self.capacity }

  /// Cuts the chain behind this chunk and returns what followed.
  private func detachNext() -> LogLink? {
    defer { next = nil }
    return next
  }
}

/// A fixed number of consecutive elements of a shared log.
///
/// Readers keep the chunk they stand in alive, and with it all that follow; what every reader has
/// passed is freed by reference counting alone.
@usableFromInline
@safe
final class LogChunk<Element: Sendable>: LogLink, @unchecked Sendable {
  @usableFromInline let slots: UnsafeMutablePointer<Element>

  @inlinable
  override init(start: Int) {
    unsafe slots = .allocate(capacity: Self.capacity)
    super.init(start: start)
  }

  @inlinable
  deinit {
    unsafe slots.deinitialize(count: published.load(ordering: .acquiring))
    unsafe slots.deallocate()
  }

  /// The chunk that follows; present once this one is full.
  @inlinable var follower: LogChunk? {
    next.map { Self.of($0) }
  }

  /// Returns a published element.
  ///
  /// - Parameter sequence: Its number, between ``LogLink/start`` and ``LogLink/end``.
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

  /// Returns a link of a log as what it is, a chunk of elements of its type.
  @inlinable
  static func of(_ link: LogLink) -> LogChunk {
    unsafe unsafeDowncast(link, to: LogChunk.self)
  }
}
