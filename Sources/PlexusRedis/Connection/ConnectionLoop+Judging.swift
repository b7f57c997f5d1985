internal import PlexusSupport

// MARK: - The server

extension ConnectionLoop {
  /// Asks the server for its role, and ends the connection if it is not a master.
  ///
  /// - Parameter confirm: Called if it is one, after the events of all messages that it has sent before its answer.
  func probe(_ confirm: @escaping @Sendable () -> Void) {
    guard let peer = state.withLock({ $0.peer }) else { return }
    post(RedisCommand("HELLO")).onResult { [weak self] result in
      guard let self, case .success(let reply) = result else { return }
      if let failure = IntroductionState.failure(of: reply, from: settings.peer, at: peer) {
        end(because: failure, of: peer)
      } else {
        confirm()
      }
    }
  }

  /// Records that a cluster does not execute a command at present: trying again did not help.
  ///
  /// Another server can be the one that executes the next one: only time tells that it has ended.
  func note(_ error: RedisError, of command: RedisCommand) {
    note(RedisEngineError(error, of: command.purpose, needing: []), of: Self.clusterPurpose)
  }

  /// Forgets such commands before a time.
  func forgetNotes(before time: Nanoseconds) {
    let hasChanged = state.withLock { state in
      state.refusals.forget(Self.clusterPurpose, before: time)
      return state.refusals.current != state.reportedRefusal
    }
    if hasChanged { wake.wake() }
  }

  /// The kind of all commands that a cluster does not execute.
  private static let clusterPurpose = "commands of a cluster"

  /// Records errors in a reply, after which the connection may have to end.
  func note(_ errors: [RedisError], of purpose: String) {
    guard !errors.isEmpty else { return }
    for error in errors { note(error, of: purpose, needing: []) }
    let (socket, verdict) = state.withLock { ($0.socket, $0.verdict) }
    if verdict != nil { socket?.shutDown() }
    wake.wake()
  }

  /// Connects to another master at once, unless it is the present one.
  func follow(_ master: RedisAddress) {
    let peer = state.withLock { state -> RedisAddress? in
      guard state.peer != master else { return nil }
      state.hurries = true
      return state.peer
    }
    if let peer { end(because: superseded(peer), of: peer) }
    wake.wake()
  }

  /// The error of a server that is no longer used, because another one takes its place.
  func superseded(_ address: RedisAddress) -> RedisConnectionError {
    let isTurn = settings.peer == .clusterNode
    return .superseded(
      address: address,
      by: isTurn
        ? "another server of the cluster is asked for the masters"
        : "the sentinels have made another one the master"
    )
  }

  /// Ends the connection to a server, and begins another one.
  private func end(because verdict: RedisConnectionError, of peer: RedisAddress) {
    let socket = state.withLock { state -> RedisSocket? in
      guard state.peer == peer else { return nil }
      state.verdict = verdict
      return state.socket
    }
    socket?.shutDown()
  }

  /// Replaces the credentials of the connection.
  ///
  /// - Returns: The time at which the new ones expire.
  func renew(
    from source: RedisConnection.Credentials
  ) async throws -> ContinuousClock.Instant? {
    let purpose = "the credentials"
    let new: RedisCredentials
    do {
      new = try await source()
    } catch {
      // A renewal that ends with its connection says nothing about the credentials.
      if !Task.isCancelled {
        let reason = "they failed with \(error)"
        let error = RedisConnectionError.noCredentials(address: settings.address, reason: reason)
        note(RedisEngineError(error), of: purpose)
      }
      throw error
    }
    let words: [RedisCommand.Argument] = [.text(new.user ?? "default"), .text(new.password)]
    let command = RedisCommand("AUTH", words)
    _ = try await send([command])[0].get()
    // The next renewal can be hours away.
    state.withLock { state in
      for purpose in [purpose, command.purpose] { state.refusals.end(purpose) }
    }
    wake.wake()
    return new.expires
  }
}

// MARK: - Errors of the server

extension ConnectionLoop {
  /// Records the errors among some replies, and the commands that are no longer refused.
  func judge(_ replies: [RESPValue], to waits: [Wait?], at now: Nanoseconds) {
    for (reply, wait) in zip(replies, waits) {
      let command = wait?.command
      let purpose = command?.purpose ?? "commands"
      guard case .error(let error) = reply else {
        state.withLock { $0.refusals.succeed(purpose, at: now) }
        continue
      }
      note(error, of: purpose, needing: command?.script?.commands ?? [])
    }
    reportRefusal()
  }

  /// Records an error reply, after which the connection may have to end.
  private func note(_ error: RedisError, of purpose: String, needing commands: [String]) {
    guard let kind = error.kind else { return }
    // Such a command is sent elsewhere, or again.
    let isRedirection = settings.peer == .clusterMaster && error.isRedirection
    guard !isRedirection else { return }
    state.withLock { state in
      state.traffic.fail(kind)
      if error.endsConnection {
        if let peer = state.peer {
          state.verdict = state.verdict ?? .unusable(address: peer, error)
        }
      } else {
        let refusal = RedisEngineError(error, of: purpose, needing: commands)
        state.refusals.refuse(purpose, refusal, at: .now)
      }
    }
  }

  /// Records that something is refused.
  private func note(_ error: RedisEngineError, of purpose: String) {
    state.withLock { state in
      state.traffic.fail(error.kind)
      state.refusals.refuse(purpose, error, at: .now)
    }
    wake.wake()
  }

  /// Reports a change of what the server refuses, on the connection's thread.
  func reportRefusal() {
    let change = state.withLock { state -> RedisEngineError?? in
      let current = state.refusals.current
      guard current != state.reportedRefusal else { return nil }
      state.reportedRefusal = current
      return .some(current)
    }
    if let change { onEvent(.refusal(change)) }
  }
}
