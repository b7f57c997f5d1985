import Logging
import Plexus
import PlexusRedis
import ServiceLifecycle

/// Ends the event connections of the process and the engine when the process ends.
struct EngineService: Service {
  let engine: RedisEngine
  /// The tokens of all calls of `connect(_:as:over:_:)`.
  var connections = ObservationBag()
  var limit: Duration = .seconds(5)
  var clock: any Clock<Duration> = ContinuousClock()
  let logger: Logger

  func run() async throws {
    try? await gracefulShutdown()
    // No event is received from now on. Other nodes get the events that were not handled.
    connections.cancelAll()
    do {
      try await within(limit, clock: clock) { try await engine.close() }
    } catch {
      logger.error("engine not closed", metadata: ["error": "\(error)"])
    }
  }
}
