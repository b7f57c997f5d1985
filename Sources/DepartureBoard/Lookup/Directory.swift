import Plexus
import PlexusNetworking
import Synchronization

/// Where the rows look up airlines, aircraft, airports and weather.
///
/// Any number of rows may ask for the same thing: it is fetched once and shared while it is fresh. That
/// the origin knows no such thing is an answer as well, and as good for as long.
///
/// How long things are fresh by the clock of the day: airlines, aircraft and destinations all day; the
/// airports at which the board stands, which may close, and the weather there two hours.
final class Directory: Sendable {
  private let airlines: MultiplexerMap<String, Airline?>
  private let aircraft: MultiplexerMap<String, Aircraft?>
  private let origins: MultiplexerMap<String, Airport?>
  private let destinations: MultiplexerMap<String, Airport?>
  private let weather: MultiplexerMap<WeatherKey, Weather?>
  private let requestCount = Atomic(0)

  /// Creates a directory that has looked up nothing yet.
  ///
  /// - Parameters:
  ///   - client: What fetches from the origin.
  ///   - clock: What measures how old values are.
  init(client: OriginClient, clock: DayClock) {
    airlines = MultiplexerMap(id: "airlines", policy: .fresh(hours: 48), clock: clock) { key in
      try await client.value(at: "/airlines/\(key)")
    }
    aircraft = MultiplexerMap(id: "aircraft", policy: .fresh(hours: 48), clock: clock) { key in
      try await client.value(at: "/aircraft/\(key)")
    }
    origins = MultiplexerMap(id: "origins", policy: .fresh(hours: 2), clock: clock) { key in
      try await client.value(at: "/airports/\(key)")
    }
    destinations = MultiplexerMap(id: "destinations", policy: .fresh(hours: 48), clock: clock) {
      key in
      try await client.value(at: "/airports/\(key)")
    }
    weather = MultiplexerMap(id: "weather", policy: .fresh(hours: 2), clock: clock) { key in
      try await client.value(at: "/weather/\(key)")
    }
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
      Request { [self] in try await answer(weather, flight.weatherKey) }
    ).results()
    return RowDetails(
      airline: Cell(results.0),
      aircraft: Cell(results.1),
      origin: Cell(results.2),
      destination: Cell(results.3),
      weather: Cell(results.4)
    )
  }

  /// What has been counted so far.
  var tally: LookupTally {
    let maps = [
      airlines.statistics, aircraft.statistics, origins.statistics, destinations.statistics,
      weather.statistics,
    ]
    return LookupTally(
      requests: requestCount.load(ordering: .relaxed),
      statistics: maps.reduce(CacheStatistics()) { $0 + $1 }
    )
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
}

extension CachePolicy {
  /// Values are fresh for some hours of the day; a failure is remembered for a quarter of an hour, so
  /// that an origin that is away is left in peace.
  fileprivate static func fresh(hours: Int) -> Self {
    var policy = CachePolicy()
    policy.timeToLive = .seconds(hours * 60 * 60)
    policy.failureTimeToLive = .seconds(15 * 60)
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
