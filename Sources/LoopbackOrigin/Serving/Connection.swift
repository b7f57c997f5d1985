internal import PlexusSupport

/// The state of a connection with a client.
///
/// It belongs to the thread of the origin. One request is answered at a time; pipelined requests wait in the
/// parser.
final class Connection {
  /// The event that the connection waits for.
  enum Phase {
    /// The rest of a request.
    case receives
    /// The response of the handler.
    case isAnswered
    /// Space in the socket's send buffer, or nothing.
    case sends
    /// The end of a pause.
    case pauses
    /// The client's disconnection.
    case stalls
    /// The next piece of a stream, or the client's disconnection.
    case streams
    /// The client's disconnection after the last response, with a timeout.
    case drains
  }

  /// The result of an event.
  enum Outcome {
    /// The connection continues.
    case stays
    /// The connection has ended and can be released.
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
  /// The stream of the current response.
  private var stream: OriginStream?
  /// The number of complete requests.
  private var exchange = 0
  /// The timeout of the next request.
  private var patience: Task<Void, Never>?
  /// The handler, the pause or the drain timeout.
  ///
  /// It posts one message, and no other task starts before that, so a message is never out of date.
  private var task: Task<Void, Never>?
  private let executor = HandlerExecutor()

  init(id: Int, socket: Socket, mailbox: Mailbox, core: OriginCore) {
    self.id = id
    self.socket = socket
    self.mailbox = mailbox
    self.core = core
    parser = RequestParser(limits: core.limits)
    limitWait()
  }

  deinit {
    stream?.close()
    patience?.cancel()
    task?.cancel()
  }

  /// The events for which the socket is polled.
  var interest: Readiness.Flags {
    var flags: Readiness.Flags = unsent.isEmpty ? [] : .writable
    if !hasInputEnded, wantsInput { flags.insert(.readable) }
    return flags
  }

  /// Whether the connection waits for a complete request, or for the client's disconnection after the last response.
  var isIdle: Bool {
    switch phase {
    case .receives, .drains: true
    case .isAnswered, .sends, .pauses, .stalls, .streams: false
    }
  }

  private var wantsInput: Bool {
    switch phase {
    case .receives, .drains: true
    // Limits the amount of pipelined data.
    case .isAnswered, .sends, .pauses, .stalls, .streams: parser.bufferedCount < 65_536
    }
  }

  /// Reads available data and processes it.
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

  /// Continues sending.
  func writeOutput() -> Outcome {
    guard flush() else { return .ends }
    guard unsent.isEmpty else { return .stays }
    switch phase {
    case .sends: return transmit()
    case .streams:
      stream?.noteSent()
      return continueStream()
    case .receives, .isAnswered, .pauses, .stalls, .drains: return .stays
    }
  }

  /// Begins to send the response of the handler.
  func respond(_ response: OriginResponse, fault: OriginFault?) -> Outcome {
    guard let current else {
      response.stream?.close()
      return .stays
    }
    task = nil
    return send(response, to: current.request, fault: fault, keepsAlive: current.keepsAlive)
  }

  /// Continues after a pause, or ends the connection after the drain timeout.
  func resume() -> Outcome {
    task = nil
    if case .drains = phase { return .ends }
    return transmit()
  }

  /// Sends what was written to the stream of the response.
  func continueStream() -> Outcome {
    guard case .streams = phase, let stream else { return .stays }
    while unsent.isEmpty {
      switch stream.next() {
      case .send(let bytes):
        unsent = bytes[...]
        guard flush() else { return .ends }
        if unsent.isEmpty { stream.noteSent() }
      case .wait: return .stays
      case .end: return end(.close)
      }
    }
    return .stays
  }

  /// Ends the connection if it still waits for the same request, or for its client to read the same response.
  func expire(_ exchange: Int) -> Outcome {
    let isSending = if case .sends = phase { true } else { false }
    return (isIdle || isSending) && exchange == self.exchange ? .ends : .stays
  }

  private func inputEnds() -> Outcome {
    switch phase {
    case .receives: return receive()
    case .stalls, .drains, .streams: return .ends
    case .isAnswered, .pauses:
      // The client has disconnected or sends no more requests, so the handler can stop.
      task?.cancel()
      return .stays
    case .sends: return .stays
    }
  }

  /// Processes the next request from the received data.
  private func receive() -> Outcome {
    phase = .receives
    while true {
      switch parser.next() {
      case .needsMore:
        limitWait()
        return hasInputEnded ? .ends : .stays
      case .expectsContinue:
        unsent += Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)
        guard flush() else { return .ends }
      case .request(let request, let keepsAlive):
        patience?.cancel()
        patience = nil
        exchange += 1
        core.count(request)
        answer(request, keepsAlive: keepsAlive)
        return .stays
      case .failure(let status):
        return send(core.error(status), to: nil, fault: nil, keepsAlive: false)
      }
    }
  }

  /// Limits the time until the next request is complete, or until the response is sent.
  private func limitWait() {
    guard let timeout = core.limits.requestTimeout, patience == nil else { return }
    patience = Task.detached(executorPreference: executor) { [core, mailbox, id, exchange] in
      guard (try? await core.clock.sleep(for: timeout)) != nil else { return }
      mailbox.post(.expire(connection: id, exchange: exchange))
    }
  }

  private func answer(_ request: OriginRequest, keepsAlive: Bool) {
    current = (request, keepsAlive)
    phase = .isAnswered
    task = Task.detached(executorPreference: executor) { [core, mailbox, id] in
      let (response, fault) = await core.respond(to: request)
      if !mailbox.post(.respond(connection: id, response, fault)) { response.stream?.close() }
    }
  }

  private func send(
    _ response: OriginResponse,
    to request: OriginRequest?,
    fault: OriginFault?,
    keepsAlive: Bool
  ) -> Outcome {
    stream = response.stream
    if request != nil { limitWait() }
    transmission = Transmission(
      response,
      to: request,
      fault: fault,
      keepsAlive: keepsAlive,
      date: httpDate(secondsSince1970: core.timeOfDay())
    )
    return transmit()
  }

  /// Carries out the steps of the response until one has to wait.
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
    task = Task.detached(executorPreference: executor) { [core, mailbox, id] in
      try? await core.clock.sleep(for: duration)
      mailbox.post(.resume(connection: id))
    }
  }

  private func end(_ ending: Transmission.Ending) -> Outcome {
    current = nil
    patience?.cancel()
    patience = nil
    if ending == .stream, let stream {
      phase = .streams
      stream.attach { [mailbox, id] in mailbox.post(.stream(connection: id)) }
      return hasInputEnded ? .ends : continueStream()
    }
    stream?.close()
    stream = nil
    switch ending {
    case .keepAlive:
      return receive()
    case .close:
      socket.shutDownOutput()
      // Closing a socket with unread input resets it, and the client may lose the response.
      phase = .drains
      resume(after: .seconds(2))
      return hasInputEnded ? .ends : .stays
    case .reset:
      socket.resetWhenReleased()
      return .ends
    case .stall:
      phase = .stalls
      return hasInputEnded ? .ends : .stays
    case .stream:
      return .ends
    }
  }

  /// Sends as much as fits into the socket's send buffer.
  ///
  /// - Returns: Whether the connection is still usable.
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
