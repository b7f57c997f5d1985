// The part of an engine that follows the slots of its spaces through a cluster.

internal import PlexusSupport

extension EngineCore {
  /// Follows the map of the slots.
  func followSlots() {
    // A master that gets a slot again can have lost data meanwhile.
    for router in [clears, values] { router.doubt() }
    for space in state.withLock({ $0.all }) { space.tier.route.update() }
    events.followSlots()
  }

  /// Ends the connections to masters without a slot in use, and searches for the masters that are out of reach.
  func dismissUnused() {
    let routes = state.withLock { $0.all }.map(\.tier.route)
    for route in routes { route.update() }
    let used = Set(routes.compactMap(\.master?.number))
    for number in caches.dismiss(except: used) {
      state.withLock { state in _ = state.connected.remove(number) }
      update { $0.remove(Kind.caches.number(number)) }
    }
    for (router, kind) in [(clears, Kind.clears), (values, .values)] {
      for number in router.dismiss(except: []) { update { $0.remove(kind.number(number)) } }
    }
    guard let cluster else { return }
    if !cluster.isKnown || used.contains(where: { !caches.isConnected($0) }) { cluster.search() }
  }

  /// Handles an event of the connection to any server of the cluster, which counts until there is one to a master.
  func receiveOfCluster(_ event: RedisConnection.Event) {
    events.receiveOfCluster(event, on: Self.clusterNumber)
    switch event {
    case .connected: update { $0.connect(on: Self.clusterNumber) }
    case .disconnected(let error):
      guard caches.masters.isEmpty else { return }
      update { $0.disconnect(error, on: Self.clusterNumber) }
    case .refusal(let refusal): update { $0.refuse(refusal, on: Self.clusterNumber) }
    case .push: break
    }
  }
}
