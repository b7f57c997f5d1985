import Plexus

/// Operations of event buses without a goal.
let eventOperations: [Operation] = busOperations + keptEventOperations

/// An event whose handlers report their results.
private struct Job: PersistentEvent {
  let number: Int

  var persistenceRule: PersistenceRule { .clearImmediately }
}

private final class Owner: Sendable {}

private let busOperations: [Operation] = [
  Operation("bus: init") { count in
    for _ in 0..<count { _ = EventBus() }
  },
  Operation("bus: post, no handler") { count in
    let bus = EventBus()
    for number in 0..<count { bus.post(Tick(number: number)) }
  },
  Operation("bus: post, no handler, a log of posts") { count in
    let bus = EventBus()
    let posts = bus.posts()
    for number in 0..<count { bus.post(Tick(number: number)) }
    withExtendedLifetime(posts) {}
  },
  Operation("bus: post to a stream, a log of posts") { count in
    let bus = EventBus()
    let ticks = bus.subscription(to: Tick.self, bufferingPolicy: .bufferingNewest(1))
    let posts = bus.posts()
    for number in 0..<count { bus.post(Tick(number: number)) }
    withExtendedLifetime((ticks, posts)) {}
  },
  Operation("bus: snapshot of 10 types and scopes", count: 300) { count in
    let bus = EventBus()
    let streams = (0..<10).map { bus.subscribe(to: Tick.self, scope: EventScope($0)) }
    for _ in 0..<count { use(bus.snapshot().count) }
    withExtendedLifetime(streams) {}
  },
  Operation("bus: post to 1 handler of a scope", count: 600) { count in
    let bus = EventBus()
    let scope = EventScope(1)
    let calls = Countdown(count)
    let token = bus.observe(Tick.self, scope: scope) { _ in calls.signal() }
    for number in 0..<count { bus.post(Tick(number: number), scope: scope) }
    await calls.wait()
    withExtendedLifetime(token) {}
  },
  Operation("bus: post to 1 handler, one at a time", count: 300) { count in
    let bus = EventBus()
    let calls = Countdown(count)
    let token = bus.observe(Tick.self) { _ in calls.signal() }
    for number in 0..<count {
      bus.post(Tick(number: number))
      await Task.yield()
    }
    await calls.wait()
    withExtendedLifetime(token) {}
  },
  Operation("bus: post to 1 async handler", count: 600) { count in
    let bus = EventBus()
    let calls = Countdown(count)
    let token = bus.observe(Tick.self) { (_: Tick) async in calls.signal() }
    for number in 0..<count { bus.post(Tick(number: number)) }
    await calls.wait()
    withExtendedLifetime(token) {}
  },
  Operation("bus: post to 1 handler of the main actor", count: 600) { count in
    let bus = EventBus()
    let calls = Countdown(count)
    let token = bus.observe(Tick.self) { @MainActor _ in calls.signal() }
    for number in 0..<count { bus.post(Tick(number: number)) }
    await calls.wait()
    withExtendedLifetime(token) {}
  },
  Operation("bus: post to 1 handler with an owner", count: 600) { count in
    let bus = EventBus()
    let owner = Owner()
    let calls = Countdown(count)
    bus.observe(as: owner, Tick.self) { _, _ in calls.signal() }
    for number in 0..<count { bus.post(Tick(number: number)) }
    await calls.wait()
    withExtendedLifetime(owner) {}
  },
  Operation("bus: postAndWait, no handler") { count in
    let bus = EventBus()
    for number in 0..<count { _ = await bus.postAndWait(Tick(number: number)) }
  },
  Operation("bus: postAndWait, 1 async handler", count: 300) { count in
    let bus = EventBus()
    let token = bus.observe(Tick.self) { (_: Tick) async in }
    for number in 0..<count { _ = await bus.postAndWait(Tick(number: number)) }
    withExtendedLifetime(token) {}
  },
  Operation("bus: subscription(to:) and drop", count: 600) { count in
    let bus = EventBus()
    for _ in 0..<count { _ = bus.subscription(to: Tick.self) }
  },
  Operation("bus: subscribe(to:) and drop", count: 600) { count in
    let bus = EventBus()
    for _ in 0..<count { _ = bus.subscribe(to: Tick.self) }
  },
  Operation("bus: subscriberCount(for:)") { count in
    let bus = EventBus()
    let token = bus.observe(Tick.self) { _ in }
    for _ in 0..<count { use(bus.subscriberCount(for: Tick.self)) }
    withExtendedLifetime(token) {}
  },
  Operation("bus: observe and drop, an async handler", count: 300) { count in
    let bus = EventBus()
    for _ in 0..<count { _ = bus.observe(Tick.self) { (_: Tick) async in } }
  },
  Operation("bus: observe(as:), with the owner", count: 300) { count in
    let bus = EventBus()
    for _ in 0..<count {
      let owner = Owner()
      bus.observe(as: owner, Tick.self) { _, _ in }
      use(bus.subscriberCount(for: Tick.self))
    }
  },
  Operation("bus: observe(id:) + removeObserver(id:)", count: 300) { count in
    let bus = EventBus()
    for _ in 0..<count {
      bus.observe(id: 1, Tick.self) { _ in }
      bus.removeObserver(id: 1)
    }
  },
  Operation("bus: observe(id:) + removeObserver(id:of:)", count: 300) { count in
    let bus = EventBus()
    for _ in 0..<count {
      bus.observe(id: 1, Tick.self) { _ in }
      bus.removeObserver(id: 1, of: Tick.self)
    }
  },
  Operation("bus: observe(id:) that replaces", count: 300) { count in
    let bus = EventBus()
    for _ in 0..<count { bus.observe(id: 1, Tick.self, replacing: true) { _ in } }
  },
  Operation("EventScope: init") { count in
    for number in 0..<count { use(EventScope(number).hashValue) }
  },
]

