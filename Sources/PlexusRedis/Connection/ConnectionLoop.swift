internal import PlexusSupport

/// The thread of a connection, and the state that it shares with the callers.
final class ConnectionLoop: Sendable {
  /// The wait of a caller for the reply to one of its commands.
  struct Wait: Sendable {
    let batch: Locked<Batch>
    /// The place of the command among those of the caller.
    let index: Int
    /// Whether the reply is known before.
    let isMark: Bool

    /// The command.
    var command: RedisCommand { batch.withLock { $0.commands[index] } }
  }

  /// The action when all commands of a caller are answered.
  enum Listener: Sendable {
    case task(CheckedContinuation<Void, Never>)
    case handler(@Sendable () -> Void)

    func notify() {
      switch self {
      case .task(let continuation): continuation.resume()
      case .handler(let handler): handler()
      }
    }
  }

  /// The commands of a caller, which are sent together.
  struct Batch: Sendable {
    let commands: [RedisCommand]
    var listener: Listener?
    /// The numbers of the commands, once they have some.
    var numbers: [Int] = []
    /// The reason why the caller has left.
    var departure: (any Error)?
    private(set) var results: [Result<RESPValue, any Error>?]
    private(set) var openCount: Int

    init(_ commands: [RedisCommand]) {
      self.commands = commands
      results = Array(repeating: nil, count: commands.count)
      openCount = commands.count
    }

    /// Notes the numbers of the commands.
    ///
    /// - Returns: The reason why the caller has left before.
    mutating func take(_ numbers: [Int]) -> (any Error)? {
      self.numbers = numbers
      return departure
    }

    /// Notes the result of a command.
    ///
    /// - Returns: The listener, if it was the last one.
    mutating func note(_ result: Result<RESPValue, any Error>, at index: Int) -> Listener? {
      results[index] = result
      openCount -= 1
      return openCount == 0 ? listener.take() : nil
    }
  }

  struct State: Sendable {
    var pipeline: PipelineState<Wait>
    var socket: RedisSocket?
    /// Whether the thread waits without a limit, so that a new command has to wake it.
    var isIdle = false
    /// The time at which the server has sent something, or was connected.
    var lastActivity: Nanoseconds = 0
    var isStopped = false
    var hasEnded = false
    /// The server that is connected.
    var peer: RedisAddress?
    /// The reason why the present connection is ended, if it is not the server that ends it.
    var verdict: RedisConnectionError?
    /// Whether the next attempt to connect begins at once.
    var hurries = false
    var traffic = TrafficState()
    var refusals = RefusalState()
    /// The refusal that was reported last.
    var reportedRefusal: RedisEngineError?
    /// The tasks that wait for the end of the thread.
    var ending: [CheckedContinuation<Void, Never>] = []
  }

  let settings: RedisConnection.Settings
  let onEvent: @Sendable (RedisConnection.Event) -> Void
  let commandTimeout: Nanoseconds
  let wake: WakePipe
  private let renewal = CredentialRenewal()
  let state: Locked<State>
  /// The spaces that were checked on the connection.
  let checked = Locked(CheckedSpacesState())

  init(
    _ settings: RedisConnection.Settings,
    onEvent: @escaping @Sendable (RedisConnection.Event) -> Void
  ) throws(SystemError) {
    self.settings = settings
    self.onEvent = onEvent
    commandTimeout = max(Nanoseconds(settings.commandTimeout), 1_000_000)
    wake = try WakePipe()
    let pipeline = PipelineState<Wait>(outboxLimit: settings.outboxBytes, timeLimit: commandTimeout)
    state = Locked(State(pipeline: pipeline))
  }

  func start() throws(SystemError) {
    _ = try LoopThread { [self] in run() }
  }

  /// The address of the server that is connected.
  var peer: RedisAddress? { state.withLock { $0.peer } }

  /// The commands without a reply, and the bytes that wait to be sent.
  var load: (commands: Int, bytes: Int) {
    state.withLock { ($0.pipeline.count, $0.pipeline.outboxBytes) }
  }

  /// The numbers of the connection.
  var traffic: TrafficState {
    state.withLock { state in
      var traffic = state.traffic
      traffic.add(state.pipeline.traffic)
      return traffic
    }
  }

