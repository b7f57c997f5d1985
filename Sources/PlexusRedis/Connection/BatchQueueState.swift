/// A queue whose items go together while others are in flight.
///
/// An item is sent at once as long as fewer than two batches are in flight. Further items wait, and the next batch takes
/// them together: the server answers one batch while the next one is on its way. A full batch does not wait, so a server
/// that is far away is sent as much as one that is near.
///
/// Invariants:
///
/// - Items wait only while two batches are in flight, and fewer of them than a full batch has.
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

  /// The number of batches in flight beyond which items wait for a full one.
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

  /// Adds an item, which has to wait unless it completes a batch.
  ///
  /// - Parameters:
  ///   - item: The item.
  ///   - isLarge: Whether the items that wait are a full batch, however few they are.
  ///   - judge: Decides about each item, until the batch is full.
  /// - Returns: The items of a full batch, which begins; empty if there is none.
  mutating func wait(
    _ item: Item,
    isLarge: Bool = false,
    _ judge: (Item) -> Verdict = { _ in .takes }
  ) -> [Item] {
    waiting.append(item)
    return isLarge || waiting.count >= Self.batchCount ? take(judge) : []
  }

  /// Ends a batch, and begins the next one.
  ///
  /// - Parameter judge: Decides about each item, until the batch is full.
  /// - Returns: The items of the next batch; empty if there is none.
  mutating func next(_ judge: (Item) -> Verdict = { _ in .takes }) -> [Item] {
    inFlight -= 1
    return take(judge)
  }

  private mutating func take(_ judge: (Item) -> Verdict) -> [Item] {
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
