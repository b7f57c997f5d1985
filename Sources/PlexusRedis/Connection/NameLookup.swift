internal import PlexusSupport

/// The lookup of a host's addresses, for which the system has no time limit.
///
/// It runs on a thread of its own. An attempt to connect whose time is over leaves it behind, and the next attempt waits
/// for the same lookup: a connection has at most one such thread for each name, and the connections of an engine have at
/// most ``limit`` together. Addresses that come too late for their attempt serve the next one.
final class NameLookup: Sendable {
  /// The reason why there is no address.
  struct Failure: Error {
    let reason: String
  }

  /// Finds the addresses of a host, however long it takes.
  typealias Resolve =
    @Sendable (_ host: String, _ port: UInt16) -> Result<[RedisSocket.Target], Failure>

  private struct State: Sendable {
    var isRunning = false
    var result: Result<[RedisSocket.Target], Failure>?
    /// The addresses for the next attempt.
    var kept: [RedisSocket.Target]?
  }

  /// The number of lookups at the same time: redirections can name any number of hosts.
  static let limit = 32

  /// The lookups of an engine that have not returned.
  final class Count: Sendable {
    private let running = Locked(0)

    init() {}

    fileprivate func begin() -> Bool {
      running.withLock { running in
        guard running < limit else { return false }
        running += 1
        return true
      }
    }

    fileprivate func end() { running.withLock { $0 -= 1 } }
  }

  private let resolve: Resolve
  private let count: Count
  /// Wakes the thread of the connection.
  private let wake: WakePipe
  private let state = Locked(State())

  init(_ wake: WakePipe, _ resolve: @escaping Resolve, _ count: Count = Count()) {
    self.wake = wake
    self.count = count
    self.resolve = resolve
  }

  /// Whether the system has not answered yet.
  var isRunning: Bool { state.withLock { $0.isRunning } }

  /// Returns the addresses of a host, which is the same at each call.
  ///
  /// - Parameters:
  ///   - host: The host.
  ///   - port: The port.
  ///   - deadline: The time at which to give up.
  ///   - isStopped: Called between waits of at most 50 milliseconds.
  /// - Returns: The addresses.
  /// - Throws: The reason why there are none.
  func targets(
    of host: String,
    _ port: UInt16,
    deadline: Nanoseconds,
    isStopped: () -> Bool
  ) throws(Failure) -> [RedisSocket.Target] {
    let (kept, wasRunning) = state.withLock { state in
      let kept = state.kept.take()
      defer { if kept == nil { state.isRunning = true } }
      return (kept, state.isRunning)
    }
    if let kept { return kept }
    if !wasRunning { try start(host, port) }
    while !isStopped() {
      let result = state.withLock { state in
        if state.result != nil { state.isRunning = false }
        return state.result.take()
      }
      if let result { return try result.get() }
      let remaining = deadline - .now
      guard remaining > 0 else {
        throw Failure(reason: "the address of \(host) was not found in time")
      }
      wake.wait(atMost: remaining)
    }
    throw Failure(reason: "the connection is closed")
  }

  /// Keeps the addresses for the next attempt, if too little time was left to use them.
  ///
  /// That attempt has all of its time for them, and the one after it looks for others.
  ///
  /// - Parameters:
  ///   - targets: The addresses, to none of which a connection was made.
  ///   - duration: The time that the lookup took.
  ///   - limit: The time of the attempt.
  ///   - isRefused: Whether each of the addresses was refused in time.
  func keep(
    _ targets: [RedisSocket.Target],
    after duration: Nanoseconds,
    of limit: Nanoseconds,
    isRefused: Bool
  ) {
    guard duration > limit / 2, !isRefused else { return }
    state.withLock { $0.kept = targets }
  }

  private func start(_ host: String, _ port: UInt16) throws(Failure) {
    guard count.begin() else {
      state.withLock { $0.isRunning = false }
      throw Failure(reason: "\(Self.limit) other names have not been found yet")
    }
    do throws(SystemError) {
      _ = try LoopThread { [self] in
        let result = resolve(host, port)
        count.end()
        state.withLock { $0.result = result }
        wake.wake()
      }
    } catch {
      count.end()
      state.withLock { $0.isRunning = false }
      throw Failure(reason: "\(error)")
    }
  }
}
