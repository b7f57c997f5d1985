/// The thread of an origin: takes connections, reads requests and sends answers.
///
/// All sockets belong to it, so that nothing here is shared. Handlers run elsewhere and leave their
/// answers in the mailbox.
struct EventLoop: ~Copyable {
  /// What is open as long as the origin lives.
  struct Descriptors: Sendable {
    let pipe: WakePipe
    let port: UInt16
    /// Bound to the port, and never listening: while the origin is offline, nobody else gets the
    /// port, and the system refuses connections.
    let reservation: Socket
    /// Replaced each time that the origin has been offline.
    var listener: Socket?

    /// Opens them all.
    ///
    /// - Parameter port: The port to serve on; 0 for any that is free.
    /// - Throws: The reason why the origin cannot serve.
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
  /// Whether there was no descriptor left for the last connection.
  private var isExhausted = false
  private var isRunning = true
  private var readiness = Readiness()

  init(_ descriptors: Descriptors, mailbox: Mailbox, core: OriginCore) {
    self.descriptors = descriptors
    self.mailbox = mailbox
    self.core = core
  }

  /// Serves until it is told to stop.
  mutating func run() {
    while isRunning {
      waitForEvents()
      for message in mailbox.takeAll() { handle(message) }
    }
    _ = goOffline()
    for case .serve(_, let continuation) in mailbox.close() {
      continuation.resume(returning: .failure(.stopped))
    }
  }

  private mutating func waitForEvents() {
    let isAccepting =
      descriptors.listener != nil && connections.count < core.limits.connections && !isExhausted
    readiness.removeAll()
    readiness.watch(descriptors.pipe.readEnd, for: .readable)
    if isAccepting, let listener = descriptors.listener {
      readiness.watch(listener.descriptor, for: .readable)
    }
    let watched = Array(connections.values)
    for connection in watched {
      readiness.watch(connection.socket.descriptor, for: connection.interest)
    }
    // Only a descriptor that becomes free elsewhere is no event.
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
    // What the other side had sent before it left is read first.
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
    while connections.count < core.limits.connections {
      switch listener.acceptNext() {
      case .connection(let socket):
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

  private mutating func handle(_ message: Mailbox.Message) {
    switch message {
    case .respond(let id, let response, let fault):
      guard let connection = connections[id] else { return }
      settle(connection, connection.respond(response, fault: fault))
    case .resume(let id):
      guard let connection = connections[id] else { return }
      settle(connection, connection.resume())
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
