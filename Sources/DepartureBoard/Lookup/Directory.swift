import Plexus
import PlexusNetworking
import Synchronization

/// Where the rows look up airlines, aircraft, airports and weather.
///
/// Any number of rows may ask for the same thing: it is fetched once and shared while it is fresh. That
/// the origin knows no such thing is an answer as well, and as good for as long.
///
/// How long things are fresh by the clock of the day: airlines, aircraft and destinations a month; the
/// airports at which the board stands, which may close, two hours; the weather there as long as the origin
/// says, and then it is asked whether that has changed. Badges never change.
///
/// With a cache, what was looked up outlives the program, even if that is killed: it is written a second
/// after it came, and by ``flush()``. Airlines, aircraft and destinations are then taken from disk for a
/// month, since they do not change in a day, and badges for ever. The rest is always asked for, of the
/// weather only whether it has changed; the copies stand in while the origin is away, and are stale.
final class Directory: Sendable {
  private let airlines: MultiplexerMap<String, Airline?>
  private let aircraft: MultiplexerMap<String, Aircraft?>
  private let origins: MultiplexerMap<String, Airport?>
  private let destinations: MultiplexerMap<String, Airport?>
  private let weather: MultiplexerMap<WeatherKey, Weather?>
  private let badges: Badges
  private let repository = MuxRepository()
  /// What writes to disk while the day goes on; `nil` without a cache.
  private let writing: Throttler?
  private let requestCount = Atomic(0)
  private let revalidations: Revalidations

  /// Creates a directory that has looked up nothing yet.
  ///
  /// - Parameters:
  ///   - client: What fetches from the origin.
  ///   - clock: What measures how old values are.
  ///   - cache: Where copies outlive the program; `nil` for nowhere.
  /// - Throws: A `StorageError` if the folder cannot be used.
  init(client: OriginClient, clock: DayClock, cache: CacheFolder? = nil) throws {
    let repository = repository
    let revalidations = Revalidations()
    self.revalidations = revalidations
    badges = Badges(origin: client.address, folder: cache?.media)
    airlines = MultiplexerMap(
      id: "airlines",
      policy: .fixed,
      cacher: try cache?.cacher("airlines"),
      clock: clock
    ) { key in
      try await client.value(at: "/airlines/\(key)")
    }.register(in: repository)
    aircraft = MultiplexerMap(
      id: "aircraft",
      policy: .fixed,
      cacher: try cache?.cacher("aircraft"),
      clock: clock
    ) { key in
      try await client.value(at: "/aircraft/\(key)")
    }.register(in: repository)
    origins = MultiplexerMap(
      id: "origins",
      policy: .changing,
      cacher: try cache?.cacher("origins"),
      clock: clock
    ) { key in
      try await client.value(at: "/airports/\(key)")
    }.register(in: repository)
    destinations = MultiplexerMap(
      id: "destinations",
      policy: .fixed,
      cacher: try cache?.cacher("destinations"),
      clock: clock
    ) { key in
      try await client.value(at: "/airports/\(key)")
    }.register(in: repository)
    weather = MultiplexerMap(
      id: "weather",
      policy: .renewed,
      cacher: try cache.map { UntrustedCopies(try $0.cacher("weather")) },
      clock: clock
    ) { key, context in
      let renewal = try await client.renewal(at: "/weather/\(key)", context, by: clock)
      if renewal.isUnchanged { revalidations.count.add(1, ordering: .relaxed) }
      return renewal.result
    }.register(in: repository)
    writing = cache.map { _ in
      Throttler(interval: .seconds(1), leading: false) {
        // What fails now is tried again, and told, by the last flush.
        try? await repository.flushAll()
      }
    }
  }

  /// Writes what has been looked up to disk, as far as it is not there yet.
  ///
  /// - Throws: A `MuxRepositoryError` that says what could not be written.
  func flush() async throws {
    try await repository.flushAll()
  }

