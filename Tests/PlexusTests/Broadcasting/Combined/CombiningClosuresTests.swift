import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Combinations whose closures, owners and elements do what they want.
@Suite(.fewAtOnce) struct `A combination with hostile closures` {
  @Test func `a closure that cancels the last subscriber ends the combination`() async {
    let (one, two) = (CurrentValue(0), CurrentValue(0))
    let token = Guarded<ObservationToken?>(nil)
    let seen = Log<Int>()
    let sum = combine(one, two) { first, second -> Int in
      if first == 1 { token.withLock { $0.take() }?.cancel() }
      return 10 * first + second
    }
    let new = sum.observe { seen.append($0) }
    token.withLock { $0 = new }
    await seen.first(1)
    one.value = 1
    two.value = 1
    #expect([one.subscriberCount, two.subscriberCount, sum.subscriberCount] == [0, 0, 0])
    #expect(sum.current == 11)
  }

  @Test func `a closure that subscribes to its combination misses and repeats nothing`() async {
    let (one, two) = (CurrentValue(0), CurrentValue(0))
    let inner = Guarded<(any StatefulBroadcaster<Int>)?>(nil)
    let tokens = Guarded<[ObservationToken]>([])
    let (seen, early) = (Log<Int>(), Log<Int>())
    let hasSubscribed = Tally()
    let sum = combine(one, two) { first, second -> Int in
      if first == 1, hasSubscribed.increment() == 1, let sum = inner.withLock({ $0 }) {
        let token = sum.observe { seen.append($0) }
        tokens.withLock { $0.append(token) }
      }
      return 10 * first + second
    }
    inner.withLock { $0 = sum }
    let token = sum.observe { early.append($0) }
    one.value = 1
    two.value = 1
    one.value = 2
    await early.first(4)
    await seen.first(3)
    #expect(early.entries == [0, 10, 11, 21])
    #expect(seen.entries == [10, 11, 21])
    inner.withLock { $0 = nil }
    tokens.withLock { $0 = [] }
    withExtendedLifetime(token) {}
    token.cancel()
    #expect(one.subscriberCount == 0)
  }

  @Test func `a closure that ends the sources ends the combination after its element`() async {
    let (one, two) = (CurrentValue(0), CurrentValue(0))
    let sum = combine(one, two) { first, second -> Int in
      if first == 1 {
        one.finish()
        two.finish()
      }
      return 10 * first + second
    }
    let elements = sum.subscription(bufferingPolicy: .unbounded)
    one.value = 1
    one.value = 2
    #expect(await elements.all() == [0, 10])
    #expect(sum.subscriberCount == 0)
  }

  @Test func `closures that send see one order of elements on every subscriber`() async {
    let (one, two) = (CurrentValue(0), CurrentValue(0))
    let token = onSend(one) { if $0 > 0, $0 < 4 { two.value = $0 } }
    let pair = combine(one, two) { 10 * $0 + $1 }
    let late = onSend(pair) { if $0 == 11 { one.value = 2 } }
    let first = pair.subscription(bufferingPolicy: .unbounded)
    let second = pair.subscription(bufferingPolicy: .unbounded)
    one.value = 1
    one.value = 3
    one.finish()
    two.finish()
    let elements = await first.all()
    #expect(await second.all() == elements)
    #expect(elements == [0, 10, 11, 21, 22, 32, 33])
    withExtendedLifetime((token, late)) {}
  }

  @Test func `the death of the owner of a handler unsubscribes from the sources`() {
    final class Screen: Sendable {}
    let (one, two) = (CurrentValue(0), CurrentValue(0))
    let sum = combine(combine(one, two) { $0 + $1 }.map { $0 }, two.select { $0 }) { $0 + $1 }
    var screen: Screen? = Screen()
    if let screen { sum.observe(as: screen) { _, _ in } }
    #expect([one.subscriberCount, two.subscriberCount] == [1, 1])
    screen = nil
    #expect(one.subscriberCount == 0)
    #expect(two.subscriberCount == 0)
    withExtendedLifetime(screen) {}
  }

  @Test func `elements of a combination are released with no lock held`() async {
    let (created, released) = (Tally(), Tally())
    let reference = Guarded<[CurrentValue<Parcel>]>([])
    @Sendable func parcel(_ number: Int) -> Parcel {
      created.increment()
      return Parcel(number) {
        released.increment()
        let values = reference.withLock { $0 }
        withoutLocks { for value in values { _ = (value.subscriberCount, value.value.number) } }
      }
    }
    let (one, two) = (CurrentValue(parcel(0)), CurrentValue(parcel(0)))
    reference.withLock { $0 = [one, two] }
    do {
      let sum = combine(one.map { parcel($0.number) }, two) { parcel($0.number + $1.number) }
      let slow = sum.subscription(bufferingPolicy: .bufferingNewest(1))
      let late = sum.observe { _ in }
      for number in 1..<5 {
        one.value = parcel(number)
        two.value = parcel(number)
      }
      _ = sum.current
      withExtendedLifetime((slow, late)) {}
    }
    // The task of the handler can still hold an element. The two values keep their last ones.
    while released.value < created.value - 2 { await Task.detached {}.value }
    let count = created.value
    #expect(count > 20)
    #expect(released.value == count - 2)
    reference.withLock { $0 = [] }
  }

  @Test func `deep and doubled combinations stay linear`() async {
    let value = CurrentValue(1)
    let calls = Tally()
    func twice(_ state: some StatefulBroadcaster<Int>) -> any StatefulBroadcaster<Int> {
      combine(state, state.map { $0 }) { first, second in
        calls.increment()
        return first &+ second
      }
    }
    var node: any StatefulBroadcaster<Int> = value
    for _ in 0..<60 { node = twice(node) }
    let elements = node.subscription(bufferingPolicy: .unbounded)
    #expect(calls.value == 60)
    value.value = 2
    #expect(calls.value == 120)
    #expect(value.subscriberCount == 1)
    value.finish()
    #expect(await elements.all() == [1 << 60, 1 << 61])
  }

  @Test func `an equal value of a source without duplicates is no element`() async {
    let one = CurrentValue(1, removesDuplicates: true)
    let two = CurrentValue(1)
    let sum = combine(one, two) { $0 + $1 }
    let elements = sum.subscription(bufferingPolicy: .unbounded)
    one.value = 1
    one.value = 2
    one.value = 2
    one.finish()
    two.finish()
    #expect(await elements.all() == [2, 3])
  }

  @Test func `extreme buffering policies of combinations neither trap nor lose the end`() async {
    let policies: [BufferingPolicy<Int>] = [
      .bufferingNewest(0), .bufferingOldest(0), .bufferingNewest(1), .bufferingOldest(1),
      .bufferingNewest(.max), .bufferingOldest(.max), .unbounded,
    ]
    for policy in policies {
      let (one, two) = (CurrentValue(0), CurrentValue(0))
      let sum = combine(one, two) { 10 * $0 + $1 }
      let elements = sum.subscription(bufferingPolicy: policy)
      for number in 1..<4 {
        one.value = number
        two.value = number
      }
      one.finish()
      two.finish()
      let all = await elements.all()
      #expect(all == all.sorted())
      #expect(all.count <= 7)
    }
  }
}
