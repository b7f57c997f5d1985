import Foundation
import PlexusRedis
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Processes that share a Redis server` {
  @Test(.guarantee(.nodesFetchOnce)) func `all processes together fetch a key once`()
    async throws
  {
    let server = try RedisServer()
    let origin = try OriginFiles(server)
    var nodes: [NodeProcess] = []
    for _ in 0..<6 { nodes.append(try await NodeProcess(server)) }
    for round in 0..<10 {
      try await withThrowingTaskGroup { group in
        for node in nodes { group.addTask { try await node.ask("get \(round)") } }
        for try await value in group { #expect(value == "1") }
      }
      #expect(try origin.fetchCount == round + 1)
    }
  }

  @Test(.guarantee(.fetchesOfDeadNodesAreTakenOver))
  func `the fetch of a process that is killed is taken over when its lease ends`()
    async throws
  {
    let server = try RedisServer()
    let origin = try OriginFiles(server)
    let doomed = try await NodeProcess(server, fetchLease: 500)
    let heir = try await NodeProcess(server, fetchLease: 500)
    try origin.hold(true)
    try doomed.send("get k")
    await doomed.answers("fetching")
    try origin.hold(false)
    async let value = heir.ask("get k")
    doomed.die()
    #expect(try await value == "1")
    #expect(try origin.fetchCount == 2)
  }

  @Test(.guarantee(.clearEverywhereOutlastsTrust))
  func `a clear waits for a process that is stopped, which serves nothing older afterwards`()
    async throws
  {
    let server = try RedisServer()
    let origin = try OriginFiles(server)
    let nodes = [
      try await NodeProcess(server, nearLease: 1_000),
      try await NodeProcess(server, nearLease: 1_000),
      try await NodeProcess(server, nearLease: 1_000),
    ]
    for round in 2..<5 {
      for node in nodes { #expect(try await node.ask("get k") == "\(round - 1)") }
      nodes[1].stop()
      try origin.set("\(round)")
      #expect(try await nodes[0].ask("clear") == "cleared")
      // It finds the request before it hears of anything.
      let count = nodes[1].answerCount
      try nodes[1].send("get k")
      nodes[1].goOn()
      #expect(await nodes[1].nextAnswer(after: count) == "\(round)")
      #expect(try await nodes[2].ask("get k") == "\(round)")
    }
  }

  @Test(.guarantee(.clearEverywhereOutlastsTrust))
  func `a process that was killed delays a clear by its lease at most`() async throws {
    let server = try RedisServer()
    let origin = try OriginFiles(server)
    let node = try await NodeProcess(server)
    let doomed = try await NodeProcess(server, nearLease: 1_000)
    #expect(try await doomed.ask("get k") == "1")
    doomed.die()
    try origin.set("2")
    #expect(try await node.ask("clear") == "cleared")
    #expect(try await node.ask("get k") == "2")
  }

  @Test(.guarantee(.nearLeasesLimitCopies))
  func `a server that stands still makes no request fail, and ends the use of copies`()
    async throws
  {
    let (server, origin, node) = try await NodeProcess.behindHangingServer()
    try origin.set("3")
    #expect(try await node.ask("get k") == "3")
    server.resume()
    // D10: the server still has the first value.
    for _ in 0..<100 { #expect(try await node.ask("get k") == "3") }
  }

  @Test(.guarantee(.knownRemovalsStay))
  func `a clear is not undone by a server that restarts with an old snapshot`()
    async throws
  {
    let server = try RedisServer()
    let origin = try OriginFiles(server)
    let nodes = [try await NodeProcess(server), try await NodeProcess(server)]
    for node in nodes { #expect(try await node.ask("get k") == "1") }
    #expect(try RedisShell.run("SAVE", on: server).hasPrefix("+OK"))
    try origin.set("2")
    #expect(try await nodes[0].ask("clear") == "cleared")
    server.kill()
    try server.start()
    for node in nodes {
      // Until the process has found the server it fetches by itself.
      for _ in 0..<20 { #expect(try await node.ask("get k") == "2") }
    }
  }

  @Test(.guarantee(.engineFailsNoRequest))
  func `a process whose connections are killed continues`() async throws {
    let server = try RedisServer()
    let origin = try OriginFiles(server)
    let node = try await NodeProcess(server)
    #expect(try await node.ask("get k") == "1")
    try origin.set("2")
    for _ in 0..<5 {
      #expect(try RedisShell.run("CLIENT KILL TYPE normal SKIPME yes", on: server).hasPrefix(":"))
      // A look in flight fails, and the value is fetched.
      #expect(["1", "2"].contains(try await node.ask("get k")))
      #expect(try await node.ask("get other") == "2")
    }
  }

  @Test func `a process that ends gives its registration back`() async throws {
    let server = try RedisServer()
    _ = try OriginFiles(server)
    let node = try await NodeProcess(server)
    let leaver = try await NodeProcess(server)
    #expect(try await leaver.ask("get k") == "1")
    try leaver.send("close")
    // Otherwise it would be waited for, a minute long.
    #expect(try await node.ask("clear") == "cleared")
  }
}
