internal import LoopbackOrigin

/// The rule that decides which requests are answered.
///
/// A request must name this machine and the port, must not come from a page of another origin, and must have the token in
/// its path. A web page of another host that resolves its name to this machine fails the first condition.
struct AccessRule: Sendable {
  /// The decision on a request.
  enum Decision: Equatable {
    /// The request is answered; the part of the path after the token.
    case allow(String)
    /// The request is refused with a status.
    case refuse(Int)
  }

  let port: UInt16
  let token: AccessToken

  /// Decides on a request.
  func decide(_ request: OriginRequest) -> Decision {
    let hosts = ["127.0.0.1", "localhost"].flatMap { host in
      port == 80 ? [host, "\(host):80"] : ["\(host):\(port)"]
    }
    guard let host = request.headers["Host"]?.lowercased(), hosts.contains(host),
      // A whole URL has a host of its own.
      request.target.hasPrefix("/")
    else { return .refuse(403) }
    let origin = request.headers["Origin"]?.lowercased()
    guard origin == nil || origin == "http://\(host)" else { return .refuse(403) }
    switch request.headers["Sec-Fetch-Site"]?.lowercased() {
    case nil, "same-origin", "none": break
    default: return .refuse(403)
    }
    guard request.method == .get else { return .refuse(405) }
    let parts = request.path.dropFirst()
      .split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let candidate = parts.first, token.matches(String(candidate)) else {
      return .refuse(404)
    }
    return .allow(parts.count > 1 ? String(parts[1]) : "")
  }
}
