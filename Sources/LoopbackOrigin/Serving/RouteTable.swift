/// A table of handlers by path and method.
struct RouteTable: Sendable {
  typealias Handler = @concurrent @Sendable (OriginRequest) async -> OriginResponse

  /// The result of a lookup.
  enum Match {
    case handler(Handler)
    /// No route matches the path.
    case unknownPath
    /// A route matches the path, but supports only these methods.
    case unknownMethod(allowed: [OriginRequest.Method])
  }

  private var exact: [String: [OriginRequest.Method: Handler]] = [:]
  /// The handlers by the part of the pattern before the asterisk.
  private var prefixes: [String: [OriginRequest.Method: Handler]] = [:]

  /// Sets a handler and returns the replaced one, if any.
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

  /// Returns the handler for a request; an exact path takes precedence over the longest pattern.
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
