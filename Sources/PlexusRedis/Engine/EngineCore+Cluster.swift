// The part of an engine that follows the slots of its spaces through a cluster.

internal import Plexus
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
    let routes = spaceRoutes
    for route in routes { route.update() }
    let used = Set(routes.compactMap(\.master?.number))
    for number in caches.dismiss(except: used) {
      state.withLock { state in _ = state.connected.remove(number) }
      update { $0.remove(Kind.caches.number(number)) }
    }
    for (router, kind) in [(clears, Kind.clears), (values, .values)] {
      for number in router.dismiss(except: []) { update { $0.remove(kind.number(number)) } }
    }
    caches.search(for: used)
    update { $0.note(caches.slotWithoutMaster(of: routes), on: Self.slotsNumber) }
  }

  /// Returns the signal for the heartbeats of a slot, which begin with the first call.
  ///
  /// A master that hangs does not delay the heartbeats of the others.
  func bell(of slot: Int, _ state: inout State) -> Bell {
    if let known = state.bells[slot] { return known }
    let bell = Bell()
    state.bells[slot] = bell
    if !state.isClosed {
      state.hearts.append(makeHeart(bell) { [weak self] in await self?.beat(ofSlot: slot) })
    }
    return bell
  }

  /// Sends the heartbeat of the spaces in a slot.
  ///
  /// It asks the master for a key, whose answer confirms them: another server sends the command elsewhere.
  func beat(ofSlot slot: Int) async {
    let spaces = state.withLock { $0.isClosed ? [] : $0.all }.filter { $0.tier.route.slot == slot }
    await beat(of: spaces) {
      let time = ContinuousClock.now
      for (number, spaces) in Dictionary(grouping: spaces, by: { $0.tier.route.master?.number }) {
        let (moments, first) = (spaces.map(\.trust.now), spaces[0].tier)
        first.route.probe(RedisCommand("GET", [.text(first.names.epoch)])) {
          guard first.route.master?.number == number else { return }
          for (space, sent) in zip(spaces, moments)
          where space.tier.route.master?.number == number {
            space.confirm(sent, at: time)
          }
        }
      }
    }
  }

  /// The ways of the commands of all spaces.
  private var spaceRoutes: [Route] { state.withLock { $0.all }.map(\.tier.route) }

  /// Whether the masters of all spaces answer.
  var hasReachedMasters: Bool {
    cluster == nil || spaceRoutes.allSatisfy(\.isConnected)
  }

  /// Connects to the masters of all spaces, as long as the health says that servers answer.
  ///
  /// - Returns: Whether all of them answer.
  /// - Throws: The reason why one does not, if nothing but a change of the settings helps, or a `CancellationError`.
  func reachMasters() async throws -> Bool {
    guard cluster != nil else { return true }
    while true {
      // One that hangs does not hide the refusal of another one.
      try await withThrowingTaskGroup { group in
        for route in Dictionary(grouping: spaceRoutes, by: \.slot).values.map({ $0[0] }) {
          group.addTask {
            do {
              _ = try await route.passage()
            } catch let error as RedisConnectionError where !error.isTemporary {
              throw error
            } catch {
              // Any reply is an answer.
              try Task.checkCancellation()
            }
          }
        }
        while try await group.next() != nil {}
      }
      if hasReachedMasters { return true }
      switch health.value {
      case .connected, .degraded: try await Task.sleep(for: Self.reachingPause)
      case .connecting, .isolated, .closed: return false
      }
    }
  }

  /// The time between two attempts to reach the masters of all spaces.
  private static let reachingPause = Duration.milliseconds(20)

  /// Handles an event of the connection to any server of the cluster, which counts until there is one to a master.
  func receiveOfCluster(_ event: RedisConnection.Event) {
    events.receiveOfCluster(event, on: Self.clusterNumber)
    switch event {
    case .connected: update { $0.connect(on: Self.clusterNumber) }
    case .disconnected(.superseded): break
    case .disconnected(let error):
      guard caches.masters.isEmpty else { return }
      update { $0.disconnect(error, on: Self.clusterNumber) }
    case .refusal(let refusal): update { $0.refuse(refusal, on: Self.clusterNumber) }
    case .push: break
    }
  }
}
