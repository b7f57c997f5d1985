import Foundation
import Plexus
import PlexusTesting
import TestSupport
import Testing

@testable import PlexusRedis

@Suite(.fewAtOnce)
struct `A server that breaks its protocol` {
  /// A command by its purpose.
  enum Purpose: String, CaseIterable, Sendable {
    case get, hmget, mget, time, echo, load, sign, restart, look, fill, release, renew, beat, fence
    case laggards, remove, removeAll

    init?(_ command: AnsweringServer.Command) {
      switch command.words[0] {
      case "GET": self = .get
      case "HMGET": self = .hmget
      case "MGET": self = .mget
      case "TIME": self = .time
      case "ECHO": self = .echo
      case "SCRIPT": self = .load
      case "EVAL", "EVALSHA":
        if command.words[1].wholeMatch(of: /return '[0-9a-f]{40}'/) != nil {
          self = .sign
          return
        }
        guard let purpose = Self.scripts[command.words[1]] else { return nil }
        self = purpose
      default: return nil
      }
    }

    private static let scripts = [
      TierScripts.look.source: Purpose.look, TierScripts.fill.source: .fill,
      TierScripts.release.source: .release, TierScripts.renew.source: .renew,
      TierScripts.beat.source: .beat, TierScripts.fence.source: .fence,
      TierScripts.laggards.source: .laggards, TierScripts.remove.source: .remove,
      TierScripts.removeAll.source: .removeAll, TierScripts.restart.source: .restart,
    ]

    /// The reply of a server without entries.
    var usual: String {
      switch self {
      case .get: "_\r\n"
      case .sign, .restart: "+0\r\n"
      case .hmget: "*5\r\n" + String(repeating: "_\r\n", count: 5)
      case .mget: "*2\r\n$3\r\n1-a\r\n$1\r\n1\r\n"
      case .time: "*2\r\n$4\r\n1000\r\n$1\r\n0\r\n"
      case .load, .echo: "+\r\n"
      case .look: "*2\r\n$3\r\n1-a\r\n*3\r\n+granted\r\n:1\r\n_\r\n"
      case .fill: "+stored\r\n"
      case .release: ":1\r\n"
      case .renew: "*0\r\n"
      case .beat: "*5\r\n$3\r\n1-a\r\n:1\r\n+0\r\n:2000\r\n:1\r\n"
      case .fence, .remove: "*2\r\n$3\r\n1-a\r\n:1\r\n"
      case .laggards: "*1\r\n+0\r\n"
      case .removeAll: "*2\r\n$3\r\n2-b\r\n:1\r\n"
      }
    }
  }

  /// Starts a server that answers like one that is empty, except where a test determines the reply.
  private func makeServer(
    _ answer: @escaping @Sendable (Purpose, AnsweringServer.Command) -> String?
  ) throws -> AnsweringServer {
    try AnsweringServer { command in
      guard let purpose = Purpose(command) else { return command.usual }
      let isOfCommand = [.load, .echo].contains(purpose)
      let reply = answer(purpose, command) ?? (isOfCommand ? command.usual : purpose.usual)
      // A look is answered with its own nonce, and the time.
      return purpose == .look
        ? reply.replacingOccurrences(
          of: "$3\r\n1-a\r\n",
          with: "$3\r\n1-a\r\n+\(command.firstArgument)\r\n:1000000\r\n"
        )
        .replacingOccurrences(of: "*2\r\n$3", with: "*4\r\n$3") : reply
    }
  }

  /// Returns a connected engine, whose commands have time however busy the machine is.
  private func connected(
    to server: AnsweringServer,
    _ change: (inout RedisOptions) -> Void = { _ in }
  ) async throws -> RedisEngine {
    var options = RedisOptions()
    options.commandTimeout = .seconds(60)
    change(&options)
    let engine = try RedisEngine(server.address, options: options)
    await engine.becomesConnected()
    return engine
  }

