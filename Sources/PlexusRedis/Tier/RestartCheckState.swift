internal import PlexusSupport

/// The check of a space with which a connection begins: whether the server can have lost tokens that nodes know.
///
/// A run of a server lasts from its start, or its promotion to a master, until it stops or follows another server. Within
/// a run nothing is lost. Each later run of a space begins with a note: it skips a random number of tokens, lists which
/// ones, and gives the run a name. So a token shows its run, and the list shows which runs the data comes from, and where
/// each of them ended. From this follows:
///
/// - Data from any moment of any run, in a snapshot or in a replica, has none of the tokens that were given out after that
///   moment, and never gives them out, however many runs have followed: each of them skips, also one that follows the note
///   of another without a token in between. The first script of a node that knows such a token begins a new epoch. The
///   exceptions are two runs that skip the same number of blocks after the same moment, one case in 131,000, and a run
///   that loses more than 16 million tokens.
/// - A new run that has lost nothing begins no new epoch, and is noted once, however many processes find it at the same
///   time: a note does nothing if the list has another name than the process has read.
///
/// The sign of a run is a script that does nothing, whose text contains its name, and is loaded before the note is made.
/// A server forgets its scripts when it restarts, and a replica has none of its master. A server that follows another one
/// and is promoted again has its scripts, but begins another history of replication. Without the right to ask for it, such
/// a server is recognized only if another run was noted meanwhile. A process with the right loads the sign without the
/// history as well: otherwise processes with and without the right would note the same run again and again.
struct RestartCheckState: Sendable {
  private enum Step: Sendable {
    case reads, seeks, notes
  }

  /// The commands whose replies come next, to be sent together; none at the end.
  private(set) var commands: [RedisCommand]
  /// The server's history of replication, to be set before the first reply; nothing if it is not known.
  var history = ""
  /// The key of the space that has its last run.
  var space: String { names.schemas }
  private var step = Step.reads
  private let names: TierNames
  private let database: Int
  private let nonce: String
  private let knowledge: [RedisCommand.Argument]
  private let skipped: UInt64
  /// The name of the run that was noted last, nothing for none; `nil` for a space that is new.
  private var last: String?

  /// - Parameters:
  ///   - names: The keys of the space.
  ///   - database: The number of its database.
  ///   - nonce: The name of the run, if this check notes it.
  ///   - knowledge: The nonce, and the epoch and the token that the node knows.
  ///   - skipped: The number of blocks of tokens to skip, which differs each time.
  init(
    _ names: TierNames,
    in database: Int,
    nonce: String,
    knowledge: [RedisCommand.Argument],
    skipping skipped: UInt64
  ) {
    (self.names, self.database) = (names, database)
    (self.nonce, self.knowledge, self.skipped) = (nonce, knowledge, skipped)
    commands = [RedisCommand("GET", [.text(names.schemas)])]
  }

  /// Takes the replies to the commands.
  ///
  /// - Returns: The reason why the space cannot be used, if there is one.
  mutating func answer(_ replies: [RESPValue]) -> RedisError? {
    let errors = replies.compactMap { reply -> RedisError? in
      if case .error(let error) = reply { error } else { nil }
    }
    commands = []
    switch (step, errors.first?.code) {
    // The scripts repair a key of another type.
    case (.reads, nil), (.reads, "WRONGTYPE"):
      last = TierNames.lastRun(in: replies.first?.text ?? "")
      guard let last, !last.isEmpty else {
        note()
        break
      }
      let digest = SHA1.hexadecimalDigest(sign(of: last, history).utf8)
      commands = [RedisCommand("EVALSHA", [.text(digest), 0])]
      step = .seeks
    case (.seeks, "NOSCRIPT"): note()
    case (.seeks, nil), (.notes, nil): break
    case (_, .some): return errors.first
    }
    return nil
  }

  /// Gives a run its signs and its name.
  ///
  /// Signs without a note are those of no run.
  private mutating func note() {
    commands = (history.isEmpty ? [""] : ["", history]).map { history in
      RedisCommand("SCRIPT", ["LOAD", .text(sign(of: nonce, history))])
    }
    let note = RedisScript.Call(
      keys: [names.epoch, names.tokens, names.schemas, names.acknowledgements],
      // A space without a list has lost nothing: it gets another epoch.
      arguments: knowledge + [.number(last == nil ? 0 : Int64(skipped)), .text(last ?? "")]
    )
    commands.append(TierScripts.restart.command(note))
    step = .notes
  }

  /// The script that a server has if a run was noted.
  private func sign(of name: String, _ history: String) -> String {
    // Its reply is its name, which a space cannot break out of.
    let subject = "\(names.schemas) \(database) \(name) \(history)"
    return "return '\(SHA1.hexadecimalDigest(subject.utf8))'"
  }
}
