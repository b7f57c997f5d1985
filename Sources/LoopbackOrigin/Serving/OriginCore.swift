internal import PlexusSupport

/// The state that an origin shares with its thread and its handlers.
final class OriginCore: Sendable {
  private struct State: Sendable {
    var routes = RouteTable()
    var faults: [String: [OriginFault]] = [:]
    var latency: Duration = .zero
    var errorHeaders: OriginHeaders = [:]
    var statistics = OriginStatistics()
    var watchers: [Int: Watcher] = [:]
    var lastWatcher = 0
  }

  /// A task that waits for a condition on the statistics.
  private struct Watcher: Sendable {
    let hasHappened: @Sendable (OriginStatistics) -> Bool
    let continuation: CheckedContinuation<Void, Never>
  }

  let limits: OriginLimits
  let clock: any Clock<Duration>
  let timeOfDay: @Sendable () -> Int
  private let state = Locked(State())

  init(
    limits: OriginLimits,
    clock: any Clock<Duration>,
    timeOfDay: @escaping @Sendable () -> Int
  ) {
    self.limits = limits
    self.clock = clock
    self.timeOfDay = timeOfDay
  }

  var latency: Duration {
    get { state.withLock { $0.latency } }
    set { state.withLock { $0.latency = newValue } }
  }

  var errorHeaders: OriginHeaders {
    get { state.withLock { $0.errorHeaders } }
    set { state.withLock { $0.errorHeaders = newValue } }
  }

  var statistics: OriginStatistics { state.withLock { $0.statistics } }

  func setRoute(
    _ pattern: String,
    methods: Set<OriginRequest.Method>,
    handler: @escaping RouteTable.Handler
  ) {
    // The replaced handlers are released after the lock.
    _ = state.withLock { state in
      methods.map { state.routes.set(handler, for: $0, pattern: pattern) }
    }
  }

  func addFaults(_ faults: [OriginFault], path: String) {
    state.withLock { $0.faults[path, default: []] += faults }
  }

  func removeFaults() {
    state.withLock { $0.faults = [:] }
  }

  /// Removes and releases all handlers.
  func removeRoutes() {
    _ = state.withLock { state in
      let routes = state.routes
      state.routes = RouteTable()
      return routes
    }
  }

  /// Counts a request, unless that is switched off.
  func count(_ request: OriginRequest) {
    if limits.countsRequests { note { $0.requests[request.path, default: 0] += 1 } }
  }

  /// Changes the statistics and resumes the tasks whose condition holds.
  func note(_ change: (inout OriginStatistics) -> Void) {
    let watchers = state.withLock { state in
      change(&state.statistics)
      let happened = state.watchers.filter { $0.value.hasHappened(state.statistics) }
      for id in happened.keys { state.watchers.removeValue(forKey: id) }
      return happened.values.map(\.continuation)
    }
    for watcher in watchers { watcher.resume() }
  }

  /// Waits until a condition holds or the calling task is cancelled.
  func wait(until hasHappened: @escaping @Sendable (OriginStatistics) -> Bool) async {
    let id = state.withLock { state in
      state.lastWatcher += 1
      return state.lastWatcher
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let waits = state.withLock { state in
          // A task that is cancelled after this check finds its watcher: `onCancel` takes the lock, too.
          guard !Task.isCancelled, !hasHappened(state.statistics) else { return false }
          state.watchers[id] = Watcher(hasHappened: hasHappened, continuation: continuation)
          return true
        }
        if !waits { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.watchers.removeValue(forKey: id) }?.continuation.resume()
    }
  }

  /// Returns a response of the origin itself.
  func error(_ status: Int) -> OriginResponse {
    var response = OriginResponse.error(status)
    for field in errorHeaders.fields { response.headers[field.name] = field.value }
    return response
  }

  /// Returns the response to a request, and the fault to apply.
  @concurrent
  func respond(to request: OriginRequest) async -> (OriginResponse, OriginFault?) {
    let (match, fault, latency) = state.withLock { state in
      let fault = state.faults[request.path]?.first
      if fault != nil { state.faults[request.path]?.removeFirst() }
      return (state.routes.match(request), fault, state.latency)
    }
    if latency > .zero { try? await clock.sleep(for: latency) }
    if let fault, fault.isImmediate { return (OriginResponse(), fault) }
    switch match {
    case .handler(let handler):
      let response = await handler(request)
      return (response, fault ?? response.fault)
    case .unknownPath:
      return (error(404), fault)
    case .unknownMethod(let allowed):
      var response = error(405)
      response.headers["Allow"] = allowed.map(\.rawValue).joined(separator: ", ")
      return (response, fault)
    }
  }
}
