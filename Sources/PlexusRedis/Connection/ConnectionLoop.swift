internal import PlexusSupport

/// The thread of a connection, and the state that it shares with the callers.
final class ConnectionLoop: Sendable {
  /// The wait of a caller for the reply to one of its commands.
  private struct Wait: Sendable {
    let batch: Locked<Batch>
    /// The place of the command among those of the caller.
    let index: Int
  }

  /// The action when all commands of a caller are answered.
  fileprivate enum Listener: Sendable {
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
  fileprivate struct Batch: Sendable {
    let commands: [RedisCommand]
    var listener: Listener?
    /// The numbers of the commands, once they have some.
    var numbers: [Int] = []
    var isCancelled = false
    private(set) var results: [Result<RESPValue, any Error>?]
    private(set) var openCount: Int

    init(_ commands: [RedisCommand]) {
      self.commands = commands
      results = Array(repeating: nil, count: commands.count)
      openCount = commands.count
    }

    /// Notes the numbers of the commands.
    ///
    /// - Returns: Whether the caller was cancelled before.
    mutating func take(_ numbers: [Int]) -> Bool {
      self.numbers = numbers
      return isCancelled
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

  private struct State: Sendable {
    var pipeline: PipelineState<Wait>
    var socket: RedisSocket?
    /// Whether the thread waits without a limit, so that a new command has to wake it.
    var isIdle = false
    /// The time at which the server has sent something, or was connected.
    var lastActivity: Nanoseconds = 0
    var isStopped = false
    var hasEnded = false
    /// The tasks that wait for the end of the thread.
    var ending: [CheckedContinuation<Void, Never>] = []
  }

  private let settings: RedisConnection.Settings
  private let onEvent: @Sendable (RedisConnection.Event) -> Void
  private let commandTimeout: Nanoseconds
  private let wake: WakePipe
  private let lookup: NameLookup
  private let state: Locked<State>

  init(
    _ settings: RedisConnection.Settings,
    onEvent: @escaping @Sendable (RedisConnection.Event) -> Void
  ) throws(SystemError) {
    self.settings = settings
    self.onEvent = onEvent
    commandTimeout = max(Nanoseconds(settings.commandTimeout), 1_000_000)
    wake = try WakePipe()
    lookup = NameLookup(wake, settings.resolve)
    state = Locked(State(pipeline: PipelineState(outboxLimit: settings.outboxBytes)))
  }

  func start() throws(SystemError) {
    _ = try LoopThread { [self] in run() }
  }

  /// The commands without a reply, and the bytes that wait to be sent.
  var load: (commands: Int, bytes: Int) {
    state.withLock { ($0.pipeline.count, $0.pipeline.outboxBytes) }
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
  /// Sends commands together and waits for their replies.
  ///
  /// - Returns: A result for each command, in the same order.
  func send(_ commands: [RedisCommand]) async -> [Result<RESPValue, any Error>] {
    guard !commands.isEmpty, !Task.isCancelled else {
      return commands.map { _ in .failure(CancellationError()) }
    }
    let batch = Locked(Batch(commands))
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        batch.withLock { $0.listener = .task(continuation) }
        let (numbers, _) = add(commands, of: batch)
        if batch.withLock({ $0.take(numbers) }) { leave(numbers) }
      }
    } onCancel: {
      let numbers = batch.withLock { batch in
        batch.isCancelled = true
        return batch.numbers
      }
      leave(numbers)
    }
    return batch.withLock { $0.results }.map { $0 ?? .failure(CancellationError()) }
  }

  /// A command that was sent without waiting for its reply.
  struct Posted: Sendable {
    fileprivate let batch: Locked<Batch>
    /// Whether the system has all of its bytes: the server gets them although this process ends.
    let isWritten: Bool

    /// Calls a handler with the result, on this thread or on that of the connection.
    ///
    /// The handler must not block.
    ///
    /// - Parameter handler: The handler, of which a command has one.
    func onResult(_ handler: @escaping @Sendable (Result<RESPValue, any Error>) -> Void) {
      let listener = Listener.handler { [batch] in
        handler(batch.withLock { $0.results[0] } ?? .failure(CancellationError()))
      }
      let isAnswered = batch.withLock { content in
        if content.openCount > 0 { content.listener = listener }
        return content.openCount == 0
      }
      if isAnswered { listener.notify() }
    }
  }

  /// Sends a command without waiting for its reply.
  func post(_ command: RedisCommand) -> Posted {
    let batch = Locked(Batch([command]))
    return Posted(batch: batch, isWritten: add([command], of: batch).isWritten)
  }

  /// Queues commands with one deadline, and writes them if no other thread does.
  ///
  /// - Parameters:
  ///   - commands: The commands.
  ///   - batch: Their batch.
  /// - Returns: The numbers of the commands that were not refused, the batch having the errors of the others, and whether
  ///   the system has the bytes of all commands.
  private func add(
    _ commands: [RedisCommand],
    of batch: Locked<Batch>
  ) -> (numbers: [Int], isWritten: Bool) {
    let now = Nanoseconds.now
    let deadline = now + commandTimeout
    var numbers: [Int] = []
    numbers.reserveCapacity(commands.count)
    var refused: [(Wait, RedisConnectionError)] = []
    var own: PipelineState<Wait>.Turn?
    let (socket, wasIdle) = state.withLock { state in
      let isOverdue = state.pipeline.isOverdue(
        at: now,
        silence: now - state.lastActivity,
        limit: commandTimeout
      )
      for (index, command) in commands.enumerated() {
        let wait = Wait(batch: batch, index: index)
        guard !isOverdue else {
          let reason = "it does not answer"
          refused.append((wait, .unreachable(address: settings.address, reason: reason)))
          continue
        }
        let admission = state.pipeline.add(command.encoded, deadline: deadline) {
          numbers.append($0)
          return wait
        }
        switch admission {
        case .writes(let turn): own = turn
        case .queued: break
        case .refused(let error): refused.append((wait, error))
        }
      }
      own = own.map { state.pipeline.extend($0) }
      defer { state.isIdle = false }
      return (state.socket, state.isIdle)
    }
    if wasIdle { wake.wake() }
    var isWritten = false
    if let own, let socket { isWritten = write(own, to: socket) }
    for (wait, error) in refused { end([wait], with: [.failure(error)]) }
    return (numbers, isWritten)
  }

  private func leave(_ numbers: [Int]) {
    let waits = state.withLock { state in numbers.compactMap { state.pipeline.leave($0) } }
    end(waits, with: waits.map { _ in .failure(CancellationError()) })
  }

  /// Notes results, and resumes each caller that has all of its results.
  private func end(_ waits: [Wait?], with results: [Result<RESPValue, any Error>]) {
    var index = 0
    while index < waits.count {
      guard let batch = waits[index]?.batch else {
        index += 1
        continue
      }
      // The replies to commands that were sent together mostly come together.
      let listener = batch.withLock { content in
        var listener: Listener?
        while index < waits.count, let wait = waits[index], wait.batch === batch {
          listener = content.note(results[index], at: wait.index) ?? listener
          index += 1
        }
        return listener
      }
      listener?.notify()
    }
  }

  /// Writes bytes, and those of commands that are queued meanwhile; after some of these the thread takes over.
  ///
  /// - Returns: Whether the system has the bytes of the turn.
  @discardableResult
  private func write(_ turn: PipelineState<Wait>.Turn, to socket: RedisSocket) -> Bool {
    var next: PipelineState<Wait>.Turn? = turn
    var turns = 0
    while let turn = next {
      var sent = 0
      while sent < turn.bytes.count {
        switch socket.write(turn.bytes[sent...]) {
        case .bytes(let count):
          sent += count
        case .wouldBlock:
          postpone(turn, sent)
          return turns > 0
        case .ended:
          // The thread detects the failure, and resumes the callers.
          socket.shutDown()
          return turns > 0
        }
      }
      turns += 1
      guard turns < 8 else {
        postpone(turn, sent)
        return true
      }
      next = state.withLock { $0.pipeline.written(turn) }
    }
    return true
  }

  private func postpone(_ turn: PipelineState<Wait>.Turn, _ sent: Int) {
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
        let turn = state.withLock { state in
          state.socket = socket
          state.lastActivity = .now
          return state.pipeline.connect()
        }
        onEvent(.connected)
        if let turn { write(turn, to: socket) }
        let end = serve(socket, &parser)
        // A server that answers nothing but the introduction is not asked again and again.
        if end.hasAnswered { backoff.reset() }
        let error = RedisConnectionError.lost(reason: end.reason)
        disconnect(error, refuses: end.isHang)
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
    let (waits, socket) = state.withLock { state in
      (state.pipeline.disconnect(refuses ? error : nil), state.socket.take())
    }
    // It is closed when the last thread that writes to it has left.
    socket?.shutDown()
    end(waits, with: waits.map { _ in .failure(error) })
  }

  private func pause(_ time: Nanoseconds) {
    let end = Nanoseconds.now + time
    while !isStopped {
      let remaining = end - .now
      guard remaining > 0 else { return }
      wake.wait(atMost: remaining)
      expire()
    }
  }

  /// Fails the callers that have waited too long.
  private func expire() {
    let expired = state.withLock { $0.pipeline.expire(at: .now) }
    let results = expired.map { wait -> Result<RESPValue, any Error> in
      let command = wait.batch.withLock { $0.commands[wait.index].name }
      return .failure(
        RedisConnectionError.timedOut(command: command, after: settings.commandTimeout)
      )
    }
    end(expired, with: results)
  }

  /// Connects, and introduces itself.
  private func connect(_ parser: inout RESPParser) throws(RedisConnectionError) -> RedisSocket {
    let deadline = Nanoseconds.now + Nanoseconds(settings.connectTimeout)
    let socket = try RedisSocket.connect(to: settings.address, by: lookup, deadline: deadline) {
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
        let replies: [RESPValue]
        do throws(RESPError) {
          replies = try Self.replies(from: &parser)
        } catch {
          throw failure(error.description)
        }
        guard let reply = replies.first else { continue }
        if case .error(let error) = reply {
          throw .refused(address: settings.address, error)
        }
        guard replies.count == 1, Self.isExpected(reply, to: command) else {
          throw failure("the server does not answer \(command.name) as one that speaks RESP3")
        }
        return
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

  /// Returns the values that have arrived, without messages.
  private static func replies(from parser: inout RESPParser) throws(RESPError) -> [RESPValue] {
    var replies: [RESPValue] = []
    while let value = try parser.next() {
      if case .push = value { continue }
      replies.append(value)
    }
    return replies
  }

  /// Returns whether a server has understood a command of the introduction.
  private static func isExpected(_ reply: RESPValue, to command: RedisCommand) -> Bool {
    guard command.name == "HELLO" else { return reply.text == "OK" }
    guard case .map(let fields) = reply else { return false }
    return stride(from: 0, to: fields.count - 1, by: 2).contains { index in
      fields[index].text == "proto" && fields[index + 1].integer == 3
    }
  }

  /// The end of a connection.
  private struct End {
    let reason: String
    /// Whether the server has answered a command.
    var hasAnswered = false
    /// Whether the server did not answer in time.
    var isHang = false
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
      if isStopped { return End(reason: "it was closed", hasAnswered: hasAnswered) }
      // The server hangs if it has answered neither a command whose caller has left nor anything after it.
      let end = oldest.map { max($0, lastActivity) + commandTimeout }
      if let end, now >= end {
        let reason = "the server has not answered for twice the command timeout"
        return End(reason: reason, hasAnswered: hasAnswered, isHang: true)
      }
      readiness.removeAll()
      readiness.watch(socket.descriptor, for: isPostponed ? [.readable, .writable] : .readable)
      readiness.watch(wake.readEnd, for: .readable)
      readiness.wait(milliseconds: milliseconds(until: [next, end], idleSince: lastActivity, now))
      if readiness[1].contains(.readable) { wake.rest() }
      if readiness[0].contains(.writable), let turn = state.withLock({ $0.pipeline.resume() }) {
        write(turn, to: socket)
      }
      expire()
      let flags = readiness[0]
      guard flags.contains(.readable) || flags.contains(.gone) else { continue }
      switch socket.read(into: &buffer) {
      case .bytes(let count):
        let time = Nanoseconds.now
        lastActivity = time
        state.withLock { $0.lastActivity = time }
        parser.append(buffer[..<count])
        do throws(RESPError) {
          hasAnswered = try receive(from: &parser) || hasAnswered
        } catch {
          // Such a server is asked less and less often, although it has answered.
          return End(reason: error.description)
        }
      case .wouldBlock:
        break
      case .ended(let reason):
        return End(reason: reason, hasAnswered: hasAnswered)
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
  ///
  /// - Returns: Whether a reply was among them.
  private func receive(from parser: inout RESPParser) throws(RESPError) -> Bool {
    var replies: [RESPValue] = []
    var hasReplies = false
    func handOut() throws(RESPError) {
      let ready = replies
      replies = []
      hasReplies = hasReplies || !ready.isEmpty
      try hand(out: ready)
    }
    while let value = try next(of: &parser, orElse: handOut) {
      guard case .push(let elements) = value, !isReply(elements) else {
        replies.append(value)
        continue
      }
      try handOut()
      onEvent(.push(elements))
    }
    try handOut()
    return hasReplies
  }

  /// Takes out the next value.
  ///
  /// - Parameters:
  ///   - parser: The parser.
  ///   - handOut: Called if the bytes cannot be parsed: the replies before them are valid.
  /// - Returns: The value; `nil` if more bytes are needed.
  /// - Throws: The error of the parser.
  private func next(
    of parser: inout RESPParser,
    orElse handOut: () throws(RESPError) -> Void
  ) throws(RESPError) -> RESPValue? {
    do throws(RESPError) {
      return try parser.next()
    } catch {
      try handOut()
      throw error
    }
  }

  /// Returns whether a push answers a command: each command for a channel has one.
  private func isReply(_ push: [RESPValue]) -> Bool {
    guard let kind = push.first?.bytes else { return false }
    return kind.elementsEqual("subscribe".utf8) || kind.elementsEqual("unsubscribe".utf8)
  }

  /// Passes replies to the callers of their commands.
  ///
  /// If there are more replies than commands, none is passed on: each of them can belong to another command.
  private func hand(out replies: [RESPValue]) throws(RESPError) {
    guard !replies.isEmpty else { return }
    let waits = state.withLock { state -> [Wait?]? in
      guard replies.count <= state.pipeline.count else { return nil }
      return replies.map { _ in state.pipeline.takeReply() ?? nil }
    }
    guard let waits else { throw .unrequestedReply }
    end(waits, with: replies.map { Self.result(of: $0) })
  }

  /// The result of a command: an error reply is a failure.
  private static func result(of reply: RESPValue) -> Result<RESPValue, any Error> {
    if case .error(let error) = reply { .failure(error) } else { .success(reply) }
  }
}
