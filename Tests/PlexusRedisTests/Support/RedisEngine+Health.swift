import Plexus
import PlexusRedis

extension RedisEngine {
  /// Waits until the engine is connected.
  func becomesConnected() async {
    for await health in health() where health == .connected { return }
  }

  /// Waits until the engine is cut off from its server.
  func becomesIsolated() async {
    for await health in health() { if case .isolated = health { return } }
  }
}