  private func makeMap(_ engine: RedisEngine) -> MultiplexerMap<String, String> {
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    return MultiplexerMap(cacher: cacher, tagging: Self.tags) { "new \($0)" }
  }

  @Sendable
  private static func tags(of key: String) -> [CacheTag] { ["tag"] }

  /// Replies that no command expects.
  static let replies = [
    "_", ":0", ":-1", ":9223372036854775807", ":-9223372036854775808", "+x", "+", "#t", ",nan",
    ",1e308", "(99999999999999999999999999", "*0", "%0", "~0", "*-1", "$-1", "*1\r\n*0",
    "*2\r\n_\r\n_",
    "*2\r\n:1\r\n:1", "*6\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1", "*2\r\n$3\r\n1-a\r\n*0",
    "*2\r\n$3\r\n1-a\r\n*1\r\n+busy", "*2\r\n$3\r\n1-a\r\n*2\r\n+failed\r\n_",
    "*2\r\n$3\r\n1-a\r\n*3\r\n+granted\r\n:-5\r\n_", "*2\r\n$3\r\n1-a\r\n*3\r\n+granted\r\n+x\r\n_",
    "*2\r\n$3\r\n1-a\r\n*6\r\n+busy\r\n:1\r\n:0\r\n_\r\n:0\r\n:1",
    "*2\r\n$3\r\n1-a\r\n*6\r\n+busy\r\n:1\r\n:-9223372036854775808\r\n_\r\n:0\r\n:1",
    "*2\r\n$3\r\n1-a\r\n*6\r\n+busy\r\n:1\r\n:1\r\n_\r\n:-1\r\n:1",
    "*2\r\n$3\r\n1-a\r\n*6\r\n+busy\r\n:1\r\n:1\r\n_\r\n:0\r\n+x",
    "*5\r\n$3\r\n1-a\r\n:1\r\n_\r\n:-1\r\n:1",
    "*5\r\n$3\r\n1-a\r\n:1\r\n+0\r\n:2000\r\n:-1", "+5:1-x:- 1=9",
    "+5:-:1-18446744073709551616 1=9",
    "+0 a=1 b", "+0" + String(repeating: " a=1", count: 100_000),
    "*2\r\n$3\r\n1-a\r\n$9\r\n1 1 {\"a\":", "*2\r\n$3\r\n1-a\r\n$5\r\n1 1 2",
    "*2\r\n$3\r\n1-a\r\n$3\r\n 1 ", "*2\r\n$22\r\n18446744073709551615-a\r\n:9223372036854775807",
    "*2\r\n$3\r\n1-a\r\n:-1", "-ERR no", "-NOSCRIPT no", "-", "-LOADING the dataset",
    "-READONLY You can't write", "-OOM command not allowed",
    "!2000000\r\n" + String(repeating: "x", count: 2_000_000),
  ]

  @Test(.guarantee(.engineFailsNoRequest), arguments: Purpose.allCases)
  func `no request fails because of a reply, whatever it is`(purpose: Purpose) async throws {
    let offset = Purpose.allCases.firstIndex(of: purpose) ?? 0
    for reply in Effort.some(of: Self.replies, offset: offset) {
      let server = try makeServer { other, _ in other == purpose ? reply + "\r\n" : nil }
      let engine = try await connected(to: server)
      let map = makeMap(engine)
      for key in ["a", "b"] {
        #expect(try await map.request(key) == "new \(key)", "\(reply.prefix(80))")
      }
      for (key, result) in await map.request(["a", "b", "c"]) {
        #expect(try result.get() == "new \(key)", "\(reply.prefix(80))")
      }
      try? await map.clear("a")
      #expect(try await map.request("a") == "new a", "\(reply.prefix(80))")
      try? await engine.close()
    }
  }