private let keptEventOperations: [Operation] = [
  Operation("bus: post, kept, to 1 handler", count: 300) { count in
    let bus = EventBus()
    let calls = Countdown(count)
    let token = bus.observe(KeptTick.self) { _ in calls.signal() }
    for number in 0..<count { bus.post(KeptTick(number: number)) }
    await calls.wait()
    withExtendedLifetime(token) {}
  },
  Operation("bus: post, kept, to 1 handler, one at a time", count: 300) { count in
    let bus = EventBus()
    let token = bus.observe(KeptTick.self) { _ in }
    for number in 0..<count { _ = await bus.postAndWait(KeptTick(number: number)) }
    withExtendedLifetime(token) {}
  },
  Operation("bus: post, kept, to 1 stream", count: 300) { count in
    let bus = EventBus()
    let reader = Reader(bus.subscription(to: KeptTick.self), count: count)
    await settle()
    for number in 0..<count { bus.post(KeptTick(number: number)) }
    await reader.finish()
  },
  Operation("bus: postAndWait, kept until handled, 1 handler", count: 300) { count in
    let bus = EventBus()
    let token = bus.observe(Job.self) { _ in HandlerResult.handledSuccessfully }
    for number in 0..<count { _ = await bus.postAndWait(Job(number: number)) }
    withExtendedLifetime(token) {}
  },
  Operation("bus: postAndWait, kept until handled, 1 async handler", count: 300) { count in
    let bus = EventBus()
    let token = bus.observe(Job.self) { (_: Job) async in HandlerResult.handledSuccessfully }
    for number in 0..<count { _ = await bus.postAndWait(Job(number: number)) }
    withExtendedLifetime(token) {}
  },
  Operation("bus: observe and drop, a handler with a result", count: 300) { count in
    let bus = EventBus()
    for _ in 0..<count { _ = bus.observe(Job.self) { _ in HandlerResult.handledSuccessfully } }
  },
  Operation("bus: subscription(to:) and drop, 1 kept event", count: 300) { count in
    let bus = EventBus()
    bus.post(KeptTick(number: 1))
    for _ in 0..<count { _ = bus.subscription(to: KeptTick.self) }
  },
  Operation("bus: pendingEvents of 1") { count in
    let bus = EventBus()
    bus.post(KeptTick(number: 1))
    for _ in 0..<count { use(bus.pendingEvents(of: KeptTick.self).count) }
  },
  Operation("bus: post, kept + removePendingEvents", count: 300) { count in
    let bus = EventBus()
    for number in 0..<count {
      bus.post(KeptTick(number: number))
      bus.removePendingEvents(of: KeptTick.self)
    }
  },
]
