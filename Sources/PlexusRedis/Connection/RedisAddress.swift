/// The address of a Redis or Valkey server.
public enum RedisAddress: Sendable, Hashable {
  /// A server reached over TCP without encryption.
  case tcp(host: String, port: UInt16)
  /// A server reached over TCP with encryption: TLS 1.2 or later.
  ///
  /// The server's certificate has to be valid for the host, and issued by an authority of the file `ca`, in PEM format,
  /// or by one that the system trusts. An encrypted connection that fails is never replaced by an unencrypted one.
  ///
  /// For a server that verifies its clients, `certificate` is the file of the client's certificate, followed by those of its
  /// authorities, and `key` the file of its private key, both in PEM format. The files are read for each connection.
  ///
  /// It needs the trait `TLS` of the package, which uses the OpenSSL of the system.
  case tls(
    host: String,
    port: UInt16,
    ca: String?,
    certificate: String? = nil,
    key: String? = nil
  )
  /// A server reached through a Unix domain socket.
  case unix(path: String)
  /// The master with a name, at the address that Redis Sentinel gives.
  ///
  /// The sentinels are asked in turn for each connection, and announce a failover. The master is reached in the same way as
  /// the sentinel that has answered: with TLS, with the same authority and client certificate, if the address of the
  /// sentinel is one with TLS.
  case sentinel(name: String, [RedisAddress])
  /// A cluster, some servers of which have these addresses: `.tcp` or `.tls`.
  ///
  /// One of them says which master has which slots, and later any server that it knows. Each space and each topic is in one
  /// slot, and its commands follow the slot: to the master that has it, after a failover, and while it is moved. The masters
  /// are reached at the addresses that the servers announce, in the same way as the server that has answered. The engine has
  /// connections only to the masters of its spaces and topics.
  case cluster([RedisAddress])
}

extension RedisAddress: CustomStringConvertible {
  /// The host and port, the path, the name of the master, or the servers of the cluster.
  public var description: String {
    switch self {
    case .tcp(let host, let port), .tls(let host, let port, _, _, _):
      host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    case .unix(let path): path
    case .sentinel(let name, let sentinels):
      "the master \(name) of \(sentinels.map(\.description).joined(separator: ", "))"
    case .cluster(let servers):
      "the cluster of \(servers.map(\.description).joined(separator: ", "))"
    }
  }

  /// Whether a connection needs TLS.
  var isEncrypted: Bool {
    switch self {
    case .tls: true
    case .tcp, .unix: false
    case .sentinel(_, let servers), .cluster(let servers): servers.contains(where: \.isEncrypted)
    }
  }

  /// The host of a server over TCP; nothing for another address.
  var host: String {
    switch self {
    case .tcp(let host, _), .tls(let host, _, _, _, _): host
    case .unix, .sentinel, .cluster: ""
    }
  }

  /// Returns the address of a server that is reached in the same way.
  func sibling(host: String, port: UInt16) -> RedisAddress {
    switch self {
    case .tls(_, _, let ca, let certificate, let key):
      .tls(host: host, port: port, ca: ca, certificate: certificate, key: key)
    case .tcp, .unix, .sentinel, .cluster: .tcp(host: host, port: port)
    }
  }
}