  @Test(.guarantee(.shiftedRepliesMixUpNoKeys))
  func `no key gets the value of another one if the replies are shifted`()
    async throws
  {
    let shifted = Guarded("*2\r\n$3\r\n1-a\r\n:1\r\n")
    let server = try makeServer { purpose, command in
      guard purpose == .look else { return nil }
      // Entry, lease and fetch of each key.
      let count = (Int(command.words[2]) ?? 3) - 3
      let entries = stride(from: 0, to: count, by: 3).map { index in
        let name = command.words[6 + index].split(separator: ":").last ?? ""
        let text = "1 0 {\"value\":\"\(name)\"}"
        return "$\(text.utf8.count)\r\n\(text)\r\n"
      }
      let reply =
        "*\(entries.count + 3)\r\n+1-a\r\n+\(command.firstArgument)\r\n:1\r\n\(entries.joined())"
      return shifted.withLock { last in
        defer { last = reply }
        return last
      }
    }
    let engine = try await connected(to: server)
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    var wish = SharedCache.Wish()
    // Such a look needs no other commands.
    wish.newerThan = SharedCache.Version(epoch: 1, nonce: 10, token: 0)
    for _ in 0..<5 {
      let wishes = (0..<64).map { ("\($0)", wish) }
      let findings = try? await cacher.look(for: Dictionary(uniqueKeysWithValues: wishes))
      for (key, finding) in findings ?? [:] {
        guard case .entry(let entry, _, _) = finding else { continue }
        #expect(entry.value == key)
      }
    }
    try? await engine.close()
  }

