/// The commands that a connection begins with, and the replies that make it usable.
///
/// A connection is used only with the server that is expected: a standalone master, a master of a cluster, a sentinel that
/// says where a master is, or any server of a cluster that says which master has which slots.
struct IntroductionState: Sendable {
  /// The server that a connection is for.
  enum Peer: Sendable, Hashable {
    case master, sentinel, clusterMaster, clusterNode

    /// The mode of the server.
    fileprivate var mode: String {
      switch self {
      case .master: "standalone"
      case .sentinel: "sentinel"
      case .clusterMaster, .clusterNode: "cluster"
      }
    }

    /// Whether it has to be a master.
    fileprivate var isMaster: Bool { self == .master || self == .clusterMaster }
  }

  private let peer: Peer
  private let address: RedisAddress
  /// The password, which no error shows.
  private let secret: String
  /// The commands that are not answered yet.
  private var commands: ArraySlice<RedisCommand>
  /// The checks that follow.
  private(set) var checks: RestartChecksState?

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
    self.checks = checks.map { RestartChecksState($0) }
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
    commands.first.map { [$0] } ?? checks?.next ?? []
  }

  /// Takes the replies to these commands.
  ///
  /// - Returns: The reason why the connection cannot be used, if there is one.
  mutating func answer(_ replies: [RESPValue]) -> RedisConnectionError? {
    guard let command = commands.popFirst() else { return answerChecks(replies) }
    let reply = replies.first ?? .null
    if case .error(let error) = reply {
      return .refused(address: address, error.hiding(secret))
    }
    if command.name == "HELLO" { return Self.failure(of: reply, from: peer, at: address) }
    guard reply.text == "OK" else { return Self.nonsense(command.name, at: address) }
    return nil
  }

  private mutating func answerChecks(_ replies: [RESPValue]) -> RedisConnectionError? {
    do {
      try checks?.answer(replies)
      return nil
    } catch {
      switch error {
      case .refused(let error): return .refused(address: address, error)
      case .changed:
        return .unreachable(address: address, reason: RestartChecksState.changeReason)
      }
    }
  }

  /// Returns whether a message says that all keys have changed: the server was emptied, or has loaded other data.
  static func isFlush(_ push: [RESPValue]) -> Bool {
    push.count == 2 && push[0].text == "invalidate" && push[1].elements == nil
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
    guard mode == peer.mode else {
      return .unsupported(address: address, mode: mode)
    }
    let role = String((field("role")?.text ?? "unknown").prefix(20))
    guard !peer.isMaster || role == "master" || role == "primary" else {
      return .notMaster(address: address, role: role)
    }
    return nil
  }
}
