extension RedisConnection.Settings {
  /// The settings of a connection that hears of changes.
  var tracking: Self {
    var settings = self
    settings.setup = [RedisCommand("CLIENT", ["TRACKING", "ON", "NOLOOP"])]
    return settings
  }

  /// - Throws: An error if the address or the name of the client is not valid.
  init(_ address: RedisAddress, _ options: RedisOptions) throws(RedisConnectionError) {
    self.init(address)
    guard options.clientName.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw .misconfigured(
        reason: "RedisOptions.clientName must consist of printable ASCII characters without spaces."
      )
    }
    guard options.database >= 0 else {
      throw .misconfigured(reason: "RedisOptions.database must not be negative.")
    }
    switch address {
    case .sentinel(let name, let addresses): sentinels = try Sentinels(name: name, addresses)
    case .cluster(let servers):
      cluster = try Cluster(servers)
      guard options.database == 0 else {
        throw .misconfigured(
          reason: "A cluster has only the database 0: check RedisOptions.database."
        )
      }
    case .tcp, .tls, .unix: break
    }
    credentials = options.credentials
    sentinelCredentials = options.sentinelCredentials
    database = options.database
    name = options.clientName
    commandTimeout = options.commandTimeout
    outboxBytes = options.outboxBytes
  }
}
