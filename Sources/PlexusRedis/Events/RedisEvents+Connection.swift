internal import Plexus
internal import PlexusSupport

// MARK: - Events of the connection

extension RedisEvents {
  /// Changes the health, and publishes it.
  func update(_ change: (inout HealthState) -> Void) {
    state.withLock { change(&$0.health) }
    health.follow { state.withLock { $0.health.health } }
  }

  func receive(_ event: RedisConnection.Event, on number: Int) {
    // The connection can end meanwhile, by which it has no health.
    defer { if !router.isActive(number) { update { $0.remove(number) } } }
    switch event {
    case .connected:
      update { $0.connect(on: number) }
      // Announcements since the last connection were lost.
      ringAll()
    case .disconnected(let error):
      update { $0.disconnect(error, on: number) }
      breakBuffers { $0.master?.number == number }
      ringAll()
      router.search(for: [number])
    case .refusal(let refusal):
      update { $0.refuse(refusal, on: number) }
    case .push(let elements):
      receive(elements, on: number)
    }
  }

  private func ringAll() {
    for bell in state.withLock({ $0.allBells }) { bell.ring() }
  }

  /// Ends the subscriptions of the channels on some routes.
  private func breakBuffers(where isBroken: (Route) -> Bool) {
    let channels = state.withLock { $0.channels }
    for (channel, buffers) in channels {
      guard let route = try? route(for: channel), isBroken(route) else { continue }
      for buffer in buffers.values { buffer.break() }
    }
  }

  private func receive(_ push: [RESPValue], on number: Int) {
    switch push.first?.text {
    case "invalidate" where push.count == 2:
      guard let keys = push[1].elements else { return ringAll() }
      for key in keys { ring(key.text ?? "") }
    case "message" where push.count == 3:
      guard let channel = push[1].text, let bytes = push[2].bytes,
        // A former master of the slot passes on what the present one gets.
        router.cluster == nil || (try? route(for: channel))?.master?.number == number
      else { return }
      let buffers = state.withLock { $0.channels[channel]?.values.map(\.self) ?? [] }
      for buffer in buffers { buffer.append(bytes) }
    default:
      break
    }
  }
}

// MARK: - Cluster

extension RedisEvents {
  /// Handles an event of the connection to any server of the cluster, which counts until there is one to a master.
  func receiveOfCluster(_ event: RedisConnection.Event, on number: Int) {
    guard health.value != nil else { return }
    switch event {
    case .connected: update { $0.remove(number) }
    case .disconnected(.superseded): break
    case .disconnected(let error) where router.masters.isEmpty:
      update { $0.disconnect(error, on: number) }
    case .disconnected, .refusal, .push: break
    }
  }
}

extension RedisEvents: RouteOwner {
  func routeMoved(_ route: Route, from former: Router.Master) {
    // A channel is subscribed at the master of its slot, which publishes its messages.
    let channels = state.withLock { Array($0.channels.keys) }
    for channel in channels where (try? self.route(for: channel)) === route {
      _ = former.connection.post(RedisCommand("UNSUBSCRIBE", [.text(channel)]))
    }
    breakBuffers { $0 === route }
    ringAll()
  }
}

// MARK: - Deliveries

extension RedisEvents {
  func deliveries(
    of topic: String,
    _ mode: LinkMode
  ) -> AsyncThrowingStream<LinkDelivery, any Error> {
    switch mode {
    case .ephemeral:
      let reader = EventReader(self, TopicNames(topic))
      return Self.stream { try await reader.next() }
    case .everyNode(let position):
      let reader = EventReader(self, TopicNames(topic), after: position)
      return Self.stream { try await reader.next() }
    case .oneNode(let group, let retryAfter, _):
      let reader = EventReader(self, TopicNames(topic), group: group, retryAfter: retryAfter)
      return Self.stream { try await reader.next() }
    case .publishOnly:
      return AsyncThrowingStream { nil }
    }
  }

  func batches(
    of topic: String,
    _ mode: LinkMode
  ) -> AsyncThrowingStream<[LinkDelivery], any Error>? {
    switch mode {
    case .ephemeral:
      let reader = EventReader(self, TopicNames(topic))
      return Self.stream { try await reader.nextBatch() }
    case .everyNode(let position):
      let reader = EventReader(self, TopicNames(topic), after: position)
      return Self.stream { try await reader.nextBatch() }
    case .oneNode, .publishOnly:
      return nil
    }
  }

  private static func stream<Element>(
    _ next: @escaping @Sendable () async throws -> Element?
  ) -> AsyncThrowingStream<Element, any Error> {
    AsyncThrowingStream {
      do {
        return try await next()
      } catch {
        throw RedisEngineError.publicError(error)
      }
    }
  }
}
