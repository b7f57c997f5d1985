/// The check whether a server has restarted since it gave out the last tokens of a space.
///
/// A server that restarts with an old snapshot, and a replica that has not received everything, give out tokens again that
/// nodes know. A script that does nothing is the sign of a server that has not: a server forgets its scripts when it
/// restarts, and a replica has none of its master. Its text contains the last restart, since a server can become a replica
/// and a master again. Without the sign, the server skips tokens, and only then it gets the sign.
struct RestartCheckState: Sendable {
  private enum Step: Sendable {
    case readsLast, seeksSign, notes, signs
  }

  /// The command whose reply comes next; `nil` at the end.
  private(set) var command: RedisCommand?
  private var step = Step.readsLast
  private let names: TierNames
  private let database: Int
  private let note: RedisScript.Call

  /// - Parameters:
  ///   - names: The keys of the space.
  ///   - database: The number of its database.
  ///   - knowledge: The nonce, and the epoch and the token that the node knows.
  ///   - skipped: The number of blocks of tokens to skip, which differs each time.
  init(
    _ names: TierNames,
    in database: Int,
    knowledge: [RedisCommand.Argument],
    skipping skipped: UInt64
  ) {
    (self.names, self.database) = (names, database)
    note = RedisScript.Call(
      keys: [names.epoch, names.tokens, names.schemas, names.acknowledgements],
      arguments: knowledge + [.number(Int64(skipped))]
    )
    command = RedisCommand("GET", [.text(names.schemas)])
  }

  /// Takes the reply to the command.
  ///
  /// - Returns: The reason why the space cannot be used, if there is one.
  mutating func answer(_ reply: RESPValue) -> RedisError? {
    var error: RedisError?
    if case .error(let reply) = reply { error = reply }
    command = nil
    switch (step, error?.code) {
    // The scripts repair a key of another type.
    case (.readsLast, nil), (.readsLast, "WRONGTYPE"):
      let last = TierNames.lastRestart(in: reply.text ?? "") ?? 0
      command = RedisCommand("EVALSHA", [.text(ScriptDigest.text(of: sign(of: last))), 0])
      step = .seeksSign
    case (.seeksSign, "NOSCRIPT"):
      command = TierScripts.restart.command(note)
      step = .notes
    case (.notes, nil):
      guard let last = reply.integer, last >= 0 else {
        return RedisError("ERR the reply to the note of a restart is not a token".utf8)
      }
      command = RedisCommand("SCRIPT", ["LOAD", .text(sign(of: UInt64(last)))])
      step = .signs
    case (.seeksSign, nil), (.signs, nil): break
    case (_, .some): return error
    }
    return nil
  }

  /// The script that a server has if it has not restarted after a restart.
  private func sign(of last: UInt64) -> String {
    // Its reply is its name, which a space cannot break out of.
    "return '\(ScriptDigest.text(of: "\(names.schemas) \(database) \(last)"))'"
  }
}
