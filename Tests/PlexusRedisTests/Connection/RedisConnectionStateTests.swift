import LoopbackOrigin
import PlexusTesting
import TestSupport
import Testing

@testable import PlexusRedis

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `A connection to Redis` {
  /// The changes of a connection.
  enum Change: Sendable, Hashable {
    case connected
    case disconnected(RedisConnectionError)
    case push([RESPValue])
  }

  let changes = Log<Change>()

  private func connect(
    to address: RedisAddress,
    _ configure: (inout RedisConnection.Settings) -> Void = { _ in }
  ) throws -> RedisConnection {
    var settings = RedisConnection.Settings(address)
    // What a test waits for does not depend on how busy the machine is.
    settings.commandTimeout = .seconds(60)
    settings.connectTimeout = .seconds(60)
    configure(&settings)
    return try RedisConnection(settings) { [changes] event in
      switch event {
      case .connected: changes.append(.connected)
      case .disconnected(let error): changes.append(.disconnected(error))
      case .push(let elements): changes.append(.push(elements))
      case .refusal: break
      }
    }
  }

  /// Waits until the connection has been made so many times.
  private func connections(_ count: Int) async {
    await changes.wait { $0.count { $0 == .connected } >= count }
  }

  /// Waits for the end of a connection, or for a failed attempt to connect.
  private func disconnection(_ isExpected: @escaping @Sendable (RedisConnectionError) -> Bool) async
  {
    await changes.wait { changes in
      changes.contains {
        if case .disconnected(let error) = $0 { isExpected(error) } else { false }
      }
    }
    let errors = changes.entries.compactMap { change in
      if case .disconnected(let error) = change { error } else { nil }
    }
    #expect(errors.contains(where: isExpected), "\(errors)")
  }

  @Test func `a connection to Redis gives every caller the reply to its own command`() async throws
  {
    let server = try RedisServer()
    let connection = try connect(to: server.address)
    await connections(1)
    try await withThrowingTaskGroup { group in
      for task in 0..<50 {
        group.addTask {
          for number in 0..<100 {
            let text = "\(task).\(number)"
            let reply = try await connection.send(RedisCommand("ECHO", [.text(text)]))
            #expect(reply.text == text)
          }
        }
      }
      try await group.waitForAll()
    }
  }

  @Test(.guarantee(.largeOperationsAreSentInParts))
  func `commands that are sent together wait for none of their replies`() async throws {
    let server = try RedisServer()
    let connection = try connect(to: server.address)
    await connections(1)
    let last = RedisCommand("ECHO", [.text(String(repeating: "x", count: 1_000))])
    let results = await connection.send([
      RedisCommand("PING"), RedisCommand("CLIENT", ["INFO"]), last, last,
    ])
    // What the server has received when it executes the second command.
    let fields = try results[1].get().text?.split(separator: " ") ?? []
    let received = fields.first { $0.hasPrefix("qbuf=") }.flatMap { Int($0.dropFirst(5)) }
    #expect(try #require(received) > 2 * last.encoded.count)
  }

  @Test func `commands that are sent together have one deadline, and are refused without room`()
    async throws
  {
    let server = try RedisServer()
    let first = try connect(to: server.address)
    await connections(1)
    server.suspend()
    let command = RedisCommand("ECHO", [.text(String(repeating: "x", count: 100))])
    // The server is reached, but does not answer yet: there is room for two commands.
    let connection = try connect(to: server.address) {
      $0.outboxBytes = 2 * command.encoded.count + 1
      $0.commandTimeout = .milliseconds(50)
    }
    let results = await connection.send([command, command, command, RedisCommand("PING")])
    server.resume()
    let errors = results.map { result -> RedisConnectionError? in
      if case .failure(let error as RedisConnectionError) = result { error } else { nil }
    }
    let late = RedisConnectionError.timedOut(command: "ECHO", after: .milliseconds(50))
    let refused: [RedisConnectionError?] = [command, RedisCommand("PING")].map {
      .outboxFull(
        bytes: $0.encoded.count,
        waiting: 2 * command.encoded.count,
        limit: 2 * command.encoded.count + 1
      )
    }
    #expect(errors == [late, late] + refused)
    await first.close()
  }

  @Test func `each of the commands that are sent together has its own result`() async throws {
    let server = try RedisServer()
    let connection = try connect(to: server.address)
    await connections(1)
    let commands = (0..<1_000).map { number in
      number == 500
        ? RedisCommand("UNKNOWN") : RedisCommand("ECHO", [.text("\(number)")])
    }
    for (number, result) in await connection.send(commands).enumerated() {
      switch result {
      case .success(let reply): #expect(reply.text == "\(number)")
      case .failure(let error): #expect(number == 500 && error is RedisError)
      }
    }
    #expect(await connection.send([]).isEmpty)
    let cancelled = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return await connection.send(commands)
    }
    for result in await cancelled.value {
      #expect(throws: CancellationError.self) { try result.get() }
    }
  }

  @Test func `a connection to Redis holds commands until it is there`() async throws {
    let server = try RedisServer()
    // The server may not listen yet, and no attempt has failed.
    let connection = try connect(to: server.address)
    let task = Task { try await connection.send(RedisCommand("PING")) }
    do {
      #expect(try await task.value.text == "PONG")
    } catch RedisConnectionError.unreachable {
      // An attempt has failed: it says so at once, and tries again.
      await connections(1)
      #expect(try await connection.send(RedisCommand("PING")).text == "PONG")
    }
  }

  @Test func `a connection to Redis throws the errors of the server, and continues`() async throws {
    let server = try RedisServer()
    let connection = try connect(to: server.address)
    await connections(1)
    let error = await #expect(throws: RedisError.self) {
      try await connection.send(
        RedisCommand("EVALSHA", ["0123456789012345678901234567890123456789", 0])
      )
    }
    #expect(error?.code == "NOSCRIPT")
    #expect(try await connection.send(RedisCommand("PING")).text == "PONG")
  }

  @Test func `a connection to Redis delivers messages in order with the replies`() async throws {
    let server = try RedisServer()
    let reader = try connect(to: server.address) {
      $0.setup = [RedisCommand("CLIENT", ["TRACKING", "ON", "NOLOOP"])]
    }
    await connections(1)
    let writer = try RedisConnection(RedisConnection.Settings(server.address)) { _ in }
    #expect(try await reader.send(RedisCommand("GET", ["k"])) == .null)
    _ = try await reader.send(RedisCommand("PING"))
    while (try? await writer.send(RedisCommand("SET", ["k", "v"]))) == nil {
      await Task.detached {}.value
    }
    let push = RESPValue.push([
      .string(Array("invalidate".utf8)), .array([.string(Array("k".utf8))]),
    ])
    await changes.contains(.push(push.elements ?? []))
  }

  @Test func `a connection to Redis sends and receives what is larger than any buffer`()
    async throws
  {
    let server = try RedisServer()
    let connection = try connect(to: server.address)
    await connections(1)
    let value = [UInt8](repeating: 13, count: 3 << 20)
    try await withThrowingTaskGroup { group in
      for index in 0..<4 {
        group.addTask {
          let key = RedisCommand.Argument.text("large \(index)")
          let stored = try await connection.send(RedisCommand("SET", [key, .data(value)]))
          let found = try await connection.send(RedisCommand("GET", [key]))
          #expect(stored.text == "OK")
          #expect(found.bytes == value)
        }
      }
      try await group.waitForAll()
    }
  }

  @Test func `a connection to Redis refuses what does not fit into its outbox`() async throws {
    let server = try RedisServer()
    let connection = try connect(to: server.address) { $0.outboxBytes = 100 }
    await connections(1)
    let command = RedisCommand("ECHO", [.data(.init(repeating: 0, count: 101))])
    let error = RedisConnectionError.outboxFull(
      bytes: command.encoded.count,
      waiting: 0,
      limit: 100
    )
    await #expect(throws: error) { try await connection.send(command) }
    #expect("\(error)".hasPrefix("\(command.encoded.count) bytes are more than the outbox"))
    #expect("\(error)".hasSuffix("the limit is 100."))
    #expect(try await connection.send(RedisCommand("PING")).text == "PONG")
  }

  @Test
  func `a connection fails what was not answered when the server dies, and comes back with it`()
    async throws
  {
    let server = try RedisServer()
    let connection = try connect(to: server.address)
    await connections(1)
    // Blocks until it is killed.
    let waiting = Task { try await connection.send(RedisCommand("BLPOP", ["nothing", 0])) }
    while try await clients(blockedAt: server) == 0 { await Task.detached {}.value }
    server.kill()
    let error = await #expect(throws: RedisConnectionError.self) { try await waiting.value }
    #expect(error?.mayHaveTakenEffect == true)
    // Refused at once while nothing listens.
    await disconnection { !$0.mayHaveTakenEffect }
    await #expect(throws: RedisConnectionError.self) {
      try await connection.send(RedisCommand("PING"))
    }
    try server.start()
    await connections(2)
    #expect(try await connection.send(RedisCommand("PING")).text == "PONG")
  }

  /// The number of clients that wait in a blocking command.
  private func clients(blockedAt server: RedisServer) async throws -> Int {
    let observer = try RedisConnection(RedisConnection.Settings(server.address)) { _ in }
    guard let info = try? await observer.send(RedisCommand("INFO", ["clients"])).text else {
      return 0
    }
    let line = info.split(separator: "\r\n").first { $0.hasPrefix("blocked_clients:") }
    return line.flatMap { Int($0.dropFirst("blocked_clients:".count)) } ?? 0
  }

  @Test
  func `a connection gives up on a server that stands still, and comes back when it continues`()
    async throws
  {
    let server = try RedisServer()
    let connection = try connect(to: server.address) {
      $0.commandTimeout = .milliseconds(50)
      $0.connectTimeout = .milliseconds(50)
    }
    await connections(1)
    server.suspend()
    let error = await #expect(throws: RedisConnectionError.self) {
      try await connection.send(RedisCommand("PING"))
    }
    #expect(error == .timedOut(command: "PING", after: .milliseconds(50)))
    await disconnection { if case .lost = $0 { true } else { false } }
    // The system still takes connections, which are not answered.
    await disconnection { "\($0)".contains("did not answer HELLO in time") }
    await #expect(throws: RedisConnectionError.self) {
      try await connection.send(RedisCommand("PING"))
    }
    server.resume()
    await connections(2)
  }

  @Test(.guarantee(.engineFailsNoRequest))
  func `only the first command waits for a server that stands still`() async throws {
    let server = try RedisServer()
    let connection = try connect(to: server.address) {
      $0.commandTimeout = .milliseconds(50)
      $0.connectTimeout = .milliseconds(400)
    }
    await connections(1)
    server.suspend()
    var errors: [RedisConnectionError] = []
    for _ in 0..<20 {
      // Before and after the connection is given up, and while another one is attempted.
      if errors.count == 10 {
        await disconnection { "\($0)".contains("twice the command timeout") }
      }
      do {
        _ = try await connection.send(RedisCommand("PING"))
      } catch let error as RedisConnectionError {
        errors.append(error)
      }
    }
    server.resume()
    #expect(errors.first == .timedOut(command: "PING", after: .milliseconds(50)))
    #expect(errors.count { if case .timedOut = $0 { true } else { false } } == 1)
    await connections(2)
  }

  @Test func `a caller that is cancelled leaves at once, and disturbs no other`() async throws {
    let server = try RedisServer()
    let connection = try connect(to: server.address)
    await connections(1)
    let blocked = Task { try await connection.send(RedisCommand("BLPOP", ["list", 0])) }
    let next = Task { try await connection.send(RedisCommand("PING")) }
    while try await clients(blockedAt: server) == 0 { await Task.detached {}.value }
    blocked.cancel()
    await #expect(throws: CancellationError.self) { try await blocked.value }
    let pusher = try connect(to: server.address)
    await connections(2)
    _ = try await pusher.send(RedisCommand("RPUSH", ["list", "x"]))
    #expect(try await next.value.text == "PONG")
    let cancelled = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await connection.send(RedisCommand("SET", ["never", "sent"]))
    }
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    #expect(try await connection.send(RedisCommand("GET", ["never"])) == .null)
  }

  @Test func `a connection to Redis says that its password is wrong, and does not wait`()
    async throws
  {
    let server = try RedisServer("--requirepass", "secret")
    let connection = try connect(to: server.address) {
      $0.credentials = { RedisCredentials(password: "guess") }
    }
    await disconnection { if case .refused = $0 { true } else { false } }
    let error = await #expect(throws: RedisConnectionError.self) {
      try await connection.send(RedisCommand("PING"))
    }
    guard case .refused(_, let reply) = error else { return #expect(error == nil) }
    #expect(reply.code == "WRONGPASS")
    #expect(!"\(reply)".contains("guess"))
    let other = try connect(to: server.address) {
      $0.credentials = { RedisCredentials(password: "secret") }
      $0.database = 3
    }
    await connections(1)
    #expect(try await other.send(RedisCommand("CLIENT", ["LIST"])).text?.contains("db=3") == true)
  }

  @Test func `a connection to Redis ends when it is closed, and when it is released`() async throws
  {
    let server = try RedisServer()
    var connection: RedisConnection? = try connect(to: server.address)
    await connections(1)
    let released = Log<Void>()
    var other: RedisConnection? = try RedisConnection(RedisConnection.Settings(server.address)) {
      [token = Token(released)] _ in withExtendedLifetime(token) {}
    }
    let waiting = Task { [connection] in
      try await connection?.send(RedisCommand("BLPOP", ["nothing", 0]))
    }
    while try await clients(blockedAt: server) == 0 { await Task.detached {}.value }
    await connection?.close()
    await #expect(throws: RedisConnectionError.self) { try await waiting.value }
    await #expect(throws: RedisConnectionError.closed) {
      try await connection?.send(RedisCommand("PING"))
    }
    connection = nil
    withExtendedLifetime(other) {}
    other = nil
    await released.first(1)
  }

  private final class Token: Sendable {
    private let released: Log<Void>

    init(_ released: Log<Void>) {
      self.released = released
    }

    deinit {
      released.append(())
    }
  }

  @Test func `a connection to Redis says what is wrong with an address`() async throws {
    let origin = try ScriptedServer(sending: Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8))
    let web = try connect(to: origin.address)
    await disconnection { "\($0)".contains("the port may not be that of a Redis server") }
    let nowhere = try connect(to: .unix(path: "/nowhere/at/all"))
    await disconnection { "\($0)".contains("No Redis server can be reached at /nowhere/at/all") }
    let long = try connect(to: .unix(path: String(repeating: "x", count: 200)))
    await disconnection { "\($0)".contains("the path has to be shorter than") }
    let unknown = try connect(to: .tcp(host: "no such host", port: 1))
    await disconnection { "\($0)".contains("at no such host:1") }
    for connection in [web, nowhere, long, unknown] { await connection.close() }
  }

  @Test(arguments: [
    "", "+OK\r\n+OK\r\n+OK\r\n", "+OK\r\n$5\r\nab", "+OK\r\n>2\r\n+invalidate\r\n_\r\n:1",
    "-NOAUTH no\r\n", "%1\r\n", String(repeating: "*1\r\n", count: 100),
    "+" + String(repeating: "x", count: 200_000),
  ])
  func `a connection to Redis survives a server that sends nonsense and disconnects`(
    text: String
  ) async throws {
    let server = try ScriptedServer(sending: Array(text.utf8))
    let connection = try connect(to: server.address)
    await changes.wait { changes in
      changes.count { if case .disconnected = $0 { true } else { false } } >= 3
    }
    await #expect(throws: RedisConnectionError.self) {
      while true { _ = try await connection.send(RedisCommand("GET", ["k"])) }
    }
    await connection.close()
  }

  @Test func `an error is a sentence, whatever the reason is`() {
    let reasons = [
      RESPError.unknownType(72), .malformedNumber, .malformedBoolean, .missingLineEnd, .lineTooLong,
      .nestedTooDeeply, .tooLarge, .unrequestedReply,
    ].map(\.description)
    for reason in reasons {
      let description = RedisConnectionError.lost(reason: reason).description
      #expect(description == "The connection to the Redis server broke: \(reason).")
      #expect(reason.first?.isLowercase == true && reason.last?.isPunctuation == false)
    }
  }

  @Test(.guarantee(.wrongRepliesEndTheConnection))
  func `a reply that answers no command ends the connection`() async throws {
    let server = try AnsweringServer { command in
      guard command.words[0] == "ECHO" else { return command.usual }
      return "+\(command.words[1])\r\n" + (command.connection == 1 ? "+too much\r\n" : "")
    }
    let connection = try connect(to: server.address)
    await connections(1)
    // Any of the two replies can belong to another command.
    await #expect(throws: RedisConnectionError.self) {
      try await connection.send(RedisCommand("ECHO", ["a"]))
    }
    await disconnection { "\($0)".contains("answers no command") }
    await connections(2)
    #expect(try await connection.send(RedisCommand("ECHO", ["b"])).text == "b")
  }

  @Test(
    .guarantee(.wrongRepliesEndTheConnection),
    arguments: [
      ("HELLO", "+OK"), ("HELLO", "_"), ("HELLO", "*0"), ("HELLO", ":3"), ("HELLO", "%0"),
      ("HELLO", "%1\r\n$5\r\nproto\r\n:2"), ("HELLO", "%1\r\n$5\r\nproto\r\n:3\r\n+OK"),
      ("SELECT", "_"), ("SELECT", ":1"), ("SELECT", "+OK\r\n+OK"), ("CLIENT", "+QUEUED"),
      ("CLIENT", "*0"), ("CLIENT", "+OK\r\n:1"),
    ]
  )
  func `a connection is made only if its introduction is answered as it should be`(
    command: String,
    reply: String
  ) async throws {
    let server = try AnsweringServer {
      $0.words[0] == command ? reply + "\r\n" : $0.usual
    }
    let connection = try connect(to: server.address) {
      $0.database = 1
      $0.setup = [RedisCommand("CLIENT", ["TRACKING", "ON", "NOLOOP"])]
    }
    await changes.first(1)
    #expect(!changes.entries.contains(.connected))
    await #expect(throws: RedisConnectionError.self) {
      try await connection.send(RedisCommand("GET", ["k"]))
    }
    await connection.close()
  }

  @Test(.guarantee(.wrongRepliesEndTheConnection))
  func `a server that answers only the introduction is asked less and less often`()
    async throws
  {
    let server = try AnsweringServer { command in
      command.words[0] == "PING" ? nil : command.usual
    }
    let connection = Guarded<RedisConnection?>(nil)
    let (failures, changes) = (Log<RedisConnectionError?>(), changes)
    var settings = RedisConnection.Settings(server.address)
    settings.commandTimeout = .milliseconds(20)
    let made = try RedisConnection(settings) { event in
      let current = connection.withLock { $0 }
      switch event {
      case .connected:
        changes.append(.connected)
        _ = current?.post(RedisCommand("PING"))
      case .disconnected:
        // Between two connections.
        current?.post(RedisCommand("PING")).onResult { result in
          if case .failure(let error) = result { failures.append(error as? RedisConnectionError) }
        }
      case .push, .refusal: break
      }
    }
    connection.withLock { $0 = made }
    _ = try? await made.send(RedisCommand("PING"))
    let begin = ContinuousClock.now
    let count = changes.count
    await changes.first(count + 8)
    // 10 ms, and twice as long each time.
    #expect(begin.duration(to: .now) >= .milliseconds(1_000))
    for failure in failures.entries {
      guard case .lost = failure else { return #expect(failure == nil) }
    }
    connection.withLock { $0 = nil }
    await made.close()
  }

  @Test func `a connection to Redis can use TCP`() async throws {
    let taken = try LoopbackOrigin()
    taken.stop()
    let server = try RedisServer("--bind", "127.0.0.1", "--port", "\(taken.port)")
    let connection = try connect(to: .tcp(host: "localhost", port: taken.port))
    await connections(1)
    #expect(try await connection.send(RedisCommand("PING")).text == "PONG")
    withExtendedLifetime(server) {}
  }
}
