import Foundation
import LoopbackOrigin
import Plexus
import PlexusNetworking
import Testing

@testable import DepartureBoard

@Suite(.timeLimit(.minutes(5))) struct `The directory` {
  private let origin: DayOrigin
  private let clock = DayClock(at: .at("09:00"))
  private let directory: Directory
  private let flight = Flight.sample(0, at: "10:00", tailNumber: "N10575")

  init() throws {
    origin = try DayOrigin(day: try .bundled(), port: 0, latency: .zero)
    directory = try Directory(client: OriginClient(port: origin.port), clock: clock)
  }

  @Test func `answers all questions of a flight`() async {
    let details = await directory.details(of: flight)
    #expect(details.airline.value?.displayName == "United Air Lines")
    #expect(details.aircraft.value?.displayName == "Embraer EMB-145LR")
    #expect(details.origin.value?.code == "EWR")
    #expect(details.destination.value?.code == "HNL")
    #expect(details.weather.value?.hour == 10)
    #expect(details.staleCount == 0 && details.isAnswered && !details.isWanting)
    #expect(origin.requestCount == 5)
  }

  @Test func `fetches each thing once for many rows`() async {
    await withTaskGroup(of: RowDetails.self) { group in
      for _ in 0..<50 { group.addTask { await directory.details(of: flight) } }
      for await details in group { #expect(details.isAnswered) }
    }
    _ = await directory.details(of: flight)
    #expect(origin.requestCount == 5)
    let tally = directory.tally
    #expect(tally.requests == 51 * 5)
    #expect(tally.statistics.fetches == 5)
    #expect(tally.statistics.hits + tally.statistics.joins == 50 * 5)
  }

  @Test func `has nothing to ask about the aircraft of a flight without one`() async {
    let details = await directory.details(of: .sample(0, at: "10:00", tailNumber: nil))
    #expect(details.aircraft == .absent(isStale: false))
    #expect(directory.tally.requests == 4)
    #expect(origin.requestCount == 4)
  }

  @Test func `takes it for an answer that something is not listed`() async {
    let unlisted = Flight.sample(0, at: "10:00", tailNumber: "N0")
    for _ in 0..<2 {
      #expect(await directory.details(of: unlisted).aircraft == .absent(isStale: false))
    }
    #expect(origin.requestCount == 5)
    #expect(origin.notFoundCount == 1)
    #expect(directory.tally.statistics.failures == 0)
  }

  @Test func `asks again after two hours where things change`() async {
    _ = await directory.details(of: flight)
    clock.advance(to: .at("10:59"))
    _ = await directory.details(of: flight)
    #expect(origin.requestCount == 5)
    clock.advance(to: .at("11:00"))
    _ = await directory.details(of: flight)
    #expect(origin.requestCount == 7)
    clock.advance(to: .at("24:00"))
    _ = await directory.details(of: flight)
    #expect(origin.requestCount == 9)
  }

  @Test func `marks what is stale while the origin is away, and asks again when it is back`()
    async throws
  {
    _ = await directory.details(of: flight)
    try await origin.setOnline(false)
    #expect(await directory.details(of: flight).staleCount == 0)

    clock.advance(to: .at("11:00"))
    let stale = await directory.details(of: flight)
    #expect(stale.origin.isStale && stale.weather.isStale && stale.staleCount == 2)
    #expect(stale.origin.value?.code == "EWR")
    #expect(directory.tally.statistics.failures == 2)
    #expect(directory.tally.statistics.staleHits == 0)

    // An origin that is away is left in peace for a while.
    clock.advance(to: .at("11:14"))
    #expect(await directory.details(of: flight).staleCount == 2)
    #expect(directory.tally.statistics.failures == 2)
    #expect(directory.tally.statistics.staleHits == 2)

    try await origin.setOnline(true)
    clock.advance(to: .at("11:15"))
    #expect(await directory.details(of: flight).staleCount == 0)
    #expect(origin.requestCount == 7)
  }

  @Test func `has no answer where there never was one and the origin is away`() async throws {
    try await origin.setOnline(false)
    #expect(await directory.details(of: flight) == .unanswered)
  }

  @Test func `finds on disk what does not change, and asks for what does`() async throws {
    let folder = try TemporaryFolder()
    let client = OriginClient(port: origin.port)
    let first = try Directory(client: client, clock: clock, cache: CacheFolder(url: folder.url))
    let unlisted = Flight.sample(1, at: "10:00", tailNumber: "N0")
    let details = await first.details(of: flight)
    _ = await first.details(of: unlisted)
    try await first.flush()
    #expect(first.tally.statistics.restorations == 0)
    #expect(origin.requestCount == 6)

    let clock = DayClock(at: .at("04:00"))
    let second = try Directory(client: client, clock: clock, cache: CacheFolder(url: folder.url))
    #expect(await second.details(of: flight) == details)
    #expect(await second.details(of: unlisted).aircraft == .absent(isStale: false))
    #expect(second.tally.statistics.restorations == 4)
    #expect(second.tally.statistics.fetches == 2)
    #expect(origin.requestCount == 8)
    // All day, however long that is.
    clock.advance(to: .at("24:00") + .seconds(24 * 60 * 60))
    _ = await second.details(of: flight)
    #expect(origin.requestCount == 10)
  }

  @Test func `shows copies on disk as stale while the origin is away`() async throws {
    let folder = try TemporaryFolder()
    let client = OriginClient(port: origin.port)
    let cache = CacheFolder(url: folder.url)
    let first = try Directory(client: client, clock: clock, cache: cache)
    _ = await first.details(of: flight)
    try await first.flush()
    try await origin.setOnline(false)
    let details = await (try Directory(client: client, clock: clock, cache: cache))
      .details(of: flight)
    #expect(details.isAnswered)
    #expect(details.origin.isStale && details.weather.isStale && details.staleCount == 2)
  }

  @Test func `fetches again on the same day whatever is on disk`() async throws {
    let folder = try TemporaryFolder()
    let directory = try Directory(
      client: OriginClient(port: origin.port),
      clock: clock,
      cache: CacheFolder(url: folder.url)
    )
    _ = await directory.details(of: flight)
    try await directory.flush()
    // No time has passed by the clock on the wall, by which copies are dated.
    clock.advance(to: .at("11:00"))
    _ = await directory.details(of: flight)
    #expect(origin.requestCount == 7)
    #expect(directory.tally.statistics.restorations == 0)
  }

  @Test func `leaves open what the asking task was cancelled for`() async {
    let task = Task { await directory.details(of: flight) }
    task.cancel()
    let details = await task.value
    #expect(!details.isWanting)
    #expect(details.staleCount == 0)
  }
}

@Suite(.timeLimit(.minutes(5))) struct `The client of the origin` {
  private let origin: LoopbackOrigin
  private let client: OriginClient

  init() throws {
    origin = try LoopbackOrigin()
    client = OriginClient(port: origin.port)
  }

  private func airline(_ path: String) async throws -> Airline? {
    try await client.value(at: path)
  }

  @Test func `reads a value`() async throws {
    origin.route("/airlines/UA") { _ in OriginResponse(json: #"{"carrier":"UA","name":"United"}"#) }
    #expect(try await airline("/airlines/UA") == Airline(carrier: "UA", name: "United"))
  }

  @Test func `takes 404 for the answer that there is none`() async throws {
    #expect(try await airline("/airlines/XX") == nil)
  }

  @Test(arguments: ["", "{}", "null", "[", #"{"carrier":"UA"}"#])
  func `refuses an answer that is not what was asked for`(body: String) async {
    origin.route("/airlines/UA") { _ in OriginResponse(json: body) }
    await #expect(throws: AnswerError.malformedAnswer(path: "/airlines/UA")) {
      try await airline("/airlines/UA")
    }
  }

  @Test(arguments: [400, 500, 503])
  func `refuses other answers`(status: Int) async {
    origin.route("/airlines/UA") { _ in OriginResponse(json: "{}", status: status) }
    await #expect(throws: AnswerError.status(status, path: "/airlines/UA")) {
      try await airline("/airlines/UA")
    }
  }

  @Test func `escapes what is not allowed in an address`() async throws {
    origin.route("/airlines/a b?%ü#") { _ in
      OriginResponse(json: #"{"carrier":"UA","name":"odd"}"#)
    }
    #expect(try await airline("/airlines/a b?%ü#")?.name == "odd")
  }

  @Test func `fails with an error of connectivity while the origin is away`() async throws {
    _ = try await airline("/airlines/UA")
    await origin.goOffline()
    let error = await #expect(throws: URLError.self) { try await airline("/airlines/UA") }
    #expect(error?.isConnectivityFailure == true)
    try await origin.goOnline()
    #expect(try await airline("/airlines/UA") == nil)
  }

  @Test(arguments: [OriginFault.reset(), .truncation(afterBytes: 5)])
  func `fails with an error of connectivity if an answer breaks off`(fault: OriginFault) async {
    origin.route("/airlines/UA") { _ in
      var response = OriginResponse(json: #"{"carrier":"UA","name":"United"}"#)
      response.fault = fault
      return response
    }
    let error = await #expect(throws: URLError.self) { try await airline("/airlines/UA") }
    #expect(error?.isConnectivityFailure == true)
  }

  @Test func `keeps its connection`() async throws {
    for number in 0..<20 { _ = try await airline("/airlines/\(number)") }
    #expect(origin.statistics.acceptedConnections == 1)
  }
}

@Suite struct `The summary` {
  @Test func `has a line for each number, after its name`() {
    var state = BoardState()
    for id in 0..<3 { state.apply(.flight(.scheduled(.sample(id, at: "10:00")))) }
    state.apply(.flight(.departed(0, at: .at("10:00"))))
    state.apply(.flight(.cancelled(1)))
    state.apply(.flight(.cancelled(2)))
    let statistics = CacheStatistics(
      hits: 4,
      staleHits: 5,
      misses: 6,
      joins: 7,
      fetches: 8,
      failures: 9,
      restorations: 12
    )
    let summary = Summary(
      state: Summary.Counts(state),
      tally: LookupTally(requests: 22, statistics: statistics),
      originRequests: 10,
      originNotFound: 11
    )
    let lines = summary.text.split(separator: "\n").map { $0.split(separator: "  ") }
    let numbers = lines.map { "\($0[0]) \($0[1].drop { $0 == " " })" }
    #expect(
      numbers == [
        "flights 3", "departed 1", "cancelled 2", "requests 22", "hits 4", "stale hits 5",
        "joins 7", "misses 6", "fetches 8", "from disk 12", "failures 9", "stale answers 0",
        "origin requests 10", "origin 404 11",
      ]
    )
  }
}
