import Logging
import Plexus
import PlexusTesting
import ServiceLifecycle
import Testing

@Suite struct `Events in chunks` {
  private let bus = EventBus()
  private let clock = ManualClock()
  private let calls = Guarded<[Set<Int>]>([])
  private let loaded = Gate()

  private func service(limit: Int) -> (UserRefresh<ManualClock>, ServiceGroup) {
    let users = MultiplexerMap<Int, String>.bulk(id: "users") { [calls, loaded] ids in
      calls.withLock { $0.append(Set(ids)) }
      loaded.open()
      return Dictionary(uniqueKeysWithValues: ids.map { ($0, "user \($0)") })
    }
    let service = UserRefresh(
      renamed: bus.subscription(to: UserRenamed.self),
      users: users,
      limit: limit,
      clock: clock
    )
    return (
      service,
      ServiceGroup(
        configuration: ServiceGroupConfiguration(
          services: [service],
          logger: Logger(label: "group", factory: { _ in SwiftLogNoOpLogHandler() })
        )
      )
    )
  }

  @Test func `many events cause one query`() async throws {
    let (service, group) = service(limit: 4)
    for id in [1, 2, 3, 1] { bus.post(UserRenamed(id: id)) }
    try await within(.seconds(60)) { [loaded] in
      async let end: Void = group.run()
      try await loaded.wait()
      await group.triggerGracefulShutdown()
      try await end
    }
    #expect(calls.withLock { $0 } == [[1, 2, 3]])
    #expect(service.users[2].cachedValue == "user 2")
  }

  @Test func `a few events wait for a tenth of a second`() async throws {
    let (_, group) = service(limit: 100)
    bus.post(UserRenamed(id: 7))
    try await within(.seconds(60)) { [clock, loaded] in
      async let end: Void = group.run()
      // The first tick can be earlier than the event.
      while !loaded.isOpen {
        await clock.sleepers(1)
        clock.advance(by: .milliseconds(100))
      }
      await group.triggerGracefulShutdown()
      try await end
    }
    #expect(calls.withLock { $0 } == [[7]])
  }
}
