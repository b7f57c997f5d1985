import PlexusTesting
import Testing

@testable import PlexusRedis

@Suite struct `Leases of other nodes` {
  private let start = ManualClock().now
  private var state = LeaseHoldersState<ManualClock.Instant>()

  @Test mutating func `end if they are not renewed for their time`() {
    let lease = (token: UInt64(1), renewal: Int64(0))
    #expect(state.note(lease, of: "k", lasting: .seconds(3), at: start) == .seconds(3))
    let later = start.advanced(by: .seconds(2))
    #expect(state.note(lease, of: "k", lasting: .seconds(3), at: later) == .seconds(1))
    #expect(state.lease(of: "k", silentFor: .seconds(3), at: later) == nil)
    let end = start.advanced(by: .seconds(3))
    #expect(state.lease(of: "k", silentFor: .seconds(3), at: end)! == (1, 0))
    #expect(state.lease(of: "other", silentFor: .seconds(3), at: end) == nil)
    state.end("k")
    #expect(state.lease(of: "k", silentFor: .seconds(3), at: end) == nil)
  }

  @Test(arguments: [(1, 7), (2, 0)] as [(UInt64, Int64)])
  mutating func `begin again with each renewal and each holder`(token: UInt64, renewal: Int64) {
    _ = state.note((1, 0), of: "k", lasting: .seconds(3), at: start)
    let later = start.advanced(by: .seconds(2))
    #expect(
      state.note((token, renewal), of: "k", lasting: .seconds(3), at: later) == .seconds(3)
    )
    let end = start.advanced(by: .seconds(4))
    #expect(state.lease(of: "k", silentFor: .seconds(3), at: end) == nil)
  }

  @Test mutating func `are forgotten if they are many and old`() {
    for number in 0..<20_000 {
      let time = start.advanced(by: .milliseconds(number))
      _ = state.note((1, 0), of: "\(number)", lasting: .milliseconds(10), at: time)
    }
    #expect(state.count <= 4_097)
  }
}
