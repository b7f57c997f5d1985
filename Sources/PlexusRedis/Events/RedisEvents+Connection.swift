internal import Plexus
internal import PlexusSupport

// MARK: - Events of the connection

extension RedisEvents {
  /// Changes the health, and publishes it.
  func update(_ change: (inout HealthState) -> Void) {
    state.withLock { change(&$0.health) }
    health.follow { state.withLock { $0.health.health } }
  }

  func receive(_ event: RedisConnection.Event) {
    switch event {
    case .connected:
      // Announcements since the last connection were lost.
      let bells = state.withLock { state in
        state.isConnected = true
        state.generation += 1
        return state.allBells
      }
      update { $0.connect() }
      for bell in bells { bell.ring() }
    case .disconnected(let error):
      update { $0.disconnect(error) }
      let (bells, buffers) = state.withLock { state in
        state.isConnected = false
        return (state.allBells, state.channels.values.flatMap(\.values))
      }
      for buffer in buffers { buffer.break() }
      for bell in bells { bell.ring() }
    case .refusal(let refusal):
      update { $0.refuse(refusal) }
    case .push(let elements):
      receive(elements)
    }
  }

  private func receive(_ push: [RESPValue]) {
    switch push.first?.text {
    case "invalidate" where push.count == 2:
      guard let keys = push[1].elements else {
        for bell in state.withLock({ $0.allBells }) { bell.ring() }
        return
      }
      for key in keys { ring(key.text ?? "") }
    case "message" where push.count == 3:
      guard let channel = push[1].text, let bytes = push[2].bytes else { return }
      let buffers = state.withLock { $0.channels[channel]?.values.map(\.self) ?? [] }
      for buffer in buffers { buffer.append(bytes) }
    default:
      break
    }
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
