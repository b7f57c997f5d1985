/// A value that any thread can read and set, and that tells its subscribers of every change.
///
/// A new subscriber gets the value at once, and then every value that is set. By default a slow subscriber
/// skips ahead to the newest. Other libraries call this a `CurrentValueSubject`, a `StateFlow` or a `watch`
/// channel.
///
/// ```swift
/// let volume = CurrentValue(3)
/// let token = volume.observe { print("volume \($0)") }
/// volume.value = 4
/// let doubled = volume.update { value in
///   value += 1
///   return value * 2
/// }
/// print(volume.value, doubled)  // 5 10
/// ```
///
/// ## Reading and setting
///
/// ``value`` can be read and set from any thread or actor, without a hop. Reading and setting are atomic, each
/// by itself: two threads that run `value += 1` at once can lose one of the changes. ``update(_:)`` loses none.
///
/// ## Equal values
///
/// Every value that is set is published, also one that equals the value before it. Create the value with
/// `removesDuplicates` to skip those: a subscriber then never gets a value that equals the one that it got
/// last, even if it has skipped others in between.
///
/// ## Ending
///
/// ``finish()`` ends every stream after the last value. So does the release of the last reference; streams,
/// handlers and tokens do not keep it alive.
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
/// ### Following
/// - ``subscribe(bufferingPolicy:)``
/// - ``subscription(bufferingPolicy:)``
/// - ``subscriberCount``
public final actor CurrentValue<Value: Sendable>: StatefulBroadcaster {
  /// The type of the elements: the values.
  public typealias Element = Value

  @usableFromInline
  struct State: Sendable {
    @usableFromInline var value: Value
    /// The number of values before this one.
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

  /// Creates a value that publishes everything that is set.
  ///
  /// - Parameter value: The value at the beginning.
  @inlinable
  public init(_ value: Value) {
    self.init(value, areEqual: nil)
  }

  /// Creates a value that can skip what is equal.
  ///
  /// - Parameters:
  ///   - value: The value at the beginning.
  ///   - removesDuplicates: Whether a value is ignored that equals the one before it.
  @inlinable
  public init(_ value: Value, removesDuplicates: Bool) where Value: Equatable {
    let areEqual: @Sendable (Value, Value) -> Bool = { $0 == $1 }
    self.init(value, areEqual: removesDuplicates ? areEqual : nil)
  }

  deinit {
    hub.finish()
  }

  /// The value.
  @inlinable public nonisolated var value: Value {
    get { state.withLock { $0.value } }
    set { set(newValue) }
  }

  /// The value.
  @inlinable public nonisolated var current: Value { value }

  @inlinable
  nonisolated func set(_ new: Value) {
    if hub.areEqual != nil { return update { $0 = new } }
    publish(new, replacing: nil)
  }

  /// Changes the value atomically.
  ///
  /// The body works on a copy of the value, with no lock held. If another thread has set the value meanwhile,
  /// the body runs again with the newer value; what it does beside changing the value therefore happens more
  /// than once. It must not set this value itself.
  ///
  /// Nothing changes if the body throws. After ``finish()`` the body still runs, but the value stays.
  ///
  /// - Parameter body: The change.
  /// - Returns: The result of the body's last run.
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

  /// Sets the value and publishes it, unless there is another one by now.
  ///
  /// - Parameters:
  ///   - new: The value to set.
  ///   - version: The number of the value to replace; `nil` replaces any.
  /// - Returns: Whether there is nothing left to do.
  @inlinable
  @discardableResult
  nonisolated func publish(_ new: Value, replacing version: UInt64?) -> Bool {
    var old = new
    var delivery: Delivery<Value>?
    let isDone = state.withLock { state in
      guard !state.isFinished else { return true }
      guard version == nil || version == state.version else { return false }
      swap(&state.value, &old)
      state.version &+= 1
      delivery = hub.prepare(new)
      return true
    }
    delivery?.deliver()
    withExtendedLifetime(old) {}
    return isDone
  }

  /// Ends every stream after the last value.
  ///
  /// The value can still be read. Later sets are ignored, and a later stream gets the last value and ends.
  public nonisolated func finish() {
    state.withLock { $0.isFinished = true }
    hub.finish()
  }

  /// Registers a subscriber and returns the value and those that follow.
  ///
  /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The stream, which lives until it is dropped or its task is cancelled.
  public nonisolated func subscribe(
    bufferingPolicy: BufferingPolicy<Value> = .bufferingNewest(1)
  ) -> AsyncStream<Value> {
    AsyncStream(subscription(bufferingPolicy: bufferingPolicy))
  }

  /// Registers a subscriber and returns the value and those that follow.
  ///
  /// - Parameter bufferingPolicy: What is kept for the subscriber while it is behind.
  /// - Returns: The subscription, which lives until it is dropped or its task is cancelled.
  public nonisolated func subscription(
    bufferingPolicy: BufferingPolicy<Value> = .bufferingNewest(1)
  ) -> Subscription<Value> {
    registered(bufferingPolicy: bufferingPolicy)
  }

  /// The number of subscribers at this moment, streams and handlers alike.
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
