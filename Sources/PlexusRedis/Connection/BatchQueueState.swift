/// A queue whose items go together while others are in flight.
///
/// An item is sent at once as long as fewer than two batches are in flight. Further items wait, and the next batch takes
/// them together: the server answers one batch while the next one is on its way.
///
/// Invariants:
///
/// - Items wait only while two batches are in flight.
/// - Items leave the queue in the order in which they came.
struct BatchQueueState<Item: Sendable>: Sendable {
  /// The decision about the item at the front.
  enum Verdict: Sendable {
    case takes
    /// It leaves the queue without a batch.
    case drops
    /// The batch ends before it.
    case ends
  }

  /// The largest number of batches in flight.
  private static var width: Int { 2 }
  /// The largest number of items of a batch.
  static var batchCount: Int { 64 }

  private var inFlight = 0
  private var waiting: [Item] = []

  init() {}

  /// Whether nothing waits or is in flight.
  var isIdle: Bool { inFlight == 0 && waiting.isEmpty }

  /// Begins a batch of one item.
  ///
  /// - Returns: Whether it can be sent; otherwise it has to wait.
  mutating func begin() -> Bool {
    guard inFlight < Self.width else { return false }
    inFlight += 1
    return true
  }

  /// Adds an item, which has to wait.
  mutating func wait(_ item: Item) {
    waiting.append(item)
  }

  /// Ends a batch, and begins the next one.
  ///
  /// - Parameter judge: Decides about each item, until the batch is full.
  /// - Returns: The items of the next batch; empty if there is none.
  mutating func next(_ judge: (Item) -> Verdict = { _ in .takes }) -> [Item] {
    inFlight -= 1
    var batch: [Item] = []
    var count = 0
    search: for item in waiting {
      guard batch.count < Self.batchCount else { break }
      switch judge(item) {
      case .takes: batch.append(item)
      case .drops: break
      case .ends: break search
      }
      count += 1
    }
    waiting.removeFirst(count)
    if !batch.isEmpty { inFlight += 1 }
    return batch
  }

  /// Removes all items that wait.
  mutating func removeAll() -> [Item] {
    defer { waiting = [] }
    return waiting
  }
}
