/// Who answers what.
struct RouteTable: Sendable {
  typealias Handler = @concurrent @Sendable (OriginRequest) async -> OriginResponse

  /// Who answers a request.
  enum Match {
    case handler(Handler)
    /// Nobody answers this path.
    case unknownPath
    /// Somebody answers the path, but only these methods.
    case unknownMethod(allowed: [OriginRequest.Method])
  }

  private var exact: [String: [OriginRequest.Method: Handler]] = [:]
  /// By the part of the pattern before the asterisk.
  private var prefixes: [String: [OriginRequest.Method: Handler]] = [:]

  /// Sets who answers, and returns who did before.
  mutating func set(
    _ handler: @escaping Handler,
    for method: OriginRequest.Method,
    pattern: String
  ) -> Handler? {
    if pattern.hasSuffix("/*") {
      return prefixes[String(pattern.dropLast()), default: [:]].updateValue(handler, forKey: method)
    }
    return exact[pattern, default: [:]].updateValue(handler, forKey: method)
  }

  /// Returns who answers: the exact path before the longest pattern.
  func match(_ request: OriginRequest) -> Match {
    var handlers = exact[request.path]
    if handlers == nil {
      handlers =
        prefixes
        .filter { request.path.hasPrefix($0.key) && request.path != $0.key }
        .max { $0.key.utf8.count < $1.key.utf8.count }?
        .value
    }
    guard let handlers else { return .unknownPath }
    if let handler = handlers[request.method] { return .handler(handler) }
    if request.method == .head, let handler = handlers[.get] { return .handler(handler) }
    var allowed = Set(handlers.keys)
    if allowed.contains(.get) { allowed.insert(.head) }
    return .unknownMethod(allowed: OriginRequest.Method.allCases.filter(allowed.contains))
  }
}
