internal import PlexusSupport

/// The making of connections: the address is resolved for each of them, and the server's role is checked.
///
/// It is used by the thread of a connection only.
struct ServerConnector {
  /// A connection that was made.
  struct Connected {
    let socket: RedisSocket
    let parser: RESPParser
    /// The address of the server itself.
    let address: RedisAddress
    /// The checks of the spaces, if there were any.
    let checks: RestartChecksState?
    /// The time at which the credentials expire, if they do.
    let expires: ContinuousClock.Instant?
  }

  private let settings: RedisConnection.Settings
  private let wake: WakePipe
  private let credentials: Inquiry<RedisCredentials>
  private let sentinelCredentials: Inquiry<RedisCredentials>
  /// The lookups of the names in use.
  private var lookups: [RedisAddress: NameLookup] = [:]
  /// The number of attempts that have failed in a row.
  private var failureCount = 0
  /// The servers that have refused the last attempt for good, if several are tried in turn.
  private var refusing: Set<RedisAddress> = []

  init(_ settings: RedisConnection.Settings, _ wake: WakePipe) {
    self.settings = settings
    self.wake = wake
    credentials = Inquiry(wake)
    sentinelCredentials = Inquiry(wake)
  }

  /// Connects, and introduces itself.
  ///
  /// - Parameter isStopped: Called between waits of at most 100 milliseconds.
  /// - Returns: The connection to a master, or to a sentinel.
  /// - Throws: The reason why there is none.
  mutating func connect(
    isStopped: () -> Bool
  ) throws(RedisConnectionError) -> Connected {
    do throws(RedisConnectionError) {
      let connected = try attempt(isStopped)
      (failureCount, refusing) = (0, [])
      return connected
    } catch {
      let servers = settings.candidates?() ?? []
      if !servers.isEmpty {
        let server = servers[failureCount % servers.count]
        if error.isTemporary { refusing.remove(server) } else { refusing.insert(server) }
      }
      failureCount += 1
      // Another server can have the right password already. Only if all of them refuse it, it is wrong.
      guard error.isTemporary || servers.allSatisfy(refusing.contains) else {
        throw .unreachable(address: settings.address, reason: "\(error)")
      }
      throw error
    }
  }

  private mutating func attempt(
    _ isStopped: () -> Bool
  ) throws(RedisConnectionError) -> Connected {
    let deadline = Nanoseconds.now + Nanoseconds(settings.connectTimeout)
    let address = try nextAddress(deadline, isStopped)
    lookups = lookups.filter { known, lookup in
      known == address || lookup.isRunning
        || settings.sentinels?.addresses.contains(known) ?? false
    }
    let isSentinel = settings.peer == .sentinel
    let limits: [IntroductionState.Peer: Int] = [
      .sentinel: SentinelState.largestReply, .clusterNode: SlotsState.largestReply,
    ]
    let known = try ask(
      isSentinel ? sentinelCredentials : credentials,
      settings.peerCredentials,
      for: address,
      deadline,
      isStopped
    )
    let socket = try open(address, until: deadline, isStopped)
    var parser = RESPParser(maximumSize: limits[settings.peer] ?? settings.maximumReplyBytes)
    var introduction = IntroductionState(
      to: settings.peer,
      at: address,
      known,
      name: settings.name,
      database: isSentinel ? 0 : settings.database,
      setup: settings.setup,
      // In a cluster, a space is checked when it is first used on a connection: other masters have the keys of the others.
      checks: settings.peer == .master ? settings.checks?() : nil
    )
    try introduce(&introduction, on: socket, address, &parser, deadline, isStopped)
    return Connected(
      socket: socket,
      parser: parser,
      address: address,
      checks: introduction.checks,
      expires: known?.expires
    )
  }

  /// Chooses the server of an attempt: after a failure, another one of the known servers.
  private mutating func nextAddress(
    _ deadline: Nanoseconds,
    _ isStopped: () -> Bool
  ) throws(RedisConnectionError) -> RedisAddress {
    if let servers = settings.candidates?(), !servers.isEmpty {
      return servers[failureCount % servers.count]
    }
    guard let sentinels = settings.sentinels else { return settings.address }
    guard settings.peer == .sentinel else {
      return try askSentinels(sentinels, deadline, isStopped)
    }
    return sentinels.addresses[failureCount % sentinels.addresses.count]
  }

  // MARK: - Sentinels

  /// Asks the sentinels in turn for the address of the master.
  private mutating func askSentinels(
    _ sentinels: Sentinels,
    _ deadline: Nanoseconds,
    _ isStopped: () -> Bool
  ) throws(RedisConnectionError) -> RedisAddress {
    var failures: [RedisConnectionError] = []
    let order = sentinels.order
    for (index, sentinel) in order.enumerated() where !isStopped() {
      let now = Nanoseconds.now
      // One that does not answer leaves time for the others, and for the master.
      let share = max(0, deadline - now) / Nanoseconds(order.count - index + 1)
      do throws(RedisConnectionError) {
        return try askSentinel(sentinel, sentinels, now + share, isStopped)
      } catch {
        failures.append(error)
      }
    }
    // Only if all of them say so, the name or the password is wrong.
    throw failures.first(where: \.isTemporary) ?? failures.first
      ?? .unreachable(address: settings.address, reason: "the connection is closed")
  }

