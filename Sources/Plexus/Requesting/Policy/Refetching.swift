/// The reasons for which a live subscription fetches a value.
///
/// A live subscription keeps the value of a ``Multiplexer`` or of a ``MultiplexerMap/Entry`` up to date while it
/// exists. Combine reasons with ``and(_:)``:
///
/// ```swift
/// let profile = Multiplexer { try await backend.fetchProfile() }
/// let (foreground, becomesActive) = AsyncStream.makeStream(of: Void.self)
/// let states = profile.subscribe(
///   refetching: .whenStale.and(.every(.seconds(30))).and(.on(foreground))
/// )
/// becomesActive.yield()  // fetches the profile once more
/// ```
///
/// ## Common rules
///
/// A live subscription fetches the value if it is missing: when the subscription starts, and after a `clear`. It also
/// fetches after a `refresh`. All live subscriptions of a value share its fetches, with each other and with requests.
/// When the last one leaves, the fetch in flight is cancelled if no request waits for it and the policy is
/// ``CachePolicy/UnobservedFetch/cancel``.
///
/// ## Failures
///
/// A failed fetch is not retried by the subscription: the next signal, interval or refresh fetches again, even while the
/// failure is remembered. A subscription that starts while a failure is remembered, as defined by
/// ``CachePolicy/failureTimeToLive``, shows the failure and does not fetch.
///
/// A signal or an interval asks for a newer value. If that fetch fails, a fresh value stays fresh, and requests return
/// it. Only a `refresh` says that the value is outdated.
///
/// ## Signing out
///
/// After ``MuxRepository/clearAll()`` or a clear by tags, live subscriptions fetch nothing until the value is
/// requested, a signal arrives, or another live subscription starts.
///
/// ## Topics
///
/// ### Reasons
/// - ``whenStale``
/// - ``every(_:)``
/// - ``on(_:)``
/// - ``and(_:)``
public struct Refetching: Sendable {
  /// Iterates the signals until the closure returns `false`.
  typealias Signals = @Sendable (_ receive: @escaping @Sendable () -> Bool) async -> Void

  private(set) var isWhenStale = false
  /// The shortest interval.
  private(set) var interval: Duration?
  private(set) var signals: [Signals] = []

  /// Fetches the value when it becomes stale, at the end of its time to live.
  public static var whenStale: Self {
    var refetching = Self()
    refetching.isWhenStale = true
    return refetching
  }

  /// Fetches the value at regular intervals, fresh or stale.
  ///
  /// The intervals start with the subscription. If there are several live subscriptions, the shortest interval counts.
  /// If a fetch is in flight at the end of an interval, no other one starts.
  /// - Parameter interval: The interval, by the clock of the cache.
  /// - Returns: The reason.
  /// - Precondition: The interval is positive.
  public static func every(_ interval: Duration) -> Self {
    precondition(interval > .zero, "The interval of a live subscription must be positive")
    var refetching = Self()
    refetching.interval = interval
    return refetching
  }

  /// Fetches the value with each element of a sequence, fresh or stale.
  ///
  /// Use it, for example, when the app enters the foreground or the network returns. A signal during a fetch joins it.
  /// If the sequence ends or throws, only the signals end. Each subscription iterates the sequence: share one that can
  /// be iterated only once with `broadcast()`.
  /// - Parameter signals: The sequence.
  /// - Returns: The reason.
  public static func on<S: AsyncSequence & Sendable>(_ signals: S) -> Self {
    var refetching = Self()
    refetching.signals = [
      { receive in
        var iterator = signals.makeAsyncIterator()
        while !Task.isCancelled {
          let element = try? await iterator.next(isolation: nil)
          guard element != nil, receive() else { return }
        }
      }
    ]
    return refetching
  }

  /// Combines two reasons.
  ///
  /// - Parameter other: The other reason.
  /// - Returns: Both reasons. Of two intervals, the shorter one counts.
  public func and(_ other: Self) -> Self {
    var both = self
    both.isWhenStale = isWhenStale || other.isWhenStale
    both.interval = [interval, other.interval].compactMap { $0 }.min()
    both.signals += other.signals
    return both
  }
}
