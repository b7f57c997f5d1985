import Plexus
import PlexusTesting
import TestSupport
import Testing

@testable import PlexusRedis

/// A server that answers two batches of reads at once, with replies that are surplus or missing.
@Suite(.fewAtOnce)
struct `Replies to reads of several keys` {
  private static let keys = [["a", "b", "c"], ["d", "e", "f"]]
  /// The commands of a batch: its entries, the epoch, the time and the mark.
  private static let batchSize = 6

  /// A change of the replies to both batches.
  enum Fault: Sendable {
    /// A number of replies is repeated.
    case repeats(count: Int)
    case drops(count: Int)

    func apply(to replies: [String], at index: Int) -> [String] {
      var changed = replies
      switch self {
      case .repeats(let count):
        let copies = replies[max(0, index - count)..<index]
        changed.insert(contentsOf: copies, at: index)
      case .drops(let count):
        changed.removeSubrange(index..<min(index + count, changed.count))
      }
      // Others would answer no command yet.
      return Array(changed.prefix(replies.count))
    }
  }

  private static func reply(to command: AnsweringServer.Command) -> String {
    switch command.words[0] {
    case "HMGET":
      let key = command.words[1].split(separator: ":").last ?? ""
      return "*5\r\n$3\r\n1-a\r\n$1\r\n1\r\n$1\r\n0\r\n$1\r\n\(key)\r\n_\r\n"
    case "MGET": return "*2\r\n$3\r\n1-a\r\n$1\r\n1\r\n"
    case "TIME": return "*2\r\n$4\r\n1000\r\n$1\r\n0\r\n"
    default: return command.usual
    }
  }

  /// Starts a server that answers once it has all commands of both batches.
  private func makeServer(_ fault: Fault, at index: Int) throws -> AnsweringServer {
    let waiting = Guarded<[String]>([])
    return try AnsweringServer { command in
      guard command.connection == 1, command.words[0] != "HELLO" else {
        return Self.reply(to: command)
      }
      return waiting.withLock { replies in
        replies.append(Self.reply(to: command))
        guard replies.count == 2 * Self.batchSize else { return "" }
        return fault.apply(to: replies, at: index).joined()
      }
    }
  }

  /// Reads both batches from a server.
  ///
  /// - Returns: The payload for each key that has one.
  private func read(
    from server: AnsweringServer,
    timeout: Duration
  ) async throws -> [String: String] {
    var settings = RedisConnection.Settings(server.address)
    settings.commandTimeout = timeout
    let connected = Log<Void>()
    let connection = try RedisConnection(settings) { event in
      if case .connected = event { connected.append(()) }
    }
    await connected.first(1)
    let tier = Tier(space: "s", schema: "1", node: "a", route: Route(connection))
    _ = tier.note(.string(Array("1-a".utf8)))
    async let first = tier.read(for: Self.keys[0].map { ($0, SharedCache.Wish()) })
    async let second = tier.read(for: Self.keys[1].map { ($0, SharedCache.Wish()) })
    let results = await first + second
    await connection.close()
    var found: [String: String] = [:]
    for (key, result) in zip(Self.keys.joined(), results) {
      found[key] = try? result.get().map { String(decoding: $0.payload, as: UTF8.self) }
    }
    return found
  }

  @Test(.guarantee(.shiftedRepliesMixUpNoKeys), arguments: 0...12)
  func `a surplus reply anywhere gives no key the value of another one`(count: Int) async throws {
    for index in 0...(2 * Self.batchSize) {
      let server = try makeServer(.repeats(count: count), at: index)
      let values = try await read(from: server, timeout: .seconds(60))
      for (key, value) in values { #expect(value == key, "\(count) replies at \(index)") }
      if count == 0 { #expect(values.count == 6) }
    }
  }

  @Test(.guarantee(.shiftedRepliesMixUpNoKeys), arguments: 1...12)
  func `a missing reply anywhere gives no key the value of another one`(count: Int) async throws {
    for index in 0..<(2 * Self.batchSize) {
      let server = try makeServer(.drops(count: count), at: index)
      let values = try await read(from: server, timeout: .milliseconds(50))
      for (key, value) in values { #expect(value == key, "\(count) replies at \(index)") }
    }
  }
}
