/// A connection with a client, and how far the exchange with it has come.
///
/// It belongs to the thread of the origin. One request at a time is answered; those that the client
/// has sent ahead wait in the parser.
final class Connection {
  /// What the connection waits for.
  enum Phase {
    /// For the rest of a request.
    case receives
    /// For the handler.
    case isAnswered
    /// For room in the socket, or for nothing.
    case sends
    /// For the end of a pause.
    case pauses
    /// For the client to give up.
    case stalls
    /// For the client to close after the last answer, but not for long.
    case drains
  }

  /// What comes of it.
  enum Outcome {
    /// It goes on.
    case stays
    /// It is over and can be released.
    case ends
  }

  let id: Int
  let socket: Socket
  private let mailbox: Mailbox
  private let core: OriginCore
  private var parser: RequestParser
  private var phase = Phase.receives
  private var current: (request: OriginRequest, keepsAlive: Bool)?
  private var transmission: Transmission?
  private var unsent: ArraySlice<UInt8> = []
  private var hasInputEnded = false
  /// The handler, the pause or the time to drain.
  ///
  /// It leaves one message, and nothing else begins before that: no message is ever out of date.
  private var task: Task<Void, Never>?

  init(id: Int, socket: Socket, mailbox: Mailbox, core: OriginCore) {
    self.id = id
    self.socket = socket
    self.mailbox = mailbox
    self.core = core
    parser = RequestParser(limits: core.limits)
  }

  deinit {
    task?.cancel()
  }

  /// What the socket is watched for.
  var interest: Readiness.Flags {
    var flags: Readiness.Flags = unsent.isEmpty ? [] : .writable
    if !hasInputEnded, wantsInput { flags.insert(.readable) }
    return flags
  }

  private var wantsInput: Bool {
    switch phase {
    case .receives, .drains: true
    // Of what a client sends ahead only so much is read.
    case .isAnswered, .sends, .pauses, .stalls: parser.bufferedCount < 65_536
    }
  }

  /// Reads what has arrived, and goes on.
  func readInput() -> Outcome {
    switch socket.receive(atMost: 65_536) {
    case .bytes(let bytes):
      if case .drains = phase { return .stays }
      parser.append(bytes)
      guard case .receives = phase else { return .stays }
      return receive()
    case .end:
      hasInputEnded = true
      return inputEnds()
    case .wouldBlock:
      return .stays
    case .failed:
      return .ends
    }
  }

  /// Goes on sending.
  func writeOutput() -> Outcome {
    guard flush() else { return .ends }
    guard unsent.isEmpty, case .sends = phase else { return .stays }
    return transmit()
  }

  /// Begins to send the answer of the handler.
  func respond(_ response: OriginResponse, fault: OriginFault?) -> Outcome {
    guard let current else { return .stays }
    task = nil
    return send(response, to: current.request, fault: fault, keepsAlive: current.keepsAlive)
  }

  /// Goes on after a pause, or gives up to wait for the client.
  func resume() -> Outcome {
    task = nil
    if case .drains = phase { return .ends }
    return transmit()
  }

  private func inputEnds() -> Outcome {
    switch phase {
    case .receives: return receive()
    case .stalls, .drains: return .ends
    case .isAnswered, .pauses:
      // The client has hung up, or has no more to ask. Work that looks for it may stop.
      task?.cancel()
      return .stays
    case .sends: return .stays
    }
  }

  /// Takes the next request out of what has been received.
  private func receive() -> Outcome {
    phase = .receives
    while true {
      switch parser.next() {
      case .needsMore:
        return hasInputEnded ? .ends : .stays
      case .expectsContinue:
        unsent += Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)
        guard flush() else { return .ends }
      case .request(let request, let keepsAlive):
        core.note { $0.requests[request.path, default: 0] += 1 }
        answer(request, keepsAlive: keepsAlive)
        return .stays
      case .failure(let status):
        return send(.error(status), to: nil, fault: nil, keepsAlive: false)
      }
    }
  }

  private func answer(_ request: OriginRequest, keepsAlive: Bool) {
    current = (request, keepsAlive)
    phase = .isAnswered
    task = Task.detached { [core, mailbox, id] in
      let (response, fault) = await core.respond(to: request)
      mailbox.post(.respond(connection: id, response, fault))
    }
  }

  private func send(
    _ response: OriginResponse,
    to request: OriginRequest?,
    fault: OriginFault?,
    keepsAlive: Bool
  ) -> Outcome {
    transmission = Transmission(
      response,
      to: request,
      fault: fault,
      keepsAlive: keepsAlive,
      date: httpDate(secondsSince1970: secondsSince1970())
    )
    return transmit()
  }

  /// Takes the steps of the answer until one has to be waited for.
  private func transmit() -> Outcome {
    phase = .sends
    while let step = transmission?.next() {
      switch step {
      case .send(let bytes):
        unsent += bytes
        guard flush() else { return .ends }
        guard unsent.isEmpty else { return .stays }
      case .pause(let duration):
        phase = .pauses
        resume(after: duration)
        return .stays
      case .end(let ending):
        transmission = nil
        return end(ending)
      }
    }
    return .stays
  }

  private func resume(after duration: Duration) {
    task = Task.detached { [core, mailbox, id] in
      try? await core.clock.sleep(for: duration)
      mailbox.post(.resume(connection: id))
    }
  }

  private func end(_ ending: Transmission.Ending) -> Outcome {
    current = nil
    switch ending {
    case .keepAlive:
      return receive()
    case .close:
      socket.shutDownOutput()
      // A socket that is closed with unread input is reset, and the client may lose the answer.
      phase = .drains
      resume(after: .seconds(2))
      return hasInputEnded ? .ends : .stays
    case .reset:
      socket.resetWhenReleased()
      return .ends
    case .stall:
      phase = .stalls
      return hasInputEnded ? .ends : .stays
    }
  }

  /// Sends as much as there is room for.
  ///
  /// - Returns: Whether the connection is still there.
  private func flush() -> Bool {
    while !unsent.isEmpty {
      switch socket.write(unsent) {
      case .bytes(let count): unsent = unsent.dropFirst(count)
      case .wouldBlock: return true
      case .failed: return false
      }
    }
    unsent = []
    return true
  }
}
