import TestSupport
import Testing

@testable import PlexusRedis

@Suite struct `The URL of a server` {
  @Test(arguments: [
    ("redis://localhost", RedisAddress.tcp(host: "localhost", port: 6379)),
    ("redis://localhost:7000/", .tcp(host: "localhost", port: 7000)),
    ("REDIS://[::1]:7000", .tcp(host: "::1", port: 7000)),
    ("rediss://[fe80::1]/3", .tls(host: "fe80::1", port: 6379, ca: nil)),
    ("rediss://cache@127.0.0.1:6380/2", .tls(host: "127.0.0.1", port: 6380, ca: nil)),
    ("unix:///run/redis.sock?db=2", .unix(path: "/run/redis.sock")),
    ("unix://u:p@/run/a%20b.sock", .unix(path: "/run/a b.sock")),
  ])
  func `the URL of a server has the address`(url: String, address: RedisAddress) throws {
    #expect(try RedisURL(url).address == address)
  }

  @Test func `the URL of a server has the user, the password and the database`() throws {
    let full = try RedisURL("redis://us%3Aer:p%40s%2Fs%25@host:1/12")
    #expect(full.user == "us:er" && full.password == "p@s/s%" && full.database == 12)
    let password = try RedisURL("redis://:secret@host")
    #expect(password.user == nil && password.password == "secret" && password.database == nil)
    let user = try RedisURL("redis://cache@host?db=4")
    #expect(user.user == "cache" && user.password == "" && user.database == 4)
    let none = try RedisURL("redis://host")
    #expect(none.user == nil && none.password == nil)
    let colons = try RedisURL("redis://u:a:b@host")
    #expect(colons.password == "a:b")
  }

  @Test(
    .guarantee(.descriptionsShowNoPassword),
    arguments: [
      "", "secret", "secret://secret@host", "redis:secret@host", "redis://:secret", "redis://",
      "redis://:secret@", "redis://:secret@:6379", "redis://:secret@host:0",
      "redis://:secret@host:65536", "redis://:secret@host:", "redis://:secret@host:x",
      "redis://:secret@host:+1", "redis://:secret@host/x", "redis://:secret@host/-1",
      "redis://:secret@host/1/2", "redis://:secret@host/1?db=2", "redis://:secret@host?x=secret",
      "redis://:secret%@host", "redis://:secret%4@host", "redis://:secret%zz@host",
      "redis://:secret%ff@host", "redis://:secret%00@host", "redis://:secret@ho st",
      "redis://:secret@[::1", "redis://:secret@[::1]x", "redis://:secret@::1",
      "redis://:sec#ret@host",
      "redis://:sec/ret@host", "unix://:secret@host/path", "unix://:secret@", "unix:///",
      "redis://:secret@h%6", "redis://:secret@%20",
    ]
  )
  func `a wrong URL of a server is refused, and never shown`(url: String) {
    let error = #expect(throws: RedisConnectionError.self) { try RedisURL(url) }
    let text = error.map { RedisEngineError($0).description } ?? ""
    #expect(text.hasPrefix("The URL of the Redis server has") && text.hasSuffix("."))
    #expect(!text.contains("secret") && !text.contains("sec"))
  }

  @Test(.guarantee(.descriptionsShowNoPassword))
  func `no description of credentials, options or addresses shows a password`() throws {
    let credentials = RedisCredentials(user: "cache", password: "secret")
    let options = RedisOptions(credentials: { credentials }, sentinelCredentials: { credentials })
    var dumped = ""
    dump(credentials, to: &dumped)
    dump(options, to: &dumped)
    dump(credentials as RedisCredentials?, to: &dumped)
    let texts = [
      "\(credentials)", String(reflecting: credentials), "\([credentials])", "\(options)",
      String(reflecting: options), dumped, "\(RedisAddress.tcp(host: "a", port: 1))",
    ]
    for text in texts { #expect(!text.contains("secret"), "\(text)") }
    #expect("\(credentials)".contains("cache"))
  }
}
