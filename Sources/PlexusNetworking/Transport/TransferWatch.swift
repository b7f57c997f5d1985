internal import Plexus
internal import PlexusSupport

/// The time limits of a request with its redirects.
final class TransferWatch: Sendable {
  /// The error of a request that has taken too long, or is too slow.
  struct Elapsed: Error {}

  private struct State: Sendable {
    /// The bytes in the present stretch of the rate, and its end.
    var count = 0
    var stretchEnd: Duration?
    var hasElapsed = false
  }

  private let timer: TransferTimer
  private let rate: HTTPRate?
  /// The time of the timer when the request must have ended.
  private let end: Duration?
  private let state = Locked(State())

  /// Creates the limits of a request that begins now.
  init(timer: TransferTimer, rules: HTTPRules) {
    self.timer = timer
    rate = rules.minimumRate
    end = rules.totalTimeout.map { timer.now + $0 }
  }

  /// Counts bytes of the body.
  func receive(_ bytes: Int) {
    guard rate != nil else { return }
    state.withLock { $0.count += bytes }
  }

  /// Sends one of the requests.
  ///
  /// - Parameter send: A closure that sends it, and ends soon after its task was cancelled.
  /// - Throws: ``Elapsed`` if it takes too long, or is too slow; an error of the closure.
  func during(_ send: @escaping @concurrent @Sendable () async throws -> Void) async throws {
    guard rate != nil || end != nil else { return try await send() }
    let stretchEnd = rate.map { timer.now + $0.duration }
    guard let deadline = [stretchEnd, end].compactMap(\.self).min() else { return }
    state.withLock { $0 = State(stretchEnd: stretchEnd) }
    let transfer = Task { try await send() }
    let id = timer.add(deadline: deadline) { [self] now in check(now) { transfer.cancel() } }
    defer { timer.remove(id) }
    do {
      try await withTaskCancellationHandler {
        try await transfer.value
      } onCancel: {
        transfer.cancel()
      }
    } catch {
      throw state.withLock { $0.hasElapsed } ? Elapsed() : error
    }
  }

  /// Ends the transfer if a limit is exceeded.
  ///
  /// - Returns: The time of the next check; `nil` if there is none.
  private func check(_ now: Duration, _ cancel: () -> Void) -> Duration? {
    let next = state.withLock { state -> Duration? in
      if let end, end <= now { return nil }
      if let rate, let stretchEnd = state.stretchEnd, stretchEnd <= now {
        guard state.count >= rate.bytes else { return nil }
        state.count = 0
        state.stretchEnd = now + rate.duration
      }
      return [state.stretchEnd, end].compactMap(\.self).min()
    }
    if next == nil {
      state.withLock { $0.hasElapsed = true }
      cancel()
    }
    return next
  }
}