  @Test(
    .guarantee(.impossibleNumbersAreNotUsed),
    arguments: ["9223372036854775807", "9007199254740993"]
  )
  func `a number that no server gives is refused, and not sent to another server`(
    number: String
  ) async throws {
    let lease = Guarded("*3\r\n+granted\r\n:\(number)\r\n_")
    let server = try makeServer { purpose, _ in
      switch purpose {
      case .look: "*2\r\n$3\r\n1-a\r\n\(lease.withLock { $0 })\r\n"
      case .fence: "*2\r\n$3\r\n1-a\r\n:\(number)\r\n"
      case .removeAll: "*2\r\n+\(number)-b\r\n:1\r\n"
      default: nil
      }
    }
    let engine = try await connected(to: server)
    let cacher = engine.cacher(String.self, space: "values", schema: "1")
    for reply in [
      lease.withLock { $0 }, "*6\r\n+busy\r\n:\(number)\r\n:1000\r\n_\r\n:0\r\n:1000",
      "+\(number) 1 {\"value\":\"x\"}",
    ] {
      lease.withLock { $0 = reply }
      await #expect(throws: RedisEngineError.self) {
        try await cacher.look(for: ["k": SharedCache.Wish()])
      }
    }
    await #expect(throws: RedisEngineError.self) { try await cacher.remove(.all, reach: .shared) }
    await #expect(throws: RedisEngineError.self) {
      try await cacher.remove(.keys(["k"]), reach: .everywhere)
    }
    _ = try? await cacher.look(for: ["k": SharedCache.Wish()])
    #expect(!server.commands.entries.contains { $0.words.contains { $0.contains(number) } })
    try? await engine.close()
  }

  @Test(.guarantee(.impossibleNumbersAreNotUsed))
  func `a heartbeat whose answer differs each time is repeated with pauses, and renews leases`()
    async throws
  {
    let (beats, renewals) = (Log<Void>(), Log<Void>())
    let server = try makeServer { purpose, _ in
      if purpose == .renew { renewals.append(()) }
      guard purpose == .beat else { return nil }
      beats.append(())
      return "*5\r\n$3\r\n1-a\r\n:\(beats.count)\r\n+0\r\n:2000\r\n:1\r\n"
    }
    let engine = try await connected(to: server)
    let gate = Gate()
    let map = MultiplexerMap<String, String>(
      cacher: engine.cacher(String.self, space: "values", schema: "1")
    ) { key in
      try await gate.wait()
      return key
    }
    let begin = ContinuousClock.now
    async let value = map.request("k")
    await beats.first(200)
    // A hundredth of a second after each eight of them.
    #expect(begin.duration(to: .now) >= .milliseconds(200))
    await renewals.first(1)
    gate.open()
    #expect(try await value == "k")
    try await engine.close()
  }

  @Test(.guarantee(.engineFailsNoRequest), arguments: [Int64.max, 0, .min])
  func `a lease of any length can be waited for`(rest: Int64) async throws {
    let looks = Guarded(0)
    let server = try makeServer { purpose, _ in
      guard purpose == .look else { return nil }
      let count = looks.withLock { looks in
        looks += 1
        return looks
      }
      return count == 1
        ? "*2\r\n$3\r\n1-a\r\n*6\r\n+busy\r\n:1\r\n:\(Int64.max)\r\n_\r\n:0\r\n:\(rest)\r\n" : nil
    }
    let engine = try await connected(to: server)
    let map = makeMap(engine)
    async let value = map.request("k")
    await server.commands.wait { $0.contains { Purpose($0) == .look } }
    server.send(">2\r\n+invalidate\r\n*1\r\n+{values}:2:l:1:k\r\n")
    #expect(try await value == "new k")
    try await engine.close()
  }

  @Test(.guarantee(.engineFailsNoRequest))
  func `announcements of any kind are survived, between the parts of a reply, too`()
    async throws
  {
    let thousands = (0..<5_000).map { "+{values}:2:e:1:\($0)\r\n" }.joined()
    let pushes = [
      ">2\r\n+invalidate\r\n*5000\r\n\(thousands)", ">2\r\n+invalidate\r\n_\r\n",
      ">2\r\n+invalidate\r\n*3\r\n_\r\n:1\r\n*0\r\n", ">2\r\n+invalidate\r\n*1\r\n+{other}:e:k\r\n",
      ">2\r\n+invalidate\r\n*4\r\n+{values}\r\n+{values}:2:e:1:\r\n+}{\r\n+\r\n",
      ">1\r\n+invalidate\r\n",
      ">0\r\n", ">1\r\n:1\r\n", ">2\r\n+message\r\n+x\r\n",
      "|1\r\n+ttl\r\n:1\r\n", ">3\r\n+invalidate\r\n_\r\n_\r\n",
    ]
    for push in pushes {
      let server = try makeServer { purpose, command in
        purpose == .load ? nil : push + (purpose == .echo ? command.usual : purpose.usual)
      }
      let engine = try await connected(to: server)
      let map = makeMap(engine)
      for key in ["a", "b"] {
        #expect(try await map.request(key) == "new \(key)", "\(push.prefix(80))")
      }
      try await engine.close()
    }
  }

  @Test(.guarantee(.closingWaitsForNoSingleCache))
  func `an engine is closed without waiting for one cache after the other`() async throws {
    let isStopped = Guarded(false)
    let isLeaving = { @Sendable (command: AnsweringServer.Command) in
      command.words.count > 1 && command.words[1] == TierScripts.leave.source
    }
    let server = try AnsweringServer { command in
      guard !isLeaving(command) || isStopped.withLock({ !$0 }) else { return nil }
      return Purpose(command)?.usual == "+\r\n"
        ? command.usual : Purpose(command)?.usual ?? command.usual
    }
    // A script that the server does not know would be loaded between others, whose replies it would get.
    let first = try await connected(to: server)
    _ = first.cacher(String.self, space: "first", schema: "1")
    try await first.close()
    isStopped.withLock { $0 = true }
    let engine = try await connected(to: server)
    let cachers = (0..<40).map { engine.cacher(String.self, space: "\($0)", schema: "1") }
    await server.commands.wait { commands in
      Set(commands.filter { Purpose($0) == .beat }.map { $0.words[3] }).count >= 40
    }
    let closed = Task { try await engine.close() }
    let spaces = { @Sendable (commands: [AnsweringServer.Command]) in
      Set(commands.filter(isLeaving).map { $0.words[3] })
    }
    await server.commands.wait { spaces($0).count == 41 }
    #expect(spaces(server.commands.entries).count == 41)
    withExtendedLifetime(cachers) {}
    closed.cancel()
  }
}
