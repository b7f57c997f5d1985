/// A bell that rings once after the last of many touches.
///
/// Touch it whenever something happens. It fires when nothing has happened for the delay: streams and
/// handlers get an element, and the action, if there is one, runs.
///
/// ```swift
/// let debouncer = Debouncer(delay: .milliseconds(300)) {
///   print("the user has stopped typing")
/// }
/// debouncer.touch()
/// debouncer.touch()  // only this one counts
/// ```
///
/// A touch is synchronous, may come from any thread or actor, and starts no task between the first
/// and the last: while a firing is pending, one task sleeps, and touches move its deadline. Nothing
/// sleeps while nothing is pending.
///
/// ## When it fires
///
/// A firing is due when the delay has passed since the last touch. With a maximum delay it is due at
/// the latest when so much time has passed since the first touch that it answers, however many
/// follow; a delay that is longer than the maximum is cut off by it. With `leading`, a touch after a
/// quiet time of at least the delay fires at once, and another firing follows only if it is touched
/// again. A delay of zero or less fires at every touch, before `touch()` returns.
///
/// A touch never postpones a firing that was due before it, even if nobody has found the time to
/// carry it out.
///
/// ## The action
///
/// Elements are sent first: when an action begins, its element is in every buffer. Actions never
/// overlap. A firing while one runs is followed by one more run when it has ended, however many
/// firings there were; an action that never ends is never called again, while streams go on. It runs
/// off every actor, in a task of its own. It cannot throw: what may fail has to say what happens then.
///
/// An action that uses its debouncer captures it weakly, or neither is ever released.
///
/// ## Cancellation
///
/// The task that makes or touches a debouncer may be cancelled; nothing changes. ``cancel()`` drops
/// what is pending. Releasing the last reference drops it, too, cancels the task of an action that is
/// running, ends the streams and frees the action.
///
/// ## Clocks
///
/// All times are measured by the clock that is given at the beginning. One that jumps ahead makes
/// things due at the next touch or when it wakes the sleeping task; one that is set back makes what
/// is pending wait anew from the next touch on. If it throws instead of sleeping, what is pending
/// fires at once.
///
/// ## Topics
///
/// ### Creating a debouncer
/// - ``init(delay:leading:maximumDelay:clock:action:)``
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
public final actor Debouncer: Broadcaster {
  /// What subscribers receive: that it has fired, and nothing else.
  public typealias Element = Void

  let core: FiringCore<DebounceState, Void>

  /// Creates a debouncer with nothing pending.
  ///
  /// - Parameters:
  ///   - delay: How long it has to be quiet; zero or less fires at every touch.
  ///   - leading: Whether the first touch after a quiet time fires at once.
  ///   - maximumDelay: How long a touch waits at most for its firing, however many follow; `nil` is
  ///     for ever.
  ///   - clock: What measures the time.
  ///   - action: What to do when it fires. It runs off every actor and never overlaps itself.
  public init(
    delay: Duration,
    leading: Bool = false,
    maximumDelay: Duration? = nil,
    clock: any Clock<Duration> = ContinuousClock(),
    action: (@concurrent @Sendable () async -> Void)? = nil
  ) {
    core = FiringCore(
      DebounceState(delay: delay, maximumDelay: maximumDelay, leading: leading),
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
  /// running goes on to its end. With `leading`, the next touch
  /// fires at once.
  public nonisolated func cancel() {
    core.cancel()
  }

  /// Fires what is pending now, and waits until no action runs that was asked for before.
  ///
  /// It waits for an action that is running even if nothing is pending, and returns at once if there
  /// is neither, if the action that was to come is cancelled, and when the calling task is cancelled;
  /// what was pending has fired even then. Called from inside the action it fires and does not wait,
  /// since it would wait for itself. The same holds for a fetch or an action that the action waits for.
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

extension Debouncer: HubOwner {
  nonisolated var hub: BroadcastHub<Void> { core.hub }
}
