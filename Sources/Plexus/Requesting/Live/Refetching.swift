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
/// ## What every live subscription does
///
/// The value is fetched if there is none: when the subscription begins, and after a `clear`. It is also fetched
/// after a `refresh`. All live subscriptions of a value share its fetches, with each other and with requests. The
/// last one to leave takes its fetch along, if no request waits for it and the policy says so.
///
/// ## Failures
///
/// A fetch that has failed is not repeated by itself: the next signal, interval or refresh fetches again.
///
/// ## Signing out
///
/// ``MuxRepository/clearAll()`` puts live subscriptions to rest: nothing is fetched until the value is requested,
/// a signal arrives or another live subscription begins.
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

  /// Fetches the value when it has gone stale, in the moment when its time to live ends.
  public static var whenStale: Self {
    var refetching = Self()
    refetching.isWhenStale = true
    return refetching
  }

  /// Fetches the value at regular intervals, fresh or stale.
  ///
  /// The intervals count from the subscription. Of several live subscriptions the one with the shortest interval
  /// counts. A fetch that is under way when an interval ends takes the place of another one.
  ///
  /// - Parameter interval: The interval, by the clock of the cache.
  /// - Returns: The reason.
  /// - Precondition: The interval is positive.
  public static func every(_ interval: Duration) -> Self {
    precondition(interval > .zero, "The interval has to be positive")
    var refetching = Self()
    refetching.interval = interval
    return refetching
  }

  /// Fetches the value with each element of a sequence, fresh or stale: the app comes to the foreground, or the
  /// network is back.
  ///
  /// A signal during a fetch joins that. The end of the sequence, also by an error, ends the signals and nothing
  /// else. Each subscription iterates the sequence: share one that can be iterated only once with
  /// `broadcast()`.
  ///
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

  /// Combines two reasons: the value is fetched for either.
  ///
  /// - Parameter other: The other reason.
  /// - Returns: Both. Of two intervals the shorter one counts.
  public func and(_ other: Self) -> Self {
    var both = self
    both.isWhenStale = isWhenStale || other.isWhenStale
    both.interval = [interval, other.interval].compactMap { $0 }.min()
    both.signals += other.signals
    return both
  }
}
