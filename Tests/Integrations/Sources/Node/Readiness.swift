import Hummingbird
import Plexus
import PlexusRedis
import ServiceLifecycle

/// Whether a node takes requests: from its first connections to the engine's server until a signal ends the process.
///
/// It is the last service of the group, and ends before the server, which answers for some more time.
struct Readiness: Service {
  let engine: RedisEngine
  /// The time for which a load balancer can notice that the node is not ready, before the server stops listening.
  var notice: Duration = .milliseconds(500)
  var clock: any Clock<Duration> = ContinuousClock()
  let isReady = CurrentValue(false)

  func run() async throws {
    for await health in engine.health().cancelOnGracefulShutdown() where health == .connected {
      break
    }
    // A node without events has no connection for them.
    for await health in engine.eventHealth().cancelOnGracefulShutdown()
    where health == nil || health == .connected {
      break
    }
    // A connection that is lost later changes nothing: the node answers with its copies, and by fetches of its own.
    isReady.value = !Task.isShuttingDownGracefully && !Task.isCancelled
    try? await gracefulShutdown()
    isReady.value = false
    try? await clock.sleep(for: notice)
  }

  func addRoute(to router: Router<BasicRequestContext>) {
    router.get("ready") { [isReady] _, _ in
      isReady.value ? HTTPResponse.Status.ok : .serviceUnavailable
    }
  }
}
