// @unchecked Sendable and unsafe because elements are written by one thread at a time, under the lock of
// the hub, while others read them: a slot is initialized before the count that covers it is published
// with release semantics, readers load the count with acquire semantics, and a published slot never
// changes. `next` is written once, before the count reaches the capacity. `first` is guarded by the lock
// of the hub: the elements before it belong to the thread that has moved it, which did so when no reader
// held the run. The cast restores the type of a chain whose links all hold elements of one type.

public import Synchronization

/// The part of a ``Chunk`` of a log that does not depend on the type of its elements.
///
/// A reader retains its current chunk, and with it all chunks that follow. Chunks that every reader has
/// passed are freed by reference counting.
@usableFromInline
class LogBase: @unchecked Sendable {
  @exclusivity(unchecked) @safe
  @usableFromInline var next: LogBase?

  @inlinable
  init() {}

  deinit {
    // One after the other: a long backlog released recursively would overflow the stack.
    var following = detachNext()
    while following != nil, isKnownUniquelyReferenced(&following) {
      following = following?.detachNext()
    }
  }

  /// Cuts the chain behind this chunk and returns what followed.
  private func detachNext() -> LogBase? {
    defer { next = nil }
    return next
  }

  /// Takes out the published elements; called under the lock of the hub, when all its readers are parked.
  ///
  /// - Returns: The elements, to be released without the lock; `nil` if there are none.
  @usableFromInline
  func retire() -> (any LogBase.Retired)? { nil }
}

extension LogBase {
  /// Elements that every reader has read, to be released without the lock.
  @usableFromInline
  protocol Retired: Sendable {
    /// Releases the elements; called once.
    func release()
  }
}

extension LogBase {
  /// A chunk of a shared log.
  @usableFromInline
  @safe
  final class Chunk<Element: Sendable>: LogBase, @unchecked Sendable {
    /// Set once; a variable because `isKnownUniquelyReferenced` takes one.
    @exclusivity(unchecked) @safe
    @usableFromInline var run: Run<Element>

    @inlinable
    init(start: Int) {
      run = Run(start: start)
      super.init()
    }

    /// Takes out the published elements, unless an iterator retains their run.
    @inlinable
    func retired() -> Run<Element>.Retired? {
      guard isKnownUniquelyReferenced(&run) else { return nil }
      return run.retire()
    }

    @usableFromInline
    override func retire() -> (any LogBase.Retired)? { retired() }

    /// The chunk that follows; present once this one is full.
    @inlinable var follower: Chunk? {
      next.map { Self.of($0) }
    }

    /// Appends an element; called under the lock of the hub, and never when the chunk is full.
    ///
    /// - Parameter element: The element to append.
    /// - Returns: The empty chunk that follows if this one is full now.
    @inlinable
    func append(_ element: Element) -> Chunk? {
      var follower: Chunk?
      if run.fillsUpNext {
        follower = Chunk(start: run.limit)
        next = follower
      }
      run.append(element)
      return follower
    }

    /// Returns a link of a log as a chunk of its type of elements.
    @inlinable
    static func of(_ link: LogBase) -> Chunk {
      unsafe unsafeDowncast(link, to: Chunk.self)
    }
  }
}

extension LogBase {
  /// A fixed number of consecutive elements of a shared log.
  ///
  /// A run does not refer to the next one: an idle iterator that retains a run keeps only its elements
  /// alive.
  @usableFromInline
  @safe
  final class Run<Element: Sendable>: @unchecked Sendable {
    /// The maximum number of elements.
    @inlinable static var capacity: Int { 16 }

    /// The sequence number of the first element.
    @usableFromInline let start: Int
    @usableFromInline let published = Atomic<Int>(0)
    /// The index of the first element that was not released early; guarded by the lock of the hub.
    @exclusivity(unchecked) @safe
    @usableFromInline var first = 0
    @usableFromInline let slots: UnsafeMutablePointer<Element>

    @inlinable
    init(start: Int) {
      self.start = start
      let memory = unsafe UnsafeMutableRawPointer.allocatePlain(
        byteCount: Self.capacity * MemoryLayout<Element>.stride,
        alignment: MemoryLayout<Element>.alignment
      )
      unsafe slots = memory.bindMemory(to: Element.self, capacity: Self.capacity)
    }

    @inlinable
    deinit {
      unsafe (slots + first).deinitialize(count: published.load(ordering: .acquiring) &- first)
      unsafe UnsafeMutableRawPointer(slots).deallocatePlain(
        alignment: MemoryLayout<Element>.alignment
      )
    }

    /// The sequence number after the last published element.
    @inlinable var end: Int { start &+ published.load(ordering: .acquiring) }

    /// The sequence number after the last element that fits.
    @inlinable var limit: Int { start &+ Self.capacity }

    /// Whether there is room for one more element only.
    @inlinable var fillsUpNext: Bool {
      published.load(ordering: .relaxed) == Self.capacity &- 1
    }

    /// Returns a published element.
    ///
    /// - Parameter sequence: Its number, between ``start`` and ``end``.
    @inlinable
    subscript(sequence: Int) -> Element {
      unsafe slots[sequence &- start]
    }

    /// Appends an element; called under the lock of the hub, and never when there is no room.
    ///
    /// - Parameter element: The element to append.
    @inlinable
    func append(_ element: Element) {
      let count = published.load(ordering: .relaxed)
      unsafe (slots + count).initialize(to: element)
      published.store(count &+ 1, ordering: .releasing)
    }

    /// Takes out the published elements; called under the lock of the hub, when no reader retains the run.
    ///
    /// - Returns: The elements; `nil` if there are none.
    @inlinable
    func retire() -> Run<Element>.Retired? {
      let end = published.load(ordering: .relaxed)
      guard end > first else { return nil }
      defer { first = end }
      return Retired(run: self, indices: first..<end)
    }

    /// Releases elements that were taken out.
    @inlinable
    func release(_ indices: Range<Int>) {
      unsafe (slots + indices.lowerBound).deinitialize(count: indices.count)
    }
  }
}

extension LogBase.Run {
  /// The elements of a run that were taken out, to be released once.
  @usableFromInline
  struct Retired: LogBase.Retired {
    @usableFromInline let run: LogBase.Run<Element>
    @usableFromInline let indices: Range<Int>

    @inlinable
    init(run: LogBase.Run<Element>, indices: Range<Int>) {
      self.run = run
      self.indices = indices
    }

    @inlinable
    func release() {
      run.release(indices)
    }
  }
}
