import Foundation
import LoopbackOrigin
import PlexusTesting
import TestSupport
import Testing

@Suite(.fewAtOnce)
struct `The life of an origin` {
  @Test func `an origin has its own port and an address`() throws {
    let (one, other) = (try LoopbackOrigin(), try LoopbackOrigin())
    #expect(one.port != other.port)
    #expect(one.port > 0)
    #expect(one.address == "http://127.0.0.1:\(one.port)")
  }

  @Test func `an origin cannot use a port that is in use`() throws {
    let origin = try LoopbackOrigin()
    #expect(throws: OriginError.portInUse(origin.port)) {
      _ = try LoopbackOrigin(port: origin.port)
    }
    #expect("\(OriginError.portInUse(80))".contains("80"))
    #expect("\(OriginError.stopped)".contains("stopped"))
    #expect("\(OriginError.system(call: "bind", code: EACCES))".hasPrefix("bind failed: "))
  }

  @Test func `stopping an origin frees its port and resets every connection`() async throws {
    let origin = try LoopbackOrigin()
    origin.route("/hello") { _ in OriginResponse(text: "hello") }
    let idle = try await RawClient(port: origin.port)
    _ = try await idle.exchange("/hello")
    let stalled = try await RawClient(port: origin.port)
    origin.inject(.stall(), for: "/hello")
    try await stalled.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
    await origin.requests(2, for: "/hello")

    origin.stop()
    #expect(origin.statistics.openConnections == 0)
    await #expect(throws: RawClient.Failure.reset) { try await idle.receive() }
    await #expect(throws: RawClient.Failure.reset) { try await stalled.receive() }
    await #expect(throws: RawClient.Failure.refused) { try await RawClient(port: origin.port) }

    let next = try LoopbackOrigin(port: origin.port)
    next.route("/hello") { _ in OriginResponse(text: "again") }
    #expect(try await RawClient(port: next.port).exchange("/hello").body == "again")
  }

  @Test func `an origin can be stopped by several threads at once, and again`() async throws {
    let origin = try LoopbackOrigin()
    await withTaskGroup { group in
      for _ in 0..<8 { group.addTask { origin.stop() } }
    }
    origin.stop()
    await origin.goOffline()
    await #expect(throws: OriginError.stopped) { try await origin.goOnline() }
  }

  @Test func `stopping an origin cancels its running handlers`() async throws {
    let origin = try LoopbackOrigin()
    let (entered, endings) = (Gate(), Log<Bool>())
    origin.route("/wait") { _ in
      entered.open()
      try? await Gate().wait()
      endings.append(Task.isCancelled)
      return OriginResponse()
    }
    let client = try await RawClient(port: origin.port)
    try await client.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
    try await entered.wait()
    origin.stop()
    #expect(await endings.first(1) == [true])
  }

  @Test func `releasing an origin stops it, and releases its handlers`() async throws {
    weak let witness: Owner?
    let port: UInt16
    do {
      let origin = try LoopbackOrigin()
      let object = Owner()
      witness = object
      origin.route("/hello") { _ in OriginResponse(text: "\(object)") }
      port = origin.port
      #expect(try await RawClient(port: port).exchange("/hello").status == 200)
    }
    #expect(witness == nil)
    await #expect(throws: RawClient.Failure.refused) { try await RawClient(port: port) }
  }

  @Test func `a handler that holds its origin is released when the origin is stopped`() async throws
  {
    weak let witness: LoopbackOrigin?
    do {
      let origin = try LoopbackOrigin()
      witness = origin
      origin.route("/count") { _ in
        OriginResponse(text: "\(origin.statistics.requestCount)")
      }
      #expect(try await RawClient(port: origin.port).exchange("/count").body == "1")
      origin.stop()
    }
    #expect(witness == nil)
  }

  @Test
  func `an origin refuses connections while it is offline, and serves on the same port later`()
    async throws
  {
    let origin = try LoopbackOrigin()
    origin.route("/hello") { _ in OriginResponse(text: "hello") }
    for _ in 0..<3 {
      let client = try await RawClient(port: origin.port)
      #expect(try await client.exchange("/hello").body == "hello")
      await origin.goOffline()
      await origin.goOffline()
      #expect(origin.statistics.openConnections == 0)
      await #expect(throws: RawClient.Failure.reset) { try await client.receive() }
      await #expect(throws: RawClient.Failure.refused) { try await RawClient(port: origin.port) }
      try await origin.goOnline()
      try await origin.goOnline()
    }
    #expect(try await RawClient(port: origin.port).exchange("/hello").body == "hello")
  }

  @Test func `an origin keeps its port while it is offline`() async throws {
    let origin = try LoopbackOrigin()
    for _ in 0..<3 {
      await origin.goOffline()
      #expect(!RawClient.canBind(to: origin.port))
      try await origin.goOnline()
      #expect(!RawClient.canBind(to: origin.port))
    }
  }

  @Test func `an origin that goes offline drops responses in progress`() async throws {
    let origin = try LoopbackOrigin()
    let gate = Gate()
    origin.route("/wait") { _ in
      try? await gate.wait()
      return OriginResponse(text: "late")
    }
    let client = try await RawClient(port: origin.port)
    try await client.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
    await gate.arrivals(1)
    await origin.goOffline()
    try await origin.goOnline()
    let second = try await RawClient(port: origin.port)
    try await second.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
    await gate.arrivals(2)
    gate.open()
    #expect(try await second.response().body == "late")
    await #expect(throws: RawClient.Failure.reset) { try await client.receive() }
  }

  @Test func `an origin can be stopped during any activity`() async throws {
    for round in 0..<20 {
      let origin = try LoopbackOrigin()
      origin.route("/hello") { _ in OriginResponse(body: Array(repeating: 1, count: 100_000)) }
      await withTaskGroup { group in
        for _ in 0..<20 {
          group.addTask {
            // The request can be served, reset or refused.
            guard let client = try? await RawClient(port: origin.port) else { return }
            while (try? await client.exchange("/hello")) != nil { await Task.detached {}.value }
          }
        }
        await origin.requests(round * 10, for: "/hello")
        await origin.goOffline()
        try? await origin.goOnline()
        origin.stop()
      }
      #expect(origin.statistics.openConnections == 0)
    }
  }

  @Test(.startsProcess) func `an origin leaves no descriptor open`() async {
    await #expect(processExitsWith: .success) {
      _ = try await exercise()
      let before = openSocketsAndPipes()
      for _ in 0..<20 { _ = try await exercise() }
      let after = openSocketsAndPipes()
      precondition(after == before, "\(after.symmetricDifference(before)) are left open")
    }
  }

  @Test(.startsProcess) func `an origin closes its listening socket while it is offline`() async {
    await #expect(processExitsWith: .success) {
      let origin = try LoopbackOrigin()
      let online = openSocketsAndPipes().count
      await origin.goOffline()
      precondition(openSocketsAndPipes().count == online - 1, "Something is left open")
    }
  }

  @Test(.startsProcess) func `an origin survives clients that disconnect before the response`()
    async
  {
    // A signal for writing to a closed connection would end this process.
    await #expect(processExitsWith: .success) {
      let origin = try LoopbackOrigin()
      let gate = Gate()
      origin.route("/wait") { _ in
        try? await Task.detached { try await gate.wait() }.value
        return OriginResponse(body: Array(repeating: 1, count: 5_000_000))
      }
      for _ in 0..<20 {
        let client = try await RawClient(port: origin.port)
        try await client.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
      }
      await gate.arrivals(20)
      gate.open()
      await origin.openConnections(atMost: 0)
    }
  }
}

/// Opens and closes connections to an origin in every way, and stops it.
private func exercise() async throws -> Int {
  let origin = try LoopbackOrigin(clock: ManualClock())
  origin.route("/hello") { _ in OriginResponse(text: "hello") }
  var responses = 0
  for fault in [nil, OriginFault.reset(), .truncation(afterBytes: 1), .stall(afterBytes: 1)] {
    if let fault { origin.inject(fault, for: "/hello") }
    let client = try await RawClient(port: origin.port)
    try await client.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
    if (try? await client.receive()) != nil { responses += 1 }
  }
  await origin.goOffline()
  try await origin.goOnline()
  let client = try await RawClient(port: origin.port)
  responses += try await client.exchange("/hello").status
  origin.stop()
  return responses
}

/// Returns the descriptors of sockets and pipes; the system opens others on demand.
private func openSocketsAndPipes() -> Set<Int32> {
  Set(
    (0..<4_096).filter { descriptor in
      var status = stat()
      guard fstat(descriptor, &status) == 0 else { return false }
      return [S_IFSOCK, S_IFIFO].contains(status.st_mode & S_IFMT)
    }
  )
}
