/// A variable that publishes its value once it has stopped changing.
///
/// Set ``value`` from any thread or actor. When the value has not changed for the delay, the variable fires:
/// subscribers receive the value, and the action, if any, runs with it.
///
/// ```swift
/// let query = DebouncerVar("", delay: .milliseconds(300)) { text in
///   print("search for \(text)")
/// }
/// query.value = "s"
/// query.value = "sw"
/// query.value = "swift"  // only this text is searched for
/// // Prints "search for swift"
/// ```
///
/// Timing, the action, cancellation, release and clocks work as in a ``Debouncer``.
///
/// ## Changes
///
/// Setting an equal value has no effect and does not postpone the firing. Setting the value that was fired last,
/// before the delay has passed, cancels the pending firing. The initial value counts as fired. Values are
/// compared without a lock, so the comparison can be slow and can use the variable.
///
/// ``touch()`` requests a firing of the current value, changed or not. Setting the last fired value cancels it,
/// too.
///
/// Each read and each write of the variable is atomic, but not their combination: two threads that run `value += 1`
/// concurrently can lose an increment.
///
/// ## Topics
///
/// ### Creating a variable
/// - ``init(_:delay:leading:maximumDelay:clock:action:)``
///
/// ### Changing the value
/// - ``value``
/// - ``touch()``
/// - ``cancel()``
/// - ``flush()``
///
/// ### Subscribing
/// - ``subscribe(bufferingPolicy:)``
/// - ``subscription(bufferingPolicy:)``
/// - ``subscriberCount``
public final actor DebouncerVar<Value: Equatable & Sendable>: Broadcaster {
  /// The element type: the fired values.
  public typealias Element = Value

  let core: FiringCore<Debouncer.ScheduleState, Value>
  private let initial: Value

  /// Creates a variable without a pending firing.
  ///
  /// - Parameters:
  ///   - initial: The initial value, which counts as fired.
  ///   - delay: The time for which the value must not change. Zero or less fires every change.
  ///   - leading: Whether the first change after a quiet period fires immediately.
  ///   - maximumDelay: The maximum time from a change to the next firing while further changes follow, or
  ///     `nil` for no maximum.
  ///   - clock: The clock that measures the delays.
  ///   - action: The action to run with each fired value. It runs outside any actor and never overlaps
  ///     itself. Of several values fired during a run, the next run receives the last one.
  public init(
    _ initial: Value,
    delay: Duration,
    leading: Bool = false,
    maximumDelay: Duration? = nil,
    clock: any Clock<Duration> = ContinuousClock(),
    action: (@concurrent @Sendable (Value) async -> Void)? = nil
  ) {
    self.initial = initial
    core = FiringCore(
      Debouncer.ScheduleState(delay: delay, maximumDelay: maximumDelay, leading: leading),
      value: initial,
      clock: clock,
      action: action
    )
  }

  deinit {
    core.release()
  }

  /// The current value, fired or not.
  public nonisolated var value: Value {
    get { core.read { $0.value } ?? initial }
    set { core.set(newValue) }
  }

  /// Requests a firing of the value, even if it has not changed.
  ///
  /// Postpones a pending firing, as a change does.
  public nonisolated func touch() {
    core.touch()
  }

  /// Drops the pending firing and keeps the value.
  ///
  /// Runs of the action that have not begun are dropped, too; a running action continues. The values of dropped runs
  /// count as not fired, even if subscribers have received them: the value that was fired last is that of the last run
  /// that has begun, or the initial one. Setting a dropped value again, after another one, therefore fires it. With
  /// `leading`, the next change fires immediately.
  public nonisolated func cancel() {
    core.cancel()
  }

  /// Fires if a firing is pending, and waits until the action has run for all firings so far.
  ///
  /// Waits for a running action even if nothing is pending. Returns immediately if there is neither. The wait
  /// ends early if the awaited run is dropped by ``cancel()`` or the calling task is cancelled; the pending
  /// firing has happened even then. Inside the action, and inside a fetch or another action that the action
  /// waits for, it fires but does not wait, which would be a deadlock.
  public nonisolated func flush() async {
    await core.flush(retaining: self)
  }

  /// Registers a subscriber, which receives the values that are fired from now on.
  ///
  /// - Parameter bufferingPolicy: The policy for values that the subscriber has not read yet.
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  public nonisolated func subscribe(
    bufferingPolicy: BufferingPolicy<Value> = .unbounded
  ) -> AsyncStream<Value> {
    AsyncStream(subscription(bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber, which receives the values that are fired from now on.
  ///
  /// - Parameter bufferingPolicy: The policy for values that the subscriber has not read yet.
  /// - Returns: The subscription, which ends when it is dropped or the task that iterates it is cancelled.
  public nonisolated func subscription(
    bufferingPolicy: BufferingPolicy<Value> = .unbounded
  ) -> Subscription<Value> {
    hub.subscription(bufferingPolicy: bufferingPolicy)
  }

  /// The current number of subscribers, including handlers.
  public nonisolated var subscriberCount: Int {
    hub.subscriberCount
  }
}

extension DebouncerVar: HubOwner {
  nonisolated var hub: BroadcastHub<Value> { core.hub }
}
