import Dispatch
import PlexusSupport
import TestSupport
import Testing

@testable import PlexusRedis

@Suite(.fewAtOnce) struct `The lookup of a server's name` {
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
      case .push, .refusal: break
      }
    }
  }

  @Test(.guarantee(.nameLookupsAreBounded))
  func `a connection looks up each of several names once at a time`() async throws {
    let resolver = Resolver()
    let addresses = ["a", "b", "c"].map { RedisAddress.tcp(host: "\($0).example", port: 1) }
    let settings = resolver.settings {
      $0.connectTimeout = .milliseconds(20)
      $0.candidates = { addresses }
    }
    let connection = try connect(settings)
    await failures.first(9)
    #expect(resolver.calls.entries.sorted() == ["a.example", "b.example", "c.example"])
    for _ in addresses { resolver.proceed() }
    await connection.close()
  }

  @Test(.guarantee(.nameLookupsAreBounded))
  func `the connections of an engine look up a limited number of names at a time`() async throws {
    let resolver = Resolver()
    let settings = resolver.settings { $0.connectTimeout = .milliseconds(20) }
    let connections = try (0..<NameLookup.limit + 8).map { number in
      var settings = settings
      settings.address = .tcp(host: "host\(number).example", port: 1)
      return try connect(settings)
    }
    await failures.wait { failures in
      failures.contains { $0.description.contains("other names have not been found yet") }
    }
    #expect(resolver.calls.count <= NameLookup.limit)
    for _ in 0..<2 * connections.count { resolver.proceed() }
    for connection in connections { await connection.close() }
  }

  @Test(.guarantee(.nameLookupsAreBounded))
  func `the lookup of a name ends with the connection's time limit, and is not begun twice`()
    async throws
  {
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

  @Test(.guarantee(.nameLookupsAreBounded))
  func `the lookup of a server's name keeps no command waiting beyond its time`()
    async throws
  {
    let resolver = Resolver()
    let connection = try connect(resolver.settings { $0.commandTimeout = .milliseconds(20) })
    await #expect(throws: RedisConnectionError.timedOut(command: "PING", after: .milliseconds(20)))
    {
      try await connection.send(RedisCommand("PING"))
    }
    await connection.close()
    resolver.proceed()
  }

  @Test(.guarantee(.nameLookupsAreBounded))
  func `the lookup of a server's name ends with its connection`() async throws {
    let resolver = Resolver()
    let connection = try connect(resolver.settings())
    await resolver.calls.first(1)
    await connection.close()
    #expect(resolver.calls.count == 1)
    resolver.proceed()
  }

  @Test(.guarantee(.nameLookupsAreBounded))
  func `the lookup of a server's name is used by the attempt after the one that has begun it`()
    async throws
  {
    let server = try ScriptedServer(sending: Array(AnsweringServer.hello.utf8), hangsUp: false)
    let resolver = Resolver(port: server.port)
    let connection = try connect(resolver.settings { $0.connectTimeout = .milliseconds(500) })
    await failures.first(1)
    resolver.proceed()
    await connected.first(1)
    #expect(resolver.calls.count == 1)
    await connection.close()
  }

  @Test(.guarantee(.lateAddressesServeTheNextAttempt))
  func `the lookup of a name serves the next attempt if it came too late, and no later one`() throws
  {
    let calls = Log<String>()
    let lookup = NameLookup(try WakePipe()) { host, port in
      calls.append(host)
      return RedisSocket.systemLookup("127.0.0.1", port)
    }
    func targets() throws -> [RedisSocket.Target] {
      try lookup.targets(of: "redis.example", 1, deadline: .now + 60_000_000_000) { false }
    }
    let found = try targets()
    // A lookup that took less than half of the time, and addresses that were refused in time, are not used again.
    lookup.keep(found, after: 10, of: 20, isRefused: false)
    _ = try targets()
    lookup.keep(found, after: 20, of: 20, isRefused: true)
    _ = try targets()
    #expect(calls.count == 3)
    lookup.keep(found, after: 11, of: 20, isRefused: false)
    #expect(try targets().count == found.count)
    #expect(calls.count == 3)
    _ = try targets()
    #expect(calls.count == 4)
  }

  @Test(.guarantee(.lateAddressesServeTheNextAttempt))
  func `the lookup of a server's name that leaves no time to connect is used by the next attempt`()
    throws
  {
    let calls = Log<String>()
    let lookup = NameLookup(try WakePipe()) { host, _ in
      calls.append(host)
      return RedisSocket.systemLookup("127.0.0.1", 1)
    }
    /// Returns why no connection was made, by addresses that are not used before the time is over.
    func failure() -> String {
      let deadline = Nanoseconds.now + 1_000_000
      do throws(RedisConnectionError) {
        _ = try RedisSocket.connect(
          to: .tcp(host: "redis.example", port: 1),
          by: lookup,
          deadline: deadline
        ) {
          while Nanoseconds.now < deadline {}
          return false
        }
        return ""
      } catch {
        return error.description
      }
    }
    func waitForAddresses() {
      while failure().contains("was not found in time") {}
    }
    waitForAddresses()
    #expect(calls.count == 1)
    #expect(!failure().contains("was not found in time"))
    #expect(calls.count == 1)
    waitForAddresses()
    #expect(calls.count == 2)
  }

  @Test(.guarantee(.nameLookupsAreBounded))
  func `the lookup of a server's name is not needed for a numeric address`()
    async throws
  {
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
