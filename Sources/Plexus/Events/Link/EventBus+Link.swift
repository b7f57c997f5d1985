/// Events between processes.
extension EventBus {
  /// Connects the events of a type with other processes, until the token is released.
  ///
  /// Events that other nodes publish are posted on this bus. Events of this node are sent to other nodes only by
  /// ``publish(_:scope:)``, so that a received event is never sent again.
  ///
  /// ```swift
  /// import Plexus
  ///
  /// struct OrderPlaced: Event, Codable {
  ///   let id: Int
  /// }
  ///
  /// func bill(over link: any EventLink, on bus: EventBus) -> [ObservationToken] {
  ///   [
  ///     bus.observe(OrderPlaced.self) { order in print("bill \(order.id)") },
  ///     bus.connect(OrderPlaced.self, as: "orders", over: link, .oneNode(group: "billing")),
  ///   ]
  /// }
  /// ```
  ///
  /// The call returns before the connection is established. The bus posts a ``LinkReport`` when it is established, for
  /// each interruption, and for each message that is lost or cannot be handled.
  ///
  /// ## Delivery
  ///
  /// With ``LinkMode/oneNode(group:retryAfter:attempts:)``, an event is acknowledged once the handlers on this node
  /// have succeeded; until then, the next event waits. In the other modes, events are posted as they arrive, and wait
  /// in the buffers of the subscribers; an event that is received twice within the latest 4,096 is posted once.
  ///
  /// A message of another version, or one that cannot be decoded, is moved to the dead letters of the group. In the
  /// other modes, it is skipped. Both are reported.
  ///
  /// ## Ending
  ///
  /// Cancelling or releasing the token ends the connection: nothing is posted afterwards, and unacknowledged events are
  /// delivered to other nodes. The same applies when the bus is released. The connection does not keep the bus alive.
  /// An event whose handler runs at that time is not acknowledged, even if the handler itself cancels the token.
  ///
  /// - Parameters:
  ///   - type: The exact type of the events.
  ///   - name: The name of the topic, and of the type in messages. All processes use the same name.
  ///   - version: The version of the format of the type. Messages with another one are not handled.
  ///   - scope: The scope on this bus. It is not sent to other nodes.
  ///   - link: The link.
  ///   - mode: The mode, which determines the nodes that receive the events, and the guarantees.
  /// - Returns: The token of the connection.
  /// - Precondition: The name is not empty. A group has a name, a positive time before the next attempt, and at least
  ///   one attempt.
  public nonisolated func connect<E: Event & Codable>(
    _ type: E.Type,
    as name: String,
    version: Int = 1,
    scope: EventScope? = nil,
    over link: any EventLink,
    _ mode: LinkMode
  ) -> ObservationToken {
    let links = core.links
    let connection = LinkConnection(
      LinkConnection.Parts(
        link: link,
        topic: name,
        version: version,
        mode: mode,
        origin: links.origin,
        clock: core.time.clock ?? ContinuousClock().erased(),
        post: { [weak core] (event: E) in core?.hand(over: event, in: scope) },
        handle: { [weak core] (event: E) in await core?.handle(event, in: scope) ?? .abandoned },
        report: { [weak core] content in core?.report(content, topic: name) }
      )
    )
    links.add(connection, of: ObjectIdentifier(type), in: scope)
    return ObservationToken(onCancel: { links.remove(connection) })
  }

  /// Posts an event on this bus, and publishes it to the nodes that are connected to its topic.
  ///
  /// The event goes to the topics of all connections of its type and scope. It is first posted on this bus, unless this
  /// node receives the type only by ``LinkMode/oneNode(group:retryAfter:attempts:)``. In that case, one node of each
  /// group handles the event, possibly this one.
  ///
  /// When the call returns, the engine has the event. If it throws ``LinkPublishError/failed(_:)``, any local post has
  /// happened, and other nodes may have received the event although the engine did not confirm it: publish it again
  /// only if its handlers are idempotent. An event that cannot be encoded is not posted.
  ///
  /// The order of events that one task publishes one after another is preserved.
  ///
  /// - Parameters:
  ///   - event: The event.
  ///   - scope: The scope on this bus.
  /// - Throws: A ``LinkPublishError``; an error of the encoder; a `CancellationError` if the task is cancelled, in which
  ///   case other nodes may receive the event.
  public nonisolated func publish<E: Event & Codable>(
    _ event: E,
    scope: EventScope? = nil
  ) async throws {
    let connections = core.links.connections(of: ObjectIdentifier(E.self), in: scope)
    guard !connections.isEmpty else {
      throw LinkPublishError.notConnected(type: String(describing: E.self))
    }
    var outgoing: [(link: any EventLink, topic: String, message: LinkMessage)] = []
    for parts in connections.map(\.parts)
    where !outgoing.contains(where: { $0.link === parts.link && $0.topic == parts.topic }) {
      let message = try parts.message(event, id: core.links.makeID())
      outgoing.append((parts.link, parts.topic, message))
    }
    let modes = connections.map(\.parts.mode)
    if modes.contains(where: \.reachesEveryNode) || modes.allSatisfy({ $0.group == nil }) {
      post(event, scope: scope)
    }
    var failures: [String: any Error] = [:]
    for (link, topic, message) in outgoing {
      do {
        _ = try await link.publish(message, to: topic)
      } catch {
        failures[topic] = error
      }
    }
    guard !failures.isEmpty else { return }
    try Task.checkCancellation()
    throw LinkPublishError.failed(failures)
  }
}

extension EventBus.Core {
  /// Posts an event that came over a link.
  fileprivate func hand<E: Event>(over event: E, in scope: EventScope?) {
    post(Box(event), of: E.self, event.persistence, in: scope)
  }

  /// Posts an event that came over a link, and waits for the handlers.
  fileprivate func handle<E: Event>(
    _ event: E,
    in scope: EventScope?
  ) async -> LinkConnection.Handling {
    let persistence = event.persistence
    let outcome = await postAndWait(Box(event), of: E.self, persistence, in: scope)
    guard !outcome.isIncomplete else { return .abandoned }
    // One success is enough for a persistent event, which is then offered to no other subscriber.
    let isHandled =
      outcome.handled > 0 && (persistence.rule != nil || outcome.handled == outcome.notified)
    return isHandled
      ? .handled : .failed(.unhandled(notified: outcome.notified, handled: outcome.handled))
  }

  /// Posts a report.
  func report(_ content: LinkReport.Content, topic: String) {
    let report = LinkReport(topic: topic, content)
    post(Box(report), of: LinkReport.self, report.persistence, in: nil)
  }
}
