import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Testing

@Suite(.serialized, .enabled(if: RedisServer.executable != nil)) struct `A server with two nodes` {
  @Test func `the nodes share users, sign out a tenant by its tag, and hear events`() async throws {
    try await withNodes { nodes, database in
      try database.write("Ada", 7_001)
      try database.write("Eve", 8_001)
      #expect(try await nodes[0].get("users/7001") == "Ada")
      #expect(try await nodes[1].get("users/7001") == "Ada")
      #expect(try await nodes[1].get("users/8001") == "Eve")
      #expect(try await nodes[0].get("users/9999") == nil)

      try database.remove(7_001)
      #expect(try await nodes[1].status("tenants/7", .delete) == 204)
      for node in nodes { #expect(try await node.get("users/7001") == nil) }
      #expect(try await nodes[0].get("users/8001") == "Eve")

      #expect(try await nodes[0].status("renamed/8001", .post) == 202)
      for node in nodes { #expect(try await node.status("renamed/8001", .get) == 200) }
    }
  }

  @Test func `stale answers are given while the database is away`() async throws {
    try await withNodes { nodes, database in
      try database.write("Ada", 7_001)
      for node in nodes { #expect(try await node.get("users/7001") == "Ada") }
      // An event outdates the copies of both nodes.
      #expect(try await nodes[0].status("renamed/7001", .post) == 202)
      for node in nodes { #expect(try await node.status("renamed/7001", .get) == 200) }
      try database.setAway(true)
      for node in nodes { #expect(try await node.get("users/7001") == "Ada") }
      #expect(try await nodes[0].get("users/7002") == nil)
      try database.write("Augusta", 7_001)
      try database.setAway(false)
      for node in nodes { #expect(try await node.get("users/7001") == "Augusta") }
    }
  }

  @Test func `a node that gets a signal under load answers all that it has begun`() async throws {
    try await withNodes { nodes, database in
      for id in 0..<100 { try database.write("user \(id)", id) }
      let node = nodes[0]
      let answered = try await withThrowingTaskGroup(of: Int.self) { group in
        for caller in 0..<16 {
          group.addTask {
            var answers = 0
            while true {
              do {
                guard try await node.get("users/\((caller * 7 + answers) % 100)") != nil else {
                  break
                }
              } catch { break }
              answers += 1
              if caller == 0 && answers == 50 { node.terminate() }
            }
            return answers
          }
        }
        return try await group.reduce(0, +)
      }
      let line = try node.lastLine()
      #expect(node.exitStatus() == 0)
      #expect(line == "begun \(answered) answered \(answered)")
      // The other node is not affected.
      #expect(try await nodes[1].get("users/1") == "user 1")
    }
  }

  @Test func `a node ends in time while Redis and the database are away`() async throws {
    try await withNodes { nodes, database, redis in
      try database.write("Ada", 7_001)
      #expect(try await nodes[0].get("users/7001") == "Ada")
      redis.kill()
      try database.setAway(true)
      for _ in 0..<200 { _ = try await nodes[0].get("users/7001") }
      nodes[0].terminate()
      _ = try nodes[0].lastLine()
      #expect(nodes[0].exitStatus() == 0)
      let log = nodes[0].log()
      #expect(log.count { $0.contains(" error ") } <= 4, "\(log)")
    }
  }

  // MARK: - Processes

  private func withNodes(
    _ body: @Sendable ([Node], Database) async throws -> Void
  ) async throws {
    try await withNodes { nodes, database, _ in try await body(nodes, database) }
  }

  private func withNodes(
    _ body: @Sendable ([Node], Database, RedisServer) async throws -> Void
  ) async throws {
    let redis = try RedisServer()
    let database = try Database()
    defer { database.remove() }
    var configuration = HTTPClient.Configuration()
    configuration.connectionPool.retryConnectionEstablishment = false
    let client = HTTPClient(configuration: configuration)
    let outcome: Result<Void, any Error>
    do {
      let nodes = try (0..<2).map { _ in try Node(redis, database, client) }
      defer { for node in nodes { node.kill() } }
      outcome = .success(try await body(nodes, database, redis))
    } catch {
      outcome = .failure(error)
    }
    try await client.shutdown()
    try outcome.get()
  }
}

/// A folder with a file for each user.
private struct Database {
  let folder = FileManager.default.temporaryDirectory
    .appending(path: "users-\(UUID().uuidString.prefix(8))", directoryHint: .isDirectory)

  init() throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  func write(_ name: String, _ id: Int) throws {
    try Data(name.utf8).write(to: folder.appending(path: "\(id)"), options: .atomic)
  }

  func remove(_ id: Int) throws {
    try FileManager.default.removeItem(at: folder.appending(path: "\(id)"))
  }

  func setAway(_ isAway: Bool) throws {
    let file = folder.appending(path: "away")
    if isAway { try Data().write(to: file) } else { try FileManager.default.removeItem(at: file) }
  }

  func remove() {
    try? FileManager.default.removeItem(at: folder)
  }
}

/// A process of the server.
private final class Node: Sendable {
  struct NotStarted: Error {}

  private struct Name: Decodable {
    var name: String
  }

  private let process: Guarded<Process>
  private let output: Guarded<FileHandle>
  private let errors: URL
  private let client: HTTPClient
  private let port: Int

  init(_ redis: RedisServer, _ database: Database, _ client: HTTPClient) throws {
    let process = Process()
    let pipe = Pipe()
    errors = database.folder.appending(path: "log-\(UUID().uuidString.prefix(8))")
    _ = FileManager.default.createFile(atPath: errors.path, contents: nil)
    let program = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
    process.executableURL = program.appending(path: "Node")
    process.arguments = [redis.socket, database.folder.path]
    process.standardOutput = pipe
    process.standardError = try FileHandle(forWritingTo: errors)
    let output = pipe.fileHandleForReading
    let shared = Guarded(process)
    try ProcessThread.run { try shared.withLock { try $0.run() } }
    self.process = shared
    self.client = client
    let line = try Self.line(output)
    guard let port = line.split(separator: " ").last.flatMap({ Int($0) }) else {
      throw NotStarted()
    }
    self.port = port
    self.output = Guarded(output)
  }

  private static func line(_ output: FileHandle) throws -> String {
    var bytes = Data()
    while let byte = try output.read(upToCount: 1), byte.first != UInt8(ascii: "\n"), !byte.isEmpty
    {
      bytes += byte
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private func response(
    _ path: String,
    _ method: Method
  ) async throws -> HTTPClientResponse {
    var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)/\(path)")
    request.method = .init(rawValue: method.rawValue)
    // Each request has a connection, so that none is sent over one that the server is closing.
    if method == .get { request.headers.add(name: "Connection", value: "close") }
    return try await client.execute(request, timeout: .seconds(30))
  }

  enum Method: String {
    case get = "GET"
    case post = "POST"
    case delete = "DELETE"
  }

  func status(_ path: String, _ method: Method) async throws -> Int {
    let response = try await response(path, method)
    _ = try await response.body.collect(upTo: 1 << 20)
    return Int(response.status.code)
  }

  /// Returns the name of a user; `nil` if there is no answer with one.
  func get(_ path: String) async throws -> String? {
    let response = try await response(path, .get)
    let body = try await response.body.collect(upTo: 1 << 20)
    guard response.status.code == 200 else { return nil }
    return try JSONDecoder().decode(Name.self, from: Data(body.readableBytesView)).name
  }

  func terminate() {
    Foundation.kill(process.withLock { $0.processIdentifier }, SIGTERM)
  }

  func kill() {
    let id = process.withLock { $0.isRunning ? $0.processIdentifier : 0 }
    if id > 0 { Foundation.kill(id, SIGKILL) }
  }

  /// Waits for the line that the process prints when it ends.
  func lastLine() throws -> String {
    try output.withLock { try Self.line($0) }
  }

  func exitStatus() -> Int32 {
    (try? ProcessThread.run { [process] in
      process.withLock { process in
        process.waitUntilExit()
        return process.terminationStatus
      }
    }) ?? -1
  }

  func log() -> [String] {
    ((try? String(contentsOf: errors, encoding: .utf8)) ?? "").split(separator: "\n").map(
      String.init
    )
  }
}
