/// A place in a list of waiting callers.
@usableFromInline
struct WaitPlace: Hashable, Sendable {
  fileprivate let index: Int32

  /// The place of the caller that joins first.
  @usableFromInline static var first: WaitPlace { WaitPlace(index: 0) }
}

/// The callers that wait for one event.
///
/// A caller takes a place with ``join()`` and then either parks in it or withdraws. A place is free again as soon as
/// its caller has been returned or need not wait. The first place needs no array.
///
/// Invariants:
///
/// - ``count`` is the number of callers that have joined and not left.
/// - A parked caller is returned exactly once: when it leaves, or when the event occurs.
/// - If a caller leaves before it parks, parking fails with ``Parking/left``.
struct WaitListState<Parked: Sendable>: Sendable {
  private enum Place: Sendable {
    case free(next: Int32)
    case taken
    case parked(Parked)
    case left
  }

  /// The outcome of parking.
  enum Parking: Hashable, Sendable {
    case parked
    /// The event has occurred.
    case finished
    /// The caller has left before.
    case left
  }

  private var first: Place
  private var others: ContiguousArray<Place> = []
  private var firstFree: Int32

  /// The number of callers that have joined and not left.
  private(set) var count: Int

  /// The number of callers that have a place and have not parked yet.
  private var underWay: Int

  /// Whether the event has occurred.
  private(set) var isFinished = false

  /// - Parameter hasFirst: Whether a caller has joined, in ``WaitPlace/first``.
  init(hasFirst: Bool = false) {
    first = hasFirst ? .taken : .free(next: -1)
    firstFree = hasFirst ? -1 : 0
    count = hasFirst ? 1 : 0
    underWay = count
  }

  /// Whether the event has occurred and every caller has been notified.
  var isOver: Bool { isFinished && underWay == 0 }

  private subscript(index: Int32) -> Place {
    get { index == 0 ? first : others[Int(index) - 1] }
    set { if index == 0 { first = newValue } else { others[Int(index) - 1] = newValue } }
  }

  /// Reserves a place for a caller.
  mutating func join() -> WaitPlace {
    count += 1
    underWay += 1
    guard firstFree >= 0, case .free(let next) = self[firstFree] else {
      others.append(.taken)
      return WaitPlace(index: Int32(others.count))
    }
    let index = firstFree
    firstFree = next
    self[index] = .taken
    return WaitPlace(index: index)
  }

  /// Parks a caller in its place.
  mutating func park(_ parked: Parked, in place: WaitPlace) -> Parking {
    underWay -= 1
    if case .left = self[place.index] {
      free(place)
      return .left
    }
    guard !isFinished else { return .finished }
    self[place.index] = .parked(parked)
    return .parked
  }

  /// Removes a caller that has joined if the event has occurred, unless the caller has left.
  ///
  /// - Returns: Whether the event has occurred for the caller.
  mutating func withdrawIfFinished(_ place: WaitPlace) -> Bool {
    guard isFinished, case .taken = self[place.index] else { return false }
    underWay -= 1
    return true
  }

  /// Removes a caller that has joined and will not park.
  mutating func withdraw(_ place: WaitPlace) {
    underWay -= 1
    if case .taken = self[place.index] { count -= 1 }
    free(place)
  }

  /// Removes a caller early, unless the event has occurred.
  ///
  /// - Returns: Whether it was removed, and the caller itself if it was parked.
  mutating func leave(_ place: WaitPlace) -> (hasLeft: Bool, parked: Parked?) {
    guard !isFinished else { return (false, nil) }
    switch self[place.index] {
    case .taken:
      self[place.index] = .left
      count -= 1
      return (true, nil)
    case .parked(let parked):
      free(place)
      count -= 1
      return (true, parked)
    case .free, .left:
      return (false, nil)
    }
  }

  private mutating func free(_ place: WaitPlace) {
    guard !isFinished else { return }
    self[place.index] = .free(next: firstFree)
    firstFree = place.index
  }

  /// Removes and returns all parked callers when the event occurs.
  mutating func finish() -> Waiting {
    guard !isFinished else { return Waiting() }
    isFinished = true
    count = 0
    var waiting = Waiting()
    if case .parked(let parked) = first {
      waiting.first = parked
      first = .taken
    }
    guard !others.isEmpty else { return waiting }
    waiting.others.reserveCapacity(others.count)
    for index in others.indices {
      guard case .parked(let parked) = others[index] else { continue }
      waiting.others.append(parked)
      others[index] = .taken
    }
    return waiting
  }

  /// The callers to resume.
  struct Waiting: Sendable {
    fileprivate(set) var first: Parked?
    fileprivate(set) var others: ContiguousArray<Parked> = []

    init() {}

    /// Calls the body for each caller.
    func each(_ body: (Parked) -> Void) {
      if let first { body(first) }
      for parked in others { body(parked) }
    }
  }
}
