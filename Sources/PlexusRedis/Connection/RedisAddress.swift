/// The address of a Redis or Valkey server.
public enum RedisAddress: Sendable, Hashable {
  /// A server reached over TCP without encryption.
  case tcp(host: String, port: UInt16)
  /// A server reached through a socket in the file system.
  case unix(path: String)
}

extension RedisAddress: CustomStringConvertible {
  /// The host and port, or the path.
  public var description: String {
    switch self {
    case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    case .unix(let path): path
    }
  }
}
