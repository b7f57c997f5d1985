/// The commands that a connection begins with, and the replies that make it usable.
///
/// A connection is used only with a standalone master, or with a sentinel if it asks for the address of a master.
struct IntroductionState: Sendable {
  /// The server that a connection is for.
  enum Peer: Sendable, Hashable {
    case master, sentinel
  }

  private let peer: Peer
  private let address: RedisAddress
  /// The password, which no error shows.
  private let secret: String
  /// The commands that are not answered yet.
  private var commands: ArraySlice<RedisCommand>
  /// The checks that follow, and have not ended.
  private var checks: [RestartCheckState]
  /// Whether the first commands of the checks go together with the question about the server's history of replication.
  private var asksForHistory: Bool
  /// The name of the server's history of replication; nothing if it is not known.
  private(set) var history = ""

  /// - Parameters:
  ///   - peer: The server that is expected.
  ///   - address: Its address.
  ///   - credentials: The credentials, if the server requires some.
  ///   - name: The name of the client.
  ///   - database: The number of the database.
  ///   - setup: The commands that follow.
  ///   - checks: The checks of the spaces, which follow at the end; `nil` for a connection without any.
  init(
    to peer: Peer,
    at address: RedisAddress,
    _ credentials: RedisCredentials?,
    name: String,
    database: Int = 0,
    setup: [RedisCommand] = [],
    checks: [RestartCheckState]? = nil
  ) {
    self.checks = checks ?? []
    asksForHistory = checks != nil
    (self.peer, self.address) = (peer, address)
    secret = credentials?.password ?? ""
    var hello: [RedisCommand.Argument] = ["3"]
    if let credentials {
      hello += ["AUTH", .text(credentials.user ?? "default"), .text(credentials.password)]
    }
    hello += ["SETNAME", .text(name)]
    var commands = [RedisCommand("HELLO", hello)]
    if database != 0 { commands.append(RedisCommand("SELECT", [.number(Int64(database))])) }
    self.commands = (commands + setup)[...]
  }

  /// The commands that are sent together next; none at the end.
  var next: [RedisCommand] {
    if let command = commands.first { return [command] }
    let question = asksForHistory ? [RedisCommand("INFO", ["replication"])] : []
    return question + checks.flatMap(\.commands)
  }

  /// Takes the replies to these commands.
  ///
  /// - Returns: The reason why the connection cannot be used, if there is one.
  mutating func answer(_ replies: [RESPValue]) -> RedisConnectionError? {
    guard let command = commands.popFirst() else { return answerChecks(replies[...]) }
    let reply = replies.first ?? .null
    if case .error(let error) = reply {
      return .refused(address: address, error.hiding(secret))
    }
    if command.name == "HELLO" { return Self.failure(of: reply, from: peer, at: address) }
    guard reply.text == "OK" else { return Self.nonsense(command.name, at: address) }
    return nil
  }

  private mutating func answerChecks(
    _ replies: ArraySlice<RESPValue>
  ) -> RedisConnectionError? {
    var replies = replies
    if asksForHistory {
      asksForHistory = false
      history = Self.history(in: replies.popFirst() ?? .null)
      for index in checks.indices { checks[index].history = history }
    }
    var failure: RedisConnectionError?
    for index in checks.indices {
      let own = replies.prefix(checks[index].commands.count)
      replies = replies.dropFirst(own.count)
      // The scripts of a space without rights are refused as well.
      if let error = checks[index].answer(Array(own)), error.kind != .permission {
        failure = failure ?? .refused(address: address, error)
      }
    }
    checks.removeAll(where: \.commands.isEmpty)
    return failure
  }

  /// Reads the name of a server's history of replication: a master begins another one when it starts, and when it is
  /// promoted.
  ///
  /// - Returns: Nothing if the right is missing, or the server is one that does not say it.
  private static func history(in reply: RESPValue) -> String {
    let name = "master_replid:"
    let line = reply.text?.split(whereSeparator: \.isNewline).first { $0.hasPrefix(name) }
    return line.map { String($0.dropFirst(name.count).prefix(40)) } ?? ""
  }

  /// The error of a reply that no server gives to a command.
  static func nonsense(_ command: String, at address: RedisAddress) -> RedisConnectionError {
    let reason = "the server does not answer \(command) as one that speaks RESP3"
    return .unreachable(address: address, reason: reason)
  }

  /// Judges a reply to `HELLO`.
  ///
  /// - Returns: The reason why the server cannot be used, if there is one.
  static func failure(
    of hello: RESPValue,
    from peer: Peer,
    at address: RedisAddress
  ) -> RedisConnectionError? {
    guard case .map(let fields) = hello else { return nonsense("HELLO", at: address) }
    func field(_ name: String) -> RESPValue? {
      stride(from: 0, to: fields.count - 1, by: 2).first { fields[$0].text == name }
        .map { fields[$0 + 1] }
    }
    guard field("proto")?.integer == 3 else { return nonsense("HELLO", at: address) }
    let mode = String((field("mode")?.text ?? "unknown").prefix(20))
    guard mode == (peer == .master ? "standalone" : "sentinel") else {
      return .unsupported(address: address, mode: mode)
    }
    let role = String((field("role")?.text ?? "unknown").prefix(20))
    guard peer == .sentinel || role == "master" || role == "primary" else {
      return .notMaster(address: address, role: role)
    }
    return nil
  }
}
