import Foundation
import Plexus
import PlexusInspector
import PlexusNetworking
import PlexusRedis
import PlexusStorage

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A directory in which rows look up airlines, aircraft, airports and weather over HTTP.
///
/// Concurrent requests for a value share one fetch, and the value is reused while it is fresh. A "not found" response
/// of the origin is cached in the same way.
///
/// Times to live by the clock of the day: a month for airlines, aircraft and destinations; two hours for the airports
/// of departure, which may close; for the weather, the directive of the origin, which then revalidates it.
///
/// With a cache, values persist even if the program is killed. Airlines, aircraft and destinations are then read from
/// disk, because they do not change within a day. All other values are always requested; their copies are used as stale
/// values while the origin is unavailable.
///
/// With a Redis server, values are kept there in place of the disk: all boards together fetch each value once, and
/// forget all of them together.
final class Directory: Sendable {
  private let airlines: MultiplexerMap<String, Airline?>
  private let aircraft: MultiplexerMap<String, Aircraft?>
  private let origins: MultiplexerMap<String, Airport?>
  private let destinations: MultiplexerMap<String, Airport?>
  private let weather: MultiplexerMap<String, Weather?>
  private let badges: Badges
  private let repository = MuxRepository()

  /// Creates an empty directory.
  ///
  /// - Parameters:
  ///   - client: The client of the origin.
  ///   - badges: The badges of airlines.
  ///   - cache: The folder for persistent copies, or `nil` for none.
  ///   - redis: The server for the copies of all boards in place of the folder, or `nil` for none.
  /// - Throws: A `StorageError` if the folder cannot be used.
  init(client: OriginClient, badges: Badges, cache: URL? = nil, redis: RedisEngine? = nil) throws {
    self.badges = badges
    let repository = repository
    func map<Value: Codable & Sendable>(
      _ name: String,
      _ policy: CachePolicy,
      at path: String? = nil
    ) throws -> MultiplexerMap<String, Value?> {
      var cacher: (any Cacher<Value?>)?
      if let redis {
        cacher = redis.cacher(space: "departures-\(name)", schema: "2")
      } else if let folder = cache?.appending(path: name) {
        cacher = try JSONLogCacher(directory: folder, byteLimit: 4 << 20, schema: "\(name) 2")
      }
      return MultiplexerMap(id: name, policy: policy, cacher: cacher, clock: client.clock) {
        (key: String, context: FetchContext<Value?>) in
        try await client.fetch("\(path ?? name)/\(key)", context)
      }.register(in: repository)
    }
    airlines = try map("airlines", .constant)
    aircraft = try map("aircraft", .constant)
    origins = try map("origins", .changing, at: "airports")
    destinations = try map("destinations", .constant, at: "airports")
    weather = try map("weather", .changing)
  }

  /// Looks up the details of a flight concurrently.
  func details(of flight: Flight) async -> RowDetails {
    let results = await Zipper(
      Request { [airlines] in try await airlines.response(flight.carrier) },
      Request { [aircraft] () -> Response<Aircraft?> in
        guard let number = flight.tailNumber else { return Response(value: nil, source: .memory) }
        return try await aircraft.response(number)
      },
      Request { [origins] in try await origins.response(flight.origin) },
      Request { [destinations] in try await destinations.response(flight.destination) },
      Request { [weather] in try await weather.response(flight.weatherKey) },
      Request { [badges] in await badges.badge(of: flight.carrier) }
    ).results()
    return RowDetails(
      airline: Cell(results.0),
      aircraft: Cell(results.1),
      origin: Cell(results.2),
      destination: Cell(results.3),
      weather: Cell(results.4),
      badge: try? results.5.get()
    )
  }

  /// The numbers of requests and their results, of all maps together.
  var statistics: CacheStatistics {
    airlines.statistics + aircraft.statistics + origins.statistics + destinations.statistics
      + weather.statistics
  }

  /// Shows the maps and the images on the page of an inspector.
  func add(to inspector: Inspector) {
    inspector.add(airlines, named: "airlines")
    inspector.add(aircraft, named: "aircraft")
    inspector.add(origins, named: "origins")
    inspector.add(destinations, named: "destinations")
    inspector.add(weather, named: "weather")
    badges.add(to: inspector)
  }

  /// Writes the fetched values that have not been written yet.
  ///
  /// - Throws: A `MuxRepositoryError` with the values that could not be written.
  func flush() async throws {
    try await repository.flushAll()
  }

  /// Forgets all values, on every board that shares them.
  ///
  /// - Throws: A `MuxRepositoryError` if the server cannot be reached.
  func forgetEverywhere() async throws {
    try await repository.clearAll(.everywhere)
  }
}

extension CacheStatistics {
  /// The number of requests, each of which has one of four results.
  var requests: Int {
    hits + staleHits + joins + misses
  }

  /// The number of fetches that did not just find the value unchanged.
  var newFetches: Int {
    fetches - revalidations
  }
}

extension CachePolicy {
  /// A policy for values that do not change within a day, and can be read from disk instead of being fetched.
  fileprivate static var constant: Self {
    var policy = changing
    policy.timeToLive = .minutes(30 * 24 * 60)
    policy.cacherRead = .beforeFetch
    return policy
  }

  /// A policy for values that change within a day.
  fileprivate static var changing: Self {
    var policy = CachePolicy()
    policy.timeToLive = .minutes(2 * 60)
    // Avoids repeated requests to an unavailable origin.
    policy.failureTimeToLive = .minutes(15)
    policy.writeBehind = .minutes(1)
    // Measured by the clock of the day, on which hours pass during a disk access.
    policy.storageTimeout = .minutes(365 * 24 * 60)
    return policy
  }
}

/// An HTTP client for the values of the origin.
struct OriginClient: Sendable {
  /// The address of the origin.
  let address: String
  /// The clock of the day, which measures the freshness that the origin declares.
  let clock: DayClock
  // A local origin that does not respond is busy; an unavailable one refuses connections immediately.
  private let transport = URLSessionTransport(timeout: 3600)

  init(_ address: String, clock: DayClock) {
    self.address = address
    self.clock = clock
  }

  /// Fetches the value at a path, or confirms the previous one.
  ///
  /// - Parameters:
  ///   - path: The path.
  ///   - context: The context with the previous value.
  /// - Returns: The value, or `nil` if the origin responds with 404.
  /// - Throws: An `HTTPStatusError` for another status, a `DecodingError` for another value, or a `URLError` for no
  ///   response.
  func fetch<Value: Decodable & Sendable>(
    _ path: String,
    _ context: FetchContext<Value?>
  ) async throws -> FetchResult<Value?> {
    guard let url = URL(string: "\(address)/\(path)") else { throw URLError(.badURL) }
    let fetcher = HTTPFetcher<Value?>(
      URLRequest(url: url),
      transport: transport,
      now: { [clock] in clock.now.date },
      decode: { data in try JSONDecoder().decode(Value.self, from: data) }
    )
    do {
      return try await fetcher.fetch(context)
    } catch let error as HTTPStatusError where error.status == 404 {
      return .value(nil)
    }
  }
}
