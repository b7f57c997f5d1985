internal import PlexusSupport

/// The thread of a connection, and the state that it shares with the callers.
final class ConnectionLoop: Sendable {
  /// A caller that waits for a reply.
  private struct Caller: Sendable {
    let continuation: CheckedContinuation<Void, Never>
    let place: Locked<Place>
    let command: String

    func resume(_ result: Result<RESPValue, any Error>) {
      place.withLock { $0.result = result }
      continuation.resume()
    }
  }

  /// The command of a caller.
  private struct Place: Sendable {
    /// The number of the command, once it has one.
    var number: Int?
    var isCancelled = false
    var result: Result<RESPValue, any Error>?

    /// Records the number of the command.
    ///
    /// - Returns: Whether the caller was cancelled before.
    mutating func take(_ number: Int) -> Bool {
      self.number = number
      return isCancelled
    }
  }

  private struct State: Sendable {
    var pipeline: PipelineState<Caller>
    var socket: RedisSocket?
    /// Whether the thread waits without a limit, so that a new command has to wake it.
    var isIdle = false
    var isStopped = false
    var hasEnded = false
    /// The tasks that wait for the end of the thread.
    var ending: [CheckedContinuation<Void, Never>] = []
  }

  private let settings: RedisConnection.Settings
  private let onEvent: @Sendable (RedisConnection.Event) -> Void
  private let commandTimeout: Nanoseconds
  private let wake: WakePipe
  private let state: Locked<State>

  init(
    _ settings: RedisConnection.Settings,
    onEvent: @escaping @Sendable (RedisConnection.Event) -> Void
  ) throws(SystemError) {
    self.settings = settings
    self.onEvent = onEvent
    commandTimeout = max(Nanoseconds(settings.commandTimeout), 1_000_000)
    wake = try WakePipe()
    state = Locked(State(pipeline: PipelineState(outboxLimit: settings.outboxBytes)))
  }

  func start() throws(SystemError) {
    _ = try LoopThread { [self] in run() }
  }

  /// Stops the thread.
  func stop() {
    let socket = state.withLock { state in
      state.isStopped = true
      return state.socket
    }
    socket?.shutDown()
    wake.wake()
  }

  /// Waits until the thread has ended.
  func end() async {
    await withCheckedContinuation { continuation in
      let hasEnded = state.withLock { state in
        if !state.hasEnded { state.ending.append(continuation) }
        return state.hasEnded
      }
      if hasEnded { continuation.resume() }
    }
  }
}

// MARK: - Callers

extension ConnectionLoop {
  /// Sends a command and waits for its reply, which can be an error of the server.
  func send(_ command: RedisCommand) async throws -> RESPValue {
    try Task.checkCancellation()
    let place = Locked(Place())
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let caller = Caller(continuation: continuation, place: place, command: command.name)
        if let number = add(command, caller), place.withLock({ $0.take(number) }) { leave(number) }
      }
    } onCancel: {
      let number = place.withLock { place in
        place.isCancelled = true
        return place.number
      }
      if let number { leave(number) }
    }
    guard let result = place.withLock({ $0.result.take() }) else { throw CancellationError() }
    return try result.get()
  }

  /// Enqueues a command, and writes it if no other thread does.
  ///
  /// - Returns: Its number; `nil` if it was refused, in which case its caller has been resumed with an error.
  private func add(_ command: RedisCommand, _ caller: Caller) -> Int? {
    let deadline = Nanoseconds.now + commandTimeout
    var number: Int?
    let (admission, socket, wasIdle) = state.withLock { state in
      let admission = state.pipeline.add(command.encoded, deadline: deadline) {
        number = $0
        return caller
      }
      defer { state.isIdle = false }
      return (admission, state.socket, state.isIdle)
    }
    if wasIdle { wake.wake() }
    switch admission {
    case .writes(let turn):
      if let socket { write(turn, to: socket) }
    case .queued:
      break
    case .refused(let error):
      caller.resume(.failure(error))
    }
    return number
  }

  private func leave(_ number: Int) {
    let caller = state.withLock { $0.pipeline.leave(number) }
    caller?.resume(.failure(CancellationError()))
  }

  /// Writes bytes, and those of commands that are queued meanwhile; after some of these the thread takes over.
  private func write(_ turn: PipelineState<Caller>.Turn, to socket: RedisSocket) {
    var next: PipelineState<Caller>.Turn? = turn
    var turns = 0
    while let turn = next {
      var sent = 0
      while sent < turn.bytes.count {
        switch socket.write(turn.bytes[sent...]) {
        case .bytes(let count):
          sent += count
        case .wouldBlock:
          return postpone(turn, sent)
        case .ended:
          // The thread detects the failure, and resumes the callers.
          return socket.shutDown()
        }
      }
      turns += 1
      guard turns < 8 else { return postpone(turn, sent) }
      next = state.withLock { $0.pipeline.written(turn) }
    }
  }

  private func postpone(_ turn: PipelineState<Caller>.Turn, _ sent: Int) {
    if state.withLock({ $0.pipeline.postpone(turn, sent: sent) }) { wake.wake() }
  }
}

