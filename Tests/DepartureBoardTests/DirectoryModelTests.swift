import Foundation
import LoopbackOrigin
import Plexus
import PlexusNetworking
import Synchronization
import TestSupport
import Testing

@testable import DepartureBoard

@Suite(.fewAtOnce) struct `The directory` {
  private let origin: DayOrigin
  private let clock = DayClock(at: .at("09:00"))
  private let directory: Directory
  private let flight = Flight.sample(0, at: "10:00", tailNumber: "N10575")

  init() throws {
    origin = try DayOrigin(day: try .bundled(), port: 0, latency: .zero)
    directory = try Directory(client: OriginClient(port: origin.port, timeout: 600), clock: clock)
  }

  @Test func `returns all details of a flight`() async {
    let details = await directory.details(of: flight)
    #expect(details.airline.value?.displayName == "United Air Lines")
    #expect(details.aircraft.value?.displayName == "Embraer EMB-145LR")
    #expect(details.origin.value?.code == "EWR")
    #expect(details.destination.value?.code == "HNL")
    #expect(details.weather.value?.hour == 10)
    #expect(details.badge?.cells.count == Badge.width)
    #expect(details.staleCount == 0 && details.isAnswered && !details.isWanting)
    #expect(origin.requestCount == 6)
  }

  @Test func `fetches each value once for many rows`() async {
    await withTaskGroup(of: RowDetails.self) { group in
      for _ in 0..<50 { group.addTask { await directory.details(of: flight) } }
      for await details in group { #expect(details.isAnswered) }
    }
    _ = await directory.details(of: flight)
    #expect(origin.requestCount == 6)
    let tally = directory.tally
    #expect(tally.requests == 51 * 5)
    #expect(tally.statistics.fetches == 5)
    #expect(tally.fetches == 5 && tally.badges == 1)
    #expect(tally.statistics.hits + tally.statistics.joins == 50 * 5)
  }

  @Test func `does not request the aircraft of a flight without one`() async {
    let details = await directory.details(of: .sample(0, at: "10:00", tailNumber: nil))
    #expect(details.aircraft == .absent(isStale: false))
    #expect(directory.tally.requests == 4)
    #expect(origin.requestCount == 5)
  }

  @Test func `treats a missing value as an answer`() async {
    let unlisted = Flight.sample(0, at: "10:00", tailNumber: "N0")
    for _ in 0..<2 {
      #expect(await directory.details(of: unlisted).aircraft == .absent(isStale: false))
    }
    #expect(origin.requestCount == 6)
    #expect(origin.notFoundCount == 1)
    #expect(directory.tally.statistics.failures == 0)
  }

  @Test func `fetches departure airports again after two hours`() async {
    _ = await directory.details(of: flight)
    clock.advance(to: .at("10:59"))
    _ = await directory.details(of: flight)
    #expect(directory.tally.fetches == 5)
    clock.advance(to: .at("11:00"))
    _ = await directory.details(of: flight)
    #expect(directory.tally.fetches == 6)
    clock.advance(to: .at("24:00"))
    _ = await directory.details(of: flight)
    #expect(directory.tally.fetches == 7)
  }

  @Test func `revalidates the weather as often as the origin requires`() async {
    let first = await directory.details(of: flight)
    clock.advance(to: .at("09:19") + .seconds(59))
    #expect(await directory.details(of: flight) == first)
    #expect(origin.notModifiedCount == 0)
    for (count, time) in ["09:20", "09:40", "10:00"].enumerated() {
      clock.advance(to: .at(time))
      for _ in 0..<3 { #expect(await directory.details(of: flight) == first) }
      #expect(origin.notModifiedCount == count + 1)
      #expect(directory.tally.revalidated == count + 1)
    }
    #expect(origin.requestCount == 9)
    #expect(directory.tally.fetches == 5)
    #expect(directory.tally.statistics.fetches == 8)
  }

  @Test func `returns stale values while the origin is offline, and fetches again afterwards`()
    async throws
  {
    _ = await directory.details(of: flight)
    try await origin.setOnline(false)
    #expect(await directory.details(of: flight).staleCount == 0)
    clock.advance(to: .at("09:20"))
    let weather = await directory.details(of: flight)
    #expect(weather.weather.isStale && weather.weather.isAnswered && weather.staleCount == 1)
    #expect(directory.tally.statistics.failures == 1)

    clock.advance(to: .at("11:00"))
    let stale = await directory.details(of: flight)
    #expect(stale.origin.isStale && stale.weather.isStale && stale.staleCount == 2)
    #expect(stale.origin.value?.code == "EWR")
    #expect(directory.tally.statistics.failures == 3)
    #expect(directory.tally.statistics.staleHits == 0)
    #expect(stale.badge != nil)

    // After a connection failure, the origin is not contacted for a while.
    clock.advance(to: .at("11:14"))
    #expect(await directory.details(of: flight).staleCount == 2)
    #expect(directory.tally.statistics.failures == 3)
    #expect(directory.tally.statistics.staleHits == 2)

    try await origin.setOnline(true)
    clock.advance(to: .at("11:15"))
    #expect(await directory.details(of: flight).staleCount == 0)
    #expect(origin.requestCount == 8)
    // The airport was fetched again, and the weather has not changed.
    #expect(directory.tally.revalidated == 1 && origin.notModifiedCount == 1)
  }

  @Test func `has no answer without a cached value while the origin is offline`() async throws {
    try await origin.setOnline(false)
    #expect(await directory.details(of: flight) == .unanswered)
  }

  @Test func `reads constant values from disk, and revalidates others`() async throws {
    let folder = try TemporaryFolder()
    let client = OriginClient(port: origin.port, timeout: 600)
    let first = try Directory(client: client, clock: clock, cache: CacheFolder(url: folder.url))
    let unlisted = Flight.sample(1, at: "10:00", tailNumber: "N0")
    let details = await first.details(of: flight)
    _ = await first.details(of: unlisted)
    try await first.flush()
    #expect(first.tally.statistics.restorations == 0)
    #expect(origin.requestCount == 7)

    let clock = DayClock(at: .at("04:00"))
    let second = try Directory(client: client, clock: clock, cache: CacheFolder(url: folder.url))
    #expect(await second.details(of: flight) == details)
    #expect(await second.details(of: unlisted).aircraft == .absent(isStale: false))
    #expect(second.tally.statistics.restorations == 4)
    #expect(second.tally.fetches == 1 && second.tally.revalidated == 1)
    #expect(second.tally.badges == 0)
    #expect(origin.requestCount == 9 && origin.notModifiedCount == 1)
    // The copies are used for the whole day, regardless of its length.
    clock.advance(to: .at("24:00") + .seconds(24 * 60 * 60))
    _ = await second.details(of: flight)
    #expect(origin.requestCount == 11)
  }

  @Test func `returns values on disk as stale while the origin is offline`() async throws {
    let folder = try TemporaryFolder()
    let client = OriginClient(port: origin.port, timeout: 600)
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

  @Test func `fetches changing values again on the same day despite copies on disk`() async throws {
    let folder = try TemporaryFolder()
    let directory = try Directory(
      client: OriginClient(port: origin.port, timeout: 600),
      clock: clock,
      cache: CacheFolder(url: folder.url)
    )
    _ = await directory.details(of: flight)
    try await directory.flush()
    // The wall clock, which dates the copies, has not advanced.
    clock.advance(to: .at("11:00"))
    _ = await directory.details(of: flight)
    #expect(origin.requestCount == 8)
    #expect(directory.tally.statistics.restorations == 0)
  }

  @Test func `has no answer for a cancelled request`() async {
    let task = Task { await directory.details(of: flight) }
    task.cancel()
    let details = await task.value
    #expect(!details.isWanting)
    #expect(details.staleCount == 0)
  }
}

@Suite(.fewAtOnce) struct `The client of the origin` {
  private let origin: LoopbackOrigin
  private let client: OriginClient

  init() throws {
    origin = try LoopbackOrigin()
    client = OriginClient(port: origin.port, timeout: 600)
  }

  private func airline(_ path: String) async throws -> Airline? {
    try await client.value(at: path)
  }

  @Test func `decodes a value`() async throws {
    origin.route("/airlines/UA") { _ in OriginResponse(json: #"{"carrier":"UA","name":"United"}"#) }
    #expect(try await airline("/airlines/UA") == Airline(carrier: "UA", name: "United"))
  }

  @Test func `treats 404 as a missing value`() async throws {
    #expect(try await airline("/airlines/XX") == nil)
  }

  @Test(arguments: ["", "{}", "null", "[", #"{"carrier":"UA"}"#])
  func `rejects a response of another type`(body: String) async {
    origin.route("/airlines/UA") { _ in OriginResponse(json: body) }
    await #expect(throws: AnswerError.malformedAnswer(path: "/airlines/UA")) {
      try await airline("/airlines/UA")
    }
  }

  @Test(arguments: [400, 500, 503])
  func `rejects other statuses`(status: Int) async {
    origin.route("/airlines/UA") { _ in OriginResponse(json: "{}", status: status) }
    await #expect(throws: AnswerError.status(status, path: "/airlines/UA")) {
      try await airline("/airlines/UA")
    }
  }

  @Test func `escapes characters that are not allowed in a URL`() async throws {
    origin.route("/airlines/a b?%ü#") { _ in
      OriginResponse(json: #"{"carrier":"UA","name":"odd"}"#)
    }
    #expect(try await airline("/airlines/a b?%ü#")?.name == "odd")
  }

  @Test func `fails with a connectivity error while the origin is offline`() async throws {
    _ = try await airline("/airlines/UA")
    await origin.goOffline()
    let error = await #expect(throws: URLError.self) { try await airline("/airlines/UA") }
    #expect(error?.isConnectivityFailure == true)
    try await origin.goOnline()
    #expect(try await airline("/airlines/UA") == nil)
  }

  @Test(arguments: [OriginFault.reset(), .truncation(afterBytes: 5)])
  func `fails with a connectivity error if a response is truncated`(fault: OriginFault) async {
    origin.route("/airlines/UA") { _ in
      var response = OriginResponse(json: #"{"carrier":"UA","name":"United"}"#)
      response.fault = fault
      return response
    }
    let error = await #expect(throws: URLError.self) { try await airline("/airlines/UA") }
    #expect(error?.isConnectivityFailure == true)
  }

  @Test func `keeps an unchanged value, and replaces a changed one`() async throws {
    let temperature = Mutex(30)
    origin.route("/weather/EWR/9") { _ in
      let degrees = temperature.withLock { $0 }
      var response = OriginResponse(
        json:
          #"{"hour":9,"origin":"EWR","precipitation":0,"temperature":\#(degrees),"visibility":9}"#
      )
      response.etag = "\"\(degrees)\""
      response.headers["Cache-Control"] = "max-age=60"
      return response
    }
    let clock = DayClock(at: .at("09:00"))
    let weather = MultiplexerMap<String, Weather?>(clock: clock) { [client] path, context in
      try await client.renewal(at: path, context, by: clock)
    }
    let first = try await weather.request("/weather/EWR/9")
    #expect(first?.temperature == 30)
    clock.advance(to: .at("09:01"))
    #expect(try await weather.request("/weather/EWR/9") == first)
    temperature.withLock { $0 = 31 }
    clock.advance(to: .at("09:02"))
    #expect(try await weather.request("/weather/EWR/9")?.temperature == 31)
    #expect(origin.statistics.requestCount == 3)
  }

  private func renewal(
    _ path: String,
    of known: Airline? = nil
  ) async throws -> FetchResult<Airline?> {
    let context = FetchContext<Airline?>(
      previousValue: known,
      validator: known.map { _ in "\"1\"" }
    )
    return try await client.renewal(at: path, context, by: DayClock(at: .zero))
  }

  @Test func `distinguishes an unchanged value from a new one`() async throws {
    origin.route("/airlines/UA") { _ in
      var response = OriginResponse(json: #"{"carrier":"UA","name":"United"}"#)
      response.etag = "\"1\""
      return response
    }
    let first = try await renewal("/airlines/UA")
    guard case .value(let airline?, _, _) = first, airline.name == "United" else {
      Issue.record("\(first)")
      return
    }
    let second = try await renewal("/airlines/UA", of: Airline(carrier: "UA", name: "as known"))
    // The known value is kept.
    guard case .notModified = second else {
      Issue.record("\(second)")
      return
    }
  }

  @Test func `treats 404 on revalidation as a missing value`() async throws {
    let renewal = try await renewal("/airlines/UA", of: Airline(carrier: "UA", name: "as known"))
    guard case .value(nil, directives: CacheDirectives(), validator: nil) = renewal else {
      Issue.record("\(renewal)")
      return
    }
  }

  @Test(arguments: ["", "{}", "null"])
  func `rejects a revalidation response of another type`(body: String) async {
    origin.route("/airlines/UA") { _ in OriginResponse(json: body) }
    await #expect(throws: AnswerError.malformedAnswer(path: "/airlines/UA")) {
      _ = try await renewal("/airlines/UA")
    }
    origin.route("/airlines/UA") { _ in OriginResponse(json: body, status: 503) }
    await #expect(throws: AnswerError.status(503, path: "/airlines/UA")) {
      _ = try await renewal("/airlines/UA")
    }
  }

  @Test func `has a longer timeout for a slow origin with many requests`()
    async throws
  {
    #expect(OriginClient(port: 1, latency: .milliseconds(150), timeout: 1).timeout == 31)
    origin.latency = .milliseconds(150)
    origin.route("/airlines/*") { _ in OriginResponse(json: #"{"carrier":"UA","name":"United"}"#) }
    // With eight connections the last response takes more than a second, and much longer on a busy machine.
    let client = OriginClient(port: origin.port, latency: .seconds(3), timeout: 1)
    let answers = await withTaskGroup(of: Bool.self) { group in
      for number in 0..<60 {
        group.addTask { (try? await client.value(at: "/airlines/\(number)") as Airline?) != nil }
      }
      return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    #expect(answers == 60)
  }

  @Test func `reuses its connection`() async throws {
    for number in 0..<20 { _ = try await airline("/airlines/\(number)") }
    #expect(origin.statistics.acceptedConnections == 1)
  }
}

@Suite(.fewAtOnce) struct `The summary` {
  @Test func `has a line with the name and value of each number`() {
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
      restorations: 12,
      revalidations: 3
    )
    let summary = Summary(
      state: Summary.Counts(state),
      tally: LookupTally(requests: 22, statistics: statistics, badges: 13),
      originRequests: 10,
      originNotModified: 14,
      originNotFound: 11
    )
    let lines = summary.text.split(separator: "\n").map { $0.split(separator: "  ") }
    let numbers = lines.map { "\($0[0]) \($0[1].drop { $0 == " " })" }
    #expect(
      numbers == [
        "flights 3", "departed 1", "cancelled 2", "requests 22", "hits 4", "stale hits 5",
        "joins 7", "misses 6", "fetches 5", "revalidated 3", "from disk 12", "failures 9",
        "stale answers 0", "badges 13", "origin requests 10", "origin 304 14", "origin 404 11",
      ]
    )
  }
}
