// @unchecked Sendable because every field is guarded by the lock of the hub that owns the object.

/// Those subscribers of a hub that do not read the log, as far as they do not depend on the type of
/// its elements.
@usableFromInline
class OtherReadersBase: @unchecked Sendable {
  @usableFromInline
  init() {}
}

/// Those subscribers of a hub that do not read the log.
@usableFromInline
final class OtherReaders<Element: Sendable>: OtherReadersBase, @unchecked Sendable {
  /// The newest elements, as many as the most demanding reader of the window wants.
  var window = Ring<Element>()
  var windowLimits = WindowLimits()
  var mailboxes: ContiguousArray<Mailbox<Element>> = []
  /// Whether a mailbox may have taken the place of an older one.
  private var isShuffled = false
  /// The synchronous handlers, by the id of the first one on each actor.
  private(set) var groups: ContiguousArray<HandlerGroup<Element>> = []
  private var groupsByActor: [ObjectIdentifier?: HandlerGroup<Element>] = [:]
  /// The handlers that live as long as an owner, by id.
  var owned: [Int: OwnedHandler] = [:]

  /// Appends an element for everybody.
  ///
  /// - Parameters:
  ///   - element: What was sent.
  ///   - sender: Who sent it, or 0.
  ///   - sequence: Its number.
  ///   - delivery: Where to leave what has to be done without the lock.
  @usableFromInline
  func append(
    _ element: Element,
    from sender: UInt64,
    sequence: Int,
    to delivery: inout Delivery<Element>
  ) {
    if windowLimits.largest > 0 {
      window.append(element)
      if window.count > windowLimits.largest, let old = window.popFirst() {
        delivery.displaced.append(old)
      }
    }
    for mailbox in mailboxes {
      if let lost = mailbox.deliver(element, from: sender) { delivery.displaced.append(lost) }
      if let task = mailbox.takeReader()?.takeTask() { delivery.woken.append(task) }
    }
    // Tasks are resumed in subscription order.
    if isShuffled { delivery.woken.sort { $0.id < $1.id } }
    for group in groups { delivery.displaced += group.enqueue(element, sequence: sequence) }
  }

  /// Shortens the window to what is still wanted.
  ///
  /// - Returns: What nobody wants any more, to be released without the lock.
  func trimWindow() -> ContiguousArray<Element> {
    let excess = window.count - windowLimits.largest
    return excess > 0 ? window.popFirst(atMost: excess) : []
  }

  /// Returns the handlers on an actor, or on none.
  func group(on isolation: ObjectIdentifier?) -> HandlerGroup<Element>? {
    groupsByActor[isolation]
  }

  /// Adds the handlers of an actor that has none yet.
  func insert(_ group: HandlerGroup<Element>) {
    groups.append(group)
    groupsByActor[group.isolation] = group
  }

  /// Removes the handlers of an actor.
  func remove(_ group: HandlerGroup<Element>) {
    groupsByActor[group.isolation] = nil
    var low = 0
    var high = groups.count
    while low < high {
      let middle = (low + high) / 2
      if groups[middle].id < group.id { low = middle + 1 } else { high = middle }
    }
    if low < groups.count, groups[low] === group { groups.remove(at: low) }
  }

  /// Removes all handlers.
  func removeGroups() {
    groups = []
    groupsByActor = [:]
  }

  /// Adds a mailbox.
  func insert(_ mailbox: Mailbox<Element>) {
    if mailboxes.isEmpty { isShuffled = false }
    mailbox.slot = mailboxes.count
    mailboxes.append(mailbox)
  }

  /// Removes a mailbox.
  func remove(_ mailbox: Mailbox<Element>) {
    guard mailbox.slot >= 0 else { return }
    let last = mailboxes.removeLast()
    if last !== mailbox {
      mailboxes[mailbox.slot] = last
      last.slot = mailbox.slot
      isShuffled = true
    }
    mailbox.slot = -1
  }
}

/// How many of the newest elements the readers of the window want.
struct WindowLimits {
  /// The most that a reader wants; 0 without readers.
  private(set) var largest = 0
  private var counts: [Int: Int] = [:]

  mutating func insert(_ limit: Int) {
    counts[limit, default: 0] += 1
    largest = max(largest, limit)
  }

  mutating func remove(_ limit: Int) {
    counts[limit, default: 0] -= 1
    guard counts[limit] == 0 else { return }
    counts[limit] = nil
    if limit == largest { largest = counts.keys.max() ?? 0 }
  }
}
