/// A timer that fires once after the last of many touches.
///
/// Call ``touch()`` for each event. The debouncer fires when the delay has passed without a further touch: subscribers
/// receive an element, and the action, if any, runs.
///
/// ```swift
/// let debouncer = Debouncer(delay: .milliseconds(300)) {
///   print("the user has stopped typing")
/// }
/// debouncer.touch()
/// debouncer.touch()  // only this one counts
/// // Prints "the user has stopped typing"
/// ```
///
/// A touch is synchronous and possible from any thread or actor. It does not create a task each time: while a firing is
/// pending, a single task sleeps, and touches move its deadline. While no firing is pending, no task sleeps.
///
/// ## When it fires
///
/// A firing is due when the delay has passed since the last touch. With a maximum delay, it is due at the latest when
/// that time has passed since it became pending; a longer delay is shortened to the maximum. With `leading`, a touch
/// after a quiet period of at least the delay fires immediately, and another firing follows only after a further touch.
/// A delay of zero or less fires at every touch, before `touch()` returns.
///
/// A touch does not postpone a firing that was already due, even if it has not happened yet.
///
/// ## The action
///
/// Elements are sent first: when an action begins, its element is in the buffer of every subscriber. Runs of the
/// action never overlap. Any number of firings during a run cause one further run after it. If a run never
/// ends, the action is not called again, but subscribers still receive elements. The action runs in a separate task,
/// outside any actor. It cannot throw, and must handle its errors.
///
/// An action that uses its debouncer must capture it weakly; a strong capture is a reference cycle.
///
/// ## Cancellation
///
/// Cancelling the task that creates or touches a debouncer has no effect on it. ``cancel()`` drops the pending firing.
/// So does releasing the last reference, which also cancels the task of a running action, ends the streams and releases
/// the action.
///
/// ## Clocks
///
/// All times are measured with the clock passed to the initializer. If the clock jumps ahead, a firing becomes
/// due at the next touch or when the sleeping task wakes. If it is set back, the pending delay restarts
/// at the next touch. If `sleep` throws, the pending firing happens immediately.
///
/// A clock whose `sleep` returns at once, without having moved, is a programming error. Debug builds stop after 100
/// such returns. Release builds measure the rest of the delay with the system's clock.
///
/// ## Topics
///
/// ### Creating a debouncer
/// - ``init(delay:leading:maximumDelay:clock:action:)``
///
/// ### Firing
/// - ``touch()``
/// - ``cancel()``
/// - ``flush()``
///
/// ### Subscribing
/// - ``subscribe(bufferingPolicy:)``
/// - ``subscription(bufferingPolicy:)``
/// - ``subscriberCount``
public final actor Debouncer: Broadcaster {
  /// The type of the elements: a firing has no value.
  public typealias Element = Void

  let core: FiringCore<ScheduleState, Void>

  /// Creates a debouncer without a pending firing.
  ///
  /// - Parameters:
  ///   - delay: The length of the quiet period. Zero or less fires at every touch.
  ///   - leading: Whether the first touch after a quiet period fires immediately.
  ///   - maximumDelay: The maximum time from a touch to its firing while further touches follow, or `nil` for
  ///     no maximum.
  ///   - clock: The clock that measures the delays.
  ///   - action: The action to run at each firing. It runs outside any actor and never overlaps itself.
  public init(
    delay: Duration,
    leading: Bool = false,
    maximumDelay: Duration? = nil,
    clock: any Clock<Duration> = ContinuousClock(),
    action: (@concurrent @Sendable () async -> Void)? = nil
  ) {
    core = FiringCore(
      ScheduleState(delay: delay, maximumDelay: maximumDelay, leading: leading),
      clock: clock,
      action: action
    )
  }

  deinit {
    core.release()
  }

  /// Starts or postpones a firing.
  ///
  /// You can call this method from any thread or actor. It returns without waiting.
  public nonisolated func touch() {
    core.touch()
  }

  /// Drops the pending firing.
  ///
  /// Runs of the action that have not begun are dropped, too; a running action continues. With
  /// `leading`, the next touch fires immediately.
  public nonisolated func cancel() {
    core.cancel()
  }

  /// Fires if a firing is pending, and waits until the action has run for all firings so far.
  ///
  /// If nothing is pending, this method still waits for a running action; if none is running, it returns immediately.
  /// The wait ends early if ``cancel()`` drops the awaited run or the calling task is cancelled; even then, the pending
  /// firing has happened. Inside the action, and inside a fetch or another action that the action waits for, the method
  /// fires but does not wait, because waiting would cause a deadlock.
  public nonisolated func flush() async {
    await core.flush(retaining: self)
  }

  /// Registers a subscriber, which receives the firings from now on.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  public nonisolated func subscribe(
    bufferingPolicy: BufferingPolicy<Void> = .unbounded
  ) -> AsyncStream<Void> {
    AsyncStream(subscription(bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber, which receives the firings from now on.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription, which ends when it is dropped or the task that iterates it is cancelled.
  public nonisolated func subscription(
    bufferingPolicy: BufferingPolicy<Void> = .unbounded
  ) -> Subscription<Void> {
    hub.subscription(bufferingPolicy: bufferingPolicy)
  }

  /// The current number of subscribers, including streams and handlers.
  public nonisolated var subscriberCount: Int {
    hub.subscriberCount
  }
}

extension Debouncer: HubOwner {
  nonisolated var hub: BroadcastHub<Void> { core.hub }
}
