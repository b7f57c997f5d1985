import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A current value` {
  @Test(.guarantee(.currentValuesAreReadableAtOnce))
  func `a current value is read at once after it was set, by any name`() {
    let volume = CurrentValue(3)
    volume.value = 4
    #expect(volume.value == 4)
    #expect(volume.current == 4)
    let stateful: any StatefulBroadcaster<Int> = volume
    volume.value += 1
    #expect(stateful.current == 5)
  }

  @Test(.guarantee(.currentValuesAreReadableAtOnce))
  func `a current value receives the value at once, and then every new one`() async {
    let volume = CurrentValue(1)
    let subscription = volume.subscription(bufferingPolicy: .unbounded)
    volume.value = 2
    volume.value = 2
    volume.finish()
    #expect(await subscription.all() == [1, 2, 2])
  }

  @Test(.guarantee(.currentValuesAreReadableAtOnce))
  func `a slow subscriber of a current value gets the newest of all that was set`() async {
    let volume = CurrentValue(0)
    let streams = [volume.subscribe(), (volume as any Broadcaster<Int>).subscribe()]
    for number in 1...100 { volume.value = number }
    volume.finish()
    for stream in streams { #expect(await stream.all() == [100]) }
  }

  @Test(.guarantee(.valueUpdatesAreAtomic))
  func `a current value loses no update, however many tasks update at once`() async {
    let counter = CurrentValue(0)
    let before = await withTaskGroup(of: [Int].self) { group in
      for _ in 0..<8 {
        group.addTask {
          (0..<500).map { _ in
            counter.update { value in
              value += 1
              return value - 1
            }
          }
        }
      }
      return await group.reduce(into: [Int]()) { $0 += $1 }
    }
    #expect(counter.value == 4000)
    #expect(before.sorted() == Array(0..<4000), "every result is of the update that counted")
  }

  @Test(.guarantee(.valueUpdatesAreAtomic))
  func `a current value runs an update without a lock, and once more if another one came between`()
  {
    let value = CurrentValue(1)
    let seen = Log<Int>()
    let result = value.update { number in
      seen.append(number)
      if seen.count == 1 { value.value = 10 }
      number += value.value
      return "done"
    }
    #expect(result == "done")
    #expect(seen.entries == [1, 10])
    #expect(value.value == 20)
  }

  @Test(.guarantee(.valueUpdatesAreAtomic))
  func `a current value stays as it is if an update throws`() async {
    let value = CurrentValue([1])
    let changes = value.subscription(bufferingPolicy: .unbounded)
    #expect(throws: Broken.self) {
      try value.update { numbers in
        numbers.append(2)
        throw Broken()
      }
    }
    #expect(value.value == [1])
    value.finish()
    #expect(await changes.all() == [[1]])
  }

  @Test(.guarantee(.finishedValuesAreFinal))
  func `a current value ignores sets after the end, and yields its last value to later streams`()
    async
  {
    let value = CurrentValue(1)
    let early = value.subscribe()
    value.value = 2
    value.finish()
    value.value = 3
    #expect(value.update { $0 += 10 } == ())
    #expect(value.value == 2)
    #expect(await early.all() == [2])
    for policy in [Policy.unbounded, .newest(1), .oldest(1)] {
      #expect(await value.subscription(bufferingPolicy: policy()).all() == [2])
    }
    let log = Log<Int>()
    let token = value.observe { log.append($0) }
    #expect(await log.first(1) == [2])
    #expect(value.subscriberCount == 0)
    withExtendedLifetime(token) {}
  }

  @Test(.guarantee(.duplicatesAreRemovedPerSubscriber))
  func `a current value publishes equal values unless it removes duplicates`() async {
    for removesDuplicates in [false, true] {
      let value = CurrentValue(1, removesDuplicates: removesDuplicates)
      let subscription = value.subscription(bufferingPolicy: .unbounded)
      for number in [1, 2, 2] { value.value = number }
      value.update { $0 = 2 }
      value.finish()
      #expect(await subscription.all() == (removesDuplicates ? [1, 2] : [1, 1, 2, 2, 2]))
    }
  }

  @Test(.guarantee(.duplicatesAreRemovedPerSubscriber))
  func `a current value compares with what the subscriber got last, not with what it has missed`()
    async
  {
    let value = CurrentValue("a", removesDuplicates: true)
    let slow = value.subscription(bufferingPolicy: .bufferingNewest(1))
    var iterator = slow.makeAsyncIterator()
    #expect(await iterator.next() == "a")
    value.value = "b"
    value.value = "a"
    value.finish()
    #expect(await iterator.next() == nil)
  }

  @MainActor
  @Test(.guarantee(.duplicatesAreRemovedPerSubscriber))
  func `a current value compares with what the handler got last, too`() async {
    let value = CurrentValue("a", removesDuplicates: true)
    let log = Log<String>()
    let token = value.observe(bufferingPolicy: .bufferingNewest(1)) { [log] in log.append($0) }
    await log.first(1)
    // The handler is isolated to this actor, which this test occupies until it suspends.
    value.value = "b"
    value.value = "a"
    value.value = "b"
    value.value = "a"
    let end = Log<Void>()
    let last = value.observe { [end] _ in end.append(()) }
    await end.first(1)
    value.value = "c"
    #expect(await log.first(2) == ["a", "c"])
    withExtendedLifetime((token, last)) {}
  }

  @Test func `a current value counts its subscribers, and can wait for one`() async throws {
    let value = CurrentValue(0)
    var counts = value.subscriberCounts().makeAsyncIterator()
    #expect(await counts.next() == 0)
    let stream = value.subscribe()
    #expect(await counts.next() == 1)
    try await value.waitForSubscriber()
    withExtendedLifetime(stream) {}
    value.finish()
    await #expect(throws: BroadcastError.finished) { try await value.waitForSubscriber() }
  }

  @Test func `a current value of Void notifies its subscribers`() async {
    let ticks = Messenger<Void>()
    let (me, other) = (Author(), Author())
    let all = ticks.subscription()
    let foreign = ticks.subscription(ignoring: me)
    ticks.send()
    ticks.send(from: me)
    ticks.send(from: other)
    ticks.finish()
    #expect(await all.all().count == 3)
    #expect(await foreign.all().count == 2)
  }
}
