/// The reason why a command received no reply.
enum RedisConnectionError: Error, Hashable, CustomStringConvertible {
  /// The server cannot be reached: the command was not sent.
  case unreachable(address: RedisAddress, reason: String)
  /// The server or the client has no certificate that the other one accepts: the command was not sent.
  case untrusted(address: RedisAddress, reason: String)
  /// This build has no encryption.
  case noEncryption(address: RedisAddress)
  /// The server refused the connection's credentials, protocol version or database: the command was not sent.
  case refused(address: RedisAddress, RedisError)
  /// There are no credentials: the command was not sent.
  case noCredentials(address: RedisAddress, reason: String)
  /// The server is a replica: the command was not sent.
  case notMaster(address: RedisAddress, role: String)
  /// The server does not run in a mode that is supported: the command was not sent.
  case unsupported(address: RedisAddress, mode: String)
  /// The address, or another setting, is wrong.
  case misconfigured(reason: String)
  /// The server answered a command with an error after which it is not used: it is no longer a master, for example.
  case unusable(address: RedisAddress, RedisError)
  /// Another server has become the master, or knows it.
  case superseded(address: RedisAddress, by: String)
  /// The outbox has no room for the bytes of the command: the command was not sent.
  case outboxFull(bytes: Int, waiting: Int, limit: Int)
  /// Commands before it took too long: the command was not sent.
  case waitedTooLong(Duration)
  /// The reply did not come in time: the server can have executed the command.
  case timedOut(command: String, after: Duration)
  /// The connection broke before the reply came: the server can have executed the command.
  case lost(reason: String)
  /// The connection was closed by its owner.
  case closed

  /// Whether the server can have executed the command.
  var mayHaveTakenEffect: Bool {
    switch self {
    case .timedOut, .lost, .closed, .unusable, .superseded: true
    case .unreachable, .untrusted, .noEncryption, .refused, .noCredentials, .notMaster,
      .unsupported, .misconfigured, .outboxFull, .waitedTooLong:
      false
    }
  }

  /// Whether another connection can succeed although nothing but the time has changed.
  var isTemporary: Bool {
    switch self {
    case .unreachable, .lost, .timedOut, .notMaster, .superseded, .noCredentials: true
    case .unusable(_, let error): error.kind != .cluster
    case .refused(_, let error):
      // Others end by themselves: too many clients, or a script that runs for long.
      ![.authentication, .permission, .configuration, .cluster].contains(error.introductionKind)
    case .untrusted, .noEncryption, .unsupported, .misconfigured, .outboxFull, .waitedTooLong,
      .closed:
      false
    }
  }

  var description: String {
    switch self {
    case .unreachable(let address, let reason):
      "No Redis server can be reached at \(address): \(reason)."
    case .untrusted(let address, let reason):
      "No encrypted connection to the Redis server at \(address) was made: \(reason)."
    case .noEncryption(let address):
      """
      The connection to \(address) needs TLS: enable the trait TLS of the package plexus, as in \
      .package(url: "...", from: "...", traits: ["TLS"]).
      """
    case .refused(let address, let error):
      "The Redis server at \(address) refused the connection: \(error)"
    case .noCredentials(let address, let reason):
      "There are no credentials for the Redis server at \(address): \(reason)."
    case .notMaster(let address, let role):
      "The Redis server at \(address) is not a master: its role is \(role)."
    case .unsupported(let address, let mode):
      "The Redis server at \(address) runs in the mode \(mode), which is not supported at this address."
    case .misconfigured(let reason): reason
    case .unusable(let address, let error):
      "The Redis server at \(address) is no longer used: \(error)"
    case .superseded(let address, let reason):
      "The Redis server at \(address) is no longer used: \(reason)."
    case .outboxFull(let bytes, _, let limit) where bytes > limit:
      "\(bytes) bytes are more than the outbox of the connection to the Redis server takes: the limit is \(limit)."
    case .outboxFull(let bytes, let waiting, let limit):
      "\(bytes) bytes do not fit beside \(waiting) that wait to be sent to the Redis server: the limit is \(limit)."
    case .waitedTooLong(let limit):
      "The Redis server did not answer the commands before it within \(limit)."
    case .timedOut(let command, let limit):
      "The Redis server did not answer \(command) within \(limit)."
    case .lost(let reason): "The connection to the Redis server broke: \(reason)."
    case .closed: "The connection to the Redis server is closed."
    }
  }
}
