import Plexus
import PlexusTesting
import TestSupport
import Testing

@testable import PlexusRedis

@Suite struct `Leases of other nodes` {
  private let start = ManualClock().now
  private var state = LeaseHoldersState<ManualClock.Instant>()

  private func moment(
    _ second: Int,
    ahead: Duration = .zero
  ) -> (
    server: Duration, node: ManualClock.Instant
  ) {
    (.seconds(1_000 + second) + ahead, start.advanced(by: .seconds(second)))
  }

  private mutating func note(
    _ lease: (UInt64, Int64) = (1, 0),
    for rest: Duration = .seconds(10),
    at second: Int,
    ahead: Duration = .zero
  ) -> Duration {
    state.note(
      lease,
      of: "k",
      lasting: .seconds(10),
      for: rest,
      at: moment(second, ahead: ahead)
    )
  }

  /// Returns whether the lease of a key is over by the clock of this node.
  private func isOver(_ key: String = "k", at second: Int) -> Bool {
    state.over(key, at: start.advanced(by: .seconds(second))) != nil
  }

  @Test(.guarantee(.clockStepsKeepClearsComplete))
  mutating func `leases of other nodes end if they are not renewed for their length`() {
    #expect(note(at: 0) == .seconds(10))
    #expect(note(for: .seconds(4), at: 6) == .seconds(4))
    #expect(!isOver(at: 9))
    #expect(isOver(at: 10))
    #expect(state.over("k", at: moment(10).node)! == (1, 0))
    #expect(note(for: .zero, at: 11) == .milliseconds(1))
    #expect(!isOver("other", at: 10))
    state.end("k")
    #expect(!isOver(at: 10))
  }

  @Test(
    .guarantee(.clockStepsKeepClearsComplete),
    arguments: [(1, 7), (2, 0)] as [(UInt64, Int64)]
  )
  mutating func `leases of other nodes begin again with each renewal and each holder`(
    token: UInt64,
    renewal: Int64
  ) {
    _ = note(at: 0)
    #expect(note((token, renewal), at: 9) == .seconds(10))
    #expect(!isOver(at: 18))
    #expect(isOver(at: 19))
  }

  @Test(.guarantee(.clockStepsKeepClearsComplete))
  mutating func `leases of others last from their renewal if the clocks have kept pace since`() {
    _ = state.note(moment(0), tolerating: .seconds(1))
    // Renewed at 2, and found at 8.
    #expect(note((1, 7), for: .seconds(4), at: 8, ahead: .milliseconds(-900)) == .seconds(4))
    // The holder was dead for long.
    #expect(note((2, 0), for: .seconds(-9), at: 20) == .milliseconds(1))
    #expect(isOver(at: 20))
  }

  @Test(.guarantee(.clockStepsKeepClearsComplete))
  mutating func `another node's lease lasts from a look if the clock at its renewal is not known`()
  {
    #expect(note(for: .seconds(4), at: 0) == .seconds(10))
    #expect(note((2, 0), for: .seconds(-80), at: 20) == .seconds(10))
    #expect(note((3, 0), for: .seconds(3_600), at: 21) == .seconds(10))
  }

  @Test(.guarantee(.clockStepsKeepClearsComplete), arguments: [-3_600, -9, -2, 2, 9, 3_600])
  mutating func `leases of other nodes do not end because the clock of the server is set`(step: Int)
  {
    let ahead = Duration.seconds(step)
    _ = note(at: 0)
    #expect(note(for: .seconds(9) - ahead, at: 1, ahead: ahead) == .seconds(9))
    // Renewed at 2, set afterwards, and found at 3.
    #expect(note((1, 7), for: .seconds(9) - ahead, at: 3, ahead: ahead) == .seconds(10))
    // Renewed and found afterwards.
    #expect(note((1, 8), for: .seconds(9), at: 5, ahead: ahead) == .seconds(9))
    // Set back in between.
    #expect(note((1, 9), for: .seconds(9) + ahead, at: 6) == .seconds(10))
  }

