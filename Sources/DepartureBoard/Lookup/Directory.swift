import Plexus
import PlexusNetworking
import Synchronization

/// A directory in which rows look up airlines, aircraft, airports and weather.
///
/// Concurrent requests for a value share one fetch, and the value is reused while it is fresh. A "not found"
/// response of the origin is cached in the same way.
///
/// Times to live by the clock of the day: a month for airlines, aircraft and destinations; two hours for the
/// airports of departure, which may close; the directive of the origin for the weather, which is then
/// revalidated. Badges do not expire.
///
/// With a cache, values persist even if the program is killed: they are written within a second, and by
/// ``flush()``. Airlines, aircraft and destinations are then read from disk for a month, because they do not
/// change within a day, and badges without a limit. All other values are always requested, the weather with a
/// conditional request; their copies are used as stale values while the origin is unavailable.
///
/// With a shared tier, values are kept there in place of the disk, except badges: all boards together fetch each value
/// once, and forget all of them together.
final class Directory: Sendable {
  private let airlines: MultiplexerMap<String, Airline?>
  private let aircraft: MultiplexerMap<String, Aircraft?>
  private let origins: MultiplexerMap<String, Airport?>
  private let destinations: MultiplexerMap<String, Airport?>
  private let weather: MultiplexerMap<WeatherKey, Weather?>
  private let badges: Badges
  private let repository = MuxRepository()
  /// The throttler that writes to disk during the day, or `nil` without a cache.
  private let writing: Throttler?
  private let requestCount = Atomic(0)

  /// Creates an empty directory.
  ///
  /// - Parameters:
  ///   - client: The client of the origin.
  ///   - clock: The clock that measures the age of values.
  ///   - cache: The folder for persistent copies, or `nil` for none.
  ///   - tier: The tier of all boards for copies in place of the folder, or `nil` for none.
  /// - Throws: A `StorageError` if the folder cannot be used.
  init(
    client: OriginClient,
    clock: DayClock,
    cache: CacheFolder? = nil,
    tier: SharedTier? = nil
  ) throws {
    let repository = repository
    badges = Badges(origin: client.address, folder: cache?.media)
    let cache = tier == nil ? cache : nil
    func cacher<Value: Codable & Sendable>(_ name: String) throws -> (any Cacher<Value>)? {
      if let tier { return tier.cacher(name) }
      return try cache.map { try $0.cacher(name) }
    }
    airlines = MultiplexerMap(
      id: "airlines",
      policy: .fixed,
      cacher: try cacher("airlines"),
      clock: clock
    ) { key in
      try await client.value(at: "/airlines/\(key)")
    }.register(in: repository)
    aircraft = MultiplexerMap(
      id: "aircraft",
      policy: .fixed,
      cacher: try cacher("aircraft"),
      clock: clock
    ) { key in
      try await client.value(at: "/aircraft/\(key)")
    }.register(in: repository)
    origins = MultiplexerMap(
      id: "origins",
      policy: .changing,
      cacher: try cacher("origins"),
      clock: clock
    ) { key in
      try await client.value(at: "/airports/\(key)")
    }.register(in: repository)
    destinations = MultiplexerMap(
      id: "destinations",
      policy: .fixed,
      cacher: try cacher("destinations"),
      clock: clock
    ) { key in
      try await client.value(at: "/airports/\(key)")
    }.register(in: repository)
    weather = MultiplexerMap(
      id: "weather",
      policy: .renewed,
      cacher: try cache.map { UntrustedCopies(try $0.cacher("weather")) } ?? cacher("weather"),
      clock: clock
    ) { key, context in
      try await client.renewal(at: "/weather/\(key)", context, by: clock)
    }.register(in: repository)
    writing = cache.map { _ in
      Throttler(interval: .seconds(1), leading: false) {
        // The last flush tries again and reports a failure.
        try? await repository.flushAll()
      }
    }
  }

  /// Writes the fetched values that have not been written yet.
  ///
  /// - Throws: A `MuxRepositoryError` with the values that could not be written.
  func flush() async throws {
    try await repository.flushAll()
  }

  /// Forgets all values, on every board that shares them.
  ///
  /// When this returns, no board shows a value that was fetched before.
  ///
  /// - Throws: A `MuxRepositoryError` if the shared tier cannot be reached.
  func forgetEverywhere() async throws {
    try await repository.clearAll(.everywhere)
  }

  /// Removes temporary files from the disk.
  func removeTemporaryFiles() {
    badges.removeTemporaryFiles()
  }

  /// Looks up the details of a flight concurrently.
  ///
  /// The aircraft is not requested if the flight has none.
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

  /// The counters so far.
  var tally: LookupTally {
    let maps = [
      airlines.statistics, aircraft.statistics, origins.statistics, destinations.statistics,
      weather.statistics,
    ]
    return LookupTally(
      requests: requestCount.load(ordering: .relaxed),
      statistics: maps.reduce(CacheStatistics()) { $0 + $1 },
      badges: badges.downloadCount
    )
  }

  /// Requests the value of a key from a map; returns no value without a key.
  private func answer<Key, Value>(
    _ map: MultiplexerMap<Key, Value?>,
    _ key: Key?
  ) async throws -> Response<Value?> {
    guard let key else { return Response(value: nil, source: .memory) }
    requestCount.add(1, ordering: .relaxed)
    return try await map.response(key)
  }
}

/// The counters of requests and their results.
struct LookupTally: Hashable, Sendable {
  /// The requests of all rows.
  var requests = 0
  /// The combined statistics of the maps.
  var statistics = CacheStatistics()
  /// The number of downloaded badges.
  var badges = 0

  /// The number of fetches that found the value unchanged.
  var revalidated: Int { statistics.revalidations }

  /// The number of fetches without successful revalidations.
  var fetches: Int {
    statistics.fetches - revalidated
  }
}

extension CachePolicy {
  /// A policy for values that do not change within a day and can be read from disk instead of being fetched.
  fileprivate static var fixed: Self {
    var policy = fresh(hours: 30 * 24)
    policy.cacherRead = .beforeFetch
    return policy
  }

  /// A policy for values that change within a day.
  fileprivate static var changing: Self {
    fresh(hours: 2)
  }

  /// A policy for values with directives of the origin and support for revalidation.
  fileprivate static var renewed: Self {
    var policy = changing
    policy.cacherRead = .beforeFetch
    return policy
  }

  /// Returns a policy with a time to live in hours of the day.
  ///
  /// Failures are remembered for a quarter of an hour, to avoid repeated requests to an unavailable origin.
  private static func fresh(hours: Int) -> Self {
    var policy = CachePolicy()
    policy.timeToLive = .seconds(hours * 60 * 60)
    policy.failureTimeToLive = .seconds(15 * 60)
    // Measured by the clock of the board, on which hours pass during a disk access.
    policy.storageTimeout = .seconds(365 * 24 * 60 * 60)
    return policy
  }
}

extension Cell {
  /// Creates a cell from a response of the directory.
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
