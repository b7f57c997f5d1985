import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `A retry policy` {
  @Test func `a retry policy waits twice as long each time, up to the cap`() {
    let policy = RetryPolicy.exponential(
      attempts: 6,
      base: .milliseconds(100),
      cap: .seconds(1),
      jitter: 0
    )
    let waits = (1...6).map { policy.wait(after: $0, chance: 1) }
    #expect(
      waits == [
        .milliseconds(100), .milliseconds(200), .milliseconds(400), .milliseconds(800),
        .seconds(1), nil,
      ]
    )
  }

  @Test func `a policy that is never to retry does not wait`() {
    #expect(RetryPolicy.never.wait(after: 1, chance: 0) == nil)
    #expect(RetryPolicy.never.attempts == 1)
  }

  @Test
  func `a retry policy never waits less than advised, whatever its jitter, nor tries more often`() {
    let policy = RetryPolicy.exponential(
      attempts: 3,
      base: .seconds(10),
      cap: .seconds(10),
      jitter: 1
    )
    for chance in stride(from: -1.0, through: 1, by: 0.25) {
      for advice in [-5, 0, 3, 10, 19, 500] {
        let wait = policy.wait(after: 1, chance: chance, advice: .seconds(advice))
        let own = policy.wait(after: 1, chance: chance)
        #expect(wait == max(.seconds(advice), own ?? .zero))
      }
      #expect(policy.wait(after: 3, chance: chance, advice: .seconds(1)) == nil)
    }
    #expect(RetryPolicy.never.wait(after: 1, chance: 0, advice: .seconds(1)) == nil)
  }

  @Test(.guarantee(.retryDelaysDouble))
  func `a retry policy makes each wait longer or shorter by its jitter at most`() {
    let policy = RetryPolicy.exponential(
      attempts: 2,
      base: .seconds(10),
      cap: .seconds(10),
      jitter: 0.2
    )
    #expect(policy.wait(after: 1, chance: -1) == .seconds(8))
    #expect(policy.wait(after: 1, chance: 0) == .seconds(10))
    #expect(policy.wait(after: 1, chance: 1) == .seconds(12))
  }

  @Test func `a retry policy does not overflow, however many attempts there are`() {
    let longest = Duration.seconds(Int64.max)
    let policy = RetryPolicy.exponential(
      attempts: .max,
      base: .nanoseconds(1),
      cap: longest,
      jitter: 0
    )
    #expect(policy.wait(after: 1_000, chance: 0) == longest)
    #expect(policy.wait(after: .max - 1, chance: 0) == longest)
    let idle = RetryPolicy.exponential(attempts: .max, base: .zero, cap: longest, jitter: 0.5)
    #expect(idle.wait(after: .max - 1, chance: 1) == .zero)
    let capped = RetryPolicy.exponential(attempts: 3, base: .seconds(9), cap: .zero, jitter: 0)
    #expect(capped.wait(after: 1, chance: 0) == .zero)
  }
}
