import PlexusTesting
import TestSupport
import Testing

@testable import PlexusRedis

@Suite struct `Heartbeats of a space` {
  private typealias State = HeartbeatState<ManualClock.Instant>

  private let start = ManualClock().now
  private var state = State()
  private let mark = TierMark(epoch: TierEpoch(counter: 1, nonce: 1), fence: 5)
  private let pause = Duration.seconds(200)

  private func time(_ seconds: Int) -> ManualClock.Instant {
    start.advanced(by: .seconds(seconds))
  }

  private func isConfirmed(_ seconds: Int, knowing epoch: TierEpoch? = nil) -> Bool {
    state.isConfirmed(bySending: time(seconds), knowing: epoch ?? mark.epoch)
  }

  private func isDue(_ seconds: Int, knowing epoch: TierEpoch? = nil) -> Bool {
    state.isDue(at: time(seconds), knowing: epoch ?? mark.epoch)
  }

  private mutating func settle(_ seconds: Int) {
    state.acknowledge(mark)
    state.settle(sentAt: time(seconds), after: state.doubts, pause: pause)
  }

  @Test(.guarantee(.lostRegistrationsAreRenewed))
  mutating func `heartbeats are needed until one has found the mark that it acknowledges`() {
    #expect(isDue(0) && !isConfirmed(0))
    state.acknowledge(mark)
    #expect(isDue(0) && !isConfirmed(0))
    settle(0)
    #expect(!isDue(1) && isConfirmed(1))
  }

  @Test(.guarantee(.lostRegistrationsAreRenewed))
  mutating func `heartbeats are needed again after a doubt, and confirm nothing until then`() {
    settle(0)
    state.doubt()
    #expect(isDue(1) && !isConfirmed(1))
    settle(2)
    #expect(!isDue(3) && isConfirmed(3))
  }

  @Test(.guarantee(.lostRegistrationsAreRenewed))
  mutating func `heartbeats of a space that were sent before a doubt do not end it`() {
    state.acknowledge(mark)
    let doubts = state.doubts
    state.doubt()
    state.settle(sentAt: time(0), after: doubts, pause: pause)
    #expect(isDue(1) && !isConfirmed(1))
  }

  @Test(.guarantee(.lostRegistrationsAreRenewed))
  mutating func `heartbeats of a space are repeated after a pause, without an interruption`() {
    settle(0)
    #expect(!isDue(199) && isDue(200) && isConfirmed(200))
    settle(201)
    // The answer to an earlier one comes late.
    settle(200)
    #expect(!isDue(400) && isDue(401))
  }

  @Test(.guarantee(.lostRegistrationsAreRenewed))
  mutating func `heartbeats of a space confirm nothing once others can forget the registration`() {
    settle(0)
    #expect(HeartbeatTimes.validity == .seconds(270))
    #expect(isConfirmed(269) && !isConfirmed(270))
    #expect(HeartbeatTimes.pause >= .seconds(180) && HeartbeatTimes.pause <= .seconds(240))
    #expect(HeartbeatTimes.patience > HeartbeatTimes.validity + .seconds(20))
  }

  @Test(.guarantee(.lostRegistrationsAreRenewed))
  mutating func `heartbeats of a space are needed after an epoch of this node's own`() {
    settle(0)
    let epoch = TierEpoch(counter: 2, nonce: 9)
    #expect(isDue(1, knowing: epoch) && !isConfirmed(1, knowing: epoch))
    state.acknowledge(TierMark(epoch: epoch))
    state.settle(sentAt: time(1), after: state.doubts, pause: pause)
    #expect(!isDue(2, knowing: epoch) && isConfirmed(2, knowing: epoch))
  }

  @Test(.guarantee(.lostRegistrationsAreRenewed))
  mutating func `heartbeats of a space acknowledge the newest mark`() {
    state.acknowledge(mark)
    state.acknowledge(TierMark(epoch: mark.epoch, fence: 4))
    #expect(state.acknowledged == mark)
    state.acknowledge(TierMark(epoch: mark.epoch, fence: 6))
    #expect(state.acknowledged?.fence == 6)
  }
}

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Heartbeats that requests wait for` {
  @Test(.guarantee(.lostRegistrationsAreRenewed))
  func `a heartbeat that a request has waited for is followed by a look at the registrations`()
    async throws
  {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    var settings = RedisConnection.Settings(server.address)
    settings.commandTimeout = .seconds(60)
    let connection = try RedisConnection(settings) { _ in }
    let tier = Tier(space: "s", schema: "1", node: "a", route: Route(connection))
    let space = RedisSpace(
      tier,
      RemovalDebts(tier, nil) { _ in },
      nearLease: .seconds(600),
      tell: { _ in },
      hurry: {}
    )
    try await space.hear()
    #expect(space.hearing.nodeCount == nil)
    // None of its own is due: it would otherwise be minutes until the next one.
    try await space.beat()
    #expect(space.hearing.nodeCount == 1)
    await connection.close()
  }
}
