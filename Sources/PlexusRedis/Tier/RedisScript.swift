internal import PlexusSupport

/// A Lua script that the engine runs as a whole, by its digest where the server knows it.
final class RedisScript: Sendable {
  /// The kind of the script, in the plural, for a sentence about it.
  let purpose: String
  let source: String
  /// The name under which a server has it once it has run it.
  private let digest: String

  init(_ purpose: String, _ source: String) {
    self.purpose = purpose
    self.source = source
    digest = SHA1.hexadecimalDigest(source.utf8)
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

  /// Runs the script.
  ///
  /// - Parameters:
  ///   - route: The way of the script.
  ///   - keys: The keys of the engine that the script reads and changes.
  ///   - arguments: Its arguments.
  /// - Returns: Its result.
  /// - Throws: An error of the connection or of the script.
  func run(
    on route: Route,
    keys: [String],
    _ arguments: [RedisCommand.Argument]
  ) async throws -> RESPValue {
    try await run([Call(keys: keys, arguments: arguments)], on: route)[0].get()
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
    on route: Route
  ) async -> [Result<RESPValue, any Error>] {
    var results = await route.send(calls.map { $0.command("EVALSHA", digest, of: self) })
    // A new or restarted server has no scripts, and has run nothing.
    let unknown = results.indices.filter { index in
      guard case .failure(let error as RedisError) = results[index] else { return false }
      return error.code == "NOSCRIPT"
    }
    guard !unknown.isEmpty else { return results }
    let replies = await route.send(unknown.map { calls[$0].command("EVAL", source, of: self) })
    for (index, reply) in zip(unknown, replies) { results[index] = reply }
    return results
  }

  /// Returns the command for one call that no server refuses because it has lost its scripts.
  func command(_ call: Call) -> RedisCommand { call.command("EVAL", source, of: self) }

  /// Sends one call without waiting for its result, which is an error if the server has neither the script nor the slot.
  ///
  /// - Returns: The command; `nil` if no server is known to have the slot.
  func post(_ call: Call, on route: Route) -> ConnectionLoop.Posted? {
    route.post(call.command("EVALSHA", digest, of: self))
  }
}
