import Plexus

/// A page of the timetable, as the origin serves it.
struct TimetablePage: Codable, Hashable, Sendable {
  let flights: [Flight]
  /// The names of the pages with earlier and later departures.
  let previous: String?
  let next: String?
}

/// The timetable of the whole day, in which the user scrolls to earlier and later departures.
///
/// It opens at the time of the day. The pages around the shown flights are loaded at both ends, also at the same time. The
/// list is a window: pages that are far from the shown flights leave it. They are read from memory when the user scrolls
/// back, even while the origin is offline.
struct Timetable: Sendable {
  /// The place of the first shown flight.
  enum Position: Hashable, Sendable {
    /// At the first flight that is scheduled at a time or later.
    case time(ClockTime)
    case flight(Flight.ID)

    /// Returns the index of the flight in a part of the timetable.
    func index(in flights: [Flight]) -> Int? {
      switch self {
      case .time(let time):
        flights.firstIndex { $0.scheduled >= time } ?? flights.indices.last
      case .flight(let id):
        flights.firstIndex { $0.id == id }
      }
    }
  }

  /// The part of the timetable for the screen.
  struct Excerpt: Hashable, Sendable {
    /// The loaded flights from the position on.
    var flights: [Flight] = []
    var isLoading = false
    var hasFailed = false
  }

  /// The number of pages in the window, so that the next load at one end does not undo the last one at the other.
  static let windowLength = 5
  /// The numbers of flights that are loaded before the first shown one, and from it on.
  private static let (countBefore, countAfter) = (20, 60)

  /// The loaded part of the timetable.
  let departures: PagedPublisher<Flight, String>
  private let position = CurrentValue<Position?>(nil)
  private let clock: DayClock

  /// Creates a timetable that is closed.
  init(client: OriginClient) {
    clock = client.clock
    let policy = CachePolicy(timeToLive: .minutes(24 * 60))
    let pages = MultiplexerMap<String, TimetablePage?>(policy: policy, clock: client.clock) {
      (name: String, context: FetchContext<TimetablePage?>) in
      try await client.fetch("departures/\(name)", context)
    }
    departures = PagedPublisher(maximumPageCount: Self.windowLength) { [clock] name in
      let page = try await pages.request(name ?? "at/\(clock.now.minutes)")
      return Page(items: page?.flights ?? [], previous: page?.previous, next: page?.next)
    }
  }

  /// The part for the screen, or `nil` while the timetable is closed.
  var excerpt: some StatefulBroadcaster<Excerpt?> {
    combine(departures, position) { state, position in
      guard let position else { return nil }
      let flights = state.value?.items ?? []
      return Excerpt(
        flights: Array(flights[(position.index(in: flights) ?? 0)...]),
        isLoading: state.isLoading,
        hasFailed: state.error != nil
      )
    }
  }

  /// Processes input of the keyboard: the arrow keys and the page keys scroll, and every other key closes.
  ///
  /// - Returns: The input for the board, without these keys and without the Escape that closes.
  func take(_ input: String) -> String {
    input.replacing(/\u{1B}\[[0-9;]*[@-~]|\u{1B}O.|./.dotMatchesNewlines()) { key -> String in
      switch key.output {
      case "\u{1B}[A", "\u{1B}OA": scroll(by: -1)
      case "\u{1B}[B", "\u{1B}OB": scroll(by: 1)
      case "\u{1B}[5~": scroll(by: -10)
      case "\u{1B}[6~": scroll(by: 10)
      case "\u{1B}" where position.value != nil: close()
      default:
        close()
        return String(key.output)
      }
      return ""
    }
  }

  /// Opens the timetable at the time of the day, or scrolls as far as it is loaded.
  func scroll(by count: Int) {
    let flights = departures.state.value?.items ?? []
    position.update { position in
      guard let old = position else {
        position = .time(clock.now)
        return
      }
      guard let index = old.index(in: flights) else { return }
      position = .flight(flights[min(max(0, index + count), flights.count - 1)].id)
    }
  }

  /// Closes the timetable, and drops what it has loaded.
  func close() {
    guard position.value != nil else { return }
    position.value = nil
    departures.reset()
  }

  /// Loads the pages around the position with every key, until the task is cancelled.
  ///
  /// A failed load is tried again with the next key.
  func follow() async {
    for await position in position.subscription() where position != nil {
      // The state of the list has the errors.
      async let earlier: Void? = try? loadEarlier()
      async let later: Void? = try? loadLater()
      _ = await (earlier, later)
    }
  }

  private func loadEarlier() async throws {
    while needsPage({ index, pages in index < Self.countBefore && !pages.isCompleteAtStart }) {
      try await departures.loadPreviousPage()
    }
  }

  private func loadLater() async throws {
    while needsPage({ index, pages in
      pages.items.count - index < Self.countAfter && !pages.isComplete
    }) {
      try await departures.loadNextPage()
    }
  }

  /// Returns whether the timetable is open and has no page yet, or has too few at one end.
  private func needsPage(_ isShort: (_ index: Int, _ pages: Pages<Flight>) -> Bool) -> Bool {
    guard let position = position.value else { return false }
    guard let pages = departures.state.value else { return true }
    return position.index(in: pages.items).map { isShort($0, pages) } ?? false
  }
}
