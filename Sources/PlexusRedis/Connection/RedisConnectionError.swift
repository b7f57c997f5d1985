/// The reason why a command received no reply.
enum RedisConnectionError: Error, Hashable, CustomStringConvertible {
  /// The server cannot be reached: the command was not sent.
  case unreachable(address: RedisAddress, reason: String)
  /// This build has no encryption.
  case noEncryption(address: RedisAddress)
  /// The server refused the connection's credentials, protocol version or database: the command was not sent.
  case refused(address: RedisAddress, RedisError)
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
    case .timedOut, .lost, .closed: true
    case .unreachable, .noEncryption, .refused, .outboxFull, .waitedTooLong: false
    }
  }

  var description: String {
    switch self {
    case .unreachable(let address, let reason):
      "No Redis server can be reached at \(address): \(reason)."
    case .noEncryption(let address):
      """
      The connection to \(address) needs TLS: enable the trait TLS of the package plexus, as in \
      .package(url: "...", from: "...", traits: ["TLS"]).
      """
    case .refused(let address, let error):
      "The Redis server at \(address) refused the connection: \(error)"
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
