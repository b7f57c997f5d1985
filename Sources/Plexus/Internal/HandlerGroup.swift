// @unchecked Sendable because every field that changes is guarded by the lock of the hub.

internal import Synchronization

/// The synchronous handlers of one source that share an actor.
///
/// One task drains them on that actor, message by message, and for each message handler by handler
/// in subscription order. It is parked in between, like any other reader of the hub.
@usableFromInline
final class HandlerGroup<Element: Sendable>: Waiter, @unchecked Sendable {
  /// A message on its way to the handlers.
  struct Item: Sendable {
    let element: Element
    /// The number of the message; a replay has the number of the first message after it.
    let sequence: Int
    /// The only handler that gets it, for a replay.
    let receiver: Int?
  }

  /// Where the handlers run; `nil` if they belong to no actor.
  let isolation: ObjectIdentifier?
  var queue = Ring<Item>()
  /// In subscription order; those that were removed leave empty ones behind for a while.
  private(set) var entries: ContiguousArray<HandlerEntry<Element>> = []
  /// How many of the entries are not empty.
  private var count = 0
  /// How many of the newest messages the handlers want.
  private var newest = WindowLimits()
  /// How many of the oldest messages the handlers want, all together.
  private var oldest = 0
  /// The number of the next message, for those who look without the lock.
  let latest = Atomic<Int>(0)

  init(id: Int, isolation: ObjectIdentifier?) {
    self.isolation = isolation
    super.init(id: id)
  }

  /// Whether there are no handlers.
  var isEmpty: Bool { count == 0 }

  /// Adds a message as far as anybody wants it.
  ///
  /// - Parameters:
  ///   - element: What was sent.
  ///   - sequence: Its number.
  /// - Returns: What nobody wants any more, to be released without the lock.
  func enqueue(_ element: Element, sequence: Int) -> ContiguousArray<Element> {
    latest.store(sequence + 1, ordering: .relaxed)
    let isAwaited = slot >= 0 && queue.isEmpty
    var isWanted = newest.largest > 0
    if oldest > 0 {
      for entry in entries where entry.oldest?.offer(sequence, isAwaited: isAwaited) == true {
        isWanted = true
      }
    }
    guard isWanted else { return [element] }
    queue.append(Item(element: element, sequence: sequence, receiver: nil))
    guard newest.largest < .max else { return [] }
    if oldest == 0 {
      let excess = queue.count - newest.largest
      return excess > 0 ? ContiguousArray(queue.popFirst(atMost: excess).map(\.element)) : []
    }
    return queue.count / 2 > bounded(newest.largest) + oldest ? discardUnwanted() : []
  }

  /// Takes out what is neither among the newest messages nor was accepted among the oldest.
  private func discardUnwanted() -> ContiguousArray<Element> {
    let first = latest.load(ordering: .relaxed) - newest.largest
    let items = queue.popFirst(atMost: queue.count)
    var discarded: ContiguousArray<Element> = []
    for item in items {
      let isWanted =
        item.sequence >= first
        || entries.contains { $0.oldest?.contains(item.sequence) == true }
      if isWanted { queue.append(item) } else { discarded.append(item.element) }
    }
    return discarded
  }

  /// Adds a handler behind the others.
  ///
  /// - Parameters:
  ///   - entry: The handler.
  ///   - replay: What it gets first, oldest first.
  func insert(_ entry: HandlerEntry<Element>, replaying replay: [Element]) {
    latest.store(entry.start, ordering: .relaxed)
    entries.append(entry)
    count += 1
    if let messages = entry.oldest {
      oldest += bounded(messages.limit)
    } else {
      newest.insert(entry.newest)
    }
    for element in replay.suffix(entry.newest)
    where entry.oldest?.offer(entry.start, isAwaited: true) ?? true {
      queue.append(Item(element: element, sequence: entry.start, receiver: entry.id))
    }
  }

