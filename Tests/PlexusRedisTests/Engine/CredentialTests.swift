import Plexus
import PlexusRedis
import PlexusTesting
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Credentials of an engine` {
  @Test(.guarantee(.credentialsAreReplacedInTime))
  func `credentials of an engine are requested for each connection`()
    async throws
  {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    try RedisShell.perform(["ACL SETUSER app on >first ~* &* +@all"], on: server)
    let password = Guarded("first")
    let asked = Log<String>()
    let options = RedisOptions(
      credentials: {
        let current = password.withLock { $0 }
        asked.append(current)
        return RedisCredentials(user: "app", password: current)
      },
      commandTimeout: .seconds(60)
    )
    let engine = try RedisEngine(server.address, options: options)
    try await engine.connect(within: .seconds(60))
    try RedisShell.perform(["ACL SETUSER app resetpass >second"], on: server)
    password.withLock { $0 = "second" }
    try RedisShell.perform(["CLIENT KILL USER app"], on: server)
    await asked.contains("second")
    try await engine.connect(within: .seconds(60))
    #expect(asked.entries.first == "first")
    try await engine.close()
  }

  @Test(.guarantee(.credentialsAreReplacedInTime))
  func `credentials of an engine are replaced on a live connection before they expire`()
    async throws
  {
    let server = try AnsweringServer { $0.usual }
    let options = RedisOptions(
      credentials: expiringCredentials(of: "app"),
      commandTimeout: .seconds(60)
    )
    let engine = try RedisEngine(server.address, options: options)
    await server.commands.wait { $0.contains { $0.words == ["AUTH", "app", "token 3"] } }
    #expect(server.commands.entries.contains { $0.words == ["AUTH", "app", "token 2"] })
    #expect(server.connectionCount == 1)
    try await engine.close()
  }

  @Test func `credentials that fail or do not come are an error, which does not end the attempts`()
    async throws
  {
    let server = try RedisServer()
    let isAway = Guarded(true)
    let options = RedisOptions(
      credentials: {
        if isAway.withLock({ $0 }) { throw Broken() }
        return RedisCredentials(password: "any")
      },
      commandTimeout: .seconds(60)
    )
    let engine = try RedisEngine(server.address, options: options)
    let error = await #expect(throws: RedisEngineError.self) {
      try await engine.connect(within: .milliseconds(200))
    }
    #expect(error?.kind == .authentication)
    #expect(error?.description.contains("Broken") == true)
    isAway.withLock { $0 = false }
    await RedisShell.waitUntilReady(server)
    try RedisShell.perform(["ACL SETUSER default >any"], on: server)
    try await engine.connect(within: .seconds(60))
    try await engine.close()
  }

  @Test func `credentials of an engine come from a URL, unless the options have some`() async throws
  {
    let server = try RedisServer("--requirepass", "p@ss")
    await RedisShell.waitUntilReady(server)
    let path = server.socket
    let named = RedisOptions(commandTimeout: .seconds(60), clientName: "orders")
    let engine = try RedisEngine(url: "unix://:p%40ss@\(path)?db=3", options: named)
    try await engine.connect(within: .seconds(60))
    let connection = try RedisShell.connect(to: server)
    defer { RedisShell.end(connection) }
    try RedisShell.send("AUTH p@ss", to: connection)
    try RedisShell.send("CLIENT LIST", to: connection)
    let list = RedisShell.receive(from: connection, until: "name=orders")
    #expect(list.contains("name=orders") && list.contains("db=3"))
    try await engine.close()
    var options = RedisOptions()
    options.credentials = { RedisCredentials(password: "p@ss") }
    let other = try RedisEngine(url: "unix://:wrong@\(path)", options: options)
    try await other.connect(within: .seconds(60))
    try await other.close()
    let error = #expect(throws: RedisEngineError.self) {
      try RedisEngine(url: "redis://:secret@host:x")
    }
    #expect(error?.kind == .configuration && error?.description.contains("secret") == false)
  }

  @Test(.guarantee(.renewedCredentialsLeaveNoTrace))
  func `credentials that failed once and came then leave no trace in the health`() async throws {
    let server = try AnsweringServer { $0.usual }
    let asked = Guarded(0)
    let options = RedisOptions(
      credentials: {
        let number = asked.withLock { asked in
          asked += 1
          return asked
        }
        if number == 2 { throw Broken() }
        return RedisCredentials(
          password: "token \(number)",
          expires: number == 1 ? .now + .milliseconds(125) : nil
        )
      },
      commandTimeout: .seconds(60)
    )
    let engine = try RedisEngine(server.address, options: options)
    var hasFailed = false
    for await health in engine.health() {
      if case .degraded(let reason) = health {
        #expect(reason.contains("Broken"))
        hasFailed = true
      }
      if hasFailed, health == .connected { break }
    }
    #expect(server.commands.entries.contains { $0.words == ["AUTH", "default", "token 3"] })
    try await engine.close()
  }

  @Test(.guarantee(.renewedCredentialsLeaveNoTrace))
  func `credentials whose renewal ends with its connection leave no trace in the health`()
    async throws
  {
    let server = try RedisServer()
    await RedisShell.waitUntilReady(server)
    try RedisShell.perform(["ACL SETUSER app on >any ~* &* +@all"], on: server)
    let asked = Guarded(0)
    let waiting = Log<String>()
    let options = RedisOptions(
      credentials: {
        let number = asked.withLock { asked in
          asked += 1
          return asked
        }
        guard number == 2 else {
          return RedisCredentials(
            user: "app",
            password: "any",
            expires: number == 1 ? .now + .milliseconds(125) : nil
          )
        }
        waiting.append("renews")
        // Until the task is cancelled.
        await waiting.contains("never")
        waiting.append("is cancelled")
        throw CancellationError()
      },
      commandTimeout: .seconds(60)
    )
    let engine = try RedisEngine(server.address, options: options)
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    await waiting.contains("renews")
    try RedisShell.perform(["CLIENT KILL USER app"], on: server)
    await waiting.contains("is cancelled")
    for _ in 0..<200 { _ = try? await cacher.entry(forKey: "k") }
    #expect(engine.status.caches.health == .connected)
    #expect(engine.status.errors[.authentication] == nil)
    try await engine.close()
  }

  @Test(.guarantee(.errorsShowNoPassword))
  func `credentials are not shown by a server that repeats the beginning of a command`()
    async throws
  {
    let token = String(repeating: "token", count: 50)
    let server = try AnsweringServer { command in
      // As Redis 5 does: at most 128 characters of the arguments.
      guard command.words[0] == "HELLO" else { return command.usual }
      return "-ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `default`, "
        + "`\(token.prefix(100))\r\n"
    }
    let options = RedisOptions(credentials: { RedisCredentials(password: token) })
    let engine = try RedisEngine(server.address, options: options)
    let error = await #expect(throws: RedisEngineError.self) {
      try await engine.connect(within: .seconds(60))
    }
    #expect(error?.kind == .configuration)
    #expect(error?.description.contains("HELLO") == true)
    #expect(error?.description.contains("token") == false)
    #expect("\(String(describing: engine.status.caches.health))".contains("token") == false)
    try await engine.close()
  }
}
