import Foundation
import LoopbackOrigin
import Plexus
import PlexusRedis
import TestSupport
import Testing

@testable import DepartureBoard

@Suite(
  .fewAtOnce,
  .serialized,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Several boards over one Redis server` {
  private let server: RedisServer

  init() throws {
    server = try RedisServer()
  }

  @Test func `several boards over one Redis server fetch as much together as one board alone`()
    async throws
  {
    let arguments = ["--plain", "--speed", "max", "--redis", server.socket]
    async let first = Program(arguments).ending()
    async let second = Program(arguments).ending()
    let boards = [try await first, try await second]
    for board in boards {
      #expect(board.status == 0)
      #expect(board.errors == "")
      #expect(board.count("flights") == 930)
      #expect(!board.output.contains("no answer"))
      #expect(board.sum("failures") == 0)
      #expect(board.count("requests") == board.sum("hits", "stale hits", "joins", "misses"))
    }
    // One board alone: 731 keys, and eight more fetches of each of the three departure airports. These are fetched
    // again every two hours of a day, which each board has for itself.
    let fetches = boards.map { $0.sum("fetches") }
    #expect(fetches[0] + fetches[1] >= 731)
    #expect(fetches[0] + fetches[1] <= 731 + 2 * 3 * 8)
    let shared = boards.map { $0.sum("from boards") }
    #expect(shared[0] + shared[1] >= 600)
    // A later board finds everything.
    let third = try await Program(arguments).ending()
    #expect(third.sum("fetches") <= 3 * 9)
    #expect(third.sum("from boards") >= 600)
  }

  @Test func `a flight change on one of several boards is shown on each of them, once`()
    async throws
  {
    let slow = try Program(["--plain", "--speed", "1", "--redis", server.socket])
    let output = Log<String>()
    let reading = Task {
      while case let text = await slow.someOutput(), text != "" { output.append(text) }
    }
    // A third board cancels the last flight of the day until the slow one, which is still in the night, shows it.
    let engine = try RedisEngine(.unix(path: server.socket))
    let bus = EventBus()
    let token = bus.connect(
      SharedChange.self,
      as: "departures",
      over: engine.events,
      .publishOnly
    )
    let last = try #require(Day().flights.last)
    let isShown = Guarded(false)
    let showing = Task {
      await output.wait { $0.joined().contains("\(last.designator) ") }
      isShown.withLock { $0 = true }
    }
    while !isShown.withLock(\.self) {
      try await bus.publish(SharedChange(board: "test", change: FlightChange(last.id, .cancelled)))
    }
    await showing.value
    let fast = try await Program.run(
      "--plain",
      "--speed",
      "max",
      "--until",
      "07:00",
      "--redis",
      server.socket
    )
    #expect(fast.status == 0)
    #expect(fast.sum("changes sent") > fast.sum("flights"))
    let decided = fast.sum("departed", "cancelled")
    #expect(decided > 50)
    await output.wait { texts in
      texts.joined().split(separator: "\n").count { $0.hasSuffix(", announced by another board") }
        >= decided + 1
    }
    slow.send(SIGTERM)
    await reading.value
    let ending = await slow.ending()
    #expect(ending.status == 128 + SIGTERM)
    #expect(ending.errors == "")
    // The time, the number, the airports and the status.
    func changes(_ text: String) -> [String] {
      text.split(separator: "\n").filter { $0.contains("-") && $0.contains("  ") }
        .map { String($0.prefix(39)) }
    }
    let all = output.entries.joined()
    let board = all.prefix(upTo: all.range(of: "\nflights  ")?.lowerBound ?? all.endIndex)
    let seen = changes(String(board))
    #expect(Set(seen).count == seen.count)
    let lines = fast.output.components(separatedBy: "\nflights  ")[0]
    #expect(changes(lines).count == decided)
    #expect(Set(seen).isSuperset(of: changes(lines)))
    #expect(seen.count == decided + 1)
    let summary = Ending(status: 0, output: all, errors: "")
    #expect(summary.sum("departed", "cancelled") == decided + 1)
    #expect(summary.sum("changes heard") > decided)
    token.cancel()
    try await engine.close()
  }

  @Test func `several boards work without their Redis server`() async throws {
    server.kill()
    let board = try await Program.run(
      "--plain",
      "--speed",
      "max",
      "--until",
      "06:00",
      "--redis",
      server.socket
    )
    #expect(board.status == 0)
    #expect(board.sum("flights") > 0)
    #expect(board.sum("from boards") == 0)
    #expect(board.count("changes heard") == 0)
    #expect(board.count("changes sent") == 0)
    #expect(!board.output.contains("no answer"))
  }

  @Test func `several boards clear their caches together`() async throws {
    let origin = try LoopbackOrigin()
    try origin.serve(try Day())
    let flight = Flight.sample(0, tailNumber: "N10575")
    let folder = try TemporaryFolder()
    let client = OriginClient(origin.address, clock: DayClock(at: .at("09:00")))
    let badges = Badges(origin: origin.address, folder: folder.url)
    let engines = try (0..<2).map { _ in try RedisEngine(.unix(path: server.socket)) }
    for engine in engines { try await engine.connect(within: .seconds(60)) }
    let boards = try engines.map { try Directory(client: client, badges: badges, redis: $0) }
    for board in boards { #expect(await !board.details(of: flight).isIncomplete) }
    #expect(boards.map(\.statistics.newFetches) == [5, 0])
    try await boards[0].forgetEverywhere()
    for board in boards.reversed() { #expect(await !board.details(of: flight).isIncomplete) }
    #expect(boards.map(\.statistics.newFetches) == [5, 5])
    for engine in engines { try await engine.close() }
  }

  @Test func `several boards clear their caches when one of them receives a signal`() async throws {
    let arguments = ["--plain", "--speed", "10000", "--redis", server.socket]
    let program = try Program(arguments)
    #expect(await program.someOutput() != "")
    program.send(SIGUSR1)
    // It continues.
    #expect(await program.someOutput() != "")
    program.send(SIGTERM)
    let ending = await program.ending()
    #expect(ending.status == 128 + SIGTERM)
    #expect(ending.errors == "")
  }
}
