/// The address of a Redis or Valkey server.
public enum RedisAddress: Sendable, Hashable {
  /// A server reached over TCP without encryption.
  case tcp(host: String, port: UInt16)
  /// A server reached over TCP with encryption: TLS 1.2 or later.
  ///
  /// The server's certificate has to be valid for the host, and issued by an authority of the file `ca`, in PEM format,
  /// or by one that the system trusts. An encrypted connection that fails is never replaced by an unencrypted one.
  ///
  /// It needs the trait `TLS` of the package, which uses the OpenSSL of the system.
  case tls(host: String, port: UInt16, ca: String?)
  /// A server reached through a Unix domain socket.
  case unix(path: String)
}

extension RedisAddress: CustomStringConvertible {
  /// The host and port, or the path.
  public var description: String {
    switch self {
    case .tcp(let host, let port), .tls(let host, let port, _):
      host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    case .unix(let path): path
    }
  }
}
