import Foundation
import LoopbackOrigin
import Plexus
import PlexusNetworking
import TestSupport
import Testing

@testable import DepartureBoard

@Suite(.fewAtOnce) struct `The directory` {
  private let origin: LoopbackOrigin
  private let clock = DayClock(at: .at("09:00"))
  private let folder: TemporaryFolder
  private let directory: Directory
  private let flight = Flight.sample(0, tailNumber: "N10575")

  init() throws {
    origin = try LoopbackOrigin()
    try origin.serve(try Day())
    folder = try TemporaryFolder()
    directory = try Self.directory(origin, clock, folder)
  }

  private static func directory(
    _ origin: LoopbackOrigin,
    _ clock: DayClock,
    _ folder: TemporaryFolder,
    isStored: Bool = false
  ) throws -> Directory {
    try Directory(
      client: OriginClient(origin.address, clock: clock),
      badges: Badges(origin: origin.address, folder: folder.url.appending(path: "media")),
      cache: isStored ? folder.url : nil
    )
  }

  private func stored(_ clock: DayClock) throws -> Directory {
    try Self.directory(origin, clock, folder, isStored: true)
  }

  private var requestCount: Int { origin.statistics.requestCount }

  @Test func `a directory returns all details of a flight`() async {
    let details = await directory.details(of: flight)
    #expect(details.airline.value?.name == "United Air Lines")
    #expect(details.aircraft.value?.name == "Embraer EMB-145LR")
    #expect(details.origin.value?.name == "Newark Liberty")
    #expect(details.destination.value?.name == "Honolulu")
    #expect(details.weather.value?.name == "36°F 16mph 5mi")
    #expect(details.badge != nil)
    #expect(details.staleCount == 0 && !details.isIncomplete)
    #expect(requestCount == 6)
  }

