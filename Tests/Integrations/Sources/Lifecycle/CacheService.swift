import Logging
import Plexus
import ServiceLifecycle

/// Writes what has not been written yet when the process ends.
struct CacheService: Service {
  var repository = MuxRepository.shared
  var limit: Duration = .seconds(10)
  var clock: any Clock<Duration> = ContinuousClock()
  let logger: Logger

  func run() async throws {
    // An error means that the group is cancelled, because another service has failed.
    try? await gracefulShutdown()
    do {
      try await within(limit, clock: clock) { try await repository.flushAll() }
    } catch {
      // An error that is thrown here would cancel the services that have not ended yet.
      logger.error("caches not flushed", metadata: ["error": "\(error)"])
    }
  }
}
