import Foundation
import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Combinations whose sources change on other threads, and ones of broadcasters that forward others.
@Suite(.fewAtOnce) struct `A combination among threads` {
  @Test(arguments: [false, true])
  func `a new subscriber of a combination of a forwarded state never goes back`(
    isView: Bool
  ) async {
    for _ in 0..<Effort.count(400) {
      let one = CurrentValue(0)
      let source: any StatefulBroadcaster<Int> = isView ? one.map { $0 } : one
      Thread.detachNewThread {
        for value in 1...40 { one.value = value }
        one.finish()
      }
      func elements(of source: some StatefulBroadcaster<Int>) async -> [Int] {
        await combine(ForwardedState(source: source)) { $0 }
          .subscription(bufferingPolicy: .unbounded).all()
      }
      let all = await elements(of: source)
      #expect(all == all.sorted())
      #expect(all.last == 40)
    }
  }

  /// The work of another thread while a subscriber comes.
  enum Work: CaseIterable {
    case combiningState
    case combiningView
    case makingView
  }

  @Test(arguments: Work.allCases)
  func `a late subscriber of a combination of a forwarded state never goes back`(
    work: Work
  ) async {
    let (one, isHeld) = (CurrentValue(0), Guarded(true))
    let hasBegun = Log<Int>()
    let calls = Tally()
    // A late subscriber can make the element once more.
    @Sendable func hold(_ value: Int) -> Int {
      guard value == 1, calls.increment() == 1 else { return value }
      hasBegun.append(value)
      while isHeld.withLock({ $0 }) {}
      return value
    }
    let view = one.map { work == .makingView ? hold($0) : $0 }
    func observe(_ source: some StatefulBroadcaster<Int>) async {
      let sum = combine(ForwardedState(source: source)) { work == .makingView ? $0 : hold($0) }
      let early = sum.subscription(bufferingPolicy: .unbounded)
      Thread.detachNewThread { one.value = 1 }
      await hasBegun.first(1)
      one.value = 2
      one.value = 3
      let late = sum.subscription(bufferingPolicy: .unbounded)
      isHeld.withLock { $0 = false }
      #expect(await early.first(4) == [0, 1, 2, 3])
      one.finish()
      let elements = await late.all()
      #expect(elements == elements.sorted())
      #expect(elements.last == 3)
    }
    // What is held can be on any thread of the pool.
    await withTaskExecutorPreference(TestThreads(1)) {
      if work == .combiningState { await observe(one) } else { await observe(view) }
    }
  }

  @Test func `a combination of a forwarded view begins with the newest element of the view`() async
  {
    let (one, isHeld) = (CurrentValue(0), Guarded(true))
    let hasBegun = Log<Int>()
    let view = one.map { value -> Int in
      if value == 1, isHeld.withLock({ $0 }) {
        hasBegun.append(value)
        while isHeld.withLock({ $0 }) {}
      }
      return value
    }
    await withTaskExecutorPreference(TestThreads(1)) {
      let early = view.subscription(bufferingPolicy: .unbounded)
      Thread.detachNewThread { one.value = 1 }
      await hasBegun.first(1)
      one.value = 2
      one.value = 3
      let elements = combine(ForwardedState(source: view)) { $0 }
        .subscription(bufferingPolicy: .unbounded)
      isHeld.withLock { $0 = false }
      #expect(await early.first(4) == [0, 1, 2, 3])
      one.value = 4
      one.finish()
      #expect(await elements.all() == [3, 4])
    }
  }

  @Test func `a combination of a forwarded state ends with its last element, among threads`() async
  {
    for _ in 0..<Effort.count(200) {
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

  @Test func `subscribers of a combination that come while its sources end all end`() async {
    for round in 0..<Effort.count(300) {
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

  @Test(arguments: 0..<4)
  func `no subscriber of a combination gets an element from before a returned reset`(
    kind: Int
  ) async {
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
        for epoch in 0..<Effort.count(500) {
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
}
