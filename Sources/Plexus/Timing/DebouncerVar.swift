/// A variable that tells its value once it has stopped changing.
///
/// Set ``value`` as often as you like, from any thread or actor. When it has not changed for the
/// delay, the value is fired: streams and handlers get it, and the action, if there is one, runs with
/// it.
///
/// ```swift
/// let query = DebouncerVar("", delay: .milliseconds(300)) { text in
///   print("search for \(text)")
/// }
/// query.value = "s"
/// query.value = "sw"
/// query.value = "swift"  // only this one is searched for
/// ```
///
/// Everything that ``Debouncer`` promises about times, the action, cancellation, release and clocks
/// holds here, too.
///
/// ## What counts as a change
///
/// Setting an equal value does nothing, and does not postpone either. Going back to the value that
/// was fired last, before the delay has passed, cancels the firing: nobody has seen another one. The
/// initial value counts as fired. Values are compared without a lock; the comparison may take its
/// time, and may use the variable.
///
/// ``touch()`` fires the value as it will be then, changed or not; going back takes that back, too.
///
/// The variable is read and set atomically, each by itself: `value += 1` on two threads at once may
/// lose one of the two.
///
/// ## Topics
///
/// ### Creating a variable
/// - ``init(_:delay:leading:maximumDelay:clock:action:)``
///
/// ### Changing it
/// - ``value``
/// - ``touch()``
/// - ``cancel()``
/// - ``flush()``
///
/// ### Listening to it
/// - ``subscribe(bufferingPolicy:)``
/// - ``subscription(bufferingPolicy:)``
/// - ``subscriberCount``
public final actor DebouncerVar<Value: Equatable & Sendable>: Broadcaster {
  /// What subscribers receive: the values that are fired.
  public typealias Element = Value

  let core: FiringCore<DebounceState, Value>
  private let initial: Value

  /// Creates a variable with nothing pending.
  ///
  /// - Parameters:
  ///   - initial: The value at the beginning, which counts as fired.
  ///   - delay: How long the value must not change; zero or less fires every change.
  ///   - leading: Whether the first change after a quiet time fires at once.
  ///   - maximumDelay: How long a change waits at most for the next firing, however many follow;
  ///     `nil` is for ever.
  ///   - clock: What measures the time.
  ///   - action: What to do with a value that is fired. It runs off every actor and never overlaps
  ///     itself; of several values that are fired while it runs, it gets the last one.
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
      DebounceState(delay: delay, maximumDelay: maximumDelay, leading: leading),
      value: initial,
      clock: clock,
      action: action
    )
  }

  deinit {
    core.release()
  }

  /// The value, as it was set last, fired or not.
  public nonisolated var value: Value {
    get { core.read { $0.value } ?? initial }
    set { core.set(newValue) }
  }

  /// Asks for a firing of the value, even if it has not changed.
  ///
  /// It postpones a pending one like a change does.
  public nonisolated func touch() {
    core.touch()
  }

  /// Drops what is pending, and keeps the value.
  ///
  /// An action that has not been called by then will not be called for what came before; one that is
  /// running goes on to its end. With `leading`, the next change
  /// fires at once.
  public nonisolated func cancel() {
    core.cancel()
  }

  /// Fires what is pending now, and waits until no action runs that was asked for before.
  ///
  /// It waits for an action that is running even if nothing is pending, and returns at once if there
  /// is neither, if the action that was to come is cancelled, and when the calling task is cancelled;
  /// what was pending has fired even then. Called from inside the action it fires and does not wait,
  /// since it would wait for itself.
  public nonisolated func flush() async {
    await core.flush()
    withExtendedLifetime(self) {}
  }

  /// Registers a subscriber and returns the values that are fired from now on.
  ///
  /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
  public nonisolated func subscribe(
    bufferingPolicy: BufferingPolicy<Value> = .unbounded
  ) -> AsyncStream<Value> {
    AsyncStream(subscription(bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber and returns the values that are fired from now on.
  ///
  /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
  public nonisolated func subscription(
    bufferingPolicy: BufferingPolicy<Value> = .unbounded
  ) -> Subscription<Value> {
    hub.subscription(bufferingPolicy: bufferingPolicy)
  }

  /// The number of subscribers at this moment, streams and handlers alike.
  public nonisolated var subscriberCount: Int {
    hub.subscriberCount
  }
}

extension DebouncerVar: HubOwner {
  nonisolated var hub: BroadcastHub<Value> { core.hub }
}
