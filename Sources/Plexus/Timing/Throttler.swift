/// A bell that rings at most once an interval, however often it is touched.
///
/// Touch it whenever something happens. The first touch fires at once: streams and handlers get an
/// element, and the action, if there is one, runs. What is touched before the interval has passed
/// fires once at its end.
///
/// ```swift
/// let throttler = Throttler(interval: .seconds(1)) {
///   print("the position has changed")
/// }
/// throttler.touch()  // fires
/// throttler.touch()  // fires a second later
/// throttler.touch()  // for both
/// ```
///
/// A touch is synchronous, may come from any thread or actor, and starts no task between the first
/// and the last of an interval: while a firing is pending, one task sleeps. Nothing sleeps while
/// nothing is pending.
///
/// ## When it fires
///
/// With `leading`, a touch fires at once unless it comes less than the interval after a firing.
/// With `trailing`, touches that do not fire at once fire together at the end of the interval, which
/// begins with the last firing or, without `leading`, with the first touch. Every firing begins a new
/// interval. With neither, it never fires. An interval of zero or less fires at every touch, before
/// `touch()` returns.
///
/// ## The action
///
/// Elements are sent first: when an action begins, its element is in every buffer. Actions never
/// overlap, even if one takes longer than the interval: a firing while one runs is followed by one
/// more run when it has ended, however many firings there were. It runs off every actor, in a task of
/// its own. It cannot throw: what may fail has to say what happens then.
///
/// An action that uses its throttler captures it weakly, or neither is ever released.
///
/// ## Cancellation
///
/// The task that makes or touches a throttler may be cancelled; nothing changes. ``cancel()`` drops
/// what is pending. Releasing the last reference drops it, too, cancels the task of an action that is
/// running, ends the streams and frees the action.
///
/// ## Clocks
///
/// All times are measured by the clock that is given at the beginning. One that jumps ahead makes
/// things due at the next touch or when it wakes the sleeping task; one that is set back makes the
/// interval begin anew with the next touch. If it throws instead of sleeping, what is pending fires
/// at once.
///
/// ## Topics
///
/// ### Creating a throttler
/// - ``init(interval:leading:trailing:clock:action:)``
///
/// ### Touching it
/// - ``touch()``
/// - ``cancel()``
/// - ``flush()``
///
/// ### Listening to it
/// - ``subscribe(bufferingPolicy:)``
/// - ``subscription(bufferingPolicy:)``
/// - ``subscriberCount``
public final actor Throttler: Broadcaster {
  /// What subscribers receive: that it has fired, and nothing else.
  public typealias Element = Void

  let core: FiringCore<ThrottleState, Void>

  /// Creates a throttler with nothing pending.
  ///
  /// - Parameters:
  ///   - interval: How long it is from one firing to the next, at least; zero or less fires at every
  ///     touch.
  ///   - leading: Whether a touch that comes late enough fires at once.
  ///   - trailing: Whether touches that come too early fire at the end of the interval.
  ///   - clock: What measures the time.
  ///   - action: What to do when it fires. It runs off every actor and never overlaps itself.
  public init(
    interval: Duration,
    leading: Bool = true,
    trailing: Bool = true,
    clock: any Clock<Duration> = ContinuousClock(),
    action: (@concurrent @Sendable () async -> Void)? = nil
  ) {
    core = FiringCore(
      ThrottleState(interval: interval, leading: leading, trailing: trailing),
      clock: clock,
      action: action
    )
  }

  deinit {
    core.release()
  }

  /// Notes that something has happened.
  ///
  /// It returns at once, and may be called from anywhere.
  public nonisolated func touch() {
    core.touch()
  }

  /// Drops what is pending.
  ///
  /// An action that has not been called by then will not be called for what came before; one that is
  /// running goes on to its end. The interval that began with the
  /// last firing goes on, too.
  public nonisolated func cancel() {
    core.cancel()
  }

  /// Fires what is pending now, and waits until no action runs that was asked for before.
  ///
  /// That is the one case in which two firings are closer than the interval; a new one begins. It
  /// waits for an action that is running even if nothing is pending, and returns at once if there is
  /// neither, if the action that was to come is cancelled, and when the calling task is cancelled;
  /// what was pending has fired even then. Called from inside the action it fires and does not wait,
  /// since it would wait for itself.
  public nonisolated func flush() async {
    await core.flush()
    withExtendedLifetime(self) {}
  }

  /// Registers a subscriber and returns an element for every firing from now on.
  ///
  /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
  public nonisolated func subscribe(
    bufferingPolicy: BufferingPolicy<Void> = .unbounded
  ) -> AsyncStream<Void> {
    AsyncStream(subscription(bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber and returns an element for every firing from now on.
  ///
  /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
  public nonisolated func subscription(
    bufferingPolicy: BufferingPolicy<Void> = .unbounded
  ) -> Subscription<Void> {
    hub.subscription(bufferingPolicy: bufferingPolicy)
  }

  /// The number of subscribers at this moment, streams and handlers alike.
  public nonisolated var subscriberCount: Int {
    hub.subscriberCount
  }
}

extension Throttler: HubOwner {
  nonisolated var hub: BroadcastHub<Void> { core.hub }
}
