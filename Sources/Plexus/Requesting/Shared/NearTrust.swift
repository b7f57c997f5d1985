public import Synchronization

/// The time until which copies in memory are used without asking the engine of a ``SharedCacher``.
///
/// A cacher extends the trust while the engine answers, and ends it when announcements of changes may have been lost:
///
/// ```swift
/// let trust = NearTrust()
///
/// // Before a message to the engine:
/// let sent = trust.now
///
/// // When its answer has come:
/// trust.extend(until: sent.advanced(by: .seconds(2)))
/// ```
///
/// The clock is read with the precision of the system's tick, which takes 1 to 10 milliseconds: leave a margin.
///
/// ## While the engine cannot be reached
///
/// With a time to keep, copies are used and serve as fallbacks beyond the end of the trust, until that time after the
/// last message that the engine has answered. A value that is fetched meanwhile is used for that time after the start
/// of its fetch. The first extension afterwards ends the trust instead: the kept values have to be confirmed. A removal
/// with the reach ``ClearReach/everywhere`` waits for the time to keep, too, if a process does not respond.
///
/// ## Topics
///
/// ### Creating a trust
/// - ``init(clock:keeping:)``
/// - ``timeToKeep``
///
/// ### Extending and ending
/// - ``now``
/// - ``Moment``
/// - ``extend(until:)``
/// - ``end()``
///
/// ### Reading
/// - ``holds``
public final class NearTrust: Sendable {
  /// A point in time that becomes invalid when the trust ends.
  public struct Moment: Hashable, Sendable {
    fileprivate var time: Nanoseconds
    /// The time at which it was read.
    fileprivate let reading: Nanoseconds
    fileprivate let generation: UInt64

    /// Returns the moment some time later.
    ///
    /// - Parameter duration: The time.
    /// - Returns: The moment.
    public func advanced(by duration: Duration) -> Moment {
      var moment = self
      moment.time = time.addingSaturating(Nanoseconds(saturating: duration))
      return moment
    }
  }

  /// The clock of the trust and of the leases.
  let clock: any Clock<Duration>
  /// The time for which copies are used while the engine cannot be reached.
  public let timeToKeep: Duration
  @usableFromInline let time: TimeSource
  /// The time until which copies from before are used.
  @usableFromInline let deadline = Atomic<Nanoseconds>(.min)
  @usableFromInline let ends = Atomic<UInt64>(0)
  /// The time until which a removal waits for this process, also if the trust has ended since.
  private let heard = Atomic<Nanoseconds>(.min)
  private let kept: Nanoseconds
  private struct State {
    /// The end of the time for which the engine counts as heard.
    var heardUntil = Nanoseconds.min
    /// Whether values were kept that the engine has not confirmed.
    var hasKept = false
  }
  /// Held by writers.
  private let state = Locked(State())

  /// Creates a trust that does not hold yet.
  ///
  /// - Parameters:
  ///   - clock: The clock of the trust.
  ///   - timeToKeep: The time for which copies are used while the engine cannot be reached.
  public init(
    clock: any Clock<Duration> = ContinuousClock(),
    keeping timeToKeep: Duration = .zero
  ) {
    self.clock = clock
    self.timeToKeep = timeToKeep
    kept = max(0, Nanoseconds(saturating: timeToKeep))
    time = TimeSource(clock)
  }

  /// The present time.
  public var now: Moment {
    let generation = generation
    let now = time.now()
    return Moment(time: now, reading: now, generation: generation)
  }

  /// Whether copies in memory are used at present.
  public var holds: Bool {
    time.now() < deadline.load(ordering: .acquiring)
  }

  /// Sets the end of the trust.
  ///
  /// Copies stay untrusted if ``end()`` was called since the moment was read from ``now``. If values were kept since the last
  /// extension, the trust ends.
  ///
  /// - Parameter moment: The end.
  public func extend(until moment: Moment) {
    state.withLock { state in
      let keptUntil = kept > 0 ? moment.reading.addingSaturating(kept) : moment.time
      let limit = max(moment.time, keptUntil)
      heard.store(limit, ordering: .releasing)
      guard moment.generation == generation else { return }
      guard !state.hasKept else { return end(&state) }
      state.heardUntil = moment.time
      deadline.store(limit, ordering: .releasing)
    }
  }

  /// Ends the trust.
  ///
  /// Copies that were made before are used again only after the engine has confirmed them, whether or not the trust
  /// is extended later. When the call returns, no later request is answered with such a copy, or with the result of a
  /// fetch that is in progress.
  public func end() {
    state.withLock { end(&$0) }
  }

  private func end(_ state: inout State) {
    state = State()
    deadline.store(.min, ordering: .releasing)
    ends.add(1, ordering: .acquiringAndReleasing)
  }

  /// The time since which the engine has not been heard; `nil` if it is heard.
  var silentSince: Nanoseconds? {
    let heard = heard.load(ordering: .acquiring)
    return heard != .min && time.now() >= heard ? heard : nil
  }

  /// The number of times that the trust has ended.
  var generation: UInt64 { ends.load(ordering: .acquiring) }

  /// Whether the trust has expired, and has not ended.
  var hasExpired: Bool {
    let deadline = deadline.load(ordering: .acquiring)
    return deadline != .min && time.now() >= deadline
  }

  /// Returns whether a value that was fetched without the engine is kept, and records that.
  ///
  /// - Parameter isInterrupted: Whether the engine is known to be out of reach.
  /// - Returns: Whether the engine cannot be reached, and there is a time to keep.
  func keepsValue(isInterrupted: Bool) -> Bool {
    guard kept > 0 else { return false }
    return state.withLock { state in
      if isInterrupted || time.now() >= state.heardUntil { state.hasKept = true }
      return state.hasKept
    }
  }

  /// Returns whether a copy is used although the trust does not hold.
  ///
  /// - Parameters:
  ///   - start: The start of its fetch, by the clock of a cache.
  ///   - now: The present time of that clock.
  /// - Returns: Whether it is.
  @usableFromInline
  func keepsCopy(from start: Nanoseconds, at now: Nanoseconds) -> Bool {
    kept > 0 && now < start.addingSaturating(kept)
  }
}
