import Foundation
import Plexus
import PlexusRedis
import PlexusTesting
import TestSupport
import Testing

#if TLS
@Suite(
  .fewAtOnce,
  .enabled(if: TLSServer.isAvailable, "openssl, or a redis-server with TLS, is not installed")
)
struct `Encrypted connections` {
  private func engine(_ address: RedisAddress) throws -> RedisEngine {
    var options = RedisOptions()
    options.commandTimeout = .seconds(60)
    return try RedisEngine(address, options: options)
  }

  /// Returns the reason for which an engine is not connected, once its server listens.
  private func refusal(of address: RedisAddress) async throws -> String {
    let engine = try engine(address)
    var refusal = ""
    for await health in engine.health() {
      if case .isolated(let reason) = health, !reason.contains("Connection refused") {
        refusal = reason
      }
      if health == .connected { refusal = "connected" }
      if !refusal.isEmpty { break }
    }
    try await engine.close()
    return refusal
  }

  @Test(.guarantee(.tlsIsNeverUnencrypted), arguments: ["localhost", "127.0.0.1"])
  func `encrypted connections carry values, small and large`(host: String) async throws {
    let server = try TLSServer()
    let engine = try engine(.tls(host: host, port: server.port, ca: server.authority))
    await engine.becomesConnected()
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
    try await engine.close()
  }

  @Test(.guarantee(.tlsIsNeverUnencrypted))
  func `encrypted connections are made again once the server is back`() async throws {
    let server = try TLSServer()
    let engine = try engine(.tls(host: "localhost", port: server.port, ca: server.authority))
    await engine.becomesConnected()
    server.server.kill()
    await engine.becomesIsolated()
    try server.server.start()
    await engine.becomesConnected()
    #expect(engine.status.caches.health == .connected)
    try await engine.close()
  }

  @Test(
    .guarantee(.tlsIsNeverUnencrypted),
    arguments: [
      (TLSServer.Certificate.otherHost, "ostname"), (.expired, "expired"), (.selfSigned, "self"),
    ]
  )
  func `encrypted connections refuse a certificate that is not valid`(
    certificate: TLSServer.Certificate,
    reason: String
  ) async throws {
    let server = try TLSServer(certificate)
    let refusal = try await refusal(
      of: .tls(host: "localhost", port: server.port, ca: server.authority)
    )
    #expect(refusal.contains("certificate") && refusal.contains(reason), "\(refusal)")
  }

  @Test(.guarantee(.tlsIsNeverUnencrypted))
  func `encrypted connections refuse a certificate of another authority`()
    async throws
  {
    let (server, other) = (try TLSServer(), try TLSServer())
    for ca in [nil, other.authority] {
      let refusal = try await refusal(of: .tls(host: "localhost", port: server.port, ca: ca))
      #expect(refusal.contains("certificate"), "\(refusal)")
    }
    let missing = try await refusal(of: .tls(host: "localhost", port: server.port, ca: "/none.pem"))
    #expect(missing.contains("/none.pem"), "\(missing)")
  }

  @Test(.guarantee(.tlsIsNeverUnencrypted))
  func `encrypted connections refuse a server without encryption`() async throws {
    let server = try ScriptedServer(sending: Array("-ERR unknown command\r\n".utf8))
    let refusal = try await refusal(of: .tls(host: "127.0.0.1", port: server.port, ca: nil))
    #expect(refusal.contains("the TLS handshake failed: wrong version number"), "\(refusal)")
  }

  /// The first bytes of a handshake message, which never becomes complete.
  private static let beginning: [UInt8] = [22, 3, 3, 0, 122, 2, 0, 0, 118, 3, 3]

  @Test(.guarantee(.encryptionAttemptsEndInTime), arguments: [[], beginning])
  func `encrypted connections fail if the server hangs up in the handshake`(
    bytes: [UInt8]
  ) async throws {
    let server = try ScriptedServer(sending: bytes)
    let refusal = try await refusal(of: .tls(host: "127.0.0.1", port: server.port, ca: nil))
    #expect(refusal.contains("the TLS handshake failed: the server closed it"), "\(refusal)")
  }

