/// A value that any thread can read and set, and that publishes its changes.
///
/// A new subscriber receives the current value first, and then every new one. By default, a slow stream skips to
/// the newest value, and a handler is called for every value. Other libraries call this a `CurrentValueSubject`, a `StateFlow` or a `watch` channel.
///
/// ```swift
/// let volume = CurrentValue(3)
/// let token = volume.observe { print("volume \($0)") }  // Prints "volume 3"
/// volume.value = 4  // Prints "volume 4"
/// volume.update { $0 += 1 }  // Prints "volume 5"
/// ```
///
/// ## Reading and setting
///
/// Read and set ``value`` from any thread or actor, without a hop. Each access is atomic, but two threads that run
/// `value += 1` concurrently can lose a change. ``update(_:)`` loses none.
///
/// ## Equal values
///
/// By default, setting an equal value publishes it again. Create the value with `removesDuplicates` to skip equal
/// values. A subscriber then never receives the same value twice in a row, even if it skipped others in between.
///
/// ## Ending
///
/// When you call ``finish()`` or release the last reference, every stream ends after the last value. Streams, handlers
/// and tokens do not keep the value alive.
///
/// ## Topics
///
/// ### Creating a value
/// - ``init(_:)``
/// - ``init(_:removesDuplicates:)``
///
/// ### Reading and setting
/// - ``value``
/// - ``current``
/// - ``update(_:)``
/// - ``finish()``
///
/// ### Subscribing
/// - ``subscribe(bufferingPolicy:)``
/// - ``subscription(bufferingPolicy:)``
///
/// ### Counting subscribers
/// - ``subscriberCount``
/// - ``subscriberCounts(bufferingPolicy:)``
/// - ``waitForSubscriber()``
public final actor CurrentValue<Value: Sendable>: StatefulBroadcaster {
  /// The type of the elements that subscribers receive.
  public typealias Element = Value

  @usableFromInline
  struct State: Sendable {
    @usableFromInline var value: Value
    /// The number of earlier values.
    @usableFromInline var version: UInt64 = 0
    @usableFromInline var isFinished = false

    @inlinable
    init(value: Value) {
      self.value = value
    }
  }

  @usableFromInline let state: Locked<State>
  @usableFromInline let hub: BroadcastHub<Value>

  @inlinable
  init(_ value: Value, areEqual: (@Sendable (Value, Value) -> Bool)?) {
    state = Locked(State(value: value))
    hub = BroadcastHub(areEqual: areEqual)
  }

  /// Creates a current value that publishes every value to which it is set.
  ///
  /// - Parameter value: The initial value.
  @inlinable
  public init(_ value: Value) {
    self.init(value, areEqual: nil)
  }

  /// Creates a current value that can skip equal values.
  ///
  /// - Parameters:
  ///   - value: The initial value.
  ///   - removesDuplicates: Whether setting a value that equals the current one has no effect.
  @inlinable
  public init(_ value: Value, removesDuplicates: Bool) where Value: Equatable {
    let areEqual: @Sendable (Value, Value) -> Bool = { $0 == $1 }
    self.init(value, areEqual: removesDuplicates ? areEqual : nil)
  }

  deinit {
    hub.finish()
  }

  /// The current value.
  @inlinable public nonisolated var value: Value {
    get { state.withLock { $0.value } }
    set { set(newValue) }
  }

  /// The current value.
  @inlinable public nonisolated var current: Value { value }

  @inlinable
  nonisolated func set(_ new: Value) {
    if hub.areEqual != nil { return update { $0 = new } }
    publish(new, replacing: nil)
  }

  /// Changes the value atomically.
  ///
  /// The body modifies a copy of the value, with no lock held. If another thread sets the value meanwhile, the body
  /// runs again with the newer value, so it should have no other side effects. The body must not set this value itself.
  ///
  /// If the body throws, nothing changes. After ``finish()``, the body runs but the value does not change.
  ///
  /// - Parameter body: A closure that changes the value.
  /// - Returns: The result of the last run of the body.
  /// - Throws: The error of the body.
  @inlinable
  @discardableResult
  public nonisolated func update<Result: Sendable>(
    _ body: @Sendable (inout Value) throws -> Result
  ) rethrows -> Result {
    while true {
      let (old, version) = state.withLock { ($0.value, $0.version) }
      var new = old
      let result = try body(&new)
      if let areEqual = hub.areEqual, areEqual(old, new) { return result }
      if publish(new, replacing: version) { return result }
    }
  }

  /// Sets the value and publishes it, unless the value was replaced meanwhile.
  ///
  /// - Parameters:
  ///   - new: The value to set.
  ///   - version: The number of the value to replace; `nil` replaces any value.
  /// - Returns: Whether the change is complete. If not, the version was outdated.
  @inlinable
  @discardableResult
  nonisolated func publish(_ new: Value, replacing version: UInt64?) -> Bool {
    var old = new
    var delivery = Delivery<Value>()
    let isDone = state.withLock { state in
      guard !state.isFinished else { return true }
      guard version == nil || version == state.version else { return false }
      swap(&state.value, &old)
      state.version &+= 1
      hub.prepare(new, &delivery)
      return true
    }
    delivery.deliver()
    withExtendedLifetime(old) {}
    return isDone
  }

  /// Ends every stream after the last value.
  ///
  /// The value can still be read. Setting it has no effect, and a later stream yields the last value and ends.
  public nonisolated func finish() {
    state.withLock { $0.isFinished = true }
    hub.finish()
  }

  /// Registers a subscriber, which receives the current value and then every new one.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  public nonisolated func subscribe(
    bufferingPolicy: BufferingPolicy<Value> = .bufferingNewest(1)
  ) -> AsyncStream<Value> {
    AsyncStream(subscription(bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber, which receives the current value and then every new one.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The subscription, which ends when it is dropped or the task that iterates it is cancelled.
  public nonisolated func subscription(
    bufferingPolicy: BufferingPolicy<Value> = .bufferingNewest(1)
  ) -> Subscription<Value> {
    registered(bufferingPolicy: bufferingPolicy)
  }

  /// The current number of subscribers, including streams and handlers.
  public nonisolated var subscriberCount: Int {
    hub.subscriberCount
  }
}

extension CurrentValue: HubBacked {
  nonisolated func withHub<Result>(
    _ body: (_ hub: BroadcastHub<Value>, _ replay: [Value]) -> Result
  ) -> Result {
    state.withLock { body(hub, [$0.value]) }
  }
}
