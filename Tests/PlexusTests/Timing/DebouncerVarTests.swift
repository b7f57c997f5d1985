import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A debounced variable` {
  let clock = ManualClock()

  @Test func `a debounced variable fires the last of several values, and runs its action with it`()
    async
  {
    let actions = Log<String>()
    let variable = DebouncerVar("", delay: .seconds(1), clock: clock) { actions.append($0) }
    let values = Recorder(variable.subscription())
    for text in ["s", "sw", "swift"] {
      variable.value = text
      #expect(variable.value == text)
    }
    await clock.passSecond()
    #expect(await values.first(1) == ["swift"])
    #expect(await actions.first(1) == ["swift"])
    variable.value = "plexus"
    await clock.passSecond()
    #expect(await values.first(2) == ["swift", "plexus"])
    await variable.flush()
    #expect(actions.entries == ["swift", "plexus"])
  }

  @Test(.guarantee(.equalValuesDoNotPostpone))
  func `setting a debounced variable to an equal value does nothing, and does not postpone`() async
  {
    let variable = DebouncerVar(0, delay: .seconds(1), clock: clock)
    let values = Recorder(variable.subscription())
    variable.value = 0
    #expect(clock.sleeperCount == 0)
    variable.value = 1
    await clock.sleepers(1)
    clock.advance(by: .milliseconds(900))
    variable.value = 1
    clock.advance(by: .milliseconds(100))
    #expect(await values.first(1) == [1])
    variable.value = 1
    await variable.flush()
    #expect(values.elements == [1])
    #expect(clock.sleeperCount == 0)
  }

  @Test(.guarantee(.equalValuesDoNotPostpone), .guarantee(.restoredValuesCancelTheFiring))
  func `the initial value counts as fired, and restoring the last fired value cancels`() async {
    let variable = DebouncerVar(0, delay: .seconds(1), clock: clock)
    let values = Recorder(variable.subscription())
    variable.value = 1
    await clock.sleepers(1)
    variable.value = 0
    #expect(clock.sleeperCount == 0)
    variable.value = 2
    await clock.passSecond()
    #expect(await values.first(1) == [2])
    variable.value = 3
    await clock.sleepers(1)
    variable.value = 2
    #expect(clock.sleeperCount == 0)
    await variable.flush()
    #expect(values.elements == [2])
    #expect(variable.value == 2)
  }

  @Test func `restoring the last fired value after the deadline is a change like any other`() async
  {
    let variable = DebouncerVar(0, delay: .seconds(1), clock: clock)
    let values = variable.subscription()
    variable.value = 1
    // The deadline has passed, whether the sleeping task has run or not.
    clock.advance(by: .seconds(1))
    variable.value = 0
    #expect(await values.first(1) == [1])
    await clock.passSecond()
    #expect(await values.first(1) == [0])
  }

  @Test func `restoring the last fired value counts as a touch`() async {
    let variable = DebouncerVar(0, delay: .seconds(1), leading: true, clock: clock)
    let values = Recorder(variable.subscription())
    variable.value = 1
    variable.value = 2
    clock.advance(by: .milliseconds(500))
    variable.value = 1
    clock.advance(by: .milliseconds(900))
    variable.value = 3
    await clock.sleepers(1)
    #expect(clock.nextDeadline == ManualClock.Instant(offset: .milliseconds(2400)))
    clock.advance(by: .seconds(1))
    #expect(await values.first(2) == [1, 3])
  }

  @Test(.guarantee(.leadingFiresTheFirstTouch))
  func `a leading debounced variable fires at the first change, and again after another one`() async
  {
    let variable = DebouncerVar(0, delay: .seconds(1), leading: true, clock: clock)
    let values = variable.subscription()
    variable.value = 1
    #expect(await values.first(1) == [1])
    #expect(clock.sleeperCount == 0)
    variable.value = 2
    await clock.passSecond()
    #expect(await values.first(1) == [2])
  }

  @Test func `a debounced variable fires at the maximum delay while it keeps changing`() async {
    let variable = DebouncerVar(
      0,
      delay: .seconds(1),
      maximumDelay: .milliseconds(1500),
      clock: clock
    )
    let values = Recorder(variable.subscription())
    for number in 1...3 {
      variable.value = number
      await clock.sleepers(1)
      clock.advance(by: .milliseconds(500))
    }
    #expect(await values.first(1) == [3])
  }

  @Test func `a touch of a debounced variable fires the value though it has not changed`() async {
    let variable = DebouncerVar(7, delay: .seconds(1), clock: clock)
    let values = Recorder(variable.subscription())
    variable.touch()
    await clock.passSecond()
    #expect(await values.first(1) == [7])
  }

  @Test(.guarantee(.restoredValuesCancelTheFiring))
  func `cancelling a debounced variable keeps the value`() async {
    let variable = DebouncerVar(0, delay: .seconds(1), clock: clock)
    let values = Recorder(variable.subscription())
    variable.value = 1
    await clock.sleepers(1)
    variable.cancel()
    #expect(clock.sleeperCount == 0)
    #expect(variable.value == 1)
    variable.value = 0
    await variable.flush()
    #expect(values.elements.isEmpty, "0 was fired last, in the beginning")
    variable.value = 1
    await clock.passSecond()
    #expect(await values.first(1) == [1])
  }

  @Test func `flushing a debounced variable fires the value that it has now`() async {
    let actions = Log<Int>()
    let variable = DebouncerVar(0, delay: .seconds(1), clock: clock) { actions.append($0) }
    variable.value = 1
    variable.value = 2
    await variable.flush()
    #expect(actions.entries == [2])
    #expect(clock.sleeperCount == 0)
    await variable.flush()
    #expect(actions.entries == [2])
  }

  @Test func `the action of a debounced variable can set the value`() async {
    let actions = Log<Int>()
    let reference = Guarded<DebouncerVar<Int>?>(nil)
    let variable = DebouncerVar(0, delay: .seconds(1), clock: clock) { value in
      actions.append(value)
      if value < 3 { reference.withLock { $0 }?.value += 1 }
    }
    reference.withLock { $0 = variable }
    variable.value = 1
    for count in 1...3 {
      await clock.passSecond()
      await actions.first(count)
    }
    await variable.flush()
    #expect(actions.entries == [1, 2, 3])
    reference.withLock { $0 = nil }
  }

  @Test
  func `values are sent while an action runs, and it runs once more with the last one`()
    async
  {
    let gate = Gate()
    let actions = Log<Int>()
    let variable = DebouncerVar(0, delay: .zero, clock: clock) { value in
      actions.append(value)
      try? await gate.wait()
    }
    let values = Recorder(variable.subscription())
    variable.value = 1
    await gate.arrivals(1)
    for number in 2...9 { variable.value = number }
    #expect(await values.first(9) == Array(1...9))
    gate.open()
    await variable.flush()
    #expect(actions.entries == [1, 9])
  }

  @Test(.guarantee(.noLockWhileUserCodeRuns))
  func `the equality of values can use their debounced variable`() async {
    let reference = Guarded<DebouncerVar<Nosy>?>(nil)
    let asked = Guarded(0)
    let ask: @Sendable () -> Void = {
      asked.countUp()
      _ = reference.withLock { $0 }?.value
    }
    let variable = DebouncerVar(Nosy(0, ask), delay: .seconds(1), clock: clock)
    reference.withLock { $0 = variable }
    variable.value = Nosy(1, ask)
    variable.value = Nosy(0, ask)
    #expect(clock.sleeperCount == 0)
    #expect(asked.withLock { $0 } >= 3)
    reference.withLock { $0 = nil }
  }

  @Test func `a value fired during a comparison is the last fired value`() async {
    let reference = Guarded<DebouncerVar<Nosy>?>(nil)
    let isOver = Guarded(false)
    let variable = DebouncerVar(Nosy(0), delay: .seconds(1), clock: clock)
    reference.withLock { $0 = variable }
    let values = variable.subscription()
    variable.value = Nosy(1)
    // While 0 is compared with the last fired value, 1 is fired and touched once more.
    let meddle: @Sendable () -> Void = { [clock] in
      guard !wasSet(isOver) else { return }
      clock.advance(by: .seconds(1))
      reference.withLock { $0 }?.touch()
    }
    variable.value = Nosy(0, meddle)
    await variable.flush()
    #expect(await values.first(2) == [Nosy(1), Nosy(0)])
    reference.withLock { $0 = nil }
  }

  @Test func `a value that has been set while it is compared does not postpone`() async {
    let reference = Guarded<DebouncerVar<Nosy>?>(nil)
    let isOver = Guarded(false)
    let variable = DebouncerVar(Nosy(0), delay: .seconds(1), clock: clock)
    reference.withLock { $0 = variable }
    let meddle: @Sendable () -> Void = { [clock] in
      guard !wasSet(isOver) else { return }
      reference.withLock { $0 }?.value = Nosy(1)
      clock.advance(by: .milliseconds(500))
    }
    variable.value = Nosy(1, meddle)
    clock.advance(by: .milliseconds(500))
    let values = variable.subscription(bufferingPolicy: .bufferingNewest(0))
    // A firing that was due before a touch happens immediately.
    variable.touch()
    #expect(values.droppedCount == 1)
    variable.cancel()
    reference.withLock { $0 = nil }
  }

  @Test func `values can use their debounced variable during their release`() async {
    let census = Census()
    let reference = Guarded<DebouncerVar<Held>?>(nil)
    do {
      let variable = DebouncerVar(Held(census.parcel(0)), delay: .seconds(1), clock: clock) { _ in }
      reference.withLock { $0 = variable }
      for number in 1...20 {
        variable.value = Held(
          census.parcel(number) {
            let variable = reference.withLock { $0 }
            _ = variable?.value
            variable?.touch()
          }
        )
        if number.isMultiple(of: 3) { await variable.flush() }
      }
      reference.withLock { $0 = nil }
    }
    await census.falls(to: 0)
    #expect(census.living == 0)
  }
}

/// Sets a flag, and returns whether it was set before.
private func wasSet(_ flag: Guarded<Bool>) -> Bool {
  flag.withLock { flag in
    defer { flag = true }
    return flag
  }
}

/// A number that calls a closure when it is compared.
private struct Nosy: Equatable, Sendable {
  let number: Int
  let onComparison: @Sendable () -> Void

  init(_ number: Int, _ onComparison: @escaping @Sendable () -> Void = {}) {
    self.number = number
    self.onComparison = onComparison
  }

  static func == (left: Nosy, right: Nosy) -> Bool {
    left.onComparison()
    right.onComparison()
    return left.number == right.number
  }
}

/// A value that calls a closure on its release.
private struct Held: Equatable, Sendable {
  let parcel: Parcel

  init(_ parcel: Parcel) {
    self.parcel = parcel
  }

  static func == (left: Held, right: Held) -> Bool { left.parcel === right.parcel }
}