// MARK: - The thread

extension ConnectionLoop {
  private var isStopped: Bool { state.withLock { $0.isStopped } }

  private func run() {
    var backoff = Backoff()
    var generator = SystemRandomNumberGenerator()
    while !isStopped {
      do throws(RedisConnectionError) {
        var parser = RESPParser(maximumSize: settings.maximumReplyBytes)
        let socket = try connect(&parser)
        backoff.reset()
        let turn = state.withLock { state in
          state.socket = socket
          return state.pipeline.connect()
        }
        onEvent(.connected)
        if let turn { write(turn, to: socket) }
        let error = RedisConnectionError.lost(reason: serve(socket, &parser))
        disconnect(error, refuses: false)
        onEvent(.disconnected(error))
      } catch {
        disconnect(error, refuses: true)
        onEvent(.disconnected(error))
      }
      pause(backoff.next(using: &generator))
    }
    disconnect(.closed, refuses: true)
    let ending = state.withLock { state in
      state.hasEnded = true
      defer { state.ending = [] }
      return state.ending
    }
    for task in ending { task.resume() }
  }

  /// Fails the commands that have not been answered.
  ///
  /// - Parameters:
  ///   - error: The reason.
  ///   - refuses: Whether later commands fail as well, until the next connection.
  private func disconnect(_ error: RedisConnectionError, refuses: Bool) {
    let (callers, socket) = state.withLock { state in
      (state.pipeline.disconnect(refuses ? error : nil), state.socket.take())
    }
    // It is closed when the last thread that writes to it has left.
    socket?.shutDown()
    for caller in callers { caller.resume(.failure(error)) }
  }

  private func pause(_ time: Nanoseconds) {
    let end = Nanoseconds.now + time
    while !isStopped {
      let remaining = end - .now
      guard remaining > 0 else { return }
      var readiness = Readiness()
      readiness.watch(wake.readEnd, for: .readable)
      readiness.wait(milliseconds: Int32(min(remaining / 1_000_000 + 1, 50)))
      wake.rest()
      expire()
    }
  }

  /// Fails the callers that have waited too long.
  private func expire() {
    let expired = state.withLock { $0.pipeline.expire(at: .now) }
    for caller in expired {
      let error = RedisConnectionError.timedOut(
        command: caller.command,
        after: settings.commandTimeout
      )
      caller.resume(.failure(error))
    }
  }

  /// Connects, and introduces itself.
  private func connect(_ parser: inout RESPParser) throws(RedisConnectionError) -> RedisSocket {
    let deadline = Nanoseconds.now + Nanoseconds(settings.connectTimeout)
    let socket = try RedisSocket.connect(to: settings.address, deadline: deadline) {
      expire()
      return isStopped
    }
    for command in introduction {
      try exchange(command, on: socket, &parser, deadline)
    }
    return socket
  }

  /// The commands that a connection begins with.
  private var introduction: [RedisCommand] {
    var hello: [RedisCommand.Argument] = ["3"]
    if let password = settings.password {
      hello += ["AUTH", .text(settings.user ?? "default"), .text(password)]
    }
    hello += ["SETNAME", .text(settings.name)]
    var commands = [RedisCommand("HELLO", hello)]
    if settings.database != 0 {
      commands.append(RedisCommand("SELECT", [.number(Int64(settings.database))]))
    }
    return commands + settings.setup
  }

