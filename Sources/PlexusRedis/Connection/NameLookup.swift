internal import PlexusSupport

/// The lookup of a host's addresses, for which the system has no time limit.
///
/// It runs on a thread of its own. An attempt to connect whose time is over leaves it behind, and the next attempt waits
/// for the same lookup: a connection has at most one such thread.
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
  }

  private let resolve: Resolve
  /// Wakes the thread of the connection.
  private let wake: WakePipe
  private let state = Locked(State())

  init(_ wake: WakePipe, _ resolve: @escaping Resolve) {
    self.wake = wake
    self.resolve = resolve
  }

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
    let wasRunning = state.withLock { state in
      defer { state.isRunning = true }
      return state.isRunning
    }
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

  private func start(_ host: String, _ port: UInt16) throws(Failure) {
    do throws(SystemError) {
      _ = try LoopThread { [self] in
        let result = resolve(host, port)
        state.withLock { $0.result = result }
        wake.wake()
      }
    } catch {
      state.withLock { $0.isRunning = false }
      throw Failure(reason: "\(error)")
    }
  }
}
