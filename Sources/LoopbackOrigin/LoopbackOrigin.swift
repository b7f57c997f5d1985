internal import PlexusSupport

/// A small HTTP/1.1 server on 127.0.0.1, for tests and demonstrations.
///
/// ```swift
/// let origin = try LoopbackOrigin()
/// origin.route("/airlines/*") { request in
///   OriginResponse(json: "{\"code\":\"\(request.pathComponents[1])\"}")
/// }
/// print(origin.address)  // such as http://127.0.0.1:49152
/// ```
///
/// An origin supports persistent connections, pipelining, conditional requests and ranges (see
/// ``OriginResponse``). It counts requests and can simulate latency, faults and outages. One thread
/// serves all connections; handlers run concurrently as tasks. All members can be used from any number of
/// threads at once.
///
/// A malformed request is answered with 400, one that is too large with 413, 414 or 431 (see ``OriginLimits``), an
/// unknown expectation with 417, an unsupported version with 505, and a chunked body or a method outside
/// ``OriginRequest/Method`` with 501; the connection is then closed. A path without a route is answered with 404,
/// a method that the route does not support with 405.
///
/// Releasing the last reference stops the origin. A handler that captures its origin strongly keeps it alive
/// until ``stop()``.
public final class LoopbackOrigin: Sendable {
  /// The port of the origin.
  public let port: UInt16

  private let core: OriginCore
  private let mailbox: Mailbox
  private let thread: LoopThread

  /// Creates an origin and begins to serve.
  ///
  /// - Parameters:
  ///   - port: The port, or 0 for any free port.
  ///   - limits: The limits on requests and connections.
  ///   - clock: The clock for latencies, pauses and the timeout of closing connections.
  ///   - timeOfDay: A closure that returns the seconds since 1970 for the `Date` field; those of the system by default.
  /// - Throws: ``OriginError`` if the port is in use or the system cannot provide a socket or thread.
  public init(
    port: UInt16 = 0,
    limits: OriginLimits = OriginLimits(),
    clock: any Clock<Duration> = ContinuousClock(),
    timeOfDay: (@Sendable () -> Int)? = nil
  ) throws(OriginError) {
    let descriptors = try EventLoop.Descriptors(port: port)
    let mailbox = Mailbox(pipe: descriptors.pipe)
    let core = OriginCore(limits: limits, clock: clock, timeOfDay: timeOfDay ?? secondsSince1970)
    self.port = descriptors.port
    self.core = core
    self.mailbox = mailbox
    // Taken out by the thread: the closure would keep the descriptors open as long as it runs.
    let handover = Locked<EventLoop.Descriptors?>(descriptors)
    do {
      thread = try LoopThread {
        guard let descriptors = handover.withLock({ $0.take() }) else { return }
        var loop = EventLoop(consume descriptors, mailbox: mailbox, core: core)
        loop.run()
      }
    } catch {
      throw OriginError(error)
    }
  }

  deinit {
    stop()
  }

  /// The URL of the origin without a path, such as `http://127.0.0.1:49152`.
  public var address: String { "http://127.0.0.1:\(port)" }

  /// The delay before each request is passed to its handler, initially zero.
  ///
  /// The delay ends early if the client disconnects.
  public var latency: Duration {
    get { core.latency }
    set { core.latency = newValue }
  }

  /// The header fields that are added to the answers of the origin itself, such as those to malformed requests; initially
  /// none.
  public var errorHeaders: OriginHeaders {
    get { core.errorHeaders }
    set { core.errorHeaders = newValue }
  }

  /// The requests and connections so far.
  public var statistics: OriginStatistics { core.statistics }

  /// Sets the handler for the requests of a path.
  ///
  /// The route with the exact path takes precedence, then the one with the longest matching pattern. A
  /// route replaces an earlier one with the same pattern and method. A `GET` handler also serves `HEAD`; the origin
  /// omits the body.
  ///
  /// The task of a handler is cancelled when the client disconnects, and when the origin goes offline or is
  /// stopped.
  ///
  /// - Parameters:
  ///   - pattern: A decoded path. A pattern that ends in `/*` matches all longer paths with that prefix.
  ///   - methods: The supported methods.
  ///   - handler: A closure that returns the response to a request. It runs outside any actor and the cooperative
  ///     thread pool, and calls can overlap.
  /// - Precondition: The pattern begins with a slash.
  public func route(
    _ pattern: String,
    methods: Set<OriginRequest.Method> = [.get],
    handler: @escaping @concurrent @Sendable (OriginRequest) async -> OriginResponse
  ) {
    precondition(pattern.hasPrefix("/"), "A route must begin with a slash, unlike \"\(pattern)\"")
    core.setRoute(pattern, methods: methods, handler: handler)
  }

  /// Injects a fault into the next requests for a path.
  ///
  /// An injected fault takes precedence over the fault of a handler's response. The faults of a path are used
  /// in the order in which they were injected.
  ///
  /// - Parameters:
  ///   - fault: The fault.
  ///   - path: The decoded path, which needs no route.
  ///   - count: The number of requests that the fault affects.
  /// - Precondition: The count is not negative.
  public func inject(_ fault: OriginFault, for path: String, count: Int = 1) {
    precondition(count >= 0, "A fault affects zero or more requests, not \(count)")
    core.addFaults(Array(repeating: fault, count: count), path: path)
  }

  /// Removes the injected faults that have not been used.
  public func removeFaults() {
    core.removeFaults()
  }

  /// Goes offline: open connections are reset and new ones are refused.
  ///
  /// The change is complete when this method returns. The port stays reserved for ``goOnline()``. Has no effect if
  /// the origin is already offline or has been stopped.
  public func goOffline() async {
    _ = await serve(false)
  }

  /// Serves again on the same port.
  ///
  /// The change is complete when this method returns. Has no effect if the origin is online.
  ///
  /// - Throws: ``OriginError/stopped`` if the origin has been stopped, or another ``OriginError`` if the
  ///   system cannot provide a socket.
  public func goOnline() async throws(OriginError) {
    try await serve(true).get()
  }

  /// Waits until a path has been requested a number of times, answered or not.
  ///
  /// Returns immediately if the count has been reached or the calling task is cancelled.
  ///
  /// - Parameters:
  ///   - count: The number of requests since the origin was created.
  ///   - path: The decoded path without the query.
  public func requests(_ count: Int, for path: String) async {
    await core.wait { $0.requests[path, default: 0] >= count }
  }

  /// Waits until the number of open connections has fallen to a limit.
  ///
  /// Returns immediately if that is the case or the calling task is cancelled.
  ///
  /// - Parameter count: The maximum number of open connections.
  public func openConnections(atMost count: Int) async {
    await core.wait { $0.openConnections <= count }
  }

  /// Stops the origin permanently.
  ///
  /// When this method returns, all connections have been reset, the port is free, and the handlers have been
  /// released or, if they run, cancelled. It can be called several times, and blocks the calling thread briefly.
  public func stop() {
    mailbox.post(.stop)
    thread.join()
    core.removeRoutes()
  }

  private func serve(_ serves: Bool) async -> Result<Void, OriginError> {
    await withCheckedContinuation { continuation in
      if !mailbox.post(.serve(serves, continuation)) {
        continuation.resume(returning: .failure(.stopped))
      }
    }
  }
}
