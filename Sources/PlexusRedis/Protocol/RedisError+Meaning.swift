// Errors are rare: their texts are searched only here.

extension RedisError {
  /// The code of the error, also if it comes from a script of Redis 6, which has it in its text.
  private var innerCode: String {
    guard code == "ERR" else { return code }
    return Self.endingCodes.first { description.contains(" -\($0) ") } ?? code
  }

  /// The codes of a server that is not, or no longer, a master that serves all keys.
  private static let endingCodes: Set<String> = [
    "READONLY", "MASTERDOWN", "LOADING", "UNBLOCKED", "MOVED", "ASK", "CLUSTERDOWN", "NOAUTH",
  ]

  /// Whether the connection is not used any longer.
  var endsConnection: Bool { Self.endingCodes.contains(innerCode) }

  /// Whether the user has no right for a command, key or channel.
  private var isMissingRight: Bool {
    code == "NOPERM" || description.contains("The user executing the script can't")
      || description.contains("ACL failure in script")
  }

  /// The kind of the error; `nil` for one that only its command explains.
  var kind: RedisEngineError.Kind? {
    if isMissingRight { return .permission }
    switch innerCode {
    case "READONLY", "MASTERDOWN", "UNBLOCKED": return .notMaster
    case "MOVED", "ASK", "CLUSTERDOWN", "CROSSSLOT", "TRYAGAIN": return .cluster
    case "WRONGPASS", "NOAUTH": return .authentication
    case "OOM": return .outOfMemory
    case "LOADING", "BUSY", "MISCONF", "NOREPLICAS", "FULL": return .refused
    case "ERR" where description.hasPrefix("ERR unknown "): return .refused
    case "ERR" where description.contains("-OOM "): return .outOfMemory
    default: return nil
    }
  }

  /// The error of a refused introduction.
  var introductionKind: RedisEngineError.Kind {
    if let kind, kind != .refused || endsConnection { return kind }
    if description.contains("password") || description.contains(" AUTH") { return .authentication }
    if description.contains("DB index") || code == "NOPROTO"
      || description.hasPrefix("ERR unknown ")
    {
      return .configuration
    }
    return .refused
  }

  /// The right that the user of the engine needs, as a rule of `ACL SETUSER`, if the error tells it.
  var missingRight: String? {
    guard isMissingRight else { return nil }
    if description.contains("channel") { return "& and the channels of its topics" }
    if description.contains("key") { return "~ and the keys of its spaces and topics" }
    let parts = description.split(separator: "'", omittingEmptySubsequences: false)
    // can't has an apostrophe as well.
    guard code == "NOPERM", parts.count >= 3 else { return nil }
    return "+\(parts[1])"
  }

  /// Returns the error without a text that must not be shown.
  func hiding(_ secret: String) -> RedisError {
    guard !secret.isEmpty, description.contains(secret) else { return self }
    return RedisError(description.replacing(secret, with: "***").utf8)
  }
}

extension RESPValue {
  /// The error of a reply, after which the connection is not used any longer.
  var endingError: RedisError? {
    if case .error(let error) = self, error.endsConnection { error } else { nil }
  }
}
