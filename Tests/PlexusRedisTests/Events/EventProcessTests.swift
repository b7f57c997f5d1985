import Foundation
import TestSupport
import Testing

@Suite(
  .fewAtOnce,
  .timeLimit(.minutes(5)),
  .enabled(if: RedisServer.executable != nil, "redis-server or valkey-server is not installed")
)
struct `Processes that share events over a Redis server` {
  @Test func `D14: the event of a process that is killed before its answer is handled by another`()
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

  @Test(arguments: [1, 7, 40, 99])
  func `D14: of the events that a killed process has handled, at most one is handled again`(
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

  @Test func `D14: what was published before the first process of a group is handled`() async throws
  {
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

  @Test func `D14: a process that stands still loses its event to another one`() async throws {
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

  @Test func `D15: a process that stood still, and whose connections were killed, gets everything`()
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
}
