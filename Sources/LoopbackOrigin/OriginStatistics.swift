/// The requests and connections of an origin.
public struct OriginStatistics: Hashable, Sendable {
  /// The number of requests for each decoded path without the query, answered or not.
  public internal(set) var requests: [String: Int] = [:]

  /// The number of accepted connections.
  public internal(set) var acceptedConnections = 0

  /// The number of open connections.
  public internal(set) var openConnections = 0

  /// The total number of requests.
  public var requestCount: Int { requests.values.reduce(0, +) }
}
