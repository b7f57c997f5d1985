import Plexus
import PlexusTesting
import Synchronization
import TestSupport
import Testing

extension `Every order of jobs` {
  @Suite(.serialized)
  struct `Timing, in every order` {
    /// A number that jobs add to.
    private final class Tally: Sendable {
      let count = Atomic(0)
    }

    /// Counts the runs of an action, and detects overlaps.
    private actor Counter {
      private(set) var begun = 0
      private(set) var ended = 0
      private(set) var overlaps = false

      func run() async {
        begun += 1
        if begun - ended > 1 { overlaps = true }
        await hop()
        ended += 1
      }
    }

    @Test func `a touch is answered once, whenever the time comes`() throws {
      try forEveryInterleaving(deviations: 5) {
        let clock = ManualClock()
        let counter = Counter()
        let debouncer = Debouncer(delay: .seconds(1), clock: clock) { await counter.run() }
        let reader = Self.count(debouncer.subscription(), upTo: 1)
        let toucher = Task { debouncer.touch() }
        let advancer = Task {
          await clock.sleepers(1)
          clock.advance(by: .seconds(1))
        }
        await toucher.value
        await advancer.value
        try Wrong.unless(await reader.value == 1, "no firing")
        await debouncer.flush()
        let (begun, ended) = (await counter.begun, await counter.ended)
        // The sleeping task can fire after the flush, which found nothing to wait for.
        try Wrong.unless(begun <= 1 && ended <= begun, "\(begun) runs, \(ended) ended")
        try Wrong.unless(clock.sleeperCount == 0, "somebody still sleeps")
      }
    }

    @Test func `touches at the time of a firing are neither lost nor doubled`() throws {
      try forEveryInterleaving(deviations: 5) {
        let clock = ManualClock()
        let debouncer = Debouncer(delay: .seconds(1), clock: clock)
        let firings = debouncer.subscription(bufferingPolicy: .bufferingNewest(0))
        debouncer.touch()
        let advancer = Task {
          await clock.sleepers(1)
          clock.advance(by: .seconds(1))
        }
        let toucher = Task {
          debouncer.touch()
          await hop()
          debouncer.touch()
        }
        await advancer.value
        await toucher.value
        // The last touch has fired or is pending, and a flush leaves nothing.
        await debouncer.flush()
        try Wrong.unless(1...3 ~= firings.droppedCount, "\(firings.droppedCount) firings")
        let count = firings.droppedCount
        clock.advance(by: .seconds(5))
        await hop()
        try Wrong.unless(firings.droppedCount == count, "a firing that nobody asked for")
        try Wrong.unless(clock.sleeperCount == 0, "somebody still sleeps")
      }
    }

    @Test(.guarantee(.cancelStopsFiring)) func `after cancel nothing is fired, and no task sleeps`()
      throws
    {
      try forEveryInterleaving {
        let clock = ManualClock()
        let counter = Counter()
        let debouncer = Debouncer(delay: .seconds(1), clock: clock) { await counter.run() }
        let firings = debouncer.subscription(bufferingPolicy: .bufferingNewest(0))
        debouncer.touch()
        let advancer = Task { clock.advance(by: .seconds(1)) }
        let canceller = Task {
          debouncer.cancel()
          return (firings.droppedCount, await counter.begun)
        }
        let (fired, _) = await canceller.value
        await advancer.value
        clock.advance(by: .seconds(5))
        await hop()
        await debouncer.flush()
        try Wrong.unless(firings.droppedCount == fired, "fired after it was cancelled")
        try Wrong.unless(await counter.begun <= fired, "an action for nothing")
        try Wrong.unless(clock.sleeperCount == 0, "somebody still sleeps")
      }
    }

