import TestSupport
import Testing

@testable import PlexusRedis

@Suite(.fewAtOnce) struct `The commands of a connection` {
  typealias Pipeline = PipelineState<String>

  var pipeline = Pipeline(outboxLimit: 10)
  let error = RedisConnectionError.lost(reason: "test")

  private mutating func add(_ name: String, deadline: Nanoseconds = 100) -> Pipeline.Admission {
    pipeline.add(Array(name.utf8), deadline: deadline) { "\(name)\($0)" }
  }

  // The macros cannot call mutating members of a property.

  private mutating func reply() -> String?? { pipeline.takeReply() }

  private mutating func leave(_ number: Int) -> String? { pipeline.leave(number) }

  private mutating func expire(at now: Nanoseconds) -> [String] { pipeline.expire(at: now) }

  private mutating func connect() -> Pipeline.Turn? { pipeline.connect() }

  private mutating func disconnect(_ error: RedisConnectionError?) -> [String] {
    pipeline.disconnect(error)
  }

  private mutating func extend(_ turn: Pipeline.Turn) -> Pipeline.Turn { pipeline.extend(turn) }

  private mutating func written(_ turn: Pipeline.Turn) -> Pipeline.Turn? { pipeline.written(turn) }

  private mutating func postpone(_ turn: Pipeline.Turn, sent count: Int) -> Bool {
    pipeline.postpone(turn, sent: count)
  }

  private mutating func resume() -> Pipeline.Turn? { pipeline.resume() }

  @Test
  mutating func `the commands of a connection wait for the connection, and are sent together`() {
    for name in ["a", "b"] { #expect(add(name).isQueued) }
    #expect(connect()?.bytes == Array("ab".utf8))
    #expect(reply() == .some("a0"))
    #expect(reply() == .some("b1"))
    #expect(reply() == nil)
  }

  @Test
  mutating func `commands are written by one thread at a time, which takes what has queued up`()
    throws
  {
    #expect(connect() == nil)
    let turn = try #require(add("a").turn)
    for name in ["b", "c"] { #expect(add(name).isQueued) }
    let next = try #require(written(turn))
    #expect(next.bytes == Array("bc".utf8))
    #expect(written(next) == nil)
    #expect(add("d").turn != nil)
  }

  @Test(.guarantee(.engineFailsNoRequest))
  mutating func `the commands of a connection are late only while the server is silent`() {
    #expect(connect() == nil)
    _ = add("a", deadline: 100)
    #expect(!pipeline.isOverdue(at: 99, silence: 1_000, limit: 50))
    #expect(pipeline.isOverdue(at: 100, silence: 50, limit: 50))
    #expect(!pipeline.isOverdue(at: 1_000, silence: 49, limit: 50))
    #expect(reply() == .some("a0"))
    #expect(!pipeline.isOverdue(at: 1_000, silence: 1_000, limit: 50))
  }

  @Test(.guarantee(.largeOperationsAreSentInParts))
  mutating func `the commands of one caller are written together`() throws {
    #expect(connect() == nil)
    let turn = try #require(add("a").turn)
    for name in ["b", "c"] { #expect(add(name).isQueued) }
    let extended = extend(turn)
    #expect(extended.bytes == Array("abc".utf8))
    #expect(extend(extended).bytes == Array("abc".utf8))
    #expect(pipeline.outboxBytes == 0)
    #expect(written(extended) == nil)
    #expect(add("d").turn != nil)
  }

  @Test
  mutating func `commands keep their order when the system takes only some bytes`() throws {
    _ = connect()
    let turn = try #require(add("abc").turn)
    #expect(add("de").isQueued)
    #expect(postpone(turn, sent: 1))
    #expect(add("f").isQueued)
    let next = try #require(resume())
    #expect(next.bytes == Array("bcdef".utf8))
    #expect(resume() == nil)
    #expect(written(next) == nil)
  }

  @Test mutating func `the commands of a connection are refused when too many bytes wait`() {
    #expect(add("1234567890").isQueued)
    #expect(add("x").error == .outboxFull(bytes: 1, waiting: 10, limit: 10))
    #expect(pipeline.count == 1)
  }

  @Test mutating func `the commands of a connection keep the place of a caller that has left`() {
    _ = add("a")
    _ = add("b")
    #expect(leave(0) == "a0")
    #expect(leave(0) == nil)
    #expect(leave(7) == nil)
    // Its reply comes all the same, and is not that of the next one.
    #expect(reply() == .some(nil))
    #expect(reply() == .some("b1"))
    #expect(leave(1) == nil)
  }

  @Test mutating func `the commands of a connection expire in order, and keep their places`() {
    _ = add("a", deadline: 10)
    _ = add("b", deadline: 20)
    #expect(pipeline.nextDeadline == 10)
    #expect(expire(at: 9) == [])
    #expect(expire(at: 10) == ["a0"])
    #expect(pipeline.nextDeadline == 20)
    #expect(pipeline.oldestDeadline == 10)
    #expect(reply() == .some(nil))
    #expect(pipeline.oldestDeadline == 20)
    #expect(reply() == .some("b1"))
    #expect(pipeline.oldestDeadline == nil)
  }

  @Test
  mutating func `commands fail when the connection breaks, and begin again with the next one`()
    throws
  {
    _ = connect()
    let turn = try #require(add("a").turn)
    _ = add("b")
    #expect(disconnect(nil) == ["a0", "b1"])
    // The thread that was writing has no effect.
    #expect(!postpone(turn, sent: 0))
    #expect(written(turn) == nil)
    #expect(reply() == nil)
    #expect(add("c").isQueued)
    #expect(connect()?.bytes == Array("c".utf8))
    #expect(reply() == .some("c2"))
  }

  @Test
  mutating func `the commands of a connection are refused while the server cannot be reached`() {
    #expect(disconnect(error) == [])
    #expect(add("a").error == error)
    _ = connect()
    #expect(add("b").turn != nil)
  }

  @Test
  mutating func `the commands of a connection leave no memory behind, however many there are`() {
    _ = connect()
    for number in 0..<10_000 {
      if case .writes(let turn) = add("x") { _ = written(turn) }
      #expect(pipeline.count == 1)
      #expect(reply() == .some("x\(number)"))
    }
    #expect(pipeline.count == 0)
  }
}

extension PipelineState.Admission {
  fileprivate var isQueued: Bool { if case .queued = self { true } else { false } }

  fileprivate var turn: PipelineState.Turn? {
    if case .writes(let turn) = self { turn } else { nil }
  }

  fileprivate var error: RedisConnectionError? {
    if case .refused(let error) = self { error } else { nil }
  }
}
