import Plexus

/// Operations of current values, and of what is derived from states.
let valueOperations: [Operation] = currentValueOperations + derivedOperations

/// A state with two parts.
private struct Form: Sendable, Equatable {
  var text = ""
  var count = 0
}

/// A cacher that stores nothing.
private struct NoCacher: Cacher {
  func entry(forKey key: String) async -> CacheEntry<Int>? { nil }
  func store(_ entries: [String: CacheEntry<Int>]) async {}
  func removeEntries(forKeys keys: Set<String>) async {}
  func removeAllEntries() async {}
}

private let currentValueOperations: [Operation] = [
  Operation("CurrentValue: value", count: 30_000) { count in
    let value = CurrentValue(1)
    for _ in 0..<count { use(value.value) }
  },
  Operation("CurrentValue: set value", count: 30_000) { count in
    let value = CurrentValue(1)
    for number in 0..<count { value.value = number }
  },
  Operation("CurrentValue: update", count: 30_000) { count in
    let value = CurrentValue(1)
    for _ in 0..<count { value.update { $0 &+= 1 } }
  },
  Operation("CurrentValue: update without duplicates", count: 30_000) { count in
    let value = CurrentValue(1, removesDuplicates: true)
    for _ in 0..<count { value.update { $0 &+= 1 } }
  },
  Operation("CurrentValue: update, 1 reader of the newest") { count in
    let value = CurrentValue(1)
    let subscription = value.subscription()
    for _ in 0..<count { value.update { $0 &+= 1 } }
    use(subscription.droppedCount)
  },
  Operation("CurrentValue: subscription and drop") { count in
    let value = CurrentValue(1)
    for _ in 0..<count { _ = value.subscription() }
  },
]

private let derivedOperations: [Operation] = [
  Operation("map: send, 1 reader", count: 30_000) { count in
    let messenger = Messenger<Int>()
    let subscription = messenger.map { $0 &+ 1 }.subscription(bufferingPolicy: .bufferingNewest(1))
    for number in 0..<count { messenger.send(number) }
    use(subscription.droppedCount)
  },
  Operation("select: dispatch, the part stays") { count in
    let store = Store<Form, Int>(Form()) { form, step in form.count &+= step }
    let subscription = store.select(\.text).subscription(bufferingPolicy: .bufferingNewest(1))
    for _ in 0..<count { store.dispatch(1) }
    use(subscription.droppedCount)
  },
  Operation("select: dispatch, the part changes") { count in
    let store = Store<Form, Int>(Form()) { form, step in form.count &+= step }
    let subscription = store.select(\.count).subscription(bufferingPolicy: .bufferingNewest(1))
    for _ in 0..<count { store.dispatch(1) }
    use(subscription.droppedCount)
  },
  Operation("select: dispatch, 1,000 temporaries of a part that stays", count: 300) { count in
    let store = Store<Form, Int>(Form()) { form, step in form.count &+= step }
    let subscriptions = (0..<1_000).map { _ in
      store.select(\.text).subscription(bufferingPolicy: .bufferingNewest(1))
    }
    for _ in 0..<count { store.dispatch(1) }
    withExtendedLifetime(subscriptions) {}
  },
  Operation("select: dispatch to a page, 1,000 temporaries of a part that stays", count: 300) {
    count in
    let store = Store<Form, Int>(Form()) { form, step in form.count &+= step }
    let page = store.page({ _ in Form() }, reducer: { form, step in form.count &+= step })
    let subscriptions = (0..<1_000).map { _ in
      page.select(\.page.text).subscription(bufferingPolicy: .bufferingNewest(1))
    }
    for _ in 0..<count { page.dispatch(1) }
    withExtendedLifetime(subscriptions) {}
  },
  Operation("select of a store: subscription and drop", count: 600) { count in
    let store = Store<Form, Int>(Form()) { form, step in form.count &+= step }
    for _ in 0..<count {
      _ = store.select(\.count).subscription(bufferingPolicy: .bufferingNewest(1))
    }
  },
  Operation("select: current, subscribed to", count: 30_000) { count in
    let value = CurrentValue(Form())
    let part = value.select(\.count)
    let subscription = part.subscription(bufferingPolicy: .bufferingNewest(1))
    for _ in 0..<count { use(part.current) }
    withExtendedLifetime(subscription) {}
  },
  Operation("select: subscription and drop", count: 600) { count in
    let value = CurrentValue(Form())
    let part = value.select(\.count)
    for _ in 0..<count { _ = part.subscription(bufferingPolicy: .bufferingNewest(1)) }
  },
  Operation("combine: set, 2 values, 1 reader of the newest") { count in
    let (value, other) = (CurrentValue(1), CurrentValue(2))
    let sum = combine(value, other) { $0 &+ $1 }
    let subscription = sum.subscription(bufferingPolicy: .bufferingNewest(1))
    for number in 0..<count { value.value = number }
    use(subscription.droppedCount)
  },
  Operation("combine: set, 2 parts that stay, 1 reader") { count in
    let value = CurrentValue(Form())
    let both = combine(value.select(\.text), value.select { $0.count < 0 }) { $1 ? $0 : "" }
    let subscription = both.subscription(bufferingPolicy: .bufferingNewest(1))
    for number in 0..<count { value.value = Form(count: number) }
    use(subscription.droppedCount)
  },
  Operation("combine: current, 2 values, not subscribed to") { count in
    let (value, other) = (CurrentValue(1), CurrentValue(2))
    let sum = combine(value, other) { $0 &+ $1 }
    for _ in 0..<count { use(sum.current) }
  },
  Operation("combine: subscription and drop", count: 600) { count in
    let (value, other) = (CurrentValue(1), CurrentValue(2))
    let sum = combine(value, other) { $0 &+ $1 }
    for _ in 0..<count { _ = sum.subscription(bufferingPolicy: .bufferingNewest(1)) }
  },
  Operation("persist: set a value that is unsaved already", count: 30_000) { count in
    let value = CurrentValue(1)
    let saved = value.persist(in: NoCacher(), as: "value", delay: .seconds(1_000))
    for number in 0..<count { value.value = number }
    use(saved.name.count)
  },
  Operation("ObservedValue of a part: init and drop", count: 300) { count in
    let value = CurrentValue(Form())
    await Task { @MainActor in
      for _ in 0..<count { _ = ObservedValue(value.select(\.count)) }
    }.value
  },
  Operation("ObservedValue of a part: update", count: 600) { count in
    let value = CurrentValue(Form())
    await Task { @MainActor in
      let observed = ObservedValue(value.select(\.count))
      for _ in 0..<count {
        value.update { $0.count &+= 1 }
        use(observed.value)
      }
    }.value
  },
]
