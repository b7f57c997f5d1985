import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Attacks on combinations.
@Suite(.fewAtOnce) struct `Attacked combinations` {
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

  @Test(arguments: [false, true])
  func `a combination of a forwarded source delivers nothing from before its reset`(
    isNested: Bool
  ) async {
    let publisher = DataPublisher<Int>()
    let count = CurrentValue(0)
    let forwarded = ForwardedState(source: publisher)
    let both = combine(forwarded.map { $0.value ?? -1 }, count) { "\($0) \($1)" }
    let seen: any StatefulBroadcaster<String> =
      isNested ? combine(ForwardedState(source: both), count) { first, _ in first } : both
    let elements = seen.subscription(bufferingPolicy: .unbounded)
    publisher.update(1)
    count.value = 1
    publisher.update(2)
    publisher.reset()
    count.value = 2
    publisher.update(3)
    count.finish()
    let rest = await elements.first(2)
    #expect(rest.allSatisfy { !$0.hasPrefix("1") && !$0.hasPrefix("2 ") }, "\(rest)")
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

  @Test func `elements of a combination are released with no lock held`() async {
    let released = Tally()
    let reference = Guarded<[CurrentValue<Parcel>]>([])
    @Sendable func parcel(_ number: Int) -> Parcel {
      Parcel(number) {
        released.increment()
        let values = reference.withLock { $0 }
        withoutLocks { for value in values { _ = (value.subscriberCount, value.value.number) } }
      }
    }
    let (one, two) = (CurrentValue(parcel(0)), CurrentValue(parcel(0)))
    reference.withLock { $0 = [one, two] }
    let sum = combine(one.map { parcel($0.number) }, two) { parcel($0.number + $1.number) }
    do {
      let slow = sum.subscription(bufferingPolicy: .bufferingNewest(1))
      let late = sum.observe { _ in }
      for number in 1..<5 {
        one.value = parcel(number)
        two.value = parcel(number)
      }
      _ = sum.current
      withExtendedLifetime((slow, late)) {}
    }
    #expect(released.value > 20)
    reference.withLock { $0 = [] }
  }

  @Test(arguments: 0..<4)
  func `no subscriber gets an element from before a reset that has returned`(kind: Int) async {
    let publisher = DataPublisher<Int>()
    let (count, floor) = (CurrentValue(0), Guarded(0))
    let values = publisher.map { $0.value ?? -1 }
    let both = combine(values, count) { value, _ in value }
    let seen: any StatefulBroadcaster<Int> =
      switch kind {
      case 0: both
      case 1: combine(both.map { $0 }, values) { $0 == $1 ? $0 : -2 }
      case 2: both.select { $0 }
      default: combine(both.removeDuplicates(), count) { value, _ in value }
      }
    await withTaskGroup { group in
      let isDone = Guarded(false)
      group.addTask {
        for epoch in 0..<3_000 {
          publisher.update(epoch)
          publisher.update(epoch)
          publisher.reset()
          floor.withLock { $0 = epoch + 1 }
        }
        isDone.withLock { $0 = true }
        publisher.update(1_000_000)
        count.finish()
      }
      group.addTask { while !isDone.withLock({ $0 }) { count.update { $0 &+= 1 } } }
      for reader in 0..<2 {
        group.addTask { [seen] in
          let policy: BufferingPolicy<Int> = reader == 0 ? .unbounded : .bufferingNewest(1)
          var iterator = seen.subscription(bufferingPolicy: policy).makeAsyncIterator()
          while true {
            let least = floor.withLock { $0 }
            guard let value = await iterator.next() else { break }
            #expect(value == -1 || value >= least, "\(value) after \(least)")
            #expect(value != -2)
            if value == 1_000_000 { break }
          }
        }
      }
      group.addTask { [seen] in
        while !isDone.withLock({ $0 }) {
          let least = floor.withLock { $0 }
          let value = seen.current
          #expect(value == -1 || value >= least, "current \(value) after \(least)")
          var iterator = seen.subscription(bufferingPolicy: .unbounded).makeAsyncIterator()
          let first = await iterator.next() ?? -1
          #expect(first == -1 || first >= least, "first \(first) after \(least)")
        }
      }
    }
  }

  @Test func `a combination of a forwarded state ends with its last element, among threads`() async
  {
    for _ in 0..<300 {
      let (one, two) = (CurrentValue(0), CurrentValue(0))
      let pair = combine(ForwardedState(source: one), two, ForwardedState(source: one.map { $0 })) {
        [$0, $1, $2]
      }
      async let sets: Void = withTaskGroup { group in
        group.addTask { for value in 1...50 { one.value = value } }
        group.addTask { for value in 1...50 { two.value = value } }
      }
      let elements = pair.subscription(bufferingPolicy: .unbounded)
      let late = pair.subscription(bufferingPolicy: .bufferingNewest(1))
      await sets
      one.finish()
      two.finish()
      let all = await elements.all()
      #expect(all.last == [50, 50, 50])
      #expect(await late.all().last == [50, 50, 50])
      for (former, next) in zip(all, all.dropFirst()) {
        #expect(zip(former, next).allSatisfy { $0 <= $1 }, "\(former) \(next)")
      }
    }
  }

  @Test func `subscribers that come while the sources end all end`() async {
    for round in 0..<400 {
      var sources: [CurrentValue<Int>?] = [CurrentValue(0), CurrentValue(0)]
      guard let one = sources[0], let two = sources[1] else { return }
      let sum: any StatefulBroadcaster<Int> = combine(one.select { $0 }, two.map { $0 }) { $0 + $1 }
      let readers = (0..<3).map { reader in
        Task.detached {
          var last = 0
          for _ in 0..<reader { await Task.detached {}.value }
          for await value in sum.subscription(bufferingPolicy: .unbounded) { last = value }
          return last
        }
      }
      one.value = 1
      two.value = 1
      if round.isMultiple(of: 2) { await Task.detached {}.value }
      one.finish()
      two.value = 2
      two.finish()
      sources = []
      for reader in readers { #expect(await reader.value == 3) }
      #expect(sum.subscriberCount == 0)
    }
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

  @Test(arguments: [false, true])
  func `a new subscriber of a combination of a forwarded state never goes back`(
    isView: Bool
  ) async {
    let (one, isDone) = (CurrentValue(0), Guarded(false))
    let source: any StatefulBroadcaster<Int> = isView ? one.map { $0 } : one
    let sender = Task.detached { while !isDone.withLock({ $0 }) { one.update { $0 += 1 } } }
    let steps = Log<[Int]>()
    func subscribe(to source: some StatefulBroadcaster<Int>) async {
      for _ in 0..<20_000 where steps.count == 0 {
        let before = source.current
        let elements = await combine(ForwardedState(source: source)) { $0 }
          .subscription(bufferingPolicy: .unbounded).first(4)
        if elements != elements.sorted() { steps.append([before] + elements) }
      }
    }
    await subscribe(to: source)
    isDone.withLock { $0 = true }
    await sender.value
    #expect(steps.entries.isEmpty)
  }
}
