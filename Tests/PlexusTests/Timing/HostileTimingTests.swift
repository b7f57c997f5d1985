import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Debouncers and throttlers under misuse` {
  let clock = ManualClock()

  @Test func `an optional variable fires nil like any other value`() async {
    let variable = DebouncerVar<Int?>(nil, delay: .seconds(1), clock: clock)
    let recorder = Recorder(variable.subscription())
    variable.value = nil
    #expect(clock.sleeperCount == 0, "an equal value does nothing")
    variable.value = 1
    await clock.passSecond()
    #expect(await recorder.first(1) == [1])
    variable.value = nil
    await clock.passSecond()
    #expect(await recorder.first(2) == [1, nil])
    #expect(variable.value == nil)
  }

  @Test func `a value that is not equal to itself is a change every time`() async {
    let variable = DebouncerVar(Double.nan, delay: .seconds(1), clock: clock)
    let recorder = Recorder(variable.subscription())
    variable.value = .nan
    await clock.sleepers(1)
    clock.advance(by: .milliseconds(600))
    variable.value = .nan
    clock.advance(by: .milliseconds(600))
    #expect(recorder.elements.isEmpty, "the second one postpones")
    await clock.sleepers(1)
    clock.advance(by: .milliseconds(400))
    #expect(await recorder.first(1).count == 1)
  }

  @Test func `restoring the last fired value also revokes a touch`() async {
    let variable = DebouncerVar(0, delay: .seconds(1), clock: clock)
    let recorder = Recorder(variable.subscription())
    variable.touch()
    variable.value = 1
    variable.value = 0
    #expect(clock.sleeperCount == 0)
    await variable.flush()
    variable.value = 2
    await variable.flush()
    #expect(await recorder.first(1) == [2])
  }

  @Test func `a sequence of optional elements ends with its upstream, not before`() async {
    let (stream, upstream) = AsyncStream.makeStream(of: Int?.self)
    let debounced = Recorder(stream.debounced(for: .zero, clock: clock))
    for element in [nil, 1, nil] as [Int?] { upstream.yield(element) }
    #expect(await debounced.first(3) == [nil, 1, nil])
    upstream.finish()
    #expect(await debounced.finished() == [nil, 1, nil])
  }

  @Test(.guarantee(.nestedElementsFollowTheCurrentOne))
  func `a handler that touches is called again afterwards, however often`() async {
    let count = 20_000
    let calls = Log<Int>()
    let depth = Guarded(0)
    let debouncer = Debouncer(delay: .zero, clock: clock)
    let token = debouncer.observe { [weak debouncer] in
      let isNested = depth.withLock { depth in
        depth += 1
        return depth > 1
      }
      if isNested { Issue.record("one call within another") }
      calls.append(1)
      if calls.count < count { debouncer?.touch() }
      depth.withLock { $0 -= 1 }
    }
    debouncer.touch()
    await calls.first(count)
    token.cancel()
  }

  @Test func `a handler, an action and a flush can release the last reference to a debouncer`()
    async
  {
    for leaving in 0..<3 {
      let census = Census()
      let holder = Guarded<Debouncer?>(nil)
      let release: @Sendable () -> Void = {
        let last = holder.withLock { $0.take() }
        withExtendedLifetime(last) {}
      }
      let debouncer = Guarded<Debouncer?>(
        Debouncer(delay: .seconds(1), clock: clock) { [parcel = census.parcel()] in
          withExtendedLifetime(parcel) { if leaving == 0 { release() } }
        }
      )
      holder.withLock { $0 = debouncer.withLock { $0.take() } }
      let stream = holder.withLock { $0?.subscription() }
      let token = holder.withLock { $0 }?.observe { if leaving == 1 { release() } }
      holder.withLock { $0 }?.touch()
      if leaving == 2 {
        let flush = Task {
          let own = holder.withLock { $0.take() }
          await own?.flush()
        }
        await flush.value
      } else {
        await clock.passSecond()
      }
      if let stream { #expect(await Recorder(stream).finished().count == 1) }
      await census.falls(to: 0)
      #expect(clock.sleeperCount == 0)
      token?.cancel()
    }
  }

  @Test(arguments: [Duration.zero, .seconds(Int64.min), .seconds(Int64.max), .nanoseconds(1)])
  func `any combination of durations is accepted by debouncers and throttlers`(
    first: Duration
  ) async {
    for second in [Duration.zero, .seconds(Int64.min), .seconds(Int64.max), .nanoseconds(-1)] {
      for leading in [false, true] {
        let debouncer = Debouncer(
          delay: first,
          leading: leading,
          maximumDelay: second,
          clock: clock
        )
        let throttler = Throttler(interval: first, leading: leading, clock: clock)
        for _ in 1...3 {
          debouncer.touch()
          throttler.touch()
          clock.advance(by: .seconds(1 << 40))
        }
        await debouncer.flush()
        await throttler.flush()
      }
    }
    #expect(clock.sleeperCount == 0)
  }

  @MainActor @Test func `a flush and an iteration resume on the actor of their caller, in order`()
    async
  {
    let debouncer = Debouncer(delay: .seconds(1), clock: clock) {}
    let order = Log<Int>()
    let (stream, upstream) = AsyncStream.makeStream(of: Int.self)
    for number in 1...3 { upstream.yield(number) }
    upstream.finish()
    for await element in stream.throttled(for: .zero, clock: clock) {
      MainActor.assertIsolated()
      order.append(element)
      debouncer.touch()
      await debouncer.flush()
      MainActor.assertIsolated()
    }
    #expect(order.count == 3)
  }

  @Test func `ten thousand callers wait in flush, leave or stay, and the action runs once`() async {
    let gate = Gate()
    let debouncer = Debouncer(delay: .seconds(1), clock: clock) { try? await gate.wait() }
    debouncer.touch()
    let flushes = (0..<10_000).map { _ in Task { await debouncer.flush() } }
    await gate.arrivals(1)
    for (number, flush) in flushes.enumerated() where number.isMultiple(of: 2) { flush.cancel() }
    for (number, flush) in flushes.enumerated() where number.isMultiple(of: 2) { await flush.value }
    gate.open()
    for flush in flushes { await flush.value }
    #expect(gate.arrivalCount == 1)
  }
}