  @Test func `a directory fetches each value once for many rows`() async {
    await withTaskGroup(of: RowDetails.self) { group in
      for _ in 0..<50 { group.addTask { await directory.details(of: flight) } }
      for await details in group { #expect(!details.isIncomplete) }
    }
    _ = await directory.details(of: flight)
    #expect(requestCount == 6)
    let statistics = directory.statistics
    #expect(statistics.requests == 51 * 5 && statistics.newFetches == 5)
    #expect(statistics.hits + statistics.joins == 50 * 5)
  }

  @Test func `a directory does not request the aircraft of a flight without one`() async {
    let details = await directory.details(of: .sample(0, tailNumber: nil))
    #expect(details.aircraft == .answered(nil, isStale: false))
    #expect(directory.statistics.requests == 4 && requestCount == 5)
  }

  @Test func `a directory treats a missing value as an answer`() async {
    let unlisted = Flight.sample(0, tailNumber: "N0")
    for _ in 0..<2 {
      #expect(await directory.details(of: unlisted).aircraft == .answered(nil, isStale: false))
    }
    #expect(requestCount == 6 && directory.statistics.failures == 0)
  }

  @Test(arguments: ["{}", "null", "["])
  func `a directory has no answer if the response is another value`(body: String) async {
    origin.route("/airlines/UA") { _ in OriginResponse(json: body) }
    #expect(await directory.details(of: flight).airline == .unanswered)
    origin.route("/airlines/UA") { _ in OriginResponse(json: body, status: 503) }
    clock.advance(to: .at("09:15"))
    #expect(await directory.details(of: flight).airline == .unanswered)
    #expect(directory.statistics.failures == 2)
  }

  @Test func `a directory fetches departure airports again after two hours`() async {
    for (time, count) in [("09:00", 5), ("10:59", 5), ("11:00", 6), ("24:00", 7)] {
      clock.advance(to: .at(time))
      _ = await directory.details(of: flight)
      #expect(directory.statistics.newFetches == count)
    }
  }

  @Test func `a directory revalidates the weather as often as the origin requires`() async {
    let first = await directory.details(of: flight)
    clock.advance(to: .at("09:19").advanced(by: .seconds(59)))
    #expect(await directory.details(of: flight) == first)
    #expect(directory.statistics.revalidations == 0)
    for (count, time) in ["09:20", "09:40", "10:00"].enumerated() {
      clock.advance(to: .at(time))
      for _ in 0..<3 { #expect(await directory.details(of: flight) == first) }
      #expect(directory.statistics.revalidations == count + 1)
    }
    #expect(requestCount == 9 && directory.statistics.newFetches == 5)
  }

  @Test
  func `a directory returns stale values while the origin is offline, and fetches afterwards`()
    async throws
  {
    _ = await directory.details(of: flight)
    await origin.goOffline()
    #expect(await directory.details(of: flight).staleCount == 0)
    clock.advance(to: .at("09:20"))
    let weather = await directory.details(of: flight)
    #expect(weather.weather.isStale && weather.staleCount == 1)
    #expect(directory.statistics.failures == 1)

    clock.advance(to: .at("11:00"))
    let stale = await directory.details(of: flight)
    #expect(stale.origin.isStale && stale.weather.isStale && stale.staleCount == 2)
    #expect(stale.origin.value?.name == "Newark Liberty")
    #expect(directory.statistics.failures == 3)
    #expect(directory.statistics.staleHits == 0)
    #expect(stale.badge != nil)

    // After a connection failure, the origin is not contacted for a while.
    clock.advance(to: .at("11:14"))
    #expect(await directory.details(of: flight).staleCount == 2)
    #expect(directory.statistics.failures == 3)
    #expect(directory.statistics.staleHits == 2)

    try await origin.goOnline()
    clock.advance(to: .at("11:15"))
    #expect(await directory.details(of: flight).staleCount == 0)
    #expect(requestCount == 8)
    // The airport was fetched again, and the weather has not changed.
    #expect(directory.statistics.revalidations == 1)
  }

  @Test func `a directory has no answer without a cached value while the origin is offline`()
    async throws
  {
    await origin.goOffline()
    #expect(await directory.details(of: flight) == .unanswered)
  }

  @Test func `a directory reads constant values from disk, and requests others`() async throws {
    let first = try stored(clock)
    let unlisted = Flight.sample(1, tailNumber: "N0")
    let details = await first.details(of: flight)
    _ = await first.details(of: unlisted)
    try await first.flush()
    #expect(first.statistics.restorations == 0 && requestCount == 7)

    let clock = DayClock(at: .at("04:00"))
    let second = try stored(clock)
    #expect(await second.details(of: flight) == details)
    #expect(await second.details(of: unlisted).aircraft == .answered(nil, isStale: false))
    #expect(second.statistics.restorations == 4 && second.statistics.newFetches == 2)
    #expect(requestCount == 9 && origin.badgeCount == 1)
    // The copies are used for the whole day, regardless of its length.
    clock.advance(to: ClockTime(minutes: 48 * 60))
    _ = await second.details(of: flight)
    #expect(requestCount == 11)
  }

  @Test func `a directory returns values on disk as stale while the origin is offline`()
    async throws
  {
    let first = try stored(clock)
    _ = await first.details(of: flight)
    try await first.flush()
    await origin.goOffline()
    let details = await (try stored(clock)).details(of: flight)
    #expect(details.origin.isStale && details.weather.isStale && details.staleCount == 2)
  }

  @Test func `a directory has no answer for a cancelled request`() async {
    let task = Task { await directory.details(of: flight) }
    task.cancel()
    let details = await task.value
    #expect(!details.isIncomplete)
  }
}

@Suite(.fewAtOnce) struct `The summary` {
  @Test func `the summary has a line with the name and value of each number`() {
    var state = BoardState(flights: (0..<3).map { .sample($0) })
    for id in 0..<3 { state.apply(.flight(FlightChange(id, .scheduled))) }
    state.apply(.flight(FlightChange(0, .departed(at: .at("10:00")))))
    for id in 1...2 { state.apply(.heard(FlightChange(id, .cancelled))) }
    let statistics = CacheStatistics(
      hits: 4,
      staleHits: 5,
      misses: 6,
      joins: 7,
      fetches: 8,
      failures: 9,
      restorations: 12,
      revalidations: 3
    )
    state.apply(.report(statistics, isLast: true))
    func numbers(sentCount: Int?) -> [String] {
      Summary.text(state, originCount: 10, badgeCount: 13, pageCount: 14, sentCount: sentCount)
        .split(separator: "\n").map { $0.split(separator: "  ") }
        .map { "\($0[0]) \($0[1].drop { $0 == " " })" }
    }
    let alone = [
      "flights 3", "departed 1", "cancelled 2", "requests 22", "hits 4", "stale hits 5", "joins 7",
      "misses 6", "fetches 5", "revalidated 3", "from disk 12", "failures 9", "stale answers 0",
      "badges 13", "pages 14", "origin requests 10",
    ]
    #expect(numbers(sentCount: nil) == alone)
    let shared = Set(numbers(sentCount: 1)).subtracting(alone)
    #expect(shared == ["changes heard 2", "changes sent 1", "from boards 12"])
  }
}
