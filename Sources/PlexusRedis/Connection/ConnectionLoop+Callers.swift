internal import PlexusSupport

// MARK: - Callers

extension ConnectionLoop {
  /// Sends commands together and waits for their replies.
  ///
  /// - Parameters:
  ///   - commands: The commands.
  ///   - deadline: A time at which they end before the command timeout, if there is one.
  /// - Returns: A result for each command, in the same order.
  func send(
    _ commands: [RedisCommand],
    until deadline: Nanoseconds? = nil
  ) async -> [Result<RESPValue, any Error>] {
    guard !commands.isEmpty, !Task.isCancelled else {
      return commands.map { _ in .failure(CancellationError()) }
    }
    let batch = Locked(Batch(commands))
    let timer = deadline.map { deadline in
      Task.detached { [self] in
        try await Task.sleep(for: .nanoseconds(max(0, deadline - .now)))
        let error = RedisConnectionError.timedOut(
          command: commands[commands.count - 1].name,
          after: settings.commandTimeout
        )
        state.withLock { $0.traffic.fail(.timedOut) }
        leave(batch, because: error)
      }
    }
    defer { timer?.cancel() }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        batch.withLock { $0.listener = .task(continuation) }
        let (numbers, _) = add(commands, of: batch)
        if let error = batch.withLock({ $0.take(numbers) }) { leave(numbers, because: error) }
      }
    } onCancel: {
      leave(batch, because: CancellationError())
    }
    return batch.withLock { $0.results }.map { $0 ?? .failure(CancellationError()) }
  }

  /// A command that was sent without waiting for its reply.
  struct Posted: Sendable {
    let batch: Locked<Batch>
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
        let wait = Wait(batch: batch, index: index, isMark: command.mark != nil)
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
        case .refused(let error):
          // Other reasons are counted when the connection breaks.
          if case .outboxFull = error { state.traffic.fail(.tooLarge) }
          refused.append((wait, error))
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

  /// Ends the wait of a caller, also if its commands have no numbers yet.
  private func leave(_ batch: Locked<Batch>, because error: any Error) {
    let numbers = batch.withLock { batch in
      batch.departure = batch.departure ?? error
      return batch.numbers
    }
    leave(numbers, because: error)
  }

  private func leave(_ numbers: [Int], because error: any Error) {
    let waits = state.withLock { state in numbers.compactMap { state.pipeline.leave($0) } }
    end(waits, with: waits.map { _ in .failure(error) })
  }

  /// Notes results, and resumes each caller that has all of its results.
  func end(_ waits: [Wait?], with results: [Result<RESPValue, any Error>]) {
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
  func write(_ turn: PipelineState<Wait>.Turn, to socket: RedisSocket) -> Bool {
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
