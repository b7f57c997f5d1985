internal import PlexusSupport

/// A Lua script that the engine runs as a whole, by its digest once the digest is known.
final class RedisScript: Sendable {
  private let source: String
  /// The digest that the engine has computed, which is the same on every engine.
  private let digest = Locked<String?>(nil)

  init(_ source: String) {
    self.source = source
  }

  /// Runs the script.
  ///
  /// - Parameters:
  ///   - connection: The connection.
  ///   - keys: The keys of the engine that the script reads and changes.
  ///   - arguments: Its arguments.
  /// - Returns: Its result.
  /// - Throws: An error of the connection or of the script.
  func run(
    on connection: RedisConnection,
    keys: [String],
    _ arguments: [RedisCommand.Argument]
  ) async throws -> RESPValue {
    let rest =
      [.number(Int64(keys.count))] + keys.map { RedisCommand.Argument.text($0) } + arguments
    do {
      let digest = try await digest(on: connection)
      return try await connection.send(RedisCommand("EVALSHA", [.text(digest)] + rest))
    } catch let error as RedisError where error.code == "NOSCRIPT" {
      // A server that was restarted has forgotten its scripts, and has run nothing.
      return try await connection.send(RedisCommand("EVAL", [.text(source)] + rest))
    }
  }

  private func digest(on connection: RedisConnection) async throws -> String {
    if let known = digest.withLock({ $0 }) { return known }
    let reply = try await connection.send(RedisCommand("SCRIPT", ["LOAD", .text(source)]))
    guard let text = reply.text else { throw RedisError("ERR SCRIPT LOAD returned no digest".utf8) }
    digest.withLock { $0 = text }
    return text
  }
}
