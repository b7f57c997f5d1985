/// A small HTTP/1.1 server on 127.0.0.1, for tests and demonstrations.
///
/// ```swift
/// let origin = try LoopbackOrigin()
/// origin.route("/airlines/*") { request in
///   OriginResponse(json: "{\"code\":\"\(request.pathComponents[1])\"}")
/// }
/// print(origin.address)  // http://127.0.0.1:49152
/// ```
///
/// It keeps connections alive, answers requests that were sent ahead in order, understands
/// conditional requests and ranges (see ``OriginResponse``), counts what it is asked for, and can be
/// told to be slow, to fail and to be away. One thread serves all connections; handlers run as
/// tasks, any number at once. All members may be used from any number of threads at once.
///
/// A request that cannot be understood is answered with 400, one that is too large with 413, 414 or
/// 431 (see ``OriginLimits``), a method that HTTP does not know or a body in chunks with 501, and
/// after any of these the connection is closed. A path without a route is answered with 404, a
/// method that a route does not serve with 405.
///
/// Releasing the last reference stops the origin. A handler that holds its origin keeps it alive
/// until ``stop()``.
public final class LoopbackOrigin: Sendable {
  /// The port that the origin serves on.
  public let port: UInt16

  private let core: OriginCore
  private let mailbox: Mailbox
  private let thread: LoopThread

  /// Creates an origin and begins to serve.
  ///
  /// - Parameters:
  ///   - port: The port to serve on; 0 for any that is free.
  ///   - limits: How much the origin takes.
  ///   - clock: What latencies, pauses and the patience with clients that do not close are measured
  ///     with.
  /// - Throws: ``OriginError`` if the port is taken, or the system has no socket or thread left.
  public init(
    port: UInt16 = 0,
    limits: OriginLimits = OriginLimits(),
    clock: any Clock<Duration> = ContinuousClock()
  ) throws(OriginError) {
    let descriptors = try EventLoop.Descriptors(port: port)
    let mailbox = Mailbox(pipe: descriptors.pipe)
    let core = OriginCore(limits: limits, clock: clock)
    self.port = descriptors.port
    self.core = core
    self.mailbox = mailbox
    // Taken out by the thread: what its body holds would stay open as long as it runs.
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

  /// The URL of the origin without a path: `http://127.0.0.1:49152`.
  public var address: String { "http://127.0.0.1:\(port)" }

  /// How long every request waits before it is answered; zero in the beginning.
  ///
  /// A request whose client hangs up no longer waits.
  public var latency: Duration {
    get { core.latency }
    set { core.latency = newValue }
  }

  /// What the origin has seen so far.
  public var statistics: OriginStatistics { core.statistics }

  /// Sets who answers the requests for a path.
  ///
  /// A request is answered by the route with exactly its path, else by the one with the longest
  /// matching pattern. A route replaces another one of the same pattern and method. Whoever serves
  /// `GET` serves `HEAD`: the origin leaves out the body.
  ///
  /// The task of a handler is cancelled when the client hangs up, when the origin goes offline and
  /// when it stops.
  ///
  /// - Parameters:
  ///   - pattern: A decoded path; one that ends in `/*` stands for all paths that go on there.
  ///   - methods: What the client may want to do.
  ///   - handler: Returns the answer to a request. It runs outside of every actor, and concurrently
  ///     with itself.
  /// - Precondition: The pattern begins with a slash.
  public func route(
    _ pattern: String,
    methods: Set<OriginRequest.Method> = [.get],
    handler: @escaping @concurrent @Sendable (OriginRequest) async -> OriginResponse
  ) {
    precondition(pattern.hasPrefix("/"), "A route begins with a slash, unlike \"\(pattern)\"")
    core.setRoute(pattern, methods: methods, handler: handler)
  }

  /// Makes the next requests for a path go wrong, before and instead of what their handlers want to
  /// go wrong.
  ///
  /// Faults of one path strike one after another, in the order in which they were injected.
  ///
  /// - Parameters:
  ///   - fault: What goes wrong.
  ///   - path: The decoded path, which needs no route.
  ///   - count: How many requests it strikes.
  /// - Precondition: The count is not negative.
  public func inject(_ fault: OriginFault, for path: String, count: Int = 1) {
    precondition(count >= 0, "A fault strikes zero requests or more, not \(count)")
    core.addFaults(Array(repeating: fault, count: count), path: path)
  }

  /// Forgets the faults that have not struck yet.
  public func removeFaults() {
    core.removeFaults()
  }

  /// Stops serving for a while: open connections are reset, and new ones are refused.
  ///
  /// It is done when this returns. The port stays reserved for ``goOnline()``. Nothing happens if
  /// the origin is offline already or has been stopped.
  public func goOffline() async {
    _ = await serve(false)
  }

  /// Serves again, on the same port.
  ///
  /// It does when this returns. Nothing happens if the origin is not offline.
  ///
  /// - Throws: ``OriginError/stopped`` if it has been stopped; another ``OriginError`` if the system
  ///   has no socket left.
  public func goOnline() async throws(OriginError) {
    try await serve(true).get()
  }

  /// Waits until a path has been requested so many times, answered or not.
  ///
  /// Returns at once if it already has, and when the calling task is cancelled.
  ///
  /// - Parameters:
  ///   - count: The number of requests since the origin was made.
  ///   - path: The decoded path, without query.
  public func requests(_ count: Int, for path: String) async {
    await core.wait { $0.requests[path, default: 0] >= count }
  }

  /// Waits until at most so many connections are open.
  ///
  /// Returns at once if that is so, and when the calling task is cancelled.
  ///
  /// - Parameter count: The number of connections.
  public func openConnections(atMost count: Int) async {
    await core.wait { $0.openConnections <= count }
  }

  /// Stops for good: when this returns, all connections have been reset, the port is free, and the
  /// handlers have been released or, if they run, cancelled.
  ///
  /// It may be called several times, and blocks the calling thread for a moment.
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
