import Foundation
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Processes that share events over a Redis server` {
  @Test(.guarantee(.groupsHandleEachEvent))
  func `the event of a process that is killed before its answer is handled by another`()
    async throws
  {
    let server = try RedisServer()
    let origin = try OriginFiles(server)
    let doomed = try await NodeProcess(server)
    let heir = try await NodeProcess(server)
    try origin.hold(true)
    try doomed.send("join 500")
    await doomed.answers("connected")
    #expect(try await heir.ask("publish 1") == "published 1")
    await doomed.answers("handling 1")
    try origin.hold(false)
    try heir.send("join 500")
    await heir.answers("connected")
    doomed.die()
    await heir.answers("handled 1")
  }

  @Test(.guarantee(.unacknowledgedEventsAreBounded), arguments: [1, 7, 40, 99])
  func `of the events that a killed process has handled, at most one is handled again`(
    count: Int
  ) async throws {
    let server = try RedisServer()
    let (doomed, heir) = (try await NodeProcess(server), try await NodeProcess(server))
    for number in 0..<200 {
      #expect(try await heir.ask("publish \(number)") == "published \(number)")
    }
    try doomed.send("join 500")
    await doomed.answers("handled \(count)")
    doomed.die()
    // The last event that it has received. Those before it are taken over in order, the handled ones first.
    let script = #"EVAL "return redis.call('XPENDING', '{notes}:stream', 'group')[3] or ''" 0"#
    let last = try RedisShell.run(script, on: server).split(separator: "\r\n").last
    try heir.send("join 500")
    if let number = last?.split(separator: "-").last.flatMap({ Int($0) }) {
      await heir.answers("handled \(number)")
    }
    func handled(_ process: NodeProcess) -> Set<String> {
      Set(process.allAnswers.filter { $0.hasPrefix("handled") })
    }
    #expect(handled(doomed).intersection(handled(heir)).count <= 1)
  }

  @Test(.guarantee(.groupsHandleEachEvent))
  func `what was published before the first process of a group is handled`() async throws {
    let server = try RedisServer()
    let sender = try await NodeProcess(server)
    let worker = try await NodeProcess(server)
    for number in 0..<10 {
      #expect(try await sender.ask("publish \(number)") == "published \(number)")
    }
    sender.die()
    try worker.send("join 500")
    for number in 0..<10 { await worker.answers("handled \(number)") }
  }

  @Test(.guarantee(.groupsHandleEachEvent))
  func `a process that stands still loses its event to another one`() async throws {
    let server = try RedisServer()
    let origin = try OriginFiles(server)
    let (slow, other) = (try await NodeProcess(server), try await NodeProcess(server))
    try origin.hold(true)
    try slow.send("join 500")
    await slow.answers("connected")
    #expect(try await other.ask("publish 1") == "published 1")
    await slow.answers("handling 1")
    slow.stop()
    try origin.hold(false)
    try other.send("join 500")
    await other.answers("handled 1")
    slow.goOn()
  }

  @Test(.guarantee(.everyNodeFollowsBrokenConnections))
  func `a process that stood still, and whose connections were killed, gets everything`()
    async throws
  {
    let server = try RedisServer()
    let sender = try await NodeProcess(server)
    let listener = try await NodeProcess(server)
    try listener.send("listen")
    await listener.answers("connected")
    for round in 0..<5 {
      listener.stop()
      #expect(try RedisShell.run("CLIENT KILL TYPE normal SKIPME yes", on: server).hasPrefix(":"))
      for number in 0..<10 {
        let text = "\(round).\(number)"
        #expect(try await sender.ask("publish \(text)") == "published \(text)")
      }
      listener.goOn()
      for number in 0..<10 { await listener.answers("got \(round).\(number)") }
    }
    #expect(!listener.allAnswers.contains("gap"))
    let notes = listener.allAnswers.filter { $0.hasPrefix("got") }
    #expect(notes.count == 50 && Set(notes).count == 50)
  }

  @Test(.guarantee(.eventsDoNotReturn))
  func `an event whose answer is lost is stored once, with an id, and not echoed`()
    async throws
  {
    let server = try RedisServer()
    let proxy = try RedisProxy(server)
    let monitor = try await RedisMonitor(server)
    let sender = try await NodeProcess(server, through: proxy)
    let listener = try await NodeProcess(server)
    for node in [sender, listener] {
      try node.send("listen")
      await node.answers("connected")
    }
    #expect(try await sender.ask("publish 0", for: "published ") == "0")
    for round in 1...10 {
      proxy.holdReplies()
      try sender.send("publish \(round)")
      // The server has stored the event, and its answer is on the way.
      await monitor.commands(round + 1, with: "lua", "\"XADD\"")
      proxy.cut()
      await sender.answers("published \(round)")
      await listener.answers("got \(round)")
    }
    #expect(try await sender.ask("publish last", for: "published ") == "last")
    for node in [sender, listener] {
      await node.answers("got last")
      let notes = node.allAnswers.filter { $0.hasPrefix("got") }
      #expect(notes == (0...10).map { "got \($0)" } + ["got last"])
    }
    // The first line of each header is the id.
    let script = """
      local ids, count = {}, 0
      for _, entry in ipairs(redis.call('XRANGE', '{notes}:stream', '-', '+')) do
        for index = 1, #entry[2], 2 do
          local id = entry[2][index] == 'h' and string.match(entry[2][index + 1], '^%C+')
          if id and not ids[id] then
            ids[id] = true
            count = count + 1
          end
        end
      end
      return {ok = redis.call('XLEN', '{notes}:stream') .. ' ' .. count}
      """
    let line = script.replacing("\n", with: " ")
    #expect(try RedisShell.run("EVAL \"\(line)\" 0", on: server) == "+12 12\r\n")
  }

  @Test(.guarantee(.outgoingBytesAreBounded))
  func `the events that wait for a stopped server have a limit, and others fail`()
    async throws
  {
    let server = try RedisServer()
    let node = try await NodeProcess(server, outboxBytes: 256 << 10)
    #expect(try await node.ask("publish 1") == "published 1")
    server.suspend()
    let memory = node.peakMemory
    func failures() -> Int { node.allAnswers.count { $0.hasPrefix("error: ") } }
    // 64 MB: events need memory anyway while they are published at the same time.
    for wave in 1...20 {
      try node.send("flood 50")
      while true {
        let status = try await node.ask("status", for: "status ").split(separator: " ")
          .compactMap { Int($0) }
        #expect(status[1] <= 256 << 10)
        if status[2] + failures() == 50 * wave { break }
      }
    }
    let error = "that wait to be sent to the Redis server: the limit is \(256 << 10)."
    #expect(node.allAnswers.count { $0.contains(error) } == failures())
    if let memory, let peak = node.peakMemory { #expect(peak - memory < 24 << 20) }
    server.resume()
    // Events that were accepted are stored, the others are not.
    let accepted = 1_000 - failures()
    await node.answers(accepted) { $0 == "published" }
    #expect(failures() + accepted == 1_000)
    #expect(try RedisShell.run("XLEN {notes}:stream", on: server) == ":\(accepted + 1)\r\n")
  }
}
