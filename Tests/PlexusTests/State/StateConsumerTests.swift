import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A state consumer` {
  typealias Consumer = StateConsumer<Shelf>

  @Test(.guarantee(.consumersSeeEveryChange))
  func `a state consumer reports the first state as a change from nothing, then real changes`()
    async
  {
    let consumer = Consumer()
    let log = Log<String>()
    consumer.add(\.count) { old, new in log.append("\(old ?? -1) \(new)") }
    consumer.consume(Shelf(count: 1))
    consumer.consume(Shelf(count: 1, name: "a"))
    consumer.consume(Shelf(count: 2, name: "a"))
    consumer.consume(Shelf(count: 5))
    #expect(await log.first(3) == ["-1 1", "1 2", "2 5"])
  }

  @Test func `a state consumer takes an initial state as one that was seen`() async {
    let consumer = Consumer(initialState: Shelf(count: 1))
    let log = Log<String>()
    consumer.add(\.count) { old, new in log.append("\(old ?? -1) \(new)") }
    consumer.consume(Shelf(count: 1))
    consumer.consume(Shelf(count: 2))
    #expect(await log.first(1) == ["1 2"])
  }

  @Test(.guarantee(.laterConsumersWaitForAChange))
  func `a state consumer is silent for a late closure until a change`() async {
    let consumer = Consumer()
    let log = Log<String>()
    consumer.consume(Shelf(count: 3))
    consumer.add(\.count) { old, new in log.append("\(old ?? -1) \(new)") }
    consumer.consume(Shelf(count: 3))
    consumer.consume(Shelf(count: 4))
    #expect(await log.first(1) == ["3 4"])
  }

  @Test(.guarantee(.laterConsumersWaitForAChange))
  func `a state consumer fires immediately for a late closure on request`() async {
    let consumer = Consumer()
    let log = Log<String>()
    consumer.consume(Shelf(count: 3))
    consumer.add(\.count, firesImmediately: true) { old, new in log.append("\(old ?? -1) \(new)") }
    consumer.consume(Shelf(count: 3))
    consumer.consume(Shelf(count: 4))
    #expect(await log.first(2) == ["-1 3", "3 4"])
  }

  @Test(.guarantee(.laterConsumersWaitForAChange))
  func `a state consumer waits for the first state to fire immediately`() async {
    let consumer = Consumer()
    let log = Log<String>()
    consumer.add(\.count, firesImmediately: true) { old, new in log.append("\(old ?? -1) \(new)") }
    #expect(log.count == 0)
    consumer.consume(Shelf(count: 3))
    consumer.consume(Shelf(count: 4))
    #expect(await log.first(2) == ["-1 3", "3 4"])
  }

  @Test func `a state consumer compares optional and array values as they should be`() async {
    let consumer = Consumer(initialState: Shelf())
    let names = Log<String>()
    let works = Log<[String]>()
    consumer.add(\.name) { old, new in names.append("\(old as Any) \(new as Any)") }
    consumer.add(\.works) { _, new in works.append(new) }
    consumer.consume(Shelf())
    consumer.consume(Shelf(name: "a"))
    consumer.consume(Shelf(name: nil, works: ["x"]))
    consumer.consume(Shelf(name: nil, works: ["x"]))
    consumer.consume(Shelf(name: "b", works: ["x", "y"]))
    let expected = [
      "\(Optional.some(String?.none) as Any) \("a" as String? as Any)",
      "\(Optional.some(Optional("a")) as Any) \(String?.none as Any)",
      "\(Optional.some(String?.none) as Any) \("b" as String? as Any)",
    ]
    #expect(await names.first(3) == expected)
    #expect(await works.first(2) == [["x"], ["x", "y"]])
  }

  @Test(.guarantee(.consumersSeeEveryChange)) @MainActor
  func `a state consumer calls in the order added, state by state, and coalesces nothing`() async {
    let consumer = Consumer(initialState: Shelf())
    let log = Log<[Int]>()
    for number in 0..<5 {
      consumer.add(\.count) { _, new in
        MainActor.assertIsolated()
        log.append([new, number])
      }
    }
    for count in 1...20 { consumer.consume(Shelf(count: count)) }
    let expected = (1...20).flatMap { count in (0..<5).map { [count, $0] } }
    #expect(await log.first(100) == expected)
  }

  /// An actor with closures that are isolated to it.
  actor Host {
    var calls = 0
    let log = Log<[Int]>()

    func add(to consumer: Consumer, in bag: ObservationBag? = nil) {
      consumer.add(\.count, in: bag) { _, new in
        self.calls += 1
        self.log.append([new, self.calls])
      }
      consumer.add(\.count, in: bag) { _, new async in
        self.assertIsolated()
        self.log.append([new, 0])
      }
    }

    func removeAll(from consumer: Consumer) -> Int {
      consumer.removeAll()
      return log.count
    }

    func empty(_ bag: ObservationBag) -> Int {
      bag.cancelAll()
      return log.count
    }
  }

  @Test func `a state consumer calls on the actor that a closure was written on`() async {
    let consumer = Consumer(initialState: Shelf())
    let host = Host()
    await host.add(to: consumer)
    consumer.consume(Shelf(count: 1))
    consumer.consume(Shelf(count: 2))
    let calls = await host.log.first(4)
    #expect(calls.filter { $0[1] > 0 } == [[1, 1], [2, 2]])
    #expect(calls.filter { $0[1] == 0 } == [[1, 0], [2, 0]])
    consumer.removeAll()
  }

  @Test(.guarantee(.consumersSeeEveryChange))
  func `a state consumer lets a closure suspend, see every change and delay no other`() async {
    let consumer = Consumer(initialState: Shelf())
    let gate = Gate()
    let slow = Log<String>()
    let other = Log<Int>()
    consumer.add(\.count) { old, new async in
      slow.append("begin \(old ?? -1) \(new)")
      try? await gate.wait()
      slow.append("end \(new)")
    }
    consumer.add(\.count) { _, new in other.append(new) }
    for count in 1...3 { consumer.consume(Shelf(count: count)) }
    #expect(await other.first(3) == [1, 2, 3])
    await gate.arrivals(1)
    #expect(slow.entries == ["begin 0 1"])
    gate.open()
    #expect(
      await slow.first(6) == ["begin 0 1", "end 1", "begin 1 2", "end 2", "begin 2 3", "end 3"]
    )
  }

  @Test func `a state consumer calls a selector once for each state`() {
    let consumer = Consumer()
    let looks = Log<Int>()
    let select: @Sendable (Shelf) -> Int = { shelf in
      looks.append(shelf.count)
      return shelf.count
    }
    consumer.add(select) { _, _ in }
    consumer.consume(Shelf(count: 1))
    consumer.consume(Shelf(count: 1))
    consumer.consume(Shelf(count: 2))
    #expect(looks.entries == [1, 1, 2])
  }

  @Test func `a state consumer evaluates a state from within a selector after the current one`()
    async
  {
    let later = Later<Consumer>()
    let log = Log<Int>()
    let consumer = Consumer()
    later.value = consumer
    let select: @Sendable (Shelf) -> Int = { shelf in
      if shelf.count == 1 {
        later.value?.consume(Shelf(count: 2))
        later.value?.add(\.count) { _, new in log.append(new + 100) }
      }
      return shelf.count
    }
    consumer.add(select) { _, new in log.append(new) }
    consumer.add(\.count) { _, new in log.append(new + 10) }
    consumer.consume(Shelf(count: 1))
    consumer.consume(Shelf(count: 3))
    #expect(await log.first(7) == [1, 11, 2, 12, 3, 13, 103])
  }

  @Test(.guarantee(.cancelledBagsStartNoClosure))
  func `a state consumer starts nothing after removeAll on the closure's own actor`() async {
    let consumer = Consumer()
    let host = Host()
    await host.add(to: consumer)
    for count in 1...50 { consumer.consume(Shelf(count: count)) }
    let before = await host.removeAll(from: consumer)
    // All earlier jobs of the actor have run by then.
    #expect(await host.removeAll(from: consumer) == before)
    consumer.consume(Shelf(count: 99))
    let witness = Log<Int>()
    consumer.add(\.count) { _, new in witness.append(new) }
    consumer.consume(Shelf(count: 100))
    #expect(await witness.first(1) == [100])
    #expect(await host.removeAll(from: consumer) == before)
  }

  @Test(.guarantee(.cancelledBagsStartNoClosure))
  func `nothing of a state consumer starts after its bag is cancelled, which counts closures`()
    async
  {
    let consumer = Consumer()
    let bag = ObservationBag()
    let host = Host()
    let other = Log<Int>()
    await host.add(to: consumer, in: bag)
    consumer.add(\.count) { _, new in other.append(new) }
    #expect(bag.count == 2)
    for count in 1...50 { consumer.consume(Shelf(count: count)) }
    let before = await host.empty(bag)
    #expect(bag.count == 0)
    consumer.consume(Shelf(count: 99))
    #expect(await other.first(51).last == 99)
    #expect(await host.empty(bag) == before)
  }

  @Test @MainActor
  func `removing a closure of a state consumer is final, also from inside the closure`() async {
    let consumer = Consumer()
    let log = Log<String>()
    let witness = Log<Int>()
    let bag = ObservationBag()
    consumer.add(\.count, in: bag) { _, new in
      log.append("first \(new)")
      bag.cancelAll()
    }
    consumer.add(\.count, in: bag) { _, new in log.append("second \(new)") }
    consumer.add(\.count) { _, new in witness.append(new) }
    consumer.consume(Shelf(count: 1))
    consumer.consume(Shelf(count: 2))
    await witness.first(2)
    #expect(log.entries == ["first 1"])
  }

  @Test func `a state consumer does not count closures in a bag once they are removed otherwise`() {
    let bag = ObservationBag()
    var consumer: Consumer? = Consumer()
    consumer?.add(\.count, in: bag) { _, _ in }
    consumer?.removeAll()
    #expect(bag.count == 0)
    consumer?.add(\.count, in: bag) { _, _ in }
    #expect(bag.count == 1)
    consumer = nil
    #expect(bag.count == 0)
  }

  @Test(arguments: ["removeAll", "bag", "release of the bag", "release"], [false, true])
  func `a state consumer frees its closures and selectors`(way: String, isAsync: Bool) async {
    let census = Census()
    let called = Log<Int>()
    var consumer: Consumer? = Consumer()
    var bag: ObservationBag? = ObservationBag()
    do {
      let (selecting, calling) = (census.parcel(0), census.parcel(0))
      let select: @Sendable (Shelf) -> Int = { $0.count + selecting.number }
      let givenBag = way.contains("bag") ? bag : nil
      if isAsync {
        consumer?.add(select, in: givenBag) { _, new async in called.append(new + calling.number) }
      } else {
        consumer?.add(select, in: givenBag) { _, new in called.append(new + calling.number) }
      }
    }
    consumer?.consume(Shelf(count: 1))
    await called.first(1)
    #expect(census.living == 2)
    switch way {
    case "removeAll": consumer?.removeAll()
    case "bag": bag?.cancelAll()
    case "release of the bag": bag = nil
    default: consumer = nil
    }
    await census.falls(to: 0)
    #expect(census.living == 0)
    consumer?.consume(Shelf(count: 2))
    withExtendedLifetime((consumer, bag)) {}
  }

  @Test func `a state consumer cancels a closure that is suspended when it is removed`() async {
    let consumer = Consumer()
    let gate = Gate()
    let ended = Log<Bool>()
    consumer.add(\.count) { _, _ async in
      try? await gate.wait()
      ended.append(Task.isCancelled)
    }
    consumer.consume(Shelf(count: 1))
    await gate.arrivals(1)
    consumer.removeAll()
    #expect(await ended.first(1) == [true])
  }

  @Test func `a state consumer reports one chain of changes while others feed and add`() async {
    let consumer = StateConsumer<Int>()
    let count = 4 * 200
    let logs = (0..<8).map { _ in Log<Change<Int>>() }
    let last = Log<Void>()
    await withTaskGroup { group in
      for thread in 0..<4 {
        group.addTask {
          for number in 1...200 { consumer.consume(number * 4 + thread) }
        }
      }
      for (index, log) in logs.enumerated() {
        group.addTask {
          if index.isMultiple(of: 2) {
            consumer.add({ $0 }, firesImmediately: true) { old, new in
              log.append(Change(old: old, new: new))
              if new == -1 { last.append(()) }
            }
          } else {
            consumer.add({ $0 }) { old, new async in
              log.append(Change(old: old, new: new))
              if new == -1 { last.append(()) }
            }
          }
        }
      }
    }
    consumer.consume(-1)
    await last.first(8)
    for log in logs {
      let changes = log.entries
      #expect(changes.last?.new == -1)
      #expect(changes.count <= count + 1)
      for (before, after) in zip(changes, changes.dropFirst()) { #expect(after.old == before.new) }
    }
  }

  @Test func `a state consumer may be used by values that are released`() async {
    /// A value that is compared by its number and retains a parcel.
    struct Tag: Sendable, Equatable {
      var parcel: Parcel
      static func == (left: Tag, right: Tag) -> Bool { left.parcel.number == right.parcel.number }
    }
    let later = Later<StateConsumer<Tag>>()
    let consumer = StateConsumer<Tag>()
    later.value = consumer
    let log = Log<Int>()
    let released = Log<Int>()
    consumer.add(\.self) { _, new in log.append(new.parcel.number) }
    for number in 1...3 {
      consumer.consume(
        Tag(
          parcel: Parcel(number) {
            later.value?.add(\.parcel.number) { _, _ in }
            released.append(number)
          }
        )
      )
    }
    #expect(await log.first(3) == [1, 2, 3])
    later.value = nil
    consumer.removeAll()
  }
}
