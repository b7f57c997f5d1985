import TestSupport
import Testing

@testable import PlexusNetworking

/// Histories of requests, rejections and sign-ins against what an observer believes.
@Suite struct `The state of tokens against a model` {
  /// A request on its way with a token, or waiting for one.
  private struct Sent {
    var token: Int
    var turn: TokenState.Turn
    var sends = 1
  }

  private struct World {
    var state = TokenState()
    /// The present token, and the newest one that the origin has revoked.
    var token = 0
    var revoked = -1
    /// Whether the last refresh has not succeeded yet.
    var isRefreshing = false
    var refreshed: Set<Int> = []
    var sent: [Sent] = []
    /// The requests that were rejected, and are sent once more.
    var rejected: [Sent] = []
    var hasToken = true
    var told = 0
    var history: [String] = []

    mutating func send() throws {
      let earlier = rejected.popLast()
      let turn = state.turn
      try #require(turn.needsNewer == isRefreshing, "after \(history)")
      if isRefreshing { (token, isRefreshing) = (token + 1, false) }
      state.obtain(turn)
      hasToken = true
      sent.append(Sent(token: token, turn: turn, sends: (earlier?.sends ?? 0) + 1))
    }

    mutating func answer(_ index: Int) throws {
      let request = sent.remove(at: index)
      guard request.token <= revoked, request.sends == 1 else { return }
      if state.reject(request.turn) {
        try #require(request.token == token, "an old token was refreshed after \(history)")
        try #require(refreshed.insert(token).inserted, "refreshed twice after \(history)")
        isRefreshing = true
      } else {
        try #require(request.token < token || isRefreshing, "not refreshed after \(history)")
      }
      rejected.append(request)
    }

    mutating func fail() throws {
      let turn = state.turn
      let tells = state.end(turn)
      try #require(tells == hasToken, "told \(tells) after \(history)")
      if tells { told += 1 }
      hasToken = false
    }
  }

  @Test func `no history refreshes a token twice, or reports a sign-out twice`() throws {
    for seed in 0..<2_000 as Range<UInt64> {
      var (world, random) = (World(), SeededRandom(seed: seed))
      for _ in 0..<60 {
        switch Int.random(in: 0..<8, using: &random) {
        case 0...2:
          world.history.append("send")
          try world.send()
        case 3...5 where !world.sent.isEmpty:
          let index = Int.random(in: 0..<world.sent.count, using: &random)
          world.history.append("answer \(world.sent[index].token)")
          try world.answer(index)
        case 6:
          world.history.append("revoke")
          world.revoked = world.token
        case 7:
          world.history.append("fail")
          try world.fail()
        default: break
        }
      }
    }
  }

  @Test func `a token that arrives for an older turn does not end the wait for a newer one`() {
    var state = TokenState()
    let first = state.turn
    let isFirst = state.reject(first)
    let second = state.turn
    state.obtain(second)
    let isSecond = state.reject(second)
    state.obtain(first)
    state.obtain(second)
    #expect(isFirst && isSecond && state.turn.needsNewer)
    let repeated = [state.reject(first), state.reject(second)]
    #expect(repeated == [false, false])
    let ends = [state.end(first), state.end(second), state.end(state.turn), state.end(state.turn)]
    #expect(ends == [false, false, true, false])
  }
}
