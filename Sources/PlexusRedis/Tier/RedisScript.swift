internal import PlexusSupport

/// A Lua script that the engine runs as a whole, by its digest once the digest is known.
final class RedisScript: Sendable {
  /// The kind of the script, in the plural, for a sentence about it.
  let purpose: String
  let source: String
  /// The digest, which is the same on every engine, once an engine has the script.
  private let digest = Locked<String?>(nil)

  init(_ purpose: String, _ source: String) {
    self.purpose = purpose
    self.source = source
  }

  /// The commands that the script contains, in order of their names.
  var commands: [String] {
    var found: Set<String> = []
    for call in ["call('", "run('"] {
      for part in source.split(separator: call).dropFirst() {
        let words = part.split(separator: "'", maxSplits: 3, omittingEmptySubsequences: false)
        guard let name = words.first, name.allSatisfy(\.isUppercase) else { continue }
        // Some commands have rights of their own for each subcommand.
        let isContainer = name == "XGROUP" || name == "XINFO"
        found.insert(isContainer && words.count > 2 ? "\(name)|\(words[2])" : String(name))
      }
    }
    return found.sorted()
  }

  /// Whether the digest is known.
  var isKnown: Bool { digest.withLock { $0 != nil } }

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
    try await run([Call(keys: keys, arguments: arguments)], on: connection)[0].get()
  }

  /// The input of one run of the script.
  struct Call: Sendable {
    /// The keys of the engine that the script reads and changes.
    var keys: [String]
    var arguments: [RedisCommand.Argument]

    fileprivate func command(
      _ name: String,
      _ text: String,
      of script: RedisScript
    ) -> RedisCommand {
      let keys: [RedisCommand.Argument] = [.number(Int64(keys.count))] + keys.map { .text($0) }
      return RedisCommand(name, [.text(text)] + keys + arguments, running: script)
    }
  }

  /// Runs the script several times; all calls are sent before the first result is awaited.
  ///
  /// - Returns: The result of each call, in the same order, or an error of the connection or of the script.
  func run(
    _ calls: [Call],
    on connection: RedisConnection
  ) async -> [Result<RESPValue, any Error>] {
    let known: String
    do {
      known = try await digest(on: connection)
    } catch {
      return calls.map { _ in .failure(error) }
    }
    var results = await connection.send(calls.map { $0.command("EVALSHA", known, of: self) })
    // A restarted server has lost its scripts, and has run nothing.
    let unknown = results.indices.filter { index in
      guard case .failure(let error as RedisError) = results[index] else { return false }
      return error.code == "NOSCRIPT"
    }
    guard !unknown.isEmpty else { return results }
    let replies = await connection.send(unknown.map { calls[$0].command("EVAL", source, of: self) })
    for (index, reply) in zip(unknown, replies) { results[index] = reply }
    return results
  }

  /// Returns the command for one call that no server refuses because it has lost its scripts.
  func command(_ call: Call) -> RedisCommand { call.command("EVAL", source, of: self) }

  /// Sends one call without waiting for its result.
  ///
  /// - Returns: `nil` if the digest of the script is not known yet.
  func post(_ call: Call, on connection: RedisConnection) -> ConnectionLoop.Posted? {
    digest.withLock { $0 }.map { connection.post(call.command("EVALSHA", $0, of: self)) }
  }

  private func digest(on connection: RedisConnection) async throws -> String {
    if let known = digest.withLock({ $0 }) { return known }
    let reply = try await connection.send(RedisCommand("SCRIPT", ["LOAD", .text(source)]))
    // The digest is used for all engines: that of another script would never be noticed.
    guard let text = reply.text, text == ScriptDigest.text(of: source) else {
      throw RedisError("ERR SCRIPT LOAD returned another digest".utf8)
    }
    digest.withLock { $0 = text }
    return text
  }
}