  /// Returns a limit as one of which sums can be made: no queue ever gets that long.
  private func bounded(_ limit: Int) -> Int {
    min(max(limit, 1), 1 << 32)
  }

  /// Removes all handlers, to be released without the lock.
  func takeEntries() -> ContiguousArray<HandlerEntry<Element>> {
    defer { (entries, count, newest, oldest) = ([], 0, WindowLimits(), 0) }
    return entries
  }

  /// Removes a handler that was cancelled, to be released without the lock.
  func takeEntry(id: Int) -> HandlerEntry<Element>? {
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].id < id { low = middle + 1 } else { high = middle }
    }
    guard low < entries.count, entries[low].id == id, entries[low].body != nil else { return nil }
    let entry = entries[low]
    count -= 1
    if let messages = entry.oldest {
      oldest -= bounded(messages.limit)
    } else {
      newest.remove(entry.newest)
    }
    entries[low].body = nil
    entries[low].oldest = nil
    // Many are removed in a time that is proportional to their number.
    if count < entries.count / 2 { entries.removeAll { $0.body == nil } }
    return entry
  }
}

/// One synchronous handler.
struct HandlerEntry<Element: Sendable>: Sendable {
  /// What to call.
  enum Body: Sendable {
    /// The handler itself.
    case plain(@isolated(any) @Sendable (Element) -> Void)
    /// A handler with an owner; returns whether the owner is still there.
    case owned(@Sendable (Element, isolated (any Actor)?) async -> Bool)
  }

  /// The place in subscription order.
  let id: Int
  /// The number of the first message that the handler gets.
  let start: Int
  /// How many of the newest messages the handler wants; all of those accepted if it wants the oldest.
  let newest: Int
  /// Which messages there was room for, if the oldest are to be kept.
  var oldest: OldestMessages?
  let cancellation: Cancellation
  /// `nil` if the handler was removed.
  var body: Body?
}

/// Whether a handler must not be started any more.
final class Cancellation: Sendable {
  private let flag = Atomic<Bool>(false)

  var isCancelled: Bool { flag.load(ordering: .acquiring) }

  /// Cancels.
  ///
  /// - Returns: Whether it was this call that did it.
  func cancel() -> Bool {
    !flag.exchange(true, ordering: .acquiringAndReleasing)
  }
}

/// The messages that a handler with room for so many old ones still has to get.
final class OldestMessages: Sendable {
  let limit: Int
  private let accepted = Locked(Ring<Int>())

  init(limit: Int) {
    self.limit = limit
  }

  /// Accepts a message if there is room.
  ///
  /// - Parameters:
  ///   - sequence: The number of the message.
  ///   - isAwaited: Whether the handler waits for it at this moment.
  /// - Returns: Whether it was accepted.
  func offer(_ sequence: Int, isAwaited: Bool) -> Bool {
    accepted.withLock { accepted in
      guard accepted.count < max(limit, isAwaited ? 1 : 0) else { return false }
      accepted.append(sequence)
      return true
    }
  }

  /// Looks for a message among those accepted.
  ///
  /// - Parameter sequence: The number of the message.
  /// - Returns: Whether the handler still has to get it.
  func contains(_ sequence: Int) -> Bool {
    accepted.withLock { accepted in (0..<accepted.count).contains { accepted[$0] == sequence } }
  }

  /// Asks for a message whether it was accepted; called once for each, in order.
  ///
  /// - Parameter sequence: The number of the message.
  /// - Returns: Whether there was room when it was sent.
  func take(_ sequence: Int) -> Bool {
    accepted.withLock { accepted in
      guard accepted.count > 0, accepted[0] == sequence else { return false }
      return accepted.popFirst() != nil
    }
  }
}

/// What is known of a handler that lives as long as its owner.
@usableFromInline
struct OwnedHandler: Sendable {
  let isOrphaned: @Sendable () -> Bool
  let cancel: @Sendable () -> Void
}