    @Test func `an action that has not begun when it is cancelled never begins`() throws {
      try forEveryInterleaving {
        let begun = Tally()
        let debouncer = Debouncer(delay: .zero, clock: ManualClock()) {
          begun.count.add(1, ordering: .relaxed)
          await hop()
        }
        debouncer.touch()
        debouncer.touch()
        let canceller = Task {
          debouncer.cancel()
          debouncer.touch()
          await hop()
          debouncer.cancel()
          return begun.count.load(ordering: .relaxed)
        }
        let count = await canceller.value
        await debouncer.flush()
        await hop()
        let later = begun.count.load(ordering: .relaxed)
        try Wrong.unless(later == count, "\(later - count) actions began later")
        debouncer.touch()
        await debouncer.flush()
        try Wrong.unless(begun.count.load(ordering: .relaxed) == count + 1, "it does not go on")
      }
    }

    @Test(.guarantee(.flushWaitsForTheRun))
    func `flush returns when its action has ended, whatever else fires`() throws {
      try forEveryInterleaving(deviations: 4) {
        let counter = Counter()
        let clock = ManualClock()
        let debouncer = Debouncer(delay: .seconds(1), clock: clock) { await counter.run() }
        let others = [
          Task { debouncer.touch() },
          Task { clock.advance(by: .seconds(1)) },
        ]
        let flush = Task {
          debouncer.touch()
          await debouncer.flush()
          return await counter.ended
        }
        try Wrong.unless(await flush.value >= 1, "the flush did not wait")
        for other in others { await other.value }
        debouncer.touch()
        await debouncer.flush()
        let (begun, ended) = (await counter.begun, await counter.ended)
        try Wrong.unless(begun == ended, "an action runs after the flush")
        try Wrong.unless(await !counter.overlaps, "two at once")
        try Wrong.unless(clock.sleeperCount == 0, "somebody still sleeps")
      }
    }

    @Test func `a cancelled flush returns, and others continue`() throws {
      try forEveryInterleaving(deviations: 4) {
        let counter = Counter()
        let debouncer = Debouncer(delay: .seconds(1), clock: ManualClock()) { await counter.run() }
        debouncer.touch()
        let doomed = Task { await debouncer.flush() }
        let canceller = Task { doomed.cancel() }
        let flush = Task {
          await debouncer.flush()
          return (await counter.begun, await counter.ended)
        }
        let (begun, ended) = await flush.value
        await canceller.value
        await doomed.value
        try Wrong.unless(begun == 1 && ended == 1, "\(begun) runs, \(ended) ended")
      }
    }

    @Test(.guarantee(.releaseCancelsTheFiring))
    func `a debouncer that is released ends everything, whatever it is doing`() throws {
      try forEveryInterleaving(deviations: Effort.deviations(4)) {
        let clock = ManualClock()
        let gate = Gate()
        var debouncer: Debouncer? = Debouncer(delay: .seconds(1), clock: clock) {
          try? await gate.wait()
        }
        weak let weakDebouncer = debouncer
        let reader = debouncer.map { Self.count($0.subscription(), upTo: .max) }
        debouncer?.touch()
        let advancer = Task { clock.advance(by: .seconds(1)) }
        let toucher = Task { [weak debouncer] in debouncer?.touch() }
        await hop()
        debouncer = nil
        // The gate stays closed: only cancellation ends the action.
        let count = await reader?.value ?? -1
        await advancer.value
        await toucher.value
        try Wrong.unless(0...2 ~= count, "\(count) firings")
        try Wrong.unless(weakDebouncer == nil, "it is still there")
        await hop()
        await hop()
        try Wrong.unless(clock.sleeperCount == 0, "somebody still sleeps")
        try Wrong.unless(gate.waiterCount == 0, "the action still waits")
      }
    }

    @Test func `the last value is fired last, in whatever order it is set`() throws {
      try forEveryInterleaving(deviations: 4) {
        let clock = ManualClock()
        let variable = DebouncerVar(0, delay: .seconds(1), clock: clock)
        let values = variable.subscription()
        let setters = [1, 2].map { number in
          Task {
            variable.value = number
            await hop()
            variable.value = number * 10
          }
        }
        let advancer = Task { clock.advance(by: .seconds(1)) }
        for setter in setters { await setter.value }
        await advancer.value
        await variable.flush()
        let last = variable.value
        try Wrong.unless([10, 20].contains(last), "\(last)")
        let reader = Task {
          var read: [Int] = []
          for await value in values {
            read.append(value)
            if value == last { break }
          }
          return read
        }
        let read = await reader.value
        try Wrong.unless(Set(read).count == read.count, "\(read)")
      }
    }

