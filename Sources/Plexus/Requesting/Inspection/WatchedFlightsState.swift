/// The flights in progress, while a reader looks at them.
///
/// Invariants:
///
/// - A flight that has been inserted stays until it is removed, or until all are.
/// - The list is forgotten after a number of insertions without a read.
struct WatchedFlightsState<Flight: AnyObject & Sendable>: Sendable {
  /// A flight, and the time at which it began.
  struct Item: Sendable {
    let flight: Flight
    let start: Nanoseconds
  }

  /// The number of insertions without a read after which the list is forgotten.
  static var patience: Int { 1 << 20 }

  private var known: [ObjectIdentifier: Item] = [:]
  private var insertionsSinceRead = 0

  /// Whether no reader has looked for many insertions, so that the list is to be emptied and no longer kept.
  var isForgotten: Bool { insertionsSinceRead > Self.patience }

  /// The flights, in no particular order.
  var items: [Item] { Array(known.values) }

  /// Records that a reader looks.
  mutating func noteRead() {
    insertionsSinceRead = 0
  }

  /// Adds a flight; a known one keeps its time.
  mutating func insert(_ flight: Flight, since start: Nanoseconds) {
    insertionsSinceRead += 1
    let id = ObjectIdentifier(flight)
    if known[id] == nil { known[id] = Item(flight: flight, start: start) }
  }

  /// Removes a flight.
  ///
  /// - Returns: What was removed, to be released with no lock held.
  mutating func remove(_ flight: Flight) -> Item? {
    known.removeValue(forKey: ObjectIdentifier(flight))
  }

  /// Removes all flights.
  ///
  /// - Returns: The flights, to be released with no lock held.
  mutating func removeAll() -> [ObjectIdentifier: Item] {
    insertionsSinceRead = 0
    defer { known = [:] }
    return known
  }
}
