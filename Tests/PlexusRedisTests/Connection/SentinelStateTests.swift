import Testing

@testable import PlexusRedis

@Suite struct `The answers of sentinels` {
  private let tcp = RedisAddress.tcp(host: "a", port: 1)
  private let tls = RedisAddress.tls(host: "b", port: 2, ca: "ca", certificate: "c", key: "k")

  private func strings(_ texts: String...) -> RESPValue {
    .array(texts.map { .string(Array($0.utf8)) })
  }

  @Test func `the master is reached in the way of the sentinel that has answered`() throws {
    var state = try SentinelState(name: "main", [tcp, tls])
    #expect(state.order == [tcp, tls])
    let first = try state.answer(strings("10.0.0.1", "6379"), from: tcp)
    #expect(first == .tcp(host: "10.0.0.1", port: 6379))
    let second = try state.answer(strings("redis.example", "6380"), from: tls)
    #expect(
      second == .tls(host: "redis.example", port: 6380, ca: "ca", certificate: "c", key: "k")
    )
    // The one that has answered is asked first.
    #expect(state.order == [tls, tcp])
    #expect(state.hear(Array("main 10.0.0.1 6379 10.0.0.2 6380".utf8))?.isEncrypted == true)
  }

  @Test func `a reply that is no address is an error`() throws {
    var state = try SentinelState(name: "main", [tcp])
    let long = String(repeating: "x", count: 256)
    let replies: [RESPValue] = [
      strings(), strings("a"), strings("a", "1", "b"), strings("", "1"), strings(long, "1"),
      strings("a b", "1"), strings("a\n", "1"), strings("é", "1"), strings("a", "0"),
      strings("a", "65536"), strings("a", "-1"), strings("a", "x"), strings("a", ""),
      .integer(1), .string([]), .map([]), .push([]), .array([.null, .null]),
      .array([strings("a", "1"), strings("b", "2")]),
    ]
    for reply in replies {
      #expect(throws: RedisConnectionError.self, "\(reply)") { try state.answer(reply, from: tcp) }
    }
    for message in ["", "main", "other a 1 b 2", "main a 1 b", "main a 1 b 0", "main a 1 b 2 3"] {
      #expect(state.hear(Array(message.utf8)) == nil)
    }
  }

  @Test func `an unknown name and useless addresses are errors that say what to do`() throws {
    var state = try SentinelState(name: "main", [tcp])
    let error = #expect(throws: RedisConnectionError.self) { try state.answer(.null, from: tcp) }
    #expect(error?.isTemporary == false)
    #expect(error?.description.contains("no master with the name main") == true)
    for addresses in [[], [RedisAddress.sentinel(name: "x", [tcp])]] {
      #expect(throws: RedisConnectionError.self) { try SentinelState(name: "main", addresses) }
    }
  }
}
