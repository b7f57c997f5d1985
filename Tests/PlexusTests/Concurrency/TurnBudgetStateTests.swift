import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce) struct `The budget of a turn on an actor` {
  /// Makes calls until the budget is spent, and returns their number.
  func calls(
    of durations: [Nanoseconds],
    readings: inout Int,
    atMost limit: Int = 1_000_000
  ) -> (count: Int, time: Nanoseconds) {
    var (budget, now, count) = (TurnBudget(), Nanoseconds(7), 0)
    var read = 0
    defer { readings = read }
    while count < limit {
      now += durations[count % durations.count]
      count += 1
      let isSpent = budget.isSpent {
        read += 1
        return now
      }
      if isSpent { break }
    }
    return (count, now - 7)
  }

  @Test(arguments: [10, 40, 1_000] as [Nanoseconds])
  func `the budget of a turn is a millisecond of fast calls, and the clock is seldom read`(
    duration: Nanoseconds
  ) {
    var readings = 0
    let (count, time) = calls(of: [duration], readings: &readings)
    #expect((1_000_000...1_200_000).contains(time))
    #expect(readings <= count / 16 + 8)
  }

  @Test(arguments: [100_000, 400_000, 1_000_000, 3_000_000] as [Nanoseconds])
  func `the budget of a turn on an actor is spent after few slow calls`(duration: Nanoseconds) {
    var readings = 0
    let (count, time) = calls(of: [duration], readings: &readings)
    #expect(time <= max(1_600_000, 5 * duration))
    #expect(count >= 3)
  }

  @Test
  func `the budget of a turn on an actor is spent soon when fast calls are followed by slow ones`()
  {
    var readings = 0
    let durations =
      [Nanoseconds](repeating: 50, count: 2_000) + [Nanoseconds](repeating: 500_000, count: 50)
    let (_, time) = calls(of: durations, readings: &readings)
    #expect(time < 10_000_000)
  }

  @Test func `the budget of a turn on an actor is not spent by a thread that was stopped once`() {
    var (readings, durations) = (0, [Nanoseconds](repeating: 2_000, count: 64))
    durations[9] = 50_000_000
    #expect(calls(of: durations, readings: &readings, atMost: 64).count == 64)
  }
}