  /// Sends one command and waits for its reply, before any other command is sent.
  private func exchange(
    _ command: RedisCommand,
    on socket: RedisSocket,
    _ parser: inout RESPParser,
    _ deadline: Nanoseconds
  ) throws(RedisConnectionError) {
    func failure(_ reason: String) -> RedisConnectionError {
      .unreachable(address: settings.address, reason: reason)
    }
    var sent = 0
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      if sent < command.encoded.count {
        switch socket.write(command.encoded[sent...]) {
        case .bytes(let count): sent += count
        case .wouldBlock: break
        case .ended(let reason): throw failure(reason)
        }
      }
      switch socket.read(into: &buffer) {
      case .bytes(let count):
        parser.append(buffer[..<count])
        do {
          while let reply = try parser.next() {
            switch reply {
            case .push: continue
            case .error(let error):
              throw RedisConnectionError.refused(address: settings.address, error)
            default: return
            }
          }
        } catch let error as RESPError {
          throw failure(error.description)
        } catch let error as RedisConnectionError {
          throw error
        } catch {
          throw failure("\(error)")
        }
        continue
      case .wouldBlock: break
      case .ended(let reason): throw failure(reason)
      }
      expire()
      let remaining = deadline - .now
      guard remaining > 0 else {
        throw failure("the server did not answer \(command.name) in time")
      }
      guard !isStopped else { throw .closed }
      var readiness = Readiness()
      readiness.watch(
        socket.descriptor,
        for: sent < command.encoded.count ? [.readable, .writable] : .readable
      )
      readiness.wait(milliseconds: Int32(min(remaining / 1_000_000 + 1, 50)))
    }
  }

  /// Reads replies and pushes until the connection breaks.
  ///
  /// - Returns: The reason.
  private func serve(_ socket: RedisSocket, _ parser: inout RESPParser) -> String {
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    var readiness = Readiness()
    var lastActivity = Nanoseconds.now
    while true {
      let now = Nanoseconds.now
      let (isPostponed, oldest, next, isStopped) = state.withLock { state in
        let oldest = state.pipeline.oldestDeadline
        // A thread that has just been busy waits for a while before it has to be woken by the next command.
        state.isIdle = oldest == nil && now - lastActivity > commandTimeout
        return (state.pipeline.isPostponed, oldest, state.pipeline.nextDeadline, state.isStopped)
      }
      if isStopped { return "it was closed" }
      // The server hangs if it has answered neither a command whose caller has left nor anything after it.
      let end = oldest.map { max($0, lastActivity) + commandTimeout }
      if let end, now >= end { return "the server has not answered for twice the command timeout" }
      readiness.removeAll()
      readiness.watch(socket.descriptor, for: isPostponed ? [.readable, .writable] : .readable)
      readiness.watch(wake.readEnd, for: .readable)
      readiness.wait(milliseconds: milliseconds(until: [next, end], idleSince: lastActivity, now))
      if readiness[1].contains(.readable) { wake.rest() }
      if readiness[0].contains(.writable), let turn = state.withLock({ $0.pipeline.resume() }) {
        write(turn, to: socket)
      }
      expire()
      guard !readiness[0].isDisjoint(with: [.readable, .gone]) else { continue }
      switch socket.read(into: &buffer) {
      case .bytes(let count):
        lastActivity = .now
        parser.append(buffer[..<count])
        do throws(RESPError) {
          try receive(from: &parser)
        } catch {
          return error.description
        }
      case .wouldBlock:
        break
      case .ended(let reason):
        return reason
      }
    }
  }

  /// Returns how long to wait for the socket.
  private func milliseconds(
    until deadlines: [Nanoseconds?],
    idleSince lastActivity: Nanoseconds,
    _ now: Nanoseconds
  ) -> Int32 {
    let isIdle = state.withLock { $0.isIdle }
    guard !isIdle else { return -1 }
    let deadline = deadlines.compactMap(\.self).min() ?? (lastActivity + commandTimeout)
    return Int32(min(max(deadline - now, 0) / 1_000_000 + 1, 60_000))
  }

  /// Passes the values that have arrived to their callers, in order.
  private func receive(from parser: inout RESPParser) throws(RESPError) {
    var replies: [RESPValue] = []
    defer { hand(out: replies) }
    while let value = try parser.next() {
      guard case .push(let elements) = value else {
        replies.append(value)
        continue
      }
      hand(out: replies)
      replies = []
      onEvent(.push(elements))
    }
  }

  private func hand(out replies: [RESPValue]) {
    guard !replies.isEmpty else { return }
    let callers = state.withLock { state in
      replies.map { _ in state.pipeline.takeReply() ?? nil }
    }
    for (caller, reply) in zip(callers, replies) { caller?.resume(.success(reply)) }
  }
}
