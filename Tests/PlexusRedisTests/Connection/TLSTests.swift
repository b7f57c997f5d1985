import Foundation
import Plexus
import PlexusRedis
import PlexusTesting
import TestSupport
import Testing

#if TLS
@Suite(
  .fewAtOnce,
  .timeLimit(.minutes(5)),
  .enabled(if: TLSServer.isAvailable, "openssl, or a redis-server with TLS, is not installed")
)
struct `Encrypted connections` {
  private func engine(_ address: RedisAddress) throws -> RedisEngine {
    var options = RedisOptions()
    options.commandTimeout = .seconds(60)
    return try RedisEngine(address, options: options)
  }

  /// Returns the reason for which an engine is not connected.
  private func refusal(of address: RedisAddress) async throws -> String {
    let engine = try engine(address)
    defer { Task { await engine.close() } }
    for await health in engine.health() {
      if case .isolated(let reason) = health { return reason }
      if health == .connected { return "connected" }
    }
    return ""
  }

  @Test(arguments: ["localhost", "127.0.0.1"])
  func `carry values, small and large`(host: String) async throws {
    let server = try TLSServer()
    let engine = try engine(.tls(host: host, port: server.port, ca: server.authority))
    for await health in engine.health() where health == .connected { break }
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    let large = String(repeating: "large ", count: 1_000_000)
    try await cacher.store(["large": CacheEntry(value: large, storedAt: .zero)])
    #expect(try await cacher.entry(forKey: "large")?.value == large)
    try await withThrowingTaskGroup { group in
      for number in 0..<1_000 {
        group.addTask {
          let key = "\(number)"
          try await cacher.store([key: CacheEntry(value: key, storedAt: .zero)])
          #expect(try await cacher.entry(forKey: key)?.value == key)
        }
      }
      try await group.waitForAll()
    }
    await engine.close()
  }

  @Test func `come back after the server`() async throws {
    let server = try TLSServer()
    let engine = try engine(.tls(host: "localhost", port: server.port, ca: server.authority))
    for await health in engine.health() where health == .connected { break }
    server.server.kill()
    for await health in engine.health() { if case .isolated = health { break } }
    try server.server.start()
    for await health in engine.health() where health == .connected { break }
    await engine.close()
  }

  @Test(arguments: [
    (TLSServer.Certificate.otherHost, "ostname"), (.expired, "expired"), (.selfSigned, "self"),
  ])
  func `refuse a certificate that is not valid`(
    certificate: TLSServer.Certificate,
    reason: String
  ) async throws {
    let server = try TLSServer(certificate)
    let refusal = try await refusal(
      of: .tls(host: "localhost", port: server.port, ca: server.authority)
    )
    #expect(refusal.contains("certificate") && refusal.contains(reason), "\(refusal)")
  }

  @Test func `refuse a certificate of another authority`() async throws {
    let (server, other) = (try TLSServer(), try TLSServer())
    for ca in [nil, other.authority] {
      let refusal = try await refusal(of: .tls(host: "localhost", port: server.port, ca: ca))
      #expect(refusal.contains("certificate"), "\(refusal)")
    }
    let missing = try await refusal(of: .tls(host: "localhost", port: server.port, ca: "/none.pem"))
    #expect(missing.contains("/none.pem"), "\(missing)")
  }

  @Test func `refuse an old version of TLS`() async throws {
    let old = try TLSServer(.valid, ["--tls-protocols", "TLSv1.1"])
    let refusal = try await refusal(
      of: .tls(host: "localhost", port: old.port, ca: old.authority)
    )
    #expect(refusal.contains("TLS"), "\(refusal)")
  }
}
#else
@Suite struct `Connections without the trait TLS` {
  @Test func `fail with a sentence that names the trait`() throws {
    let address = RedisAddress.tls(host: "localhost", port: 6379, ca: nil)
    let error = #expect(throws: (any Error).self) { try RedisEngine(address) }
    #expect("\(error.map { "\($0)" } ?? "")".contains("enable the trait TLS"))
  }
}
#endif