  private mutating func askSentinel(
    _ sentinel: RedisAddress,
    _ sentinels: Sentinels,
    _ deadline: Nanoseconds,
    _ isStopped: () -> Bool
  ) throws(RedisConnectionError) -> RedisAddress {
    let known = try ask(
      sentinelCredentials,
      settings.sentinelCredentials,
      for: sentinel,
      deadline,
      isStopped
    )
    let socket = try open(sentinel, until: deadline, isStopped)
    var parser = RESPParser(maximumSize: SentinelState.largestReply)
    var introduction = IntroductionState(to: .sentinel, at: sentinel, known, name: settings.name)
    try introduce(&introduction, on: socket, sentinel, &parser, deadline, isStopped)
    let replies = try exchange(
      [sentinels.question],
      on: socket,
      sentinel,
      &parser,
      deadline,
      isStopped
    )
    return try sentinels.answer(replies[0], from: sentinel)
  }

  // MARK: - One server

  /// Asks for credentials.
  private func ask(
    _ inquiry: Inquiry<RedisCredentials>,
    _ source: RedisConnection.Credentials?,
    for address: RedisAddress,
    _ deadline: Nanoseconds,
    _ isStopped: () -> Bool
  ) throws(RedisConnectionError) -> RedisCredentials? {
    guard let source else { return nil }
    do throws(Inquiry<RedisCredentials>.Failure) {
      return try inquiry.value(until: deadline, of: source, isStopped: isStopped)
    } catch {
      throw .noCredentials(address: address, reason: error.reason)
    }
  }

  private mutating func open(
    _ address: RedisAddress,
    until deadline: Nanoseconds,
    _ isStopped: () -> Bool
  ) throws(RedisConnectionError) -> RedisSocket {
    let lookup = lookups[address] ?? NameLookup(wake, settings.resolve, settings.lookups)
    lookups[address] = lookup
    return try RedisSocket.connect(
      to: address,
      by: lookup,
      // Of a name with several addresses, only one can be that of the master.
      beginningWith: failureCount,
      deadline: deadline,
      isStopped: isStopped
    )
  }

  private func introduce(
    _ introduction: inout IntroductionState,
    on socket: RedisSocket,
    _ address: RedisAddress,
    _ parser: inout RESPParser,
    _ deadline: Nanoseconds,
    _ isStopped: () -> Bool
  ) throws(RedisConnectionError) {
    while true {
      let commands = introduction.next
      guard !commands.isEmpty else { return }
      let replies = try exchange(commands, on: socket, address, &parser, deadline, isStopped)
      if let failure = introduction.answer(replies) { throw failure }
    }
  }

  /// Sends commands, at least one, together, and waits for the reply to each of them before any other command is sent.
  private func exchange(
    _ commands: [RedisCommand],
    on socket: RedisSocket,
    _ address: RedisAddress,
    _ parser: inout RESPParser,
    _ deadline: Nanoseconds,
    _ isStopped: () -> Bool
  ) throws(RedisConnectionError) -> [RESPValue] {
    func failure(_ reason: String) -> RedisConnectionError { Self.failure(reason, at: address) }
    let bytes = commands.flatMap(\.encoded)
    var replies: [RESPValue] = []
    var sent = 0
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      if sent < bytes.count {
        switch socket.write(bytes[sent...]) {
        case .bytes(let count): sent += count
        case .wouldBlock: break
        case .ended(let reason): throw failure(reason)
        }
      }
      try receive(&replies, to: commands, from: socket, address, &parser, &buffer)
      if replies.count == commands.count { return replies }
      guard !isStopped() else { throw .closed }
      let remaining = deadline - .now
      guard remaining > 0 else {
        throw failure("the server did not answer \(commands[replies.count].name) in time")
      }
      var readiness = Readiness()
      readiness.watch(
        socket.descriptor,
        for: sent < bytes.count ? [.readable, .writable] : .readable
      )
      readiness.wait(milliseconds: Int32(min(remaining / 1_000_000 + 1, 50)))
    }
  }

  /// Appends the replies that have arrived, at most one for each command.
  private func receive(
    _ replies: inout [RESPValue],
    to commands: [RedisCommand],
    from socket: RedisSocket,
    _ address: RedisAddress,
    _ parser: inout RESPParser,
    _ buffer: inout [UInt8]
  ) throws(RedisConnectionError) {
    switch socket.read(into: &buffer) {
    case .bytes(let count): parser.append(buffer[..<count])
    case .wouldBlock: return
    case .ended(let reason): throw Self.failure(reason, at: address)
    }
    let values: (replies: [RESPValue], hasFlush: Bool)
    do throws(RESPError) {
      values = try Self.values(from: &parser)
    } catch {
      throw Self.failure(error.description, at: address)
    }
    if values.hasFlush { throw Self.failure(RestartChecksState.changeReason, at: address) }
    replies += values.replies
    if replies.count > commands.count {
      throw IntroductionState.nonsense(commands[commands.count - 1].name, at: address)
    }
  }

  private static func failure(_ reason: String, at address: RedisAddress) -> RedisConnectionError {
    // A server refuses a certificate after the handshake.
    reason.contains("certificate")
      ? .untrusted(address: address, reason: reason)
      : .unreachable(address: address, reason: reason)
  }

  /// Returns the replies that have arrived, and whether a message says that all keys have changed.
  private static func values(
    from parser: inout RESPParser
  ) throws(RESPError) -> (replies: [RESPValue], hasFlush: Bool) {
    var replies: [RESPValue] = []
    var hasFlush = false
    while let value = try parser.next() {
      if case .push(let elements) = value {
        hasFlush = hasFlush || IntroductionState.isFlush(elements)
      } else {
        replies.append(value)
      }
    }
    return (replies, hasFlush)
  }
}
