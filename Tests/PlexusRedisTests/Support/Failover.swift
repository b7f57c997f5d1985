import Foundation
import PlexusRedis
import TestSupport
import Testing

/// A server and its replica on ports of 127.0.0.1.
struct Failover: Sendable {
  let first: RedisServer
  let second: RedisServer
  let firstPort: UInt16
  let secondPort: UInt16

  /// Starts the servers, and waits until the second one has the data of the first one.
  ///
  /// - Parameter clock: The wall clock of the second server, if it has one of its own.
  init(clock: SkewedClock? = nil) async throws {
    let ports = [try LoopbackSocket().port, try LoopbackSocket().port]
    (firstPort, secondPort) = (ports[0], ports[1])
    func options(_ port: UInt16) -> [String] {
      [
        "--port", "\(port)", "--bind", "127.0.0.1", "--repl-diskless-sync-delay", "0",
        "--repl-ping-replica-period", "1",
      ]
    }
    first = try RedisServer(options: options(firstPort))
    await RedisShell.waitUntilReady(first)
    second = try RedisServer(
      options: options(secondPort) + ["--replicaof", "127.0.0.1", "\(firstPort)"],
      environment: clock?.environment ?? [:]
    )
    await RedisShell.waitUntilReady(second)
    await replicate()
  }

  /// Waits until the second server has the changes of the first one.
  func replicate() async {
    let mark = "\(UInt64.random(in: .min ... .max))"
    _ = try? RedisShell.run("SET mark \(mark)", on: first)
    await Self.poll { [second] in
      (try? RedisShell.reply("GET mark", on: second))?.contains(mark) == true
    }
  }

  /// Saves the data of the first server, which refuses it while it writes a snapshot for its replica.
  func save() async {
    await Self.poll { [first] in
      (try? RedisShell.run("SAVE", on: first))?.hasPrefix("+OK") == true
    }
  }

  var firstAddress: RedisAddress { .tcp(host: "127.0.0.1", port: firstPort) }

  /// Makes the second server the master, and the first one its replica, as an operator does.
  func exchangeRoles() throws {
    try RedisShell.perform(["REPLICAOF NO ONE"], on: second)
    try RedisShell.perform(["REPLICAOF 127.0.0.1 \(secondPort)"], on: first)
  }

  /// Lets the servers exchange their roles by `FAILOVER`, and waits until the second one is the master.
  func failOver() async throws {
    try RedisShell.perform(["FAILOVER"], on: first)
    await Self.poll { [second] in
      (try? RedisShell.reply("ROLE", on: second))?.contains("master") == true
    }
  }

  /// Waits until a condition is met, which is asked again and again on a thread of its own.
  static func poll(until isMet: @escaping @Sendable () -> Bool) async {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        while !isMet() { Foundation.poll(nil, 0, 2) }
        continuation.resume()
      }
    }
  }
}

extension RedisShell {
  /// Closes a connection.
  static func end(_ descriptor: Int32) {
    close(descriptor)
  }

  /// Reads until a text has arrived, or the connection ends.
  static func receive(from descriptor: Int32, until text: String) -> String {
    var received: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4_096)
    while !String(decoding: received, as: UTF8.self).contains(text) {
      let count = Foundation.read(descriptor, &buffer, buffer.count)
      guard count > 0 else { break }
      received += buffer[..<count]
    }
    return String(decoding: received, as: UTF8.self)
  }

  /// Sends a command on a connection of its own and returns the first lines of its reply.
  static func reply(_ command: String, on server: RedisServer) throws -> String {
    let descriptor = try connect(to: server)
    defer { close(descriptor) }
    try send(command, to: descriptor)
    var buffer = [UInt8](repeating: 0, count: 4_096)
    let count = read(descriptor, &buffer, buffer.count)
    return String(decoding: buffer[..<max(0, count)], as: UTF8.self)
  }
}

/// A name for a server, which can be pointed to another one: a link to its socket.
final class PointedSocket: Sendable {
  private let folder: URL

  init(to server: RedisServer) throws {
    folder = FileManager.default.temporaryDirectory
      .appending(path: "name-\(UUID().uuidString.prefix(8))", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try point(to: server)
  }

  deinit {
    try? FileManager.default.removeItem(at: folder)
  }

  /// The path of the socket.
  var path: String { folder.appending(path: "socket").path }

  var address: RedisAddress { .unix(path: path) }

  func point(to server: RedisServer) throws {
    try? FileManager.default.removeItem(atPath: path)
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: server.socket)
  }
}
