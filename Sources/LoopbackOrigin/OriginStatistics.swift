/// What an origin has seen so far.
public struct OriginStatistics: Hashable, Sendable {
  /// The number of requests for each path, decoded and without query, answered or not.
  public internal(set) var requests: [String: Int] = [:]

  /// The number of connections that have been accepted.
  public internal(set) var acceptedConnections = 0

  /// The number of connections that are open.
  public internal(set) var openConnections = 0

  /// The number of all requests.
  public var requestCount: Int { requests.values.reduce(0, +) }
}