  @Test(.guarantee(.clockStepsKeepClearsComplete))
  mutating func `leases of other nodes do not end because longer leases tolerate a step`() {
    _ = state.note(moment(0), tolerating: .seconds(60))
    _ = state.note(moment(1, ahead: .seconds(5)), tolerating: .seconds(60))
    #expect(note(for: .seconds(5), at: 2, ahead: .seconds(5)) == .seconds(10))
  }

  @Test(.guarantee(.clockStepsKeepClearsComplete))
  mutating func `leases of other nodes are forgotten if they are many and old`() {
    for number in 0..<20_000 {
      _ = state.note(
        (1, 0),
        of: "\(number)",
        lasting: .milliseconds(10),
        for: .milliseconds(10),
        at: (.milliseconds(number), start.advanced(by: .milliseconds(number)))
      )
    }
    #expect(state.count <= 4_097)
  }
}

/// Nodes whose server has a clock that the test sets.
@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed"),
  .enabled(if: SkewedClock.compiler != nil, "there is no C compiler, or no LD_PRELOAD")
)
struct `Leases on a server whose clock is set` {
  private typealias Node = `A space of the shared tier`.Node

  private let clock: SkewedClock
  private let server: RedisServer

  init() throws {
    clock = try SkewedClock(ahead: 0)
    server = try RedisServer(options: [], environment: clock.environment)
  }

  private func isBusy(_ node: Node, _ lease: SharedCache.Lease) async throws -> Bool {
    if case .busy(lease.version, _, _) = try await node.look(lease.key) { true } else { false }
  }

  @Test(
    .guarantee(.clockStepsKeepClearsComplete),
    arguments: [1, 61, 3_600, 7_300, -61, -7_300],
    [false, true]
  )
  func `leases on a server whose clock is set are not taken over, and are renewed`(
    step: Int,
    isRenewed: Bool
  ) async throws {
    let (a, b) = (try await Node("a", on: server), try await Node("b", on: server))
    let lease = try await a.lease("k")
    if isRenewed { #expect(try await a.tier.renew([lease]) == []) }
    #expect(try await isBusy(b, lease))
    try clock.set(ahead: step)
    #expect(try await isBusy(b, lease))
    // A node that has never looked before.
    let late = try await Node("late", on: server)
    #expect(try await isBusy(late, lease))
    for _ in 0..<2 { #expect(try await a.tier.renew([lease]) == []) }
    #expect(try await isBusy(b, lease))
    #expect(try await a.tier.fill([1], under: lease) == .stored)
  }

  @Test(.guarantee(.clockStepsKeepClearsComplete), arguments: [3_600, 7_300])
  func `leases are not taken over after the clock is set if they were renewed since a look`(
    step: Int
  ) async throws {
    let length = Duration.milliseconds(20)
    let a = try await Node("a", on: server, lease: length)
    let b = try await Node("b", on: server)
    let lease = try await a.lease("k")
    #expect(try await isBusy(b, lease))
    _ = try RedisShell.run("BLPOP nothing 0.02", on: server)
    #expect(try await a.tier.renew([lease]) == [])
    try clock.set(ahead: step)
    #expect(try await isBusy(b, lease))
  }

  @Test(.guarantee(.clockStepsKeepClearsComplete), arguments: [0, 600, -600])
  func `leases on a server whose clock is set have another number with each renewal`(
    step: Int
  ) async throws {
    let node = try await Node("a", on: server)
    let lease = try await node.lease("k")
    var numbers: [Int] = []
    for time in [0, step, step, 0] {
      try clock.set(ahead: time)
      #expect(try await node.tier.renew([lease]) == [])
      let script = "return tonumber(redis.call('HGET', '{s}:2:f:1:k', 'u'))"
      let reply = try RedisShell.run("EVAL \"\(script)\" 0", on: server)
      numbers.append(try #require(Int(reply.dropFirst().dropLast()), "\(reply)"))
    }
    #expect(numbers == Array(Set(numbers)).sorted())
  }
}
