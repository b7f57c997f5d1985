/// The checks of spaces on one connection, and the server's history of replication during them.
///
/// Each exchange ends with the question for the history. As long as the answer is the same, the server has neither been
/// promoted nor followed another one in between, so that all replies are about the same run.
struct RestartChecksState: Sendable {
  /// The reason why the server cannot be used.
  enum Failure: Error {
    case refused(RedisError)
    /// The server has begun another history in between.
    case changed
  }

  /// The reason of a failure by such a change.
  static let changeReason = "the server has loaded other data during the check"

  /// The checks that have not ended.
  private var checks: [RestartCheckState]
  /// The name of the history; nothing if the server does not say it, `nil` before the first exchange.
  private(set) var history: String?
  /// The spaces whose check has ended.
  private(set) var checked: Set<String> = []
  /// The reason why a space was not checked although the server can be used.
  private(set) var missingRight: RedisError?

  init(_ checks: [RestartCheckState]) {
    self.checks = checks
  }

  /// The commands that are sent together next; none at the end.
  var next: [RedisCommand] {
    guard history == nil || !checks.isEmpty else { return [] }
    return checks.flatMap(\.commands) + [RedisCommand("INFO", ["replication"])]
  }

  /// Takes the replies to these commands.
  ///
  /// - Throws: The reason why the server cannot be used.
  mutating func answer(_ replies: [RESPValue]) throws(Failure) {
    let now = try Self.history(in: replies.last ?? .null)
    guard history == nil || history == now else { throw .changed }
    history = now
    var replies = replies.dropLast()
    for index in checks.indices {
      checks[index].history = now
      let own = replies.prefix(checks[index].commands.count)
      replies = replies.dropFirst(own.count)
      if let error = checks[index].answer(Array(own)) {
        // The scripts of a space without rights are refused as well.
        guard error.kind == .permission else { throw .refused(error) }
        missingRight = error
      } else if checks[index].commands.isEmpty {
        checked.insert(checks[index].space)
      }
    }
    checks.removeAll(where: \.commands.isEmpty)
  }

  /// Reads the name of a server's history of replication: a master begins another one when it starts, and when it is
  /// promoted.
  ///
  /// - Returns: Nothing if the right is missing, or the server is one that does not say it.
  /// - Throws: The error of a server that answers no question at present.
  private static func history(in reply: RESPValue) throws(Failure) -> String {
    if case .error(let error) = reply, error.code != "ERR", error.kind != .permission {
      throw .refused(error)
    }
    let name = "master_replid:"
    let line = reply.text?.split(whereSeparator: \.isNewline).first { $0.hasPrefix(name) }
    return line.map { String($0.dropFirst(name.count).prefix(40)) } ?? ""
  }
}
