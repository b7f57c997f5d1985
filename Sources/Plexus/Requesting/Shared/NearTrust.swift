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
/// ## Topics
///
/// ### Creating a trust
/// - ``init(clock:)``
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
    fileprivate let generation: UInt64

    /// Returns the moment some time later.
    ///
    /// - Parameter duration: The time.
    /// - Returns: The moment.
    public func advanced(by duration: Duration) -> Moment {
      Moment(time: time.addingSaturating(Nanoseconds(saturating: duration)), generation: generation)
    }
  }

  /// The clock of the trust and of the leases.
  let clock: any Clock<Duration>
  @usableFromInline let time: TimeSource
  @usableFromInline let deadline = Atomic<Nanoseconds>(.min)
  @usableFromInline let ends = Atomic<UInt64>(0)
  /// Held by writers.
  private let writing = Locked<Void>(())

  /// Creates a trust that does not hold yet.
  ///
  /// - Parameter clock: The clock of the trust.
  public init(clock: any Clock<Duration> = ContinuousClock()) {
    self.clock = clock
    time = TimeSource(clock)
  }

  /// The present time.
  public var now: Moment {
    let generation = generation
    return Moment(time: time.now(), generation: generation)
  }

  /// Whether copies in memory are used at present.
  public var holds: Bool {
    time.now() < deadline.load(ordering: .acquiring)
  }

  /// Sets the end of the trust.
  ///
  /// Nothing happens if ``end()`` was called since the moment was read from ``now``.
  ///
  /// - Parameter moment: The end.
  public func extend(until moment: Moment) {
    writing.withLock { _ in
      guard moment.generation == generation else { return }
      deadline.store(moment.time, ordering: .releasing)
    }
  }

  /// Ends the trust.
  ///
  /// Copies that were made before are used again only after the engine has confirmed them, whether or not the trust
  /// is extended later. When the call returns, no later request is answered with such a copy, or with the result of a
  /// fetch that is in progress.
  public func end() {
    writing.withLock { _ in
      deadline.store(.min, ordering: .releasing)
      ends.add(1, ordering: .acquiringAndReleasing)
    }
  }

  /// The number of times that the trust has ended.
  var generation: UInt64 { ends.load(ordering: .acquiring) }
}
