/// The keys, or the tags, for which an operation has failed, and its errors.
struct TierFailures: Error {
  let errors: [String: any Error]

  /// The error that speaks for all: of one that the server has not executed, if there is one.
  var worst: any Error {
    errors.values.first { !($0 is TierUnacknowledgedError) } ?? errors.values.first ?? self
  }
}

/// The reason why replicas have not acknowledged a removal that the server has executed.
struct TierUnacknowledgedError: Error {
  let reason: any Error
}

/// The reason why the tier did not carry out an operation.
enum TierError: Error, Hashable, CustomStringConvertible {
  /// A reply of the engine that no script of this version gives.
  case unexpectedReply
  /// A value was not sent within the time of a command, which other commands had.
  case tooSlow(bytes: Int)
  /// The engine has lost the registrations of nodes again and again while a removal waited for them.
  case lostRegistrations
  /// A value was not stored, because its key can have changed before.
  case changed
  /// Too few replicas have acknowledged a removal in time, which the server has executed.
  case notReplicated(acknowledged: Int, of: Int)
  /// The wait for the replicas, or one on behalf of earlier removals, has not ended in time.
  case replicasBehind

  var description: String {
    switch self {
    case .unexpectedReply: "The Redis server gave a reply that does not belong to the script."
    case .tooSlow(let bytes):
      "A value of \(bytes) bytes did not reach the Redis server in time."
    case .lostRegistrations:
      "The Redis server loses the registrations of processes again and again, so a clear cannot wait for all of them."
    case .changed: "The value was not stored, because its key can have changed before."
    case .notReplicated(let acknowledged, let required):
      "\(acknowledged) replicas of the Redis server have acknowledged the removal in time; \(required) are required."
    case .replicasBehind:
      "The replicas of the Redis server have not acknowledged the removal, or those before it, in time."
    }
  }
}
