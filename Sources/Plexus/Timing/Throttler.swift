/// A throttler that fires at most once per interval.
///
/// Call ``touch()`` for each event. The first touch fires immediately: subscribers receive an element, and the
/// action, if any, runs. Touches during the interval cause one firing at its end.
///
/// ```swift
/// let throttler = Throttler(interval: .seconds(1)) {
///   print("the position has changed")
/// }
/// throttler.touch()  // fires
/// throttler.touch()
/// throttler.touch()  // both fire once, a second later
/// // Prints "the position has changed"
/// // Prints "the position has changed"
/// ```
///
/// A touch is synchronous, can be made from any thread or actor, and does not create a task each time:
/// while a firing is pending, one task sleeps. No task exists while nothing is pending.
///
/// ## When it fires
///
/// With `leading`, a touch fires immediately unless the interval since the last firing has not passed. With
/// `trailing`, touches that do not fire immediately cause one firing at the end of the interval, which
/// begins with the last firing or, without `leading`, with the first touch. Every firing begins a new
/// interval. With neither option, the throttler never fires. Otherwise, an interval of zero or less fires at
/// every touch, before `touch()` returns.
///
/// ## The action
///
/// Elements are sent first: when an action begins, its element is in the buffer of every subscriber. Runs of the
/// action never overlap, even if one takes longer than the interval: any number of firings during a run
/// cause one further run after it. If a run never ends, the action is not called again, but subscribers still receive
/// elements. The action runs in a separate task, outside any actor. It cannot throw, and must handle its errors.
///
/// An action that uses its throttler must capture it weakly; a strong capture is a reference cycle.
///
/// ## Cancellation
///
/// Cancelling the task that creates or touches a throttler has no effect on it. ``cancel()`` drops the pending
/// firing. Releasing the last reference drops it, too, cancels the task of a running action, ends the
/// streams and releases the action.
///
/// ## Clocks
///
/// All times are measured with the clock passed to the initializer. A ``Debouncer`` describes what happens if its
/// `sleep` does not do what it should. If the clock jumps ahead, a firing becomes
/// due at the next touch or when the sleeping task wakes. If it is set back, the interval restarts at the
/// next touch. If `sleep` throws, the pending firing happens immediately.
///
/// ## Topics
///
/// ### Creating a throttler
/// - ``init(interval:leading:trailing:clock:action:)``
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
public final actor Throttler: Broadcaster {
  /// The element type: a firing carries no value.
  public typealias Element = Void

  let core: FiringCore<ScheduleState, Void>

  /// Creates a throttler without a pending firing.
  ///
  /// - Parameters:
  ///   - interval: The minimum time between two firings. Zero or less fires at every touch.
  ///   - leading: Whether a touch outside an interval fires immediately.
  ///   - trailing: Whether touches during an interval cause a firing at its end.
  ///   - clock: The clock that measures the intervals.
  ///   - action: The action to run at each firing. It runs outside any actor and never overlaps itself.
  public init(
    interval: Duration,
    leading: Bool = true,
    trailing: Bool = true,
    clock: any Clock<Duration> = ContinuousClock(),
    action: (@concurrent @Sendable () async -> Void)? = nil
  ) {
    core = FiringCore(
      ScheduleState(interval: interval, leading: leading, trailing: trailing),
      clock: clock,
      action: action
    )
  }

  deinit {
    core.release()
  }

  /// Requests a firing.
  ///
  /// Returns without waiting and can be called from any thread or actor.
  public nonisolated func touch() {
    core.touch()
  }

  /// Drops the pending firing.
  ///
  /// Runs of the action that have not begun are dropped, too; a running action continues. The interval since the last
  /// firing continues, unless the run of that firing is dropped and no subscriber has received it: it then counts as
  /// not fired, and the next touch begins another interval.
  public nonisolated func cancel() {
    core.cancel()
  }

  /// Fires if a firing is pending, and waits until the action has run for all firings so far.
  ///
  /// The firing does not wait for the end of the interval, and begins a new one. Waits for a running action
  /// even if nothing is pending. Returns immediately if there is neither. The wait ends early if the
  /// awaited run is dropped by ``cancel()`` or the calling task is cancelled; the pending firing has happened
  /// even then. Inside the action, and inside a fetch or another action that the action waits for, it fires
  /// but does not wait, which would be a deadlock.
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

  /// The current number of subscribers, including handlers.
  public nonisolated var subscriberCount: Int {
    hub.subscriberCount
  }
}

extension Throttler: HubOwner {
  nonisolated var hub: BroadcastHub<Void> { core.hub }
}
