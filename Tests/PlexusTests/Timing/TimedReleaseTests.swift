import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `Releasing a debouncer or throttler` {
  let clock = ManualClock()

  @Test(.guarantee(.releaseCancelsTheFiring), arguments: TimedKind.allCases)
  func `a released debouncer cancels its firing, ends the streams and releases the action`(
    kind: TimedKind
  ) async {
    let census = Census()
    let runs = Log<Int>()
    var subject: TimedSubject? = kind.make(clock: clock) { [parcel = census.parcel()] in
      withExtendedLifetime(parcel) { runs.append(1) }
    }
    weak let object = subject?.object
    let firings = subject?.recorder()
    subject?.touch()
    await clock.sleepers(1)
    subject = nil
    #expect(object == nil)
    #expect(clock.sleeperCount == 0)
    #expect(await firings?.finished().count == 0)
    await census.falls(to: 0)
    clock.advance(by: .seconds(5))
    #expect(runs.count == 0)
  }

  @Test(arguments: TimedKind.allCases)
  func `a released debouncer cancels the task of a running action, and no other run follows`(
    kind: TimedKind
  ) async {
    let census = Census()
    let gate = Gate()
    let ends = Log<Bool>()
    var subject: TimedSubject? = kind.make(clock: clock) { [parcel = census.parcel()] in
      try? await gate.wait()
      withExtendedLifetime(parcel) { ends.append(Task.isCancelled) }
    }
    let firings = subject?.recorder()
    for count in 1...2 {
      subject?.touch()
      await clock.passSecond()
      _ = await firings?.first(count)
    }
    await gate.arrivals(1)
    subject = nil
    #expect(await ends.first(1) == [true])
    await census.falls(to: 0)
    #expect(ends.count == 1)
  }

  @Test(arguments: TimedKind.allCases)
  func `a released debouncer releases its action even if the clock does not wake its sleepers`(
    kind: TimedKind
  ) async {
    let clock = StubbornClock()
    let census = Census()
    var subject: TimedSubject? = kind.make(clock: clock) { [parcel = census.parcel()] in
      withExtendedLifetime(parcel) { _ = Issue.record("it has been released") }
    }
    subject?.touch()
    await clock.sleepers.first(1)
    subject = nil
    #expect(census.living == 0)
    clock.manual.advance(by: .seconds(5))
    for sleeper in clock.sleepers.entries { sleeper.resume() }
  }

  @Test(arguments: TimedKind.allCases)
  func `a weak reference to a debouncer in its action is nil after the release`(
    kind: TimedKind
  ) async {
    let gate = Gate()
    let found = Log<Bool>()
    let reference = WeakReference()
    var subject: TimedSubject? = kind.make(clock: clock) {
      try? await gate.wait()
      found.append(reference.object != nil)
    }
    reference.object = subject?.object
    subject?.touch()
    await clock.passSecond()
    await gate.arrivals(1)
    subject = nil
    #expect(await found.first(1) == [false])
  }

  @Test(arguments: TimedKind.allCases)
  func `a debouncer or throttler can be released during touches from many tasks`(
    kind: TimedKind
  ) async {
    for _ in 0..<100 {
      let subject = kind.make(clock: clock) {}
      await withTaskGroup { group in
        for _ in 0..<4 {
          group.addTask {
            subject.touch()
            subject.cancel()
            subject.touch()
          }
        }
      }
    }
    #expect(clock.sleeperCount == 0)
  }

  @Test func `a caller of flush holds the debouncer until it returns`() async {
    let gate = Gate()
    let ends = Log<Bool>()
    var debouncer: Debouncer? = Debouncer(delay: .seconds(1), clock: clock) {
      try? await gate.wait()
      ends.append(Task.isCancelled)
    }
    debouncer?.touch()
    let flush = Task { [debouncer] in await debouncer?.flush() }
    debouncer = nil
    await gate.arrivals(1)
    gate.open()
    await flush.value
    #expect(ends.entries == [false])
  }

  @Test func `an action can touch another debouncer during its release`() async {
    let other = Debouncer(delay: .zero, clock: clock)
    let firings = Recorder(other.subscription())
    let census = Census()
    do {
      let parcel = census.parcel { other.touch() }
      let debouncer = Debouncer(delay: .seconds(1), clock: clock) {
        withExtendedLifetime(parcel) {}
      }
      debouncer.touch()
    }
    await census.falls(to: 0)
    #expect(await firings.first(1).count == 1)
  }
}

/// A weak reference that is set later.
private final class WeakReference: Sendable {
  private struct Box {
    weak var object: AnyObject?
  }

  private let box = Guarded(Box())

  var object: AnyObject? {
    get { box.withLock { $0.object } }
    set { box.withLock { $0.object = newValue } }
  }
}
