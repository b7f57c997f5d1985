internal import Synchronization

/// The connections of a bus.
final class LinkTable: Sendable {
  private struct Entry: Sendable {
    let type: ObjectIdentifier
    let scope: EventScope?
    let connection: LinkConnection
  }

  private struct State: Sendable {
    var entries: [Entry] = []
    var isFinished = false
    /// The name of the bus in messages, once it is needed.
    var origin: String?
  }

  private let state = Locked(State())
  private let messageCount = Atomic<UInt64>(0)

  /// The name of the bus in messages, which no other bus has.
  var origin: String {
    if let known = state.withLock({ $0.origin }) { return known }
    let new = LinkConnection.Parts.makeOrigin()
    return state.withLock { state in
      state.origin = state.origin ?? new
      return state.origin ?? new
    }
  }

  /// Returns the id of another message.
  func makeID() -> String {
    "\(origin).\(messageCount.add(1, ordering: .relaxed).newValue)"
  }

  /// Adds a connection and starts it, unless the bus has been released.
  func add(_ connection: LinkConnection, of type: ObjectIdentifier, in scope: EventScope?) {
    let entry = Entry(type: type, scope: scope, connection: connection)
    let isFinished = state.withLock { state in
      if !state.isFinished { state.entries.append(entry) }
      return state.isFinished
    }
    if !isFinished { connection.start() }
  }

  /// Ends a connection.
  func remove(_ connection: LinkConnection) {
    connection.cancel()
    state.release { state -> Entry? in
      guard let index = state.entries.firstIndex(where: { $0.connection === connection }) else {
        return nil
      }
      return state.entries.remove(at: index)
    }
  }

  /// Returns the connections of a type and scope.
  func connections(of type: ObjectIdentifier, in scope: EventScope?) -> [LinkConnection] {
    // Scopes are compared without the lock, because that calls user code.
    let candidates = state.withLock { state in state.entries.filter { $0.type == type } }
    return candidates.filter { $0.scope == scope }.map(\.connection)
  }

  /// Ends all connections when the bus is released.
  func finish() {
    let entries = state.withLock { state in
      state.isFinished = true
      defer { state.entries = [] }
      return state.entries
    }
    for entry in entries { entry.connection.cancel() }
  }
}
