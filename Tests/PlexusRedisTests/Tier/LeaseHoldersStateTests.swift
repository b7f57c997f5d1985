import PlexusTesting
import TestSupport
import Testing

@testable import PlexusRedis

@Suite struct `Leases of other nodes` {
  private let start = ManualClock().now
  private var state = LeaseHoldersState<ManualClock.Instant>()

  private mutating func note(
    _ lease: (UInt64, Int64) = (1, 0),
    for rest: Duration = .seconds(3),
    at second: Int
  ) -> Duration {
    state.note(
      lease,
      of: "k",
      for: rest,
      lasting: .seconds(3),
      at: start.advanced(by: .seconds(second))
    )
  }

  /// Returns whether the lease is over by the clock of this node, if it can tell.
  private func isOver(_ key: String = "k", at second: Int) -> Bool? {
    state.verdict(on: key, lasting: .seconds(3), at: start.advanced(by: .seconds(second)))?.isOver
  }

  @Test mutating func `end if they are not renewed for their time`() {
    #expect(note(at: 0) == .seconds(3))
    #expect(note(at: 2) == .seconds(1))
    #expect(isOver(at: 2) == false)
    #expect(isOver(at: 3) == true)
    #expect(state.verdict(on: "k", lasting: .seconds(3), at: start)!.lease == (1, 0))
    #expect(isOver("other", at: 3) == nil)
    state.end("k")
    #expect(isOver(at: 3) == nil)
  }

  @Test mutating func `cannot end before the time that they had when they were found`() {
    #expect(note(for: .seconds(2), at: 0) == .seconds(2))
    // The clock of the engine was set forwards, then backwards.
    #expect(note(for: .milliseconds(1), at: 1) == .seconds(1))
    #expect(isOver(at: 1) == false)
    #expect(note(for: .seconds(3_600), at: 2) == .seconds(1))
    #expect(isOver(at: 2) == nil)
    #expect(note(for: .seconds(3_600), at: 3) == .milliseconds(1))
    #expect(isOver(at: 3) == true)
  }

  @Test(arguments: [(1, 7), (2, 0)] as [(UInt64, Int64)])
  mutating func `begin again with each renewal and each holder`(token: UInt64, renewal: Int64) {
    _ = note(at: 0)
    #expect(note((token, renewal), at: 2) == .seconds(3))
    #expect(isOver(at: 4) == false)
  }

  @Test mutating func `are forgotten if they are many and old`() {
    for number in 0..<20_000 {
      let time = start.advanced(by: .milliseconds(number))
      _ = state.note(
        (1, 0),
        of: "\(number)",
        for: .milliseconds(10),
        lasting: .milliseconds(10),
        at: time
      )
    }
    #expect(state.count <= 4_097)
  }

  @Test(
    .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed"),
    .enabled(if: SkewedClock.compiler != nil, "there is no C compiler, or no LD_PRELOAD")
  )
  func `do not end because the clock of the server is set forwards`() async throws {
    let clock = try SkewedClock(ahead: 0)
    let server = try RedisServer(options: [], environment: clock.environment)
    let (a, b) = try await (
      `A space of the shared tier`.Node("a", on: server),
      `A space of the shared tier`.Node("b", on: server)
    )
    let lease = try await a.lease("k")
    func remaining() async throws -> Duration? {
      guard case .busy(lease.version, let remaining, _) = try await b.look("k") else { return nil }
      return remaining
    }
    let before = try #require(try await remaining())
    try clock.set(ahead: 3_600)
    #expect(try #require(try await remaining()) <= before)
    _ = try await a.tier.renew([lease])
    #expect(try await remaining() != nil)
  }
}