  /// Removes what is on disk though it is not to outlive the program.
  func removeTemporaryFiles() {
    badges.removeTemporaryFiles()
  }

  /// Everything that a row shows of a flight, asked for at once.
  ///
  /// A flight without aircraft has one question less.
  func details(of flight: Flight) async -> RowDetails {
    let results = await Zipper(
      Request { [self] in try await answer(airlines, flight.carrier) },
      Request { [self] in try await answer(aircraft, flight.tailNumber) },
      Request { [self] in try await answer(origins, flight.origin) },
      Request { [self] in try await answer(destinations, flight.destination) },
      Request { [self] in try await answer(weather, flight.weatherKey) },
      Request { [badges] in await badges.badge(of: flight.carrier) }
    ).results()
    writing?.touch()
    return RowDetails(
      airline: Cell(results.0),
      aircraft: Cell(results.1),
      origin: Cell(results.2),
      destination: Cell(results.3),
      weather: Cell(results.4),
      badge: try? results.5.get()
    )
  }

  /// What has been counted so far.
  var tally: LookupTally {
    // Read before the fetches that they are among, so that there are never more of them.
    let revalidated = revalidations.count.load(ordering: .acquiring)
    let maps = [
      airlines.statistics, aircraft.statistics, origins.statistics, destinations.statistics,
      weather.statistics,
    ]
    return LookupTally(
      requests: requestCount.load(ordering: .relaxed),
      statistics: maps.reduce(CacheStatistics()) { $0 + $1 },
      revalidated: revalidated,
      badges: badges.downloadCount
    )
  }

  private final class Revalidations: Sendable {
    let count = Atomic(0)
  }

  /// Asks a map for the value of a key; without key there is nothing to ask, and no value.
  private func answer<Key, Value>(
    _ map: MultiplexerMap<Key, Value?>,
    _ key: Key?
  ) async throws -> Response<Value?> {
    guard let key else { return Response(value: nil, source: .memory) }
    requestCount.add(1, ordering: .relaxed)
    return try await map.response(key)
  }
}

/// What has been asked and how it was answered.
struct LookupTally: Hashable, Sendable {
  /// The questions of all rows, counted where they are asked.
  var requests = 0
  /// What the maps have counted together.
  var statistics = CacheStatistics()
  /// The fetches among them that have found out that nothing has changed.
  var revalidated = 0
  /// The badges that were downloaded.
  var badges = 0

  /// The fetches that were not content with what was known.
  var fetches: Int {
    statistics.fetches - revalidated
  }
}

extension CachePolicy {
  /// For what does not change in a day: a copy on disk is as good as an answer of the origin.
  fileprivate static var fixed: Self {
    var policy = fresh(hours: 30 * 24)
    policy.cacherRead = .beforeFetch
    return policy
  }

  /// For what changes in a day.
  fileprivate static var changing: Self {
    fresh(hours: 2)
  }

  /// For what the origin says how long it is fresh, and can tell whether it has changed.
  fileprivate static var renewed: Self {
    var policy = changing
    policy.cacherRead = .beforeFetch
    return policy
  }

  /// Values are fresh for some hours of the day; a failure is remembered for a quarter of an hour, so
  /// that an origin that is away is left in peace.
  private static func fresh(hours: Int) -> Self {
    var policy = CachePolicy()
    policy.timeToLive = .seconds(hours * 60 * 60)
    policy.failureTimeToLive = .seconds(15 * 60)
    // By the clock of the board, on which hours pass while the disk is read.
    policy.storageTimeout = .seconds(365 * 24 * 60 * 60)
    return policy
  }
}

extension Cell {
  /// What an answer of the directory comes to.
  fileprivate init(_ result: Result<Response<Value?>, any Error>) {
    switch result {
    case .success(let response):
      if let value = response.value {
        self = .known(value, isStale: response.isStale)
      } else {
        self = .absent(isStale: response.isStale)
      }
    case .failure(is CancellationError):
      self = .pending
    case .failure:
      self = .unanswered
    }
  }
}