  /// Stops the thread.
  func stop() {
    renewal.end()
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

// MARK: - The thread

extension ConnectionLoop {
  private var isStopped: Bool { state.withLock { $0.isStopped } }

  private func run() {
    var backoff = Backoff()
    var generator = SystemRandomNumberGenerator()
    var connector = ServerConnector(settings, wake)
    while !isStopped {
      state.withLock { $0.hurries = false }
      do throws(RedisConnectionError) {
        let connected = try connector.connect {
          expire()
          return state.withLock { $0.isStopped || $0.hurries }
        }
        let begin = Nanoseconds.now
        let end = use(connected)
        // A server that answers nothing but the introduction, or refuses all commands, is not asked again and again.
        if end.hasAnswered, !end.isRefusal || .now - begin > 1_000_000_000 { backoff.reset() }
        disconnect(end.error, refuses: end.isHang || end.isRefusal)
      } catch {
        // The attempt is given up as well if the sentinels announce another master.
        let isSuperseded = error == .closed && !isStopped
        disconnect(isSuperseded ? superseded(settings.address) : error, refuses: true)
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

  /// Uses a connection until it ends.
  private func use(_ connected: ServerConnector.Connected) -> End {
    let (checks, history) = (connected.checks, connected.checks?.history ?? "")
    checked.withLock { $0.connect(checks?.checked ?? [], of: history) }
    let (turn, isSuperseded) = state.withLock { state -> (PipelineState<Wait>.Turn?, Bool) in
      // The sentinels have announced another master while the connection was made.
      guard !state.hurries else { return (nil, true) }
      (state.socket, state.peer) = (connected.socket, connected.address)
      state.lastActivity = .now
      state.traffic.connections += 1
      return (state.pipeline.connect(), false)
    }
    guard !isSuperseded else {
      return End(error: superseded(connected.address), isRefusal: true)
    }
    if let expires = connected.expires, let source = settings.peerCredentials {
      renewal.begin(before: expires) { [weak self] in try await self?.renew(from: source) }
    }
    onEvent(.connected)
    if let turn { write(turn, to: connected.socket) }
    var parser = connected.parser
    return serve(connected.socket, &parser)
  }

  /// Fails the commands that have not been answered.
  ///
  /// - Parameters:
  ///   - error: The reason.
  ///   - refuses: Whether later commands fail as well, until the next connection.
  private func disconnect(_ error: RedisConnectionError, refuses: Bool) {
    renewal.end()
    let (waits, socket, isStopped) = state.withLock { state in
      state.peer = nil
      state.verdict = nil
      state.refusals.removeAll()
      // Servers of a cluster are asked in turn: that is neither a failure nor a reconnection.
      if case .superseded = error, settings.peer == .clusterNode {
        // An attempt to connect has not been counted.
        if state.socket != nil { state.traffic.connections -= 1 }
      } else if !state.isStopped {
        state.traffic.fail(RedisEngineError(error).kind)
      }
      return (
        state.pipeline.disconnect(refuses ? error : nil), state.socket.take(), state.isStopped
      )
    }
    // It is closed when the last thread that writes to it has left.
    socket?.shutDown()
    end(waits, with: waits.map { _ in .failure(isStopped ? RedisConnectionError.closed : error) })
    // The end by the owner is no interruption.
    guard !isStopped else { return }
    onEvent(.disconnected(error))
    reportRefusal()
  }

  private func pause(_ time: Nanoseconds) {
    let end = Nanoseconds.now + time
    while !state.withLock({ $0.isStopped || $0.hurries }) {
      let remaining = end - .now
      guard remaining > 0 else { return }
      wake.wait(atMost: remaining)
      expire()
    }
  }

  /// Fails the callers that have waited too long.
  private func expire() {
    let expired = state.withLock { state in
      let expired = state.pipeline.expire(at: .now)
      for _ in expired { state.traffic.fail(.timedOut) }
      return expired
    }
    let results = expired.map { wait -> Result<RESPValue, any Error> in
      .failure(
        RedisConnectionError.timedOut(command: wait.command.name, after: settings.commandTimeout)
      )
    }
    end(expired, with: results)
  }

  /// The end of a connection.
  private struct End {
    let error: RedisConnectionError
    /// Whether the server has answered a command.
    var hasAnswered = false
    /// Whether the server did not answer in time.
    var isHang = false
    /// Whether the server is not, or no longer, one to use.
    var isRefusal = false
  }

  /// Reads replies and pushes until the connection breaks.
  private func serve(_ socket: RedisSocket, _ parser: inout RESPParser) -> End {
    var hasAnswered = false
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
      if isStopped { return End(error: .closed, hasAnswered: hasAnswered) }
      // The server hangs if it has answered neither a command whose caller has left nor anything after it.
      let end = oldest.map { max($0, lastActivity) + commandTimeout }
      if let end, now >= end {
        let reason = "the server has not answered for twice the command timeout"
        return End(error: .lost(reason: reason), hasAnswered: hasAnswered, isHang: true)
      }
      let milliseconds = milliseconds(until: [next, end], idleSince: lastActivity, now)
      guard wait(milliseconds, for: socket, &readiness, isPostponed: isPostponed) else { continue }
      switch socket.read(into: &buffer) {
      case .bytes(let count):
        lastActivity = .now
        do throws(RESPError) {
          let isReply = try receive(buffer[..<count], by: &parser, at: lastActivity)
          hasAnswered = isReply || hasAnswered
        } catch {
          // Such a server is asked less and less often, although it has answered.
          return End(error: .lost(reason: error.description))
        }
        if let verdict = state.withLock({ $0.verdict }) {
          return End(error: verdict, hasAnswered: hasAnswered, isRefusal: true)
        }
      case .wouldBlock:
        break
      case .ended(let reason):
        let verdict = state.withLock { $0.verdict }
        return End(
          error: verdict ?? .lost(reason: reason),
          hasAnswered: hasAnswered,
          isRefusal: verdict != nil
        )
      }
    }
  }

  /// Waits for the socket, writes what waits to be sent, and fails the callers that have waited too long.
  ///
  /// - Returns: Whether there is something to read.
  private func wait(
    _ milliseconds: Int32,
    for socket: RedisSocket,
    _ readiness: inout Readiness,
    isPostponed: Bool
  ) -> Bool {
    readiness.removeAll()
    readiness.watch(socket.descriptor, for: isPostponed ? [.readable, .writable] : .readable)
    readiness.watch(wake.readEnd, for: .readable)
    readiness.wait(milliseconds: milliseconds)
    if readiness[1].contains(.readable) {
      wake.rest()
      reportRefusal()
    }
    if readiness[0].contains(.writable), let turn = state.withLock({ $0.pipeline.resume() }) {
      write(turn, to: socket)
    }
    expire()
    return readiness[0].contains(.readable) || readiness[0].contains(.gone)
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
  ///
  /// - Returns: Whether a reply was among them.
  private func receive(
    _ bytes: ArraySlice<UInt8>,
    by parser: inout RESPParser,
    at now: Nanoseconds
  ) throws(RESPError) -> Bool {
    state.withLock { state in
      state.lastActivity = now
      state.traffic.bytesIn += bytes.count
    }
    parser.append(bytes)
    var replies: [RESPValue] = []
    var hasReplies = false
    while true {
      let next = Result { () throws(RESPError) in try parser.next() }
      if case .success(let value?) = next, announcement(in: value) == nil {
        replies.append(value)
        continue
      }
      // The replies before an announcement, or before bytes that cannot be parsed, are valid.
      hasReplies = hasReplies || !replies.isEmpty
      try hand(out: replies, at: now)
      replies.removeAll()
      guard let announcement = try next.get().flatMap(announcement) else { return hasReplies }
      onEvent(.push(announcement))
    }
  }

  /// Returns the elements of a push, unless it answers a command: each command for a channel has one.
  private func announcement(in value: RESPValue) -> [RESPValue]? {
    guard case .push(let elements) = value else { return nil }
    guard let kind = elements.first?.bytes else { return elements }
    let isReply =
      kind.elementsEqual("subscribe".utf8) || kind.elementsEqual("unsubscribe".utf8)
    return isReply ? nil : elements
  }

  /// Passes replies to the callers of their commands.
  ///
  /// If there are more replies than commands, or one is not the mark of its batch, none is passed on: each of them can
  /// belong to another command.
  private func hand(out replies: [RESPValue], at now: Nanoseconds) throws(RESPError) {
    guard !replies.isEmpty else { return }
    let (waits, hasRefusals) = state.withLock { state -> ([Wait?]?, Bool) in
      guard replies.count <= state.pipeline.count else { return (nil, false) }
      let waits = replies.map { _ in state.pipeline.takeReply(at: now) ?? nil }
      return (waits, !state.refusals.isEmpty)
    }
    guard let waits else { throw .unrequestedReply }
    let isShifted = zip(waits, replies).contains { wait, reply in
      wait?.isMark == true && wait?.command.admits(reply) == false
    }
    guard !isShifted else {
      let error = RESPError.shiftedReply
      let lost = RedisConnectionError.lost(reason: error.description)
      end(waits, with: waits.map { _ in .failure(lost) })
      throw error
    }
    if hasRefusals || replies.contains(where: { if case .error = $0 { true } else { false } }) {
      judge(replies, to: waits, at: now)
    }
    end(waits, with: replies.map { Self.result(of: $0) })
  }

  /// The result of a command: an error reply is a failure.
  private static func result(of reply: RESPValue) -> Result<RESPValue, any Error> {
    if case .error(let error) = reply { .failure(error) } else { .success(reply) }
  }
}
