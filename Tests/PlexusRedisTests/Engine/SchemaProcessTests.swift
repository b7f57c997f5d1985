import TestSupport
import Testing

/// Processes with the old and the new version of a program, which differ in the schema of their values.
@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Processes of a rolling deploy` {
  private let server: RedisServer
  private let origin: OriginFiles
  private let old: [NodeProcess]
  private let new: [NodeProcess]

  init() async throws {
    server = try RedisServer()
    origin = try OriginFiles(server)
    old = [try await NodeProcess(server), try await NodeProcess(server)]
    new = [try await NodeProcess(server, schema: "2"), try await NodeProcess(server, schema: "2")]
  }

  /// The processes, and how each of them returns a value of the origin.
  private func answers(_ value: String) -> [(node: NodeProcess, answer: String)] {
    old.map { ($0, value) } + new.map { ($0, "\(value) in schema 2") }
  }

  /// Expects that all processes return a value of the origin.
  private func expect(_ value: String, for key: String) async throws {
    for (node, answer) in answers(value) { #expect(try await node.ask("get \(key)") == answer) }
  }

  @Test(.guarantee(.foreignEntriesAreMisses))
  func `processes with an old and a new schema get values of their own`() async throws {
    for round in 1..<5 {
      try origin.set("\(round)")
      #expect(try await answers("")[round - 1].node.ask("clear") == "cleared")
      for _ in 0..<3 { try await expect("\(round)", for: "k") }
      #expect(try origin.fetchCount == 2 * round)
    }
  }

  @Test(.guarantee(.schemasCostTwoCaches))
  func `processes of a rolling deploy fetch each of 500 keys once for each version`()
    async throws
  {
    let nodes = answers("1")
    for _ in 0..<2 {
      try await withThrowingTaskGroup { group in
        for (number, (node, answer)) in nodes.enumerated() {
          // Each process begins with another key.
          let keys = (0..<500).map { ($0 + number * 125) % 500 }
          group.addTask { try await Self.ask(node, for: keys, answer) }
        }
        try await group.waitForAll()
      }
    }
    #expect(try origin.fetchCount <= 1_100)
  }

  private static func ask(_ node: NodeProcess, for keys: [Int], _ answer: String) async throws {
    for key in keys { #expect(try await node.ask("get \(key)") == answer) }
  }

  @Test(.guarantee(.clearsReachAllSchemas), arguments: [0, 1, 2, 3], ["clear k", "clear"])
  func `processes of a rolling deploy use no copy that a process of either version has cleared`(
    number: Int,
    clear: String
  ) async throws {
    for round in 1..<4 {
      try origin.set("\(round)")
      let (node, answer) = answers("\(round)")[number]
      #expect(try await node.ask(clear) == "cleared")
      #expect(try await node.ask("get k") == answer)
      // The clear of a key returns before the other processes have heard of it.
      for (node, answer) in answers("\(round)") where clear != "clear" {
        while try await node.ask("get k") != answer {}
      }
      try await expect("\(round)", for: "k")
      #expect(try origin.fetchCount == 2 * round)
    }
  }

  @Test(.guarantee(.schemasCostTwoCaches))
  func `processes of a rolling deploy do not wait for a fetch of the other version`()
    async throws
  {
    try origin.hold(true)
    try old[0].send("get k")
    await old[0].answers("fetching")
    try origin.hold(false)
    for node in new { #expect(try await node.ask("get k") == "1 in schema 2") }
    #expect(try origin.fetchCount == 2)
    try old[0].send("admit")
    await old[0].answers("1")
    #expect(try await old[1].ask("get k") == "1")
    #expect(try origin.fetchCount == 2)
  }

  @Test(.guarantee(.clearsReachAllSchemas), arguments: ["clear k", "clear"])
  func `processes store nothing that was fetched before a clear of the other version`(
    clear: String
  ) async throws {
    for (fetching, clearing, other) in [(old[0], new[0], old[1]), (new[0], old[0], new[1])] {
      try origin.set("1")
      #expect(try await clearing.ask("clear") == "cleared")
      try origin.hold(true)
      let count = fetching.answerCount
      try fetching.send("get k")
      #expect(await fetching.nextAnswer(after: count) == "fetching")
      try origin.hold(false)
      try origin.set("2")
      #expect(try await clearing.ask(clear) == "cleared")
      #expect(try await fetching.ask("admit").hasPrefix("1"))
      #expect(try await other.ask("get k").hasPrefix("2"))
      #expect(try await fetching.ask("get k").hasPrefix("2"))
    }
  }
}