  @Test(.guarantee(.encryptionAttemptsEndInTime), arguments: [[], beginning])
  func `encrypted connections fail if the server stays silent in the handshake`(
    bytes: [UInt8]
  ) async throws {
    let server = try ScriptedServer(sending: bytes, hangsUp: false)
    let refusal = try await refusal(of: .tls(host: "127.0.0.1", port: server.port, ca: nil))
    #expect(refusal.contains("did not answer the TLS handshake in time"), "\(refusal)")
  }

  @Test
  func `encrypted connections show the certificate of the client to a server that verifies it`()
    async throws
  {
    let server = try TLSServer(.valid, ["--tls-auth-clients", "yes"])
    func address(_ certificate: String?, _ key: String?) -> RedisAddress {
      .tls(
        host: "localhost",
        port: server.port,
        ca: server.authority,
        certificate: certificate,
        key: key
      )
    }
    let engine = try engine(address(server.certificate, server.key))
    try await engine.connect(within: .seconds(60))
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    try await cacher.store(["k": CacheEntry(value: "1", storedAt: .zero)])
    try await engine.close()
    for (certificate, key) in [
      (nil, nil), ("/none.pem", server.key), (server.certificate, "/none.pem"),
      (server.certificate, server.authority),
    ] {
      let refused = try self.engine(address(certificate, key))
      let error = await #expect(throws: RedisEngineError.self) {
        try await refused.connect(within: .seconds(60))
      }
      #expect(error?.kind == .certificate, "\(error.map { "\($0)" } ?? "")")
      try await refused.close()
    }
  }

  @Test func `encrypted connections that are refused fail at once`() async throws {
    let server = try TLSServer(.expired)
    let engine = try engine(.tls(host: "localhost", port: server.port, ca: server.authority))
    let error = await #expect(throws: RedisEngineError.self) {
      try await engine.connect(within: .seconds(60))
    }
    #expect(error?.kind == .certificate)
    try await engine.close()
  }

  @Test func `encrypted connections lead to sentinels, and to their master`() async throws {
    let master = try TLSServer()
    let sentinel = try await SentinelServer(of: master.port, encryption: master)
    func engine(_ ca: String?) throws -> RedisEngine {
      let address = RedisAddress.tls(host: "127.0.0.1", port: sentinel.port, ca: ca)
      return try self.engine(.sentinel(name: "main", [address]))
    }
    let trusting = try engine(master.authority)
    try await trusting.connect(within: .seconds(60))
    let cacher = trusting.cacher(String.self, space: "values", schema: "1")
    try await cacher.store(["k": CacheEntry(value: "1", storedAt: .zero)])
    #expect(try await cacher.entry(forKey: "k")?.value == "1")
    try await trusting.close()
    let doubting = try engine(nil)
    let error = await #expect(throws: RedisEngineError.self) {
      try await doubting.connect(within: .seconds(60))
    }
    #expect(error?.kind == .certificate)
    try await doubting.close()
  }

  @Test(.startsProcess)
  func `a URL that begins with rediss is encrypted, with the authorities of the system`()
    async throws
  {
    let server = try TLSServer()
    let url = "rediss://localhost:\(server.port)"
    let engine = try RedisEngine(url: url)
    let error = await #expect(throws: RedisEngineError.self) {
      try await engine.connect(within: .seconds(60))
    }
    #expect(error?.kind == .certificate)
    try await engine.close()
    await #expect(processExitsWith: .success) {
      [url = url as String, authority = server.authority as String] in
      setenv("SSL_CERT_FILE", authority, 1)
      let engine = try RedisEngine(url: url)
      try await engine.connect(within: .seconds(60))
      try await engine.close()
    }
  }

  @Test(.guarantee(.tlsIsNeverUnencrypted))
  func `encrypted connections refuse an old version of TLS`() async throws {
    let old = try TLSServer(.valid, ["--tls-protocols", "TLSv1.1"])
    let refusal = try await refusal(
      of: .tls(host: "localhost", port: old.port, ca: old.authority)
    )
    #expect(refusal.contains("TLS"), "\(refusal)")
  }
}
#else
@Suite struct `Connections without the trait TLS` {
  @Test(.guarantee(.tlsIsNeverUnencrypted))
  func `connections without the trait TLS fail with a sentence that names the trait`()
    throws
  {
    let address = RedisAddress.tls(host: "localhost", port: 6379, ca: nil)
    let error = #expect(throws: (any Error).self) { try RedisEngine(address) }
    #expect("\(error.map { "\($0)" } ?? "")".contains("enable the trait TLS"))
  }
}
#endif
