import InMemoryLogging
import Logging
import Metrics
import MetricsTestKit
import Plexus
import PlexusRedis
import PlexusTesting
import ServiceLifecycle
import Testing

@Suite struct `Logs of events` {
  private struct Renamed: Event, Codable {
    var id: Int
  }

  private func connect() async throws -> (RedisServer, RedisEngine) {
    let server = try RedisServer()
    let engine = try RedisEngine(.unix(path: server.socket))
    try await engine.connect(within: .seconds(30))
    return (server, engine)
  }

  @Test(.enabled(if: RedisServer.executable != nil))
  func `an interruption is two lines, however long it lasts`() async throws {
    let handler = InMemoryLogHandler()
    let test = TestMetrics()
    let (server, engine) = try await connect()
    let bus = EventBus()
    let group = ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: [
          EventLog(
            reports: bus.subscribe(to: LinkReport.self),
            logger: Logger(label: "test", factory: { _ in handler })
          )
        ],
        logger: Logger(label: "group", factory: { _ in SwiftLogNoOpLogHandler() })
      )
    )
    try await within(.seconds(60)) {
      try await withMetricsFactory(test) {
        async let end: Void = group.run()
        let reports = bus.subscribe(to: LinkReport.self)
        let token = bus.connect(
          Renamed.self,
          as: "renamed",
          over: engine.events,
          .everyNode()
        )
        var isConnected = false
        var hasEnded = false
        for await report in reports {
          switch report.content {
          case .connected where !isConnected:
            isConnected = true
            server.kill()
          case .interrupted where !hasEnded:
            hasEnded = true
            try server.start()
          default: break
          }
          if case .connected = report.content, hasEnded { break }
        }
        await group.triggerGracefulShutdown()
        try await end
        token.cancel()
      }
    }
    let lines = handler.entries.filter { $0.level >= .notice }.map { "\($0.message)" }
    #expect(lines.first == "events interrupted")
    #expect(lines.count { $0 == "events interrupted" } == 1)
    #expect(lines.count { $0 == "events arrive again" } <= 1)
    #expect(test.counterTotal(label: "messaging.client.reports") >= 1)
  }

  @Test(.enabled(if: RedisServer.executable != nil))
  func `events that are rejected are a line each minute, and counted`() async throws {
    let handler = InMemoryLogHandler()
    let test = TestMetrics()
    let (server, engine) = try await connect()
    let bus = EventBus()
    let handling = bus.observe(Renamed.self) { (_: Renamed) in throw Rejection() }
    let rejected = bus.subscribe(to: LinkReport.self).filter {
      if case .rejected = $0.content { true } else { false }
    }
    let time = Guarded(Duration.zero)
    let log = EventLog(
      reports: rejected.prefix(200),
      logger: Logger(label: "test", factory: { _ in handler }),
      now: {
        time.withLock {
          $0 += .milliseconds(400)
          return $0
        }
      }
    )
    let token = bus.connect(
      Renamed.self,
      as: "renamed",
      over: engine.events,
      .oneNode(group: "g", retryAfter: .milliseconds(10), attempts: 1)
    )
    let sender = EventBus()
    let sending = sender.connect(Renamed.self, as: "renamed", over: engine.events, .everyNode())
    try await within(.seconds(60)) {
      for await health in engine.eventHealth() where health == .connected { break }
      try await withMetricsFactory(test) {
        async let end: Void = log.run()
        for id in 0..<200 { try await sender.publish(Renamed(id: id)) }
        try await end
      }
    }
    token.cancel()
    sending.cancel()
    handling.cancel()
    withExtendedLifetime(server) {}
    // 200 reports in 80 seconds.
    #expect(handler.entries.map { "\($0.message)" } == ["event rejected", "event rejected"])
    #expect(test.counterTotal(label: "messaging.client.reports") == 200)
  }

  private struct Rejection: Error {}
}
