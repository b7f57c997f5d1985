internal import Plexus

/// The reason why a server did not carry out an operation of a ``RedisEngine``.
///
/// The description is a sentence that says what to do. It never contains a password.
///
/// ## Topics
///
/// ### Reading an error
/// - ``kind-swift.property``
/// - ``Kind-swift.enum``
/// - ``description``
public struct RedisEngineError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kind of an error.
  public enum Kind: Hashable, Sendable, CaseIterable {
    /// The server refused the user or the password, or there were no credentials.
    case authentication
    /// The user has no right for a command, key or channel.
    case permission
    /// The certificate of the server or of the client was refused.
    case certificate
    /// The address, the database or another setting is wrong.
    case configuration
    /// The server is a replica, or was demoted.
    case notMaster
    /// The server is one of a cluster, and the address is not, or the cluster cannot serve a slot.
    case cluster
    /// The server, or no server, can be reached.
    case unreachable
    /// The server did not answer in time.
    case timedOut
    /// A value does not fit into the outbox.
    case tooLarge
    /// The server has no memory for a change.
    case outOfMemory
    /// The server refused a command for another reason: it loads its data, or has too few replicas.
    case refused
    /// The connection broke, or the server gave a reply that belongs to no command.
    case broken
    /// The engine was closed.
    case closed
  }

  /// The kind of the error.
  public let kind: Kind
  /// A sentence that says what has happened, and what to do about it.
  public let description: String
  /// Whether the server has executed a removal, and only its replicas have not acknowledged it.
  package private(set) var isExecuted = false

  init(_ kind: Kind, _ description: String) {
    self.kind = kind
    self.description = description
  }
}

extension RedisEngineError: ExecutedRemoval {}

extension RedisEngineError {
  /// Returns the error of an operation, for its caller.
  ///
  /// - Parameter error: An error of the library.
  /// - Returns: The public error, or an error of another type as it is.
  static func publicError(_ error: any Error) -> any Error {
    switch error {
    case let error as RedisConnectionError: RedisEngineError(error)
    case let error as RedisError: RedisEngineError(error)
    case let error as TierError: RedisEngineError(error)
    case let error as TierUnacknowledgedError: unacknowledged(publicError(error.reason))
    default: error
    }
  }

  private static func unacknowledged(_ error: any Error) -> any Error {
    guard var error = error as? RedisEngineError else { return error }
    error.isExecuted = true
    return error
  }

  /// Runs an operation whose errors are those for its caller.
  static func translating<Result>(
    _ operation: () async throws -> Result
  ) async throws -> Result {
    do {
      return try await operation()
    } catch {
      throw publicError(error)
    }
  }

  /// The error of a connection.
  init(_ error: RedisConnectionError) {
    let kind: Kind
    var advice: String?
    switch error {
    case .unreachable:
      (kind, advice) = (.unreachable, "Check the address, and whether the server runs.")
    case .untrusted:
      (kind, advice) = (.certificate, "Check the certificates, the authority and the host name.")
    case .noEncryption, .misconfigured: kind = .configuration
    case .refused(_, let reply):
      kind = reply.introductionKind
      advice = Self.advice(for: kind, reply)
    case .noCredentials: (kind, advice) = (.authentication, "Check RedisOptions.credentials.")
    case .notMaster:
      kind = .notMaster
      advice = "Use the address of the master, or .sentinel(name:_:), which follows it."
    case .unsupported(_, let mode):
      kind = mode == "cluster" ? .cluster : .configuration
      advice =
        mode == "cluster"
        ? "Use .cluster(_:) for the addresses of its servers."
        : "Use the address of a standalone server, or .sentinel(name:_:) for the address of a sentinel."
    case .unusable(_, let reply):
      kind = reply.kind ?? .refused
      advice = Self.advice(for: kind, reply)
    case .superseded: kind = .notMaster
    case .outboxFull:
      kind = .tooLarge
      advice = "Store smaller values, or increase RedisOptions.outboxBytes."
    case .waitedTooLong, .timedOut:
      kind = .timedOut
      advice =
        "Check the load of the server and the network, or increase the timeout of RedisOptions."
    case .lost: kind = .broken
    case .closed: kind = .closed
    }
    self.init(kind, Self.text(error.description, advice))
  }

  init(_ error: RedisError) {
    let kind = error.kind ?? .refused
    let advice = Self.advice(for: kind, error)
    self.init(kind, Self.text("The Redis server refused a command: \(error)", advice))
  }

  init(_ error: TierError) {
    switch error {
    case .tooSlow:
      self.init(.tooLarge, Self.text(error.description, "Store smaller values."))
    case .lostRegistrations:
      self.init(
        .outOfMemory,
        Self.text(
          error.description,
          "Increase maxmemory: the server evicts what it has just stored."
        )
      )
    case .notReplicated, .replicasBehind, .changed: self.init(.refused, error.description)
    case .unexpectedReply: self.init(.broken, error.description)
    }
  }

  /// The refusal of a kind of command.
  ///
  /// - Parameters:
  ///   - error: The reply of the server.
  ///   - purpose: The kind of command, in the plural.
  ///   - commands: The commands of the script, of which the reply does not name the one that was refused.
  init(_ error: RedisError, of purpose: String, needing commands: [String]) {
    let kind = error.kind ?? .refused
    var advice = Self.advice(for: kind, error)
    if kind == .permission, error.missingRight == nil, !commands.isEmpty {
      let rights = commands.map { "+\($0.lowercased())" }.joined(separator: " ")
      advice = "Its user needs the rights \(rights)."
    }
    self.init(kind, Self.text("The Redis server refuses \(purpose): \(error)", advice))
  }

  /// Joins a sentence, whose end the server may have left out, and an advice.
  private static func text(_ sentence: String, _ advice: String?) -> String {
    guard let advice else { return sentence }
    return sentence + (sentence.hasSuffix(".") ? " " : ". ") + advice
  }

  private static func advice(for kind: Kind, _ error: RedisError) -> String? {
    switch kind {
    case .authentication: "Check the user and the password of the credentials."
    case .permission:
      error.missingRight.map { "Its user needs the right \($0)." }
        ?? "Its user needs the rights that the article about operating a server lists."
    case .notMaster: "The address is resolved again, until a master answers."
    case .cluster: "Check that all slots are served: CLUSTER INFO."
    case .outOfMemory: "Increase maxmemory, or choose a maxmemory-policy that evicts entries."
    case .configuration:
      "Check the database and the version of the server: Redis 6 or later is needed."
    case .refused:
      switch error.code {
      case "LOADING": "It loads its data, and is tried again."
      case "MISCONF": "It cannot write to its disk."
      case "NOREPLICAS": "It has too few replicas: check min-replicas-to-write."
      case "BUSY": "A script runs for too long: SCRIPT KILL ends it."
      default: nil
      }
    case .certificate, .unreachable, .timedOut, .tooLarge, .broken, .closed: nil
    }
  }
}
