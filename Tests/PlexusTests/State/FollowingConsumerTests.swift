import Plexus
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `A state consumer that follows a broadcaster` {
  typealias Consumer = StateConsumer<Shelf>

  @Test func `a state consumer follows a store with one call`() async {
    let store = Store<Shelf, ShelfAction>(Shelf(count: 1), reducer: arrange)
    let consumer = Consumer()
    let log = Log<String>()
    consumer.add(\.count) { old, new in log.append("\(old ?? -1) \(new)") }
    consumer.follow(store)
    for _ in 0..<3 { store.dispatch(.add(1)) }
    #expect(await log.first(4) == ["-1 1", "1 2", "2 3", "3 4"])
    #expect(store.subscriberCount == 1)
  }

  @Test func `a state consumer has looked at the present state when follow returns`() async {
    for number in 0..<100 {
      let store = Store<Shelf, ShelfAction>(Shelf(count: number), reducer: arrange)
      let consumer = Consumer()
      let log = Log<String>()
      consumer.add(\.count) { old, new in log.append("early \(old ?? -1) \(new)") }
      consumer.follow(store)
      consumer.add(\.count) { old, new in log.append("late \(old ?? -1) \(new)") }
      store.dispatch(.add(1))
      let (before, after) = (number, number + 1)
      #expect(
        await log.first(3) == [
          "early -1 \(before)", "early \(before) \(after)", "late \(before) \(after)",
        ]
      )
    }
  }

  @Test func `a state consumer is not taken back by what it followed before, stress`() async {
    for _ in 0..<50 {
      let consumer = StateConsumer<Int>()
      let (first, second) = (Store<Int, Int>(0) { $0 = $1 }, Store<Int, Int>(-1) { $0 = $1 })
      consumer.follow(first)
      await withTaskGroup { group in
        group.addTask { for number in 1...50 { first.dispatch(number) } }
        group.addTask { consumer.follow(second) }
      }
      let log = Log<Int>()
      consumer.add(\.self, firesImmediately: true) { _, new in log.append(new) }
      #expect(await log.first(1) == [-1])
      second.dispatch(-2)
      #expect(await log.first(2) == [-1, -2])
    }
  }

  @Test func `a state consumer follows one source at a time, and keeps none`() async {
    let consumer = Consumer()
    let log = Log<Int>()
    consumer.add(\.count) { _, new in log.append(new) }
    var first: Store<Shelf, ShelfAction>? = Store(Shelf(count: 1), reducer: arrange)
    weak let weakFirst = first
    let second = Store<Shelf, ShelfAction>(Shelf(count: 10), reducer: arrange)
    if let first { consumer.follow(first) }
    await log.first(1)
    consumer.follow(second)
    #expect(first?.subscriberCount == 0)
    first?.dispatch(.add(1))
    second.dispatch(.add(1))
    await log.contains(11)
    #expect(!log.entries.contains(2))
    first = nil
    #expect(weakFirst == nil)
  }

  @Test func `a state consumer ends what it follows when it is released`() async {
    let store = Store<Shelf, ShelfAction>(Shelf(), reducer: arrange)
    weak var weakConsumer: Consumer?
    var consumer: Consumer? = Consumer()
    weakConsumer = consumer
    consumer?.follow(store)
    #expect(store.subscriberCount == 1)
    consumer = nil
    #expect(weakConsumer == nil)
    #expect(store.subscriberCount == 0)
  }
}
