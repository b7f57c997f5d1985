import PlexusTesting
import TestSupport
import Testing

@testable import Plexus

@Suite(.fewAtOnce)
struct `The watch of a key in a shared tier` {
  private let clock = ManualClock()
  private let watch = SharedWatch("k", of: Flight(), generation: 0)

  @Test(.guarantee(.announcementsWakeNodes))
  func `a change between a look at a shared tier and the wait for it ends the wait`() async {
    watch.begin()
    watch.note()
    await watch.wait(atMost: .seconds(60), on: clock)
    #expect(watch.hasChanged)
  }

  @Test(.guarantee(.announcementsWakeNodes))
  func `a change in a shared tier ends a wait in progress`() async {
    watch.begin()
    async let end: Void = watch.wait(atMost: .seconds(60), on: clock)
    await clock.sleepers(1)
    watch.note()
    await end
    #expect(clock.now.offset == .zero)
  }

  @Test func `a flight that watches a shared tier fetches until it looks again`() {
    watch.begin()
    #expect(!watch.isSettled)
    #expect(!watch.settle())
    watch.note()
    #expect(watch.isSettled && watch.hasChanged)
    watch.begin()
    #expect(!watch.isSettled && !watch.hasChanged)
  }

  @Test(.guarantee(.announcementsWakeNodes))
  func `a wait for a shared tier ends with its time, and with its task`()
    async
  {
    watch.begin()
    async let end: Void = watch.wait(atMost: .seconds(60), on: clock)
    await clock.sleepers(1)
    clock.advance(by: .seconds(60))
    await end
    let task = Task { await watch.wait(atMost: .seconds(60), on: clock) }
    await clock.sleepers(1)
    task.cancel()
    await task.value
    #expect(!watch.hasChanged)
  }
}