    @Test(.guarantee(.restoredValuesCancelTheFiring))
    func `going back cancels the firing, or comes after it`() throws {
      try forEveryInterleaving {
        let clock = ManualClock()
        let variable = DebouncerVar(0, delay: .seconds(1), clock: clock)
        let values = variable.subscription()
        variable.value = 1
        let advancer = Task { clock.advance(by: .seconds(1)) }
        let setter = Task { variable.value = 0 }
        await advancer.value
        await setter.value
        await hop()
        await variable.flush()
        variable.value = 9
        await variable.flush()
        var read: [Int] = []
        for await value in values {
          read.append(value)
          if value == 9 { break }
        }
        try Wrong.unless(read == [9] || read == [1, 0, 9], "\(read)")
      }
    }

    @Test(.guarantee(.throttlersFireOncePerInterval))
    func `a throttler never fires twice in an interval`() throws {
      try forEveryInterleaving(deviations: 5) {
        let clock = ManualClock()
        let throttler = Throttler(interval: .seconds(1), clock: clock)
        let firings = throttler.subscription(bufferingPolicy: .bufferingNewest(0))
        let touchers = (0..<2).map { _ in
          Task {
            throttler.touch()
            await hop()
            throttler.touch()
          }
        }
        for toucher in touchers { await toucher.value }
        try Wrong.unless(firings.droppedCount == 1, "\(firings.droppedCount) at once")
        let advancer = Task {
          await clock.sleepers(1)
          clock.advance(by: .seconds(1))
        }
        let toucher = Task { throttler.touch() }
        await advancer.value
        await toucher.value
        await hop()
        try Wrong.unless(firings.droppedCount <= 2, "\(firings.droppedCount) in one second")
        await throttler.flush()
        try Wrong.unless(2...3 ~= firings.droppedCount, "\(firings.droppedCount) in the end")
        try Wrong.unless(clock.sleeperCount == 0, "somebody still sleeps")
      }
    }

    @Test func `a debounced sequence withholds nothing, whenever its upstream ends`() throws {
      try forEveryInterleaving(deviations: 4) {
        let clock = ManualClock()
        let messenger = Messenger<Int>()
        let sequence = messenger.subscription().debounced(for: .seconds(1), clock: clock)
        let reader = Task { await sequence.reduce(into: []) { $0.append($1) } }
        let sender = Task {
          messenger.send(1)
          await hop()
          messenger.send(2)
          messenger.finish()
        }
        let advancer = Task { clock.advance(by: .seconds(1)) }
        await sender.value
        await advancer.value
        let read: [Int] = await reader.value
        try Wrong.unless(read == [2] || read == [1, 2], "\(read)")
        try Wrong.unless(clock.sleeperCount == 0, "somebody still sleeps")
      }
    }

    @Test func `a cancelled debounced sequence ends, whatever is pending`() throws {
      try forEveryInterleaving(deviations: 4) {
        let clock = ManualClock()
        let messenger = Messenger<Int>()
        let reader = Task {
          await messenger.subscription().debounced(for: .seconds(1), clock: clock)
            .reduce(into: []) { $0.append($1) }
        }
        let sender = Task { messenger.send(1) }
        let canceller = Task { reader.cancel() }
        let advancer = Task { clock.advance(by: .seconds(1)) }
        let read: [Int] = await reader.value
        await sender.value
        await canceller.value
        await advancer.value
        await hop()
        await hop()
        try Wrong.unless(read.isEmpty || read == [1], "\(read)")
        try Wrong.unless(clock.sleeperCount == 0, "somebody still sleeps")
        try Wrong.unless(messenger.subscriberCount == 0, "somebody still reads")
      }
    }

    /// Counts the elements of a subscription, up to a limit or the end.
    private static func count(
      _ subscription: Subscription<Void>,
      upTo limit: Int
    ) -> Task<Int, Never> {
      Task {
        var count = 0
        for await _ in subscription {
          count += 1
          if count == limit { break }
        }
        return count
      }
    }
  }
}
