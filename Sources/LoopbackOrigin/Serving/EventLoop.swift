internal import PlexusSupport

/// The event loop of an origin, which accepts connections, reads requests and sends responses on one thread.
///
/// The loop owns all sockets, so it needs no synchronization. Handlers run elsewhere and post their responses to
/// the mailbox.
struct EventLoop: ~Copyable {
  /// The descriptors that stay open as long as the origin exists.
  struct Descriptors: Sendable {
    let pipe: WakePipe
    let port: UInt16
    /// A socket that is bound to the port and never listens.
    ///
    /// It reserves the port while the origin is offline, and the system refuses connections to it.
    let reservation: Socket
    /// The listening socket, replaced each time the origin goes online.
    var listener: Socket?

    /// Opens all descriptors.
    ///
    /// - Parameter port: The port, or 0 for any free port.
    /// - Throws: The error if the origin cannot serve.
    init(port: UInt16) throws(OriginError) {
      do { pipe = try WakePipe() } catch { throw OriginError(error) }
      reservation = try Socket.bound(to: port)
      self.port = try reservation.port()
      let listener = try Socket.bound(to: self.port)
      try listener.startListening()
      self.listener = listener
    }
  }

  private let mailbox: Mailbox
  private let core: OriginCore
  private var descriptors: Descriptors
  private var connections: [Int: Connection] = [:]
  private var lastID = 0
  /// Whether no descriptor was left for the last connection.
  private var isExhausted = false
  private var isRunning = true
  private var readiness = Readiness()

  init(_ descriptors: Descriptors, mailbox: Mailbox, core: OriginCore) {
    self.descriptors = descriptors
    self.mailbox = mailbox
    self.core = core
  }

  /// Serves until it is stopped.
  mutating func run() {
    while isRunning {
      waitForEvents()
      for message in mailbox.takeAll() { handle(message) }
    }
    _ = goOffline()
    for message in mailbox.close() {
      switch message {
      case .serve(_, let continuation): continuation.resume(returning: .failure(.stopped))
      case .respond(_, let response, _): response.stream?.close()
      case .resume, .stream, .expire, .stop: break
      }
    }
  }

  private mutating func waitForEvents() {
    let hasRoom = core.limits.refusesConnections || connections.count < core.limits.connections
    let isAccepting = descriptors.listener != nil && hasRoom && !isExhausted
    readiness.removeAll()
    readiness.watch(descriptors.pipe.readEnd, for: .readable)
    if isAccepting, let listener = descriptors.listener {
      readiness.watch(listener.descriptor, for: .readable)
    }
    let watched = Array(connections.values)
    for connection in watched {
      readiness.watch(connection.socket.descriptor, for: connection.interest)
    }
    // No event is reported when a descriptor becomes free elsewhere, so poll for it.
    readiness.wait(milliseconds: isExhausted ? 50 : -1)
    isExhausted = false

    let first = isAccepting ? 2 : 1
    for (index, connection) in watched.enumerated() {
      serve(connection, readiness[first + index])
    }
    if isAccepting, readiness[1].contains(.readable) { acceptConnections() }
  }

  private mutating func serve(_ connection: Connection, _ flags: Readiness.Flags) {
    var outcome = Connection.Outcome.stays
    if flags.contains(.readable) { outcome = connection.readInput() }
    if case .stays = outcome, flags.contains(.writable) { outcome = connection.writeOutput() }
    // Data that arrived before the disconnection is read first.
    if case .stays = outcome, flags.contains(.gone), !flags.contains(.readable) { outcome = .ends }
    settle(connection, outcome)
  }

  private mutating func settle(_ connection: Connection, _ outcome: Connection.Outcome) {
    guard case .ends = outcome, connections.removeValue(forKey: connection.id) != nil else {
      return
    }
    core.note { $0.openConnections -= 1 }
  }

  private mutating func acceptConnections() {
    guard let listener = descriptors.listener else { return }
    while core.limits.refusesConnections || connections.count < core.limits.connections {
      switch listener.acceptNext() {
      case .connection(let socket):
        guard makeRoom() else {
          socket.resetWhenReleased()
          continue
        }
        lastID += 1
        connections[lastID] = Connection(id: lastID, socket: socket, mailbox: mailbox, core: core)
        core.note { statistics in
          statistics.acceptedConnections += 1
          statistics.openConnections += 1
        }
      case .nobody:
        return
      case .exhausted:
        isExhausted = true
        return
      }
    }
  }

  /// Ends the connection that has waited longest for a request, if the limit is reached.
  ///
  /// - Returns: Whether there is room for another connection.
  private mutating func makeRoom() -> Bool {
    guard connections.count >= core.limits.connections else { return true }
    guard let oldest = connections.values.filter(\.isIdle).min(by: { $0.id < $1.id }) else {
      return false
    }
    oldest.socket.resetWhenReleased()
    settle(oldest, .ends)
    return true
  }

  private mutating func handle(_ message: Mailbox.Message) {
    switch message {
    case .respond(let id, let response, let fault):
      guard let connection = connections[id] else {
        response.stream?.close()
        return
      }
      settle(connection, connection.respond(response, fault: fault))
    case .resume(let id):
      guard let connection = connections[id] else { return }
      settle(connection, connection.resume())
    case .stream(let id):
      guard let connection = connections[id] else { return }
      settle(connection, connection.continueStream())
    case .expire(let id, let exchange):
      guard let connection = connections[id] else { return }
      settle(connection, connection.expire(exchange))
    case .serve(let serves, let continuation):
      continuation.resume(returning: serves ? goOnline() : goOffline())
    case .stop:
      isRunning = false
    }
  }

  private mutating func goOnline() -> Result<Void, OriginError> {
    guard descriptors.listener == nil else { return .success(()) }
    do {
      let socket = try Socket.bound(to: descriptors.port)
      try socket.startListening()
      descriptors.listener = socket
      return .success(())
    } catch {
      return .failure(error)
    }
  }

  private mutating func goOffline() -> Result<Void, OriginError> {
    descriptors.listener?.stopListening()
    descriptors.listener = nil
    for connection in connections.values { connection.socket.resetWhenReleased() }
    connections = [:]
    core.note { $0.openConnections = 0 }
    return .success(())
  }
}
