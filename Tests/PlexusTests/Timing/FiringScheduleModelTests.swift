import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `Firing schedule model` {
  @Test(arguments: 1...200)
  func `the fast path of a touch has the same result as the slow path`(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let leading = Bool.random(using: &random)
    let delay = Duration.seconds(Int.random(in: 0...6, using: &random))
    let maximum = Bool.random(using: &random) ? nil : Int.random(in: 0...9, using: &random)
    let debounce = Debouncer.ScheduleState(
      delay: delay,
      maximumDelay: maximum.map { .seconds($0) },
      leading: leading
    )
    let throttle = Throttler.ScheduleState(
      interval: delay,
      leading: leading,
      trailing: Bool.random(using: &random)
    )
    try compare(debounce, &random)
    try compare(throttle, &random)
  }

  @Test(arguments: 1...100, [false, true])
  func `a throttler fires after every touch, and at most once an interval`(
    seed: UInt64,
    leading: Bool
  ) throws {
    var random = SeededRandom(seed: seed)
    let interval = Int.random(in: 1...6, using: &random)
    var state = Throttler.ScheduleState(
      interval: .seconds(interval),
      leading: leading,
      trailing: true
    )
    var lastFiring: Int?
    var unanswered: Int?
    for now in 0..<300 {
      var firings = 0
      if state.elapse(at: .seconds(now)) {
        try #require(unanswered != nil, "it fires without a touch")
        (firings, unanswered) = (1, nil)
      }
      if Int.random(in: 0..<3, using: &random) == 0 {
        let isFree = firings == 0 && lastFiring.map { now - $0 >= interval } ?? true
        try #require(state.touch(at: .seconds(now)) == (leading && isFree))
        if leading, isFree { firings += 1 } else { unanswered = unanswered ?? now }
      }
      try #require(firings <= 1)
      if firings == 1 {
        if let lastFiring { try #require(now - lastFiring >= interval) }
        lastFiring = now
      }
      if let unanswered { try #require(now - unanswered < interval) }
      try #require((state.deadline == nil) == (unanswered == nil))
    }
  }

  @Test(arguments: 1...100, [false, true])
  func `a debouncer waits for a quiet time, or for the maximum`(
    seed: UInt64,
    leading: Bool
  ) throws {
    var random = SeededRandom(seed: seed)
    let delay = Int.random(in: 1...6, using: &random)
    let maximum = Int.random(in: 1...15, using: &random)
    var state = Debouncer.ScheduleState(
      delay: .seconds(delay),
      maximumDelay: .seconds(maximum),
      leading: leading
    )
    var lastTouch: Int?
    var firstUnanswered: Int?
    for now in 0..<300 {
      let elapses = state.elapse(at: .seconds(now))
      let isDue = firstUnanswered.map { now - (lastTouch ?? now) >= delay || now - $0 >= maximum }
      try #require(elapses == (isDue ?? false))
      if elapses { firstUnanswered = nil }
      guard Int.random(in: 0..<(now / 100 + 2), using: &random) == 0 else { continue }
      let isQuiet = lastTouch.map { now - $0 >= delay } ?? true
      let leads = leading && isQuiet && firstUnanswered == nil
      try #require(state.touch(at: .seconds(now)) == leads)
      lastTouch = now
      if !leads { firstUnanswered = firstUnanswered ?? now }
      try #require((state.deadline == nil) == (firstUnanswered == nil))
    }
  }

  private func compare(_ start: some FiringSchedule, _ random: inout SeededRandom) throws {
    var (short, long) = (start, start)
    var now = 0
    for _ in 0..<200 {
      now += Int.random(in: 0...3, using: &random)
      let time = Duration.seconds(now)
      switch Int.random(in: 0..<12, using: &random) {
      case 0: try #require(short.expire(at: time) == long.expire(at: time))
      case 1:
        short.cancel()
        long.cancel()
      case 2: try #require(short.elapse(at: time) == long.elapse(at: time))
      case 3:
        now -= Int.random(in: 0...3, using: &random)
        short.restart(at: .seconds(now))
        long.restart(at: .seconds(now))
      default:
        var firings = [0, 0]
        if !short.postpone(at: time) {
          if short.elapse(at: time) { firings[0] += 1 }
          if short.touch(at: time) { firings[0] += 1 }
        }
        if long.elapse(at: time) { firings[1] += 1 }
        if long.touch(at: time) { firings[1] += 1 }
        try #require(firings[0] == firings[1])
      }
      try #require(short.deadline == long.deadline)
    }
  }
}
