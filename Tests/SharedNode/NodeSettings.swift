import PlexusRedis

/// The settings of the process: the words `name=value` of its command line.
struct NodeSettings {
  private let values: [String: String]

  init(_ arguments: some Sequence<String>) {
    values = Dictionary(
      arguments.map { argument in
        let parts = argument.split(separator: "=", maxSplits: 1)
        return (String(parts[0]), parts.count == 2 ? String(parts[1]) : "")
      },
      uniquingKeysWith: { $1 }
    )
  }

  /// The address of the server: the path of its socket, the port of a sentinel, or the ports of a cluster.
  var address: RedisAddress {
    if let ports = values["cluster"] {
      let ports = ports.split(separator: ",").compactMap { UInt16($0) }
      return .cluster(ports.map { .tcp(host: "127.0.0.1", port: $0) })
    }
    guard let port = values["sentinel"].flatMap({ UInt16($0) }) else {
      return .unix(path: values["socket"] ?? "")
    }
    return .sentinel(name: "main", [.tcp(host: "127.0.0.1", port: port)])
  }
  /// The path of the folder of the origin.
  var folder: String { values["folder"] ?? "" }
  var schema: String { values["schema"] ?? "1" }

  var options: RedisOptions {
    var options = RedisOptions()
    options.nearLease = .milliseconds(number("nearLease"))
    options.fetchLease = .milliseconds(number("fetchLease"))
    options.commandTimeout = .milliseconds(number("commandTimeout"))
    // Tests do not depend on how busy the machine is.
    options.eventTimeout = .seconds(60)
    options.outboxBytes = number("outboxBytes")
    options.clearReplicas = number("clearReplicas")
    return options
  }

  private func number(_ name: String) -> Int {
    values[name].flatMap { Int($0) } ?? 0
  }
}
