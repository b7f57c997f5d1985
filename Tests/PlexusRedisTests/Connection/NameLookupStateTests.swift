import Dispatch
import PlexusSupport
import TestSupport
import Testing

@testable import PlexusRedis

@Suite(.fewAtOnce, .timeLimit(.minutes(5))) struct `The lookup of a server's name` {
  /// A resolver that blocks its thread until `proceed()` is called, and then finds the address of a server.
  private final class Resolver: Sendable {
    let port: UInt16
    let calls = Log<String>()
    private let signal = DispatchSemaphore(value: 0)

    init(port: UInt16 = 1) {
      self.port = port
    }

    func proceed() {
      signal.signal()
    }

    func settings(
      _ configure: (inout RedisConnection.Settings) -> Void = { _ in }
    ) -> RedisConnection.Settings {
      var settings = RedisConnection.Settings(.tcp(host: "redis.example", port: 1))
      settings.commandTimeout = .seconds(60)
      settings.connectTimeout = .seconds(60)
      settings.resolve = { [self] host, _ in
        calls.append(host)
        signal.wait()
        return RedisSocket.systemLookup("127.0.0.1", port)
      }
      configure(&settings)
      return settings
    }
  }

  private let failures = Log<RedisConnectionError>()
  private let connected = Log<Void>()

  private func connect(_ settings: RedisConnection.Settings) throws -> RedisConnection {
    try RedisConnection(settings) { [failures, connected] event in
      switch event {
      case .connected: connected.append(())
      case .disconnected(let error): failures.append(error)
      case .push: break
      }
    }
  }

  @Test func `ends with the time limit of the connection, and is not begun twice`() async throws {
    let resolver = Resolver()
    let connection = try connect(resolver.settings { $0.connectTimeout = .milliseconds(20) })
    let reasons = await failures.first(3).map(\.description)
    #expect(
      reasons.allSatisfy { $0.contains("the address of redis.example was not found in time") }
    )
    #expect(resolver.calls.entries == ["redis.example"])
    await connection.close()
    resolver.proceed()
  }

  @Test func `keeps no command waiting beyond its time`() async throws {
    let resolver = Resolver()
    let connection = try connect(resolver.settings { $0.commandTimeout = .milliseconds(20) })
    await #expect(throws: RedisConnectionError.timedOut(command: "PING", after: .milliseconds(20)))
    {
      try await connection.send(RedisCommand("PING"))
    }
    await connection.close()
    resolver.proceed()
  }

  @Test func `ends with its connection`() async throws {
    let resolver = Resolver()
    let connection = try connect(resolver.settings())
    await resolver.calls.first(1)
    await connection.close()
    resolver.proceed()
  }

  @Test func `is used by the attempt after the one that has begun it`() async throws {
    let server = try ScriptedServer(sending: Array("%0\r\n".utf8), hangsUp: false)
    let resolver = Resolver(port: server.port)
    let connection = try connect(resolver.settings { $0.connectTimeout = .milliseconds(500) })
    await failures.first(1)
    resolver.proceed()
    await connected.first(1)
    #expect(resolver.calls.count == 1)
    await connection.close()
  }

  @Test func `is not needed for a numeric address`() async throws {
    let resolver = Resolver()
    for host in ["127.0.0.1", "::1"] {
      var settings = RedisConnection.Settings(.tcp(host: host, port: 1))
      settings.resolve = resolver.settings().resolve
      let connection = try connect(settings)
      await failures.wait { $0.contains { $0.description.contains(host) } }
      await connection.close()
    }
    #expect(resolver.calls.entries == [])
  }
}
