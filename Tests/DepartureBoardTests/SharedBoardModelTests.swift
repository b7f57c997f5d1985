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
  .timeLimit(.minutes(20)),
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Several boards over one Redis server` {
  private let server: RedisServer

  init() throws {
    server = try RedisServer()
  }

  @Test func `fetch together what one does`() async throws {
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

  @Test func `work without their server`() async throws {
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
    #expect(!board.output.contains("no answer"))
  }

  @Test func `forget together`() async throws {
    let origin = try DayOrigin(day: try .bundled(), port: 0, latency: .zero)
    let flight = Flight.sample(0, at: "10:00", tailNumber: "N10575")
    let clock = DayClock(at: .at("09:00"))
    let tiers = [
      try SharedTier(.socket(path: server.socket)), try SharedTier(.socket(path: server.socket)),
    ]
    for tier in tiers {
      for await health in tier.engine.health() where health == .connected { break }
    }
    let boards = try tiers.map { tier in
      try Directory(
        client: OriginClient(port: origin.port, timeout: 600),
        clock: clock,
        tier: tier
      )
    }
    for board in boards { #expect(await board.details(of: flight).isAnswered) }
    #expect(boards.map(\.tally.fetches) == [5, 0])
    try await boards[0].forgetEverywhere()
    #expect(await boards[1].details(of: flight).isAnswered)
    #expect(boards.map(\.tally.fetches) == [5, 5])
    #expect(await boards[0].details(of: flight).isAnswered)
    #expect(boards.map(\.tally.fetches) == [5, 5])
    for tier in tiers { await tier.close() }
  }

  @Test func `forget when one of them receives a signal`() async throws {
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
