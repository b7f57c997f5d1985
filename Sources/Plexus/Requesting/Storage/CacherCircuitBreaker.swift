internal import Synchronization

/// A circuit breaker for the calls of a cacher, each of which has the time limit of the policy.
///
/// A call that takes longer is cancelled and abandoned, and no stored copies are read for a while. An abandoned write
/// or removal can still take effect: nothing is written before it has returned, and no removal counts as done before
/// an abandoned write has returned.
@usableFromInline
final class CacherCircuitBreaker: Sendable {
  enum Kind: Sendable {
    case read, write, removal
    /// A value for a shared tier: if it takes too long, others can still be read.
    case fill
  }

  /// The abandoned calls that have not returned, and the end of the pause.
  private struct State: Sendable {
    var writes = 0
    var removals = 0
    var pauseEnd: Nanoseconds?
  }

  private enum Phase: UInt8, AtomicRepresentable {
    case running, givenUp, ended
  }

  /// One call, whose result or time limit comes first.
  private final class Call<Result: Sendable>: Sendable {
    let outcome = OneShot<Swift.Result<Result, any Error>>()
    let phase = Atomic(Phase.running)
  }

  /// The time without reads after an abandoned call.
  static var pause: Duration { .seconds(30) }

  private let timeout: Duration
  private let clock: any Clock<Duration>
  private let time: TimeSource
  private let state = Locked(State())

  init(timeout: Duration, clock: any Clock<Duration>) {
    self.timeout = timeout
    self.clock = clock
    time = TimeSource(clock)
  }

  /// The error of a call that takes too long, and of one that cannot be made because of it.
  var timeoutError: MultiplexerError { .storageTimedOut(after: timeout) }

  /// Whether an abandoned write can still take effect.
  var hasUnreturnedWrites: Bool { state.withLock { $0.writes > 0 } }

  /// Whether an abandoned call can still write or remove.
  var hasUnreturnedChanges: Bool { state.withLock { $0.writes > 0 || $0.removals > 0 } }

  /// Whether a call was abandoned a short while ago.
  var isPaused: Bool {
    guard let end = state.withLock({ $0.pauseEnd }) else { return false }
    return time.now() < end
  }

  /// Returns whether stored copies can be read at present.
  ///
  /// At the end of a pause one call tests the cacher; other reads are skipped until it has returned.
  func allowsReading() -> Bool {
    let now = time.now()
    return state.withLock { state in
      guard let end = state.pauseEnd else { return true }
      guard now >= end else { return false }
      state.pauseEnd = now.addingSaturating(Nanoseconds(saturating: Self.pause))
      return true
    }
  }

  /// Calls the cacher.
  ///
  /// - Parameters:
  ///   - kind: The kind of the call.
  ///   - onLateReturn: Called when an abandoned call returns, unless it is a removal that has failed.
  ///   - operation: The call.
  /// - Returns: The result of the call.
  /// - Throws: The error of the call; ``MultiplexerError/storageTimedOut(after:)`` if it takes too long.
  func run<Result: Sendable>(
    _ kind: Kind,
    onLateReturn: @escaping @Sendable () -> Void = {},
    _ operation: @escaping @concurrent @Sendable () async throws -> Result
  ) async throws -> Result {
    // A limit of more than a century is treated as none, and costs nothing.
    guard timeout < .longest else { return try await operation() }
    let call = Call<Result>()
    let timer = clock.timer(timeout) { [self] in
      let (isFirst, _) = call.phase.compareExchange(
        expected: .running,
        desired: .givenUp,
        ordering: .acquiringAndReleasing
      )
      guard isFirst else { return }
      giveUp(kind)
      call.outcome.set(.failure(timeoutError))
    }
    // It inherits task-local values, by which a cacher that calls its own multiplexer is detected.
    let task = Task { [self] in
      let result: Swift.Result<Result, any Error>
      do {
        result = .success(try await operation())
      } catch {
        result = .failure(error)
      }
      if call.phase.exchange(.ended, ordering: .acquiringAndReleasing) == .running {
        state.withLock { $0.pauseEnd = nil }
        call.outcome.set(result)
      } else {
        count(kind, -1)
        // A removal that has failed is retried by the next flush or clear, not in a loop.
        if kind != .removal { onLateReturn() } else if case .success = result { onLateReturn() }
      }
    }
    let result = await withTaskCancellationHandler {
      if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
        await withTaskPriorityEscalationHandler(
          operation: { await call.outcome.value() },
          onPriorityEscalated: { _, priority in task.escalatePriority(to: priority) }
        )
      } else {
        await call.outcome.value()
      }
    } onCancel: {
      task.cancel()
    }
    timer.cancel()
    if call.phase.load(ordering: .acquiring) != .ended { task.cancel() }
    return try result.get()
  }

  private func giveUp(_ kind: Kind) {
    count(kind, 1)
    guard kind != .fill else { return }
    let end = time.now().addingSaturating(Nanoseconds(saturating: Self.pause))
    state.withLock { $0.pauseEnd = end }
  }

  private func count(_ kind: Kind, _ change: Int) {
    state.withLock { state in
      switch kind {
      case .read, .fill: break
      case .write: state.writes += change
      case .removal: state.removals += change
      }
    }
  }
}
