/// The server to which a cluster sends a command that it has not executed.
struct Redirection: Sendable, Hashable {
  /// The host, as the server has sent it.
  let host: String
  let port: UInt16
  /// Whether only the command goes there, because the slot is being moved.
  let isOnce: Bool

  /// - Returns: `nil` for another error.
  init?(_ error: RedisError) {
    guard error.code == "MOVED" || error.code == "ASK" else { return nil }
    let parts = Array(error.description.utf8).split(separator: UInt8(ascii: " "))
    guard parts.count == 3, let slot = UInt64(decimal: parts[1]), slot < SlotsState.count,
      // An IPv6 address has colons as well.
      let colon = parts[2].lastIndex(of: UInt8(ascii: ":")),
      let port = UInt16(decimal: parts[2][(colon + 1)...]), port > 0,
      let host = SlotsState.host(parts[2][..<colon])
    else { return nil }
    self.host = host
    self.port = port
    isOnce = error.code == "ASK"
  }

  /// Whether the server that has answered knows the host; if not, only the map of the slots tells it.
  var isKnown: Bool { host != "?" }

  /// Returns the address of the server.
  ///
  /// - Parameter server: The server that has answered, which is reached in the same way.
  /// - Returns: The address.
  func address(from server: RedisAddress) -> RedisAddress {
    SlotsState.address(host, port, from: server)
  }
}

extension RedisError {
  /// Whether a cluster has not executed the command, which can be sent again: to another server, or a little later.
  var isRedirection: Bool {
    ["MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN"].contains(code)
  }
}
