import AsyncAlgorithms
import Plexus
import PlexusTesting

/// Rows for touching a debouncer or throttler, and for sleeping on a manual clock.
func timingComparisons() -> [Comparison] {
  [
    Comparison(
      name: "timing/touch",
      peer: "an event of AsyncAlgorithms' debounce",
      goal: 20,
      ours: {
        let debouncer = Debouncer(delay: .seconds(60))
        return await nanoseconds(per: touchCount) {
          for _ in 0..<touchCount { debouncer.touch() }
        }
      },
      theirs: { await debounceOfAsyncAlgorithms() }
    ),
    Comparison(
      name: "timing/touch a throttler",
      peer: "an event of AsyncAlgorithms' debounce",
      goal: 20,
      ours: {
        let throttler = Throttler(interval: .seconds(60))
        return await nanoseconds(per: touchCount) {
          for _ in 0..<touchCount { throttler.touch() }
        }
      },
      theirs: { await debounceOfAsyncAlgorithms() }
    ),
    Comparison(
      name: "timing/set a variable",
      peer: "an event of AsyncAlgorithms' debounce",
      goal: 1,
      ours: {
        let variable = DebouncerVar(0, delay: .seconds(60))
        return await nanoseconds(per: touchCount) {
          for number in 1...touchCount { variable.value = number }
        }
      },
      theirs: { await debounceOfAsyncAlgorithms() }
    ),
    Comparison(
      name: "timing/debounced(for:)",
      peer: "AsyncAlgorithms' debounce",
      goal: 1,
      ours: {
        let events = filledStream()
        return await nanoseconds(per: eventCount) {
          for await _ in events.debounced(for: .seconds(60)) {}
        }
      },
      theirs: { await debounceOfAsyncAlgorithms() }
    ),
    Comparison(
      name: "timing/1,000,000 sleepers",
      peer: "ContinuousClock, as many of 1 ms",
      goal: 1,
      ours: {
        let clock = ManualClock()
        return await nanoseconds(per: sleeperCount) {
          // No task group: the time to leave a group grows with the number of its tasks.
          let sleepers = (0..<sleeperCount).map { number in
            Task { try? await clock.sleep(for: .nanoseconds(1 + number % 1_000)) }
          }
          await clock.sleepers(sleeperCount)
          clock.run()
          for sleeper in sleepers { await sleeper.value }
        }
      },
      theirs: {
        await nanoseconds(per: sleeperCount) {
          let sleepers = (0..<sleeperCount).map { _ in
            Task { try? await ContinuousClock().sleep(for: .milliseconds(1)) }
          }
          for sleeper in sleepers { await sleeper.value }
        }
      }
    ),
  ]
}

private let touchCount = 1_000_000
private let eventCount = 20_000
private let sleeperCount = 1_000_000

/// A stream that has received all its events and ended.
private func filledStream() -> AsyncStream<Int> {
  let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
  for number in 0..<eventCount { continuation.yield(number) }
  continuation.finish()
  return stream
}

private func debounceOfAsyncAlgorithms() async -> Double {
  let events = filledStream()
  return await nanoseconds(per: eventCount) {
    for await _ in events.debounce(for: .seconds(60), clock: .continuous) {}
  }
}
