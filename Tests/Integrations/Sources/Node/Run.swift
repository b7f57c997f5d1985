import Hummingbird
import Logging
import Plexus
import PlexusRedis
import ServiceLifecycle
import UnixSignals

/// Runs a server until a signal, and ends the parts in reverse order: readiness, requests, caches, engine.
func run(
  _ application: some ApplicationProtocol,
  _ engine: RedisEngine,
  _ users: MultiplexerMap<Int, User>,
  _ connections: ObservationBag,
  _ readiness: Readiness,
  _ logger: Logger
) async throws {
  func part(_ service: any Service) -> ServiceGroupConfiguration.ServiceConfiguration {
    // If one part fails, the others end in the same order.
    .init(
      service: service,
      successTerminationBehavior: .gracefullyShutdownGroup,
      failureTerminationBehavior: .gracefullyShutdownGroup
    )
  }
  let group = ServiceGroup(
    configuration: ServiceGroupConfiguration(
      services: [
        part(EngineLog(engine: engine, logger: logger)),
        part(
          CacheLog(
            name: "users",
            events: users.events(bufferingPolicy: .bufferingNewest(1_000)),
            logger: logger
          )
        ),
        part(
          EventLog(reports: EventBus.shared.subscribe(to: LinkReport.self), logger: logger)
        ),
        part(EngineService(engine: engine, connections: connections, logger: logger)),
        part(CacheService(logger: logger)),
        part(CacheMetrics()),
        part(EngineMetrics(engine: engine)),
        part(application),
        part(readiness),
      ],
      gracefulShutdownSignals: [.sigterm, .sigint],
      logger: logger
    )
  )
  try await group.run()
}
