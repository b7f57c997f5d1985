import Logging
import PlexusRedis
import ServiceLifecycle

/// Logs each change of the health of an engine once.
struct EngineLog: Service {
  let engine: RedisEngine
  let logger: Logger

  func run() async throws {
    var last: EngineHealth?
    for await health in engine.health().cancelOnGracefulShutdown() {
      defer { last = health }
      switch (health, last) {
      case (.isolated, .isolated), (.degraded, .degraded):
        // The reason can change with each attempt.
        logger.debug("engine", metadata: ["health": "\(health)"])
      case (.isolated(let reason), _):
        logger.error("engine isolated", metadata: ["reason": "\(reason)"])
      case (.degraded(let reason), _):
        logger.warning("engine degraded", metadata: ["reason": "\(reason)"])
      case (.connected, _):
        logger.notice("engine connected")
      case (.connecting, _), (.closed, _):
        logger.info("engine", metadata: ["health": "\(health)"])
      }
    }
  }
}
