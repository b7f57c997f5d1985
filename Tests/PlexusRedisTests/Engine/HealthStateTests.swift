import TestSupport
import Testing

@testable import PlexusRedis

struct `The health of several connections` {
  private let away = RedisConnectionError.unreachable(
    address: .tcp(host: "a", port: 1),
    reason: "connection refused"
  )
  private let refused = RedisConnectionError.refused(
    address: .tcp(host: "b", port: 1),
    RedisError("WRONGPASS invalid username-password pair or user is disabled.".utf8)
  )

  @Test(.guarantee(.clusterFailuresAreInTheHealth))
  func `the health names first what only a change of the settings ends`() {
    var state = HealthState()
    state.disconnect(away, on: 0)
    #expect(state.failure == away)
    state.disconnect(refused, on: 1)
    #expect(state.failure == refused)
    state.note(nil, on: 1)
    #expect(state.failure == away)
    state.connect(on: 0)
    #expect(state.health == .connected)
    state.note(away, on: 2)
    #expect(state.failure == away)
  }
}
